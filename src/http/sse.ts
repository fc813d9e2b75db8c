/** Server-sent events for many clients: registration, keep-alive comments, slow clients, and shutdown. */

import { HttpError } from "./http-error.ts";

export interface EventStreamsOptions<Reader> {
  /** Maximum number of open streams, plus a tenth for projects with few: one key cannot take all of them. */
  streamsMax: number;
  /** The project of a client's key. */
  projectOf: (reader: Reader) => number;
  /** Messages that may be queued for a client that does not read. */
  unreadMax: number;
  /** A client that does not read loses messages, or its stream. */
  onSlow: "drop" | "close";
  /** Error and retry interval for clients above the stream limit. */
  full: { detail: string; retryAfterSeconds: number };
  /** Called repeatedly while any stream is open. */
  onTick: () => void;
  tickMs: number;
  /** Aborts all streams, which would delay the shutdown. */
  stopping?: AbortSignal;
}

interface Stream {
  controller: ReadableStreamDefaultController<Uint8Array>;
  pingAt: number;
}

/** A comment at this interval keeps proxies and the server's idle timeout from closing a stream. */
const pingEveryMs = 15_000;
const moreShare = 0.1;
const encoder = new TextEncoder();

/** Iterates over the clients in the order of their connection. */
export class SseBroadcaster<Reader extends object> implements Iterable<Reader> {
  private readonly streams = new Map<Reader, Stream>();
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly options: EventStreamsOptions<Reader>) {
    options.stopping?.addEventListener("abort", () => {
      for (const reader of this) this.close(reader);
    });
  }

  [Symbol.iterator](): IterableIterator<Reader> {
    return this.streams.keys();
  }

  get size(): number {
    return this.streams.size;
  }

  /** Whether a client of a project may open another stream. */
  hasCapacityFor(projectId: number): boolean {
    const { stopping, streamsMax, projectOf: getProject } = this.options;
    const { size } = this.streams;
    if (stopping?.aborted === true) return false;
    if (size < streamsMax) return true;
    const more = Math.floor(streamsMax * moreShare);
    if (size >= streamsMax + more) return false;
    return [...this].filter((reader) => getProject(reader) === projectId).length < more;
  }

  /**
   * Opens a stream.
   *
   * @param head sent with the first comment: fields such as `id: 1`, without a trailing line break.
   * @param onOpen called when the stream is writable.
   * @throws {HttpError} 503 `too_many_streams`.
   */
  open(reader: Reader, signal: AbortSignal, head = "", onOpen: () => void = () => undefined): Response {
    if (!this.hasCapacityFor(this.options.projectOf(reader))) {
      const { detail, retryAfterSeconds } = this.options.full;
      throw new HttpError(503, "server_error", "too_many_streams", detail, null, {
        "Retry-After": String(retryAfterSeconds),
      });
    }
    const close = () => this.close(reader);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.streams.set(reader, { controller, pingAt: 0 });
        signal.addEventListener("abort", close);
        // The first bytes show clients and proxies that the stream is open.
        this.send(reader, `: flagkeep\n${head === "" ? "" : `${head}\n`}\n`);
        onOpen();
        this.timer ??= setInterval(() => this.tick(), this.options.tickMs);
      },
      cancel: close,
    });
    return new Response(body, {
      headers: {
        "Content-Type": "text/event-stream",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
      },
    });
  }

  /** Whether a message would be accepted. */
  canRead(reader: Reader): boolean {
    const stream = this.streams.get(reader);
    return stream !== undefined && (stream.controller.desiredSize ?? 0) >= -this.options.unreadMax;
  }

  /**
   * Sends a complete message including its empty line.
   *
   * @returns false when it was not sent, because the client does not read or has disconnected.
   */
  send(reader: Reader, message: string): boolean {
    const stream = this.streams.get(reader);
    if (stream === undefined) return false;
    if (!this.canRead(reader)) {
      if (this.options.onSlow === "close") this.close(reader);
      return false;
    }
    stream.pingAt = performance.now() + pingEveryMs;
    try {
      stream.controller.enqueue(encoder.encode(message));
      return true;
    } catch {
      // The reader disconnected without an event.
      this.close(reader);
      return false;
    }
  }

  close(reader: Reader): void {
    const stream = this.streams.get(reader);
    if (stream === undefined) return;
    this.streams.delete(reader);
    try {
      stream.controller.close();
    } catch {
      // The client has closed it already.
    }
    if (this.streams.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private tick(): void {
    this.options.onTick();
    const now = performance.now();
    for (const [reader, { pingAt }] of this.streams) if (now >= pingAt) this.send(reader, ": keep-alive\n\n");
  }
}
