/** Limits concurrency in total and per key; further callers wait in order. */

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
