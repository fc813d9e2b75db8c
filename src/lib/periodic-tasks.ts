/** Runs background tasks at fixed intervals. */

export class PeriodicTasks {
  private readonly timers: ReturnType<typeof setInterval>[] = [];

  /** @param onError receives the error of a task, which is retried at the next interval. */
  constructor(private readonly onError: (error: unknown) => void) {}

  /** Runs a task at an interval in milliseconds, never concurrently with itself, without keeping the process alive. */
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

  /** Starts no further runs; running ones complete. */
  stop(): void {
    for (const timer of this.timers) clearInterval(timer);
  }
}
