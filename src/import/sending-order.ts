/** Lets batches go on their way in the order in which they were read, also those of different files. */
export class SendingOrder {
  private last: Promise<unknown> = Promise.resolve();
  /** Batches that have not arrived. */
  private readonly underWay = new Set<Promise<void>>();

  /**
   * @param ready what a batch waits for by itself.
   * @param send  called when all batches before it were sent, not when they have arrived.
   * @returns when it has arrived.
   */
  add<Ready>(ready: Promise<Ready>, send: (ready: Ready) => Promise<void>): Promise<void> {
    const before = this.last;
    const sent = (async () => {
      const [value] = await Promise.all([ready, before]);
      // In an object: it must not be awaited here.
      return { arrival: send(value) };
    })();
    this.last = sent;
    const arrived = sent.then(({ arrival }) => arrival);
    this.underWay.add(arrived);
    // A failure is seen where the result is awaited.
    sent.catch(() => undefined);
    arrived.then(() => this.underWay.delete(arrived)).catch(() => undefined);
    return arrived;
  }

  /** Resolves when everything has arrived. @throws what a batch threw. */
  async idle(): Promise<void> {
    await Promise.all(this.underWay);
  }
}
