/** Recent events per second, from a monotonic counter. */

const sampleEveryMs = 1_000;
const samplesMax = 11;

export class EventRate {
  private readonly samples: { at: number; count: number }[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;

  /** @param read returns the counter. */
  constructor(private readonly read: () => number) {}

  /** Starts sampling; does not keep the process alive. */
  start(): void {
    this.sample(performance.now());
    this.timer = setInterval(() => this.sample(performance.now()), sampleEveryMs);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Records the counter. @param at milliseconds */
  sample(at: number): void {
    this.samples.push({ at, count: this.read() });
    if (this.samples.length > samplesMax) this.samples.shift();
  }

  /** Events per second over the last ten seconds, or since a later start. */
  perSecond(now = performance.now()): number {
    const oldest = this.samples[0];
    if (oldest === undefined || now <= oldest.at) return 0;
    return Math.round(((this.read() - oldest.count) / (now - oldest.at)) * 10_000) / 10;
  }
}
