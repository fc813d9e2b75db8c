/** How many events per second arrived lately, from a counter that only grows. */

const sampleEveryMs = 1_000;
const samplesMax = 11;

export class EventRate {
  private readonly samples: { at: number; count: number }[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;

  /** @param read the counter. */
  constructor(private readonly read: () => number) {}

  /** Begins to sample; does not keep the process alive. */
  start(): void {
    this.sample(performance.now());
    this.timer = setInterval(() => this.sample(performance.now()), sampleEveryMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Remembers the counter at a moment, in milliseconds. */
  sample(at: number): void {
    this.samples.push({ at, count: this.read() });
    if (this.samples.length > samplesMax) this.samples.shift();
  }

  /** Events per second over the last ten seconds, or since the start when that was later. */
  perSecond(now = performance.now()): number {
    const oldest = this.samples[0];
    if (oldest === undefined || now <= oldest.at) return 0;
    return Math.round(((this.read() - oldest.count) / (now - oldest.at)) * 10_000) / 10;
  }
}
