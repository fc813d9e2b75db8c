/** Bounds the bytes of request bodies that are held at once, whoever sends them. */

import { HttpFailure } from "./failure.ts";

/** How long a body waits for its place before its client is asked to come again. */
const waitMsMax = 20_000;
const retryAfterSeconds = 5;

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
}

export class BodyBudget {
  private used = 0;
  private readonly queue: Waiting[] = [];

  /** @param waitMs how long a body waits; 20 s unless a test is in a hurry. */
  constructor(
    private readonly bytesMax: number,
    private readonly waitMs = waitMsMax,
  ) {}

  /**
   * Waits until there is room; those who asked before come first. A body larger than the whole budget has it alone.
   *
   * @returns gives the room back; to be called once.
   * @throws {HttpFailure} 503 when there is none for too long.
   */
  async take(bytes: number): Promise<() => void> {
    const wanted = Math.min(bytes, this.bytesMax);
    if (this.queue.length > 0 || this.used + wanted > this.bytesMax) await this.wait(wanted);
    else this.used += wanted;
    return () => {
      this.used -= wanted;
      this.startWaiting();
    };
  }

  private wait(bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = {
        bytes,
        start: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.queue.splice(this.queue.indexOf(waiting), 1);
        reject(overloaded());
        this.startWaiting();
      }, this.waitMs);
      this.queue.push(waiting);
    });
  }

  private startWaiting(): void {
    for (let next = this.queue[0]; next !== undefined; next = this.queue[0]) {
      if (this.used + next.bytes > this.bytesMax) return;
      this.used += next.bytes;
      this.queue.shift();
      next.start();
    }
  }
}

function overloaded(): HttpFailure {
  const detail = "Too many large requests are being read at this moment; send this one again.";
  return new HttpFailure(503, "server_error", "overloaded", detail, null, {
    "Retry-After": String(retryAfterSeconds),
    // What is left of a body that was not waited for must not be taken for the next request.
    Connection: "close",
  });
}
