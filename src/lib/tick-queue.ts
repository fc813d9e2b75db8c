/** Runs one waiting job per event loop tick, so that arriving requests are served in between. */

export class TickQueue {
  /** Waiting keys in the order of their next ticks; lists are never empty. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private isScheduled = false;

  /**
   * Resolves at the caller's next tick. Callers take ticks round-robin, however many each of them waits for; the
   * requests of one caller are served in order.
   *
   * @param who key of the caller.
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
      const start = own.shift()!;
      if (own.length > 0) this.waiting.set(who, own);
      start();
      return;
    }
  }
}
