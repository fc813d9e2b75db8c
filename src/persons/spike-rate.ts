/** The rate of realtime events of a project: current and usual. */

/** A calendar minute, counted from the epoch. */
export interface MinuteCount {
  minute: number;
  count: number;
  /** The minute was part of a spike and is excluded from the baseline rate. */
  isInSpike: boolean;
}

export const microsPerMinute = 60_000_000;
const bucketMicros = 5_000_000;
const bucketsPerMinute = microsPerMinute / bucketMicros;

/** Arrivals older than this number of buckets mean that the clock was set back. */
const lateBucketsMax = 2 * bucketsPerMinute;

export class ProjectRate {
  /** Events of approximately the last 60 seconds. */
  perMinute = 0;
  /** Completed minutes and the current one, oldest first; without minutes that have no events. */
  minutes: MinuteCount[];
  private readonly buckets = new Int32Array(bucketsPerMinute);
  private newestBucket = 0;

  constructor(
    readonly projectId: number,
    /** The first minute with an event. */
    public firstMinute: number,
    minutes: MinuteCount[] = [],
  ) {
    this.minutes = minutes;
  }

  /** Counts one event. @returns whether it starts a new calendar minute */
  add(receivedMicros: number, isInSpike: boolean): boolean {
    this.advance(Math.floor(receivedMicros / bucketMicros));
    this.buckets[this.newestBucket % bucketsPerMinute]! += 1;
    this.perMinute += 1;
    const minute = Math.floor((this.newestBucket * bucketMicros) / microsPerMinute);
    const newest = this.minutes.at(-1);
    if (newest?.minute === minute) {
      newest.count += 1;
      newest.isInSpike ||= isInSpike;
      return false;
    }
    this.minutes.push({ minute, count: 1, isInSpike });
    return true;
  }

  /** Advances the time without an event. */
  passTo(nowMicros: number): void {
    const bucket = Math.floor(nowMicros / bucketMicros);
    if (bucket > this.newestBucket) this.advance(bucket);
  }

  /** Deletes minutes before `minute`. */
  forgetBefore(minute: number): void {
    if (this.minutes.length > 0 && this.minutes[0]!.minute < minute) {
      this.minutes = this.minutes.filter((count) => count.minute >= minute);
    }
  }

  /** Count of the current calendar minute. */
  get thisMinute(): number {
    return this.minutes.at(-1)?.count ?? 0;
  }

  /**
   * Median events per minute over the given minutes, excluding spikes.
   * @returns undefined if fewer than `minutesMin` remain
   */
  baseline(minutes: Iterable<number>, minutesMin: number): number | undefined {
    const counts = new Map(this.minutes.map((count) => [count.minute, count]));
    const values: number[] = [];
    for (const minute of minutes) {
      const known = counts.get(minute);
      if (minute >= this.firstMinute && known?.isInSpike !== true) values.push(known?.count ?? 0);
    }
    if (values.length < minutesMin || values.length === 0) return undefined;
    values.sort((a, b) => a - b);
    const middle = values.length >> 1;
    return values.length % 2 === 1 ? values[middle]! : (values[middle - 1]! + values[middle]!) / 2;
  }

  private advance(bucket: number): void {
    const steps = bucket - this.newestBucket;
    if (steps <= 0 && steps >= -lateBucketsMax) return;
    if (steps < 0) {
      const minute = Math.floor((bucket * bucketMicros) / microsPerMinute);
      this.minutes = this.minutes.filter((count) => count.minute < minute);
      this.firstMinute = Math.min(this.firstMinute, minute);
    }
    if (steps < 0 || steps >= bucketsPerMinute) {
      this.buckets.fill(0);
      this.perMinute = 0;
    } else {
      for (let step = 1; step <= steps; step += 1) {
        const index = (this.newestBucket + step) % bucketsPerMinute;
        this.perMinute -= this.buckets[index]!;
        this.buckets[index] = 0;
      }
    }
    this.newestBucket = bucket;
  }
}
