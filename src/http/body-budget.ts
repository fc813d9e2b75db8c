/** Bounds the bytes of request bodies in memory, across all clients. */

import { HttpError } from "./http-error.ts";

/** How long a body waits for capacity before the request is rejected with 503. */
const waitMsMax = 20_000;
const retryAfterSeconds = 5;

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
}

export class BodyBudget {
  private used = 0;
  private readonly queue: Waiting[] = [];

  /** @param waitMs maximum wait; shorter in tests. */
  constructor(
    private readonly bytesMax: number,
    private readonly waitMs = waitMsMax,
  ) {}

  /**
   * Waits for capacity, first come, first served. A body larger than the whole budget gets all of it.
   *
   * @returns releases the capacity; to be called once.
   * @throws {HttpError} 503 after the maximum wait.
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

function overloaded(): HttpError {
  const detail = "Too many large requests are in progress. Retry the request.";
  return new HttpError(503, "server_error", "overloaded", detail, null, {
    "Retry-After": String(retryAfterSeconds),
    // The unread rest of the body must not be parsed as the next request.
    Connection: "close",
  });
}
