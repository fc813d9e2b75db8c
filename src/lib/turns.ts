/** Gives pieces of work their turn, one in each turn of the event loop, so that what arrives meanwhile is served. */

export class Turns {
  /** Who waits, in the order of their next turns; nobody has an empty list. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private isScheduled = false;

  /**
   * Resolves when it is this caller's turn. Those who wait get turns one after the other, however much each of them
   * waits for; what one of them asked for first comes first.
   *
   * @param who whose work it is.
   */
  next(who: string): Promise<void> {
    return new Promise((resolve) => {
      const own = this.waiting.get(who);
      if (own === undefined) this.waiting.set(who, [resolve]);
      else own.push(resolve);
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.start();
      if (this.waiting.size > 0) this.schedule();
    });
  }

  private start(): void {
    for (const [who, own] of this.waiting) {
      this.waiting.delete(who);
      const begin = own.shift()!;
      if (own.length > 0) this.waiting.set(who, own);
      begin();
      return;
    }
  }
}
