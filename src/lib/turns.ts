/** Gives pieces of work their turn, one in each turn of the event loop, so that what arrives meanwhile is served. */

export class Turns {
  private readonly waiting: (() => void)[] = [];
  private isScheduled = false;

  /** Resolves when it is this caller's turn; those who asked before come first. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.waiting.shift()?.();
      if (this.waiting.length > 0) this.schedule();
    });
  }
}
