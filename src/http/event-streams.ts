/** Server-sent events for many readers: who reads, comments in between, slow readers, and how streams end. */

import { HttpFailure } from "./failure.ts";

export interface EventStreamsOptions<Reader> {
  /** Streams that may be open at once, and a tenth more for projects that have few: one key does not take all places. */
  streamsMax: number;
  /** The project whose key a reader came with. */
  projectOf: (reader: Reader) => number;
  /** Messages that may wait for a reader that does not read. */
  unreadMax: number;
  /** What becomes of a reader that does not read: it loses messages, or its stream. */
  onSlow: "drop" | "close";
  /** What whoever finds no place is told, and when to come back. */
  full: { detail: string; retryAfterSeconds: number };
  /** Called again and again while somebody reads. */
  onTick: () => void;
  tickMs: number;
  /** When it fires, all streams end: they would hold up the end of the server. */
  stopping?: AbortSignal;
}

interface Stream {
  controller: ReadableStreamDefaultController<Uint8Array>;
  pingAt: number;
}

/** A comment after this time keeps proxies and the server's own idle limit from cutting a stream. */
const pingEveryMs = 15_000;
const moreShare = 0.1;
const encoder = new TextEncoder();

/** Its members are its readers, in the order in which they came. */
export class EventStreams<Reader extends object> implements Iterable<Reader> {
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

  /** Whether a reader of a project would find a place. */
  hasRoomFor(projectId: number): boolean {
    const { stopping, streamsMax, projectOf } = this.options;
    const { size } = this.streams;
    if (stopping?.aborted === true) return false;
    if (size < streamsMax) return true;
    const more = Math.floor(streamsMax * moreShare);
    if (size >= streamsMax + more) return false;
    return [...this].filter((reader) => projectOf(reader) === projectId).length < more;
  }

  /**
   * Opens a stream.
   *
   * @param head goes with the first comment: fields such as `id: 1`, without a line break at the end.
   * @param onOpen called when the stream can be written to.
   * @throws {HttpFailure} 503 `too_many_streams`.
   */
  open(reader: Reader, signal: AbortSignal, head = "", onOpen: () => void = () => undefined): Response {
    if (!this.hasRoomFor(this.options.projectOf(reader))) {
      const { detail, retryAfterSeconds } = this.options.full;
      throw new HttpFailure(503, "server_error", "too_many_streams", detail, null, {
        "Retry-After": String(retryAfterSeconds),
      });
    }
    const close = () => this.close(reader);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.streams.set(reader, { controller, pingAt: 0 });
        signal.addEventListener("abort", close);
        // The first bytes let clients and proxies know that the stream is there.
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

  /** Whether a message would be taken. */
  canRead(reader: Reader): boolean {
    const stream = this.streams.get(reader);
    return stream !== undefined && (stream.controller.desiredSize ?? 0) >= -this.options.unreadMax;
  }

  /**
   * Sends a message, whole with its empty line.
   *
   * @returns false when it was not sent, because the reader does not read or has gone.
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
      // The reader has gone, and nobody has said so yet.
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
      // The reader has closed it already.
    }
    if (this.streams.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private tick(): void {
    this.options.onTick();
    const now = performance.now();
    for (const [reader, { pingAt }] of this.streams) if (now >= pingAt) this.send(reader, ": still here\n\n");
  }
}
