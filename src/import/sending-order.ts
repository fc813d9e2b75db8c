/** Sends batches in reading order, also across files. */
export class SendingOrder {
  private last: Promise<unknown> = Promise.resolve();
  /** Batches that have not arrived. */
  private readonly underWay = new Set<Promise<void>>();
  private bytes = 0;

  /**
   * @param bytes of the batch, for `room`.
   * @param ready what the batch itself waits for.
   * @param send  called when all previous batches were sent, not when they have arrived.
   * @returns when it has arrived.
   */
  add<Ready>(bytes: number, ready: Promise<Ready>, send: (ready: Ready) => Promise<void>): Promise<void> {
    const before = this.last;
    const sent = (async () => {
      const [value] = await Promise.all([ready, before]);
      // Wrapped in an object, so that the promise is not awaited here.
      return { arrival: send(value) };
    })();
    this.last = sent;
    const arrived = sent.then(({ arrival }) => arrival);
    this.underWay.add(arrived);
    this.bytes += bytes;
    // A failure is reported where the result is awaited.
    sent.catch(() => undefined);
    const leave = () => {
      this.bytes -= bytes;
      this.underWay.delete(arrived);
    };
    arrived.then(leave).catch(() => undefined);
    return arrived;
  }

  /** Resolves when the batches in flight have fewer bytes. @throws errors of a batch. */
  async waitForCapacity(bytesMax: number): Promise<void> {
    while (this.bytes >= bytesMax) await Promise.race(this.underWay);
  }

  /** Resolves when everything has arrived. @throws errors of a batch. */
  async idle(): Promise<void> {
    await Promise.all(this.underWay);
  }
}
