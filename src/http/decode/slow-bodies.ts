/**
 * Cuts off clients that send their body a few bytes at a time, without bothering the slow and honest ones: a body has
 * to make progress, it need not be fast.
 *
 * One timer for all bodies, counting in ticks, because a timer for each would cost as much as reading a small body.
 */

import { BodyInterrupted } from "./failures.ts";

/** A slow but honest connection makes more than this. */
const bytesPerSecondMin = 5_000;
const ticksPerPatience = 10;

interface Watched {
  lastTick: number;
  readonly cut: () => void;
}

/** Watches the bodies that are being read. */
export class SlowBodies {
  private readonly watched = new Set<Watched>();
  private tick = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  /** @param patienceMs how long a body may go without progress worth the name. */
  constructor(private readonly patienceMs: number) {}

  /**
   * Waits for a body whose progress cannot be seen, as long as `bytes` may take, and at least for the patience.
   *
   * @throws {BodyInterrupted} it took longer, or the client went away.
   */
  whole(body: Promise<Uint8Array>, bytes: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const interrupt = () => reject(new BodyInterrupted());
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
   * Reads a body piece by piece.
   *
   * @param keep gets each piece and answers whether to read on; the client is not blamed for the time that it takes.
   * @returns whether the body was read to its end.
   * @throws {BodyInterrupted} no progress, or the client went away. @throws what `keep` throws.
   */
  async pieces(
    body: ReadableStream<Uint8Array>,
    keep: (piece: Uint8Array) => boolean | Promise<boolean>,
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
          throw new BodyInterrupted();
        });
        if (isCut) throw new BodyInterrupted();
        if (done) return true;
        const kept = keep(value);
        if (!(typeof kept === "boolean" ? kept : await this.unwatched(watched, kept))) {
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

  /** Waits for something else than the client. */
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
