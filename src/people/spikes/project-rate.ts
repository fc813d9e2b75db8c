/** How many realtime events a project receives: now, and usually. */

/** One calendar minute, counted from the epoch. */
export interface MinuteCount {
  minute: number;
  count: number;
  /** It was part of a spike and says nothing about what is usual. */
  isInSpike: boolean;
}

export const microsPerMinute = 60_000_000;
const bucketMicros = 5_000_000;
const bucketsPerMinute = microsPerMinute / bucketMicros;

/** Older arrivals than this, in buckets, mean that the clock was set back. */
const lateBucketsMax = 2 * bucketsPerMinute;

export class ProjectRate {
  /** Events of about the last 60 seconds. */
  perMinute = 0;
  /** Completed minutes and the present one, oldest first; minutes without events are left out. */
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

  /**
   * Counts one event.
   *
   * @returns whether a new calendar minute began with it.
   */
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

  /** Lets time pass without an event. */
  passTo(nowMicros: number): void {
    const bucket = Math.floor(nowMicros / bucketMicros);
    if (bucket > this.newestBucket) this.advance(bucket);
  }

  /** Forgets minutes before `minute`. */
  forgetBefore(minute: number): void {
    if (this.minutes.length > 0 && this.minutes[0]!.minute < minute) {
      this.minutes = this.minutes.filter((count) => count.minute >= minute);
    }
  }

  /** The present calendar minute's count. */
  get thisMinute(): number {
    return this.minutes.at(-1)?.count ?? 0;
  }

  /**
   * Median of events per minute over the given minutes, without those of spikes.
   *
   * @returns undefined when fewer than `minutesMin` are left.
   */
  usual(minutes: Iterable<number>, minutesMin: number): number | undefined {
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
        const place = (this.newestBucket + step) % bucketsPerMinute;
        this.perMinute -= this.buckets[place]!;
        this.buckets[place] = 0;
      }
    }
    this.newestBucket = bucket;
  }
}
