/** Limits of concurrency, queues, periodic tasks and values that are created once. */

export interface SemaphoreLimits {
  /** Running concurrently. */
  total: number;
  /** Running concurrently with the same key. */
  perKey: number;
  /** Maximum number of waiting callers; further ones are rejected. */
  waiting: number;
}

/** The queue is full. */
export class CapacityExceededError extends Error {}

interface Waiting {
  key: number;
  isAlone: boolean;
  start: () => void;
}

/** Each `enter` requires exactly one leave, also after an error. */
export class Semaphore {
  private readonly queue: Waiting[] = [];
  private readonly running = new Map<number, number>();
  private count = 0;
  private alone = false;

  constructor(private readonly limits: SemaphoreLimits) {}

  /**
   * Waits for a slot.
   *
   * @param isAlone nothing else runs at the same time.
   * @returns a function to call once, when the work is done.
   * @throws {CapacityExceededError} @throws the signal's reason when it aborts first.
   */
  async enter(key: number, { signal, isAlone = false }: { signal?: AbortSignal; isAlone?: boolean } = {}) {
    signal?.throwIfAborted();
    if (this.queue.length >= this.limits.waiting && !this.canStart(key, isAlone))
      throw new CapacityExceededError();
    await new Promise<void>((resolve, reject) => {
      const entry: Waiting = { key, isAlone, start: () => {} };
      const leave = () => {
        this.queue.splice(this.queue.indexOf(entry), 1);
        this.startWaiting();
        reject(signal!.reason);
      };
      entry.start = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.queue.push(entry);
      this.startWaiting();
    });
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.count -= 1;
      this.alone = false;
      this.running.set(key, this.running.get(key)! - 1);
      if (this.running.get(key) === 0) this.running.delete(key);
      this.startWaiting();
    };
  }

  private canStart(key: number, isAlone: boolean): boolean {
    if (this.alone || (isAlone && this.count > 0)) return false;
    return this.count < this.limits.total && (this.running.get(key) ?? 0) < this.limits.perKey;
  }

  private startWaiting(): void {
    for (let index = 0; index < this.queue.length; ) {
      const entry = this.queue[index]!;
      if (this.canStart(entry.key, entry.isAlone)) {
        this.queue.splice(index, 1);
        this.count += 1;
        this.alone = entry.isAlone;
        this.running.set(entry.key, (this.running.get(entry.key) ?? 0) + 1);
        entry.start();
      } else if (entry.isAlone) {
        // Prevents starvation.
        return;
      } else {
        index += 1;
      }
    }
  }
}

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

const growth = 4;

/** Starts with one row, grows quickly, and follows the weight of the last batch. */
export class AdaptiveBatchSize {
  /**
   * @param weight target weight of a batch.
   * @param max    maximum number of rows.
   */
  constructor(
    private readonly weight: number,
    private readonly max: number,
    public rows = 1,
  ) {}

  /** Adapts to the weight of the last batch. */
  follow(weight: number, rows: number): void {
    const fitting = weight === 0 ? this.max : Math.floor((this.weight * rows) / weight);
    this.rows = Math.max(1, Math.min(fitting, this.rows * growth, this.max));
  }
}

/** Creates a value on the first call and returns the same one afterwards; a failed attempt is repeated. */
export function once<Value>(make: () => Value): () => Value {
  let cached: { value: Value } | undefined;
  return () => {
    cached ??= { value: make() };
    return cached.value;
  };
}

/** A value that is usually available at once: awaiting it would cost each request a tick. */
export type MaybePromise<Value> = Value | Promise<Value>;
