/** Lets batches go on their way in the order in which they were read, also those of different files. */
export class SendingOrder {
  private last: Promise<unknown> = Promise.resolve();
  /** Batches that have not arrived. */
  private readonly underWay = new Set<Promise<void>>();
  private bytes = 0;

  /**
   * @param bytes of the batch, for `room`.
   * @param ready what a batch waits for by itself.
   * @param send  called when all batches before it were sent, not when they have arrived.
   * @returns when it has arrived.
   */
  add<Ready>(bytes: number, ready: Promise<Ready>, send: (ready: Ready) => Promise<void>): Promise<void> {
    const before = this.last;
    const sent = (async () => {
      const [value] = await Promise.all([ready, before]);
      // In an object: it must not be awaited here.
      return { arrival: send(value) };
    })();
    this.last = sent;
    const arrived = sent.then(({ arrival }) => arrival);
    this.underWay.add(arrived);
    this.bytes += bytes;
    // A failure is seen where the result is awaited.
    sent.catch(() => undefined);
    const leave = () => {
      this.bytes -= bytes;
      this.underWay.delete(arrived);
    };
    arrived.then(leave).catch(() => undefined);
    return arrived;
  }

  /** Resolves when the batches under way have fewer bytes. @throws what a batch threw. */
  async room(bytesMax: number): Promise<void> {
    while (this.bytes >= bytesMax) await Promise.race(this.underWay);
  }

  /** Resolves when everything has arrived. @throws what a batch threw. */
  async idle(): Promise<void> {
    await Promise.all(this.underWay);
  }
}
