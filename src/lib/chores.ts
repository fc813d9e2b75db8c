/** Work that is done now and then beside everything else. */

export class Chores {
  private readonly timers: ReturnType<typeof setInterval>[] = [];

  /** @param onError told what a piece of work threw; it is tried again the next time. */
  constructor(private readonly onError: (error: unknown) => void) {}

  /** Does something every so many milliseconds, never twice at once; it keeps no process alive. */
  every(ms: number, work: () => Promise<void>): void {
    let isBusy = false;
    const timer = setInterval(async () => {
      if (isBusy) return;
      isBusy = true;
      await work().catch(this.onError);
      isBusy = false;
    }, ms);
    timer.unref();
    this.timers.push(timer);
  }

  /** Nothing is begun any more; what is under way ends by itself. */
  stop(): void {
    for (const timer of this.timers) clearInterval(timer);
  }
}
