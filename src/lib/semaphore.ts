/** Lets a few run at once, not too many of one key, and the others wait in order. */

export interface SemaphoreLimits {
  /** Run at once. */
  total: number;
  /** Run at once under one key. */
  perKey: number;
  /** Wait at most; more are refused. */
  waiting: number;
}

/** More wait than may. */
export class SemaphoreFull extends Error {}

interface Waiting {
  key: number;
  isAlone: boolean;
  start: () => void;
}

/** Who has entered leaves exactly once, also after an error. */
export class Semaphore {
  private readonly queue: Waiting[] = [];
  private readonly running = new Map<number, number>();
  private count = 0;
  private alone = false;

  constructor(private readonly limits: SemaphoreLimits) {}

  /**
   * Waits for its turn.
   *
   * @param isAlone nothing else runs beside it.
   * @returns what has to be called, once, when the work is done.
   * @throws {SemaphoreFull} @throws the signal's reason when it is aborted before.
   */
  async enter(key: number, { signal, isAlone = false }: { signal?: AbortSignal; isAlone?: boolean } = {}) {
    signal?.throwIfAborted();
    if (this.queue.length >= this.limits.waiting && !this.canStart(key, isAlone)) throw new SemaphoreFull();
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
        // Else there would always be somebody before it.
        return;
      } else {
        index += 1;
      }
    }
  }
}
