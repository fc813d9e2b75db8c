/**
 * Cuts off clients that trickle their body, but not slow connections: a body has to make progress, it need not be fast.
 *
 * One timer for all bodies, counting in ticks: a timer per body would cost as much as reading a small body.
 */

import { IncompleteBodyError } from "./errors.ts";

/** A slow but working connection is faster than this. */
const bytesPerSecondMin = 5_000;
const ticksPerPatience = 10;

interface Watched {
  lastTick: number;
  readonly cut: () => void;
}

export class BodyTimeoutMonitor {
  private readonly watched = new Set<Watched>();
  private tick = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** @param patienceMs how long a body may make too little progress. */
  constructor(private readonly patienceMs: number) {}

  /**
   * Waits for a body whose progress is invisible, for the time that `bytes` may take, and at least `patienceMs`.
   *
   * @throws {IncompleteBodyError} it took longer, or the client disconnected.
   */
  whole(body: Promise<Uint8Array>, bytes: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const interrupt = () => reject(new IncompleteBodyError());
      const watched = this.watch(interrupt, bytes);
      const settle = (then: () => void) => {
        this.watched.delete(watched);
        then();
      };
      body.then(
        (whole) => settle(() => resolve(whole)),
        () => settle(interrupt),
      );
    });
  }

  /**
   * Reads a body chunk by chunk.
   *
   * @param keep receives each chunk and returns whether to continue; its own time does not count against the client.
   * @returns whether the body was read to its end.
   * @throws {IncompleteBodyError} no progress, or the client disconnected. @throws errors of `keep`.
   */
  async chunks(
    body: ReadableStream<Uint8Array>,
    keep: (chunk: Uint8Array) => boolean | Promise<boolean>,
  ): Promise<boolean> {
    const reader = body.getReader();
    const stop = () => void reader.cancel().catch(() => {});
    const bytesPerPatience = (bytesPerSecondMin * this.patienceMs) / 1_000;
    let isCut = false;
    let progress = 0;
    const watched = this.watch(() => {
      isCut = true;
      stop();
    }, 0);
    try {
      for (;;) {
        const { done, value } = await reader.read().catch(() => {
          throw new IncompleteBodyError();
        });
        if (isCut) throw new IncompleteBodyError();
        if (done) return true;
        const retained = keep(value);
        if (!(typeof retained === "boolean" ? retained : await this.unwatched(watched, retained))) {
          stop();
          return false;
        }
        progress += value.length;
        if (progress >= bytesPerPatience) {
          progress = 0;
          watched.lastTick = this.tick + ticksPerPatience;
        }
      }
    } catch (error) {
      stop();
      throw error;
    } finally {
      this.watched.delete(watched);
    }
  }

  /** Waits for work that does not depend on the client. */
  private async unwatched(watched: Watched, work: Promise<boolean>): Promise<boolean> {
    this.watched.delete(watched);
    const result = await work;
    watched.lastTick = this.tick + ticksPerPatience;
    this.add(watched);
    return result;
  }

  private watch(cut: () => void, bytes: number): Watched {
    const neededTicks = Math.ceil((bytes / bytesPerSecondMin) * (1_000 / this.tickMs));
    const watched = { lastTick: this.tick + Math.max(ticksPerPatience, neededTicks), cut };
    this.add(watched);
    return watched;
  }

  private add(watched: Watched): void {
    this.watched.add(watched);
    if (this.timer !== undefined) return;
    this.timer = setInterval(() => this.onTick(), this.tickMs);
    this.timer.unref();
  }

  private get tickMs(): number {
    return this.patienceMs / ticksPerPatience;
  }

  private onTick(): void {
    this.tick++;
    for (const watched of this.watched) {
      if (watched.lastTick >= this.tick) continue;
      this.watched.delete(watched);
      watched.cut();
    }
    if (this.watched.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
  }
}
