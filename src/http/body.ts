/** Reads request bodies within memory limits. */

import { parseExactJson } from "../lib/json/exact.ts";
import { checkJson, type JsonLimits, parserMessage } from "../lib/json/limits.ts";
import { IncompleteBodyError, PayloadTooLargeError } from "./decode/errors.ts";
import { HttpError, parseError, unsupportedMediaType } from "./http-error.ts";

/*
 * Cuts off clients that trickle their body, but not slow connections: a body has to make progress, it need not be fast.
 *
 * One timer for all bodies, counting in ticks: a timer per body would cost as much as reading a small body.
 */

/** A slow but working connection is faster than this. */
const bytesPerSecondMin = 5_000;
const ticksPerPatience = 10;

interface Watched {
  lastTick: number;
  readonly cut: () => void;
}

class BodyTimeoutMonitor {
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

/** Longer bodies are read in chunks, so that their progress is visible. */
const wholeBytesMax = 64 * 1024;
/** How long a body may make too little progress. */
const patienceDefaultMs = 10_000;

export interface BodyLimits {
  /** Maximum size of a body in bytes, as sent and decompressed. */
  readonly bytesMax: number;
  /** Maximum for flag requests and the management API, except uploads. */
  readonly apiBytesMax: number;
  /** Bytes of bodies in memory at the same time; further bodies wait. */
  readonly inFlightBytesMax: number;
  /** How long a body may make too little progress; default 10 s. */
  readonly patienceMs?: number;
}

/**
 * Bodies up to this size have a separate quarter of the budget: large ones must not block them. Large ones have half of
 * it; the rest covers the memory for parsing one of them.
 */
const smallBytesMax = 1024 * 1024;

/** Registers the release of a reservation, which is called when the request ends. */
export type MemoryReservation = (release: () => void) => void;

export class BodyReader {
  private readonly slowBodies: BodyTimeoutMonitor;
  private readonly small: BodyBudget;
  private readonly large: BodyBudget;

  constructor(readonly limits: BodyLimits) {
    this.slowBodies = new BodyTimeoutMonitor(limits.patienceMs ?? patienceDefaultMs);
    this.small = new BodyBudget(limits.inFlightBytesMax / 4);
    this.large = new BodyBudget(limits.inFlightBytesMax / 2);
  }

  /**
   * The whole body.
   *
   * @param bytesMax a larger body is rejected: before it is read if it declares its length, else at the limit.
   * @param hold receives the function that releases the body's memory reservation.
   * @throws {PayloadTooLargeError} the body is larger; nothing of it is kept.
   * @throws {IncompleteBodyError} the client disconnected, or sends too slowly.
   * @throws {HttpError} 503: no capacity within the maximum wait.
   */
  async read(request: Request, bytesMax: number, hold: MemoryReservation): Promise<Uint8Array> {
    const declared = declaredBytes(request);
    if (declared !== undefined && declared > bytesMax) throw new PayloadTooLargeError(bytesMax);
    // `request.body` is not accessed here: that alone makes Bun create a stream, which costs more than the rest.
    if (declared !== undefined && declared <= wholeBytesMax)
      return this.slowBodies.whole(request.bytes(), declared);
    const reservation = new BodyCapacity(this.small, this.large, bytesMax);
    hold(() => reservation.leave());
    if (declared !== undefined) await reservation.take(declared);
    if (request.body === null) return new Uint8Array();
    let bytes = Buffer.allocUnsafeSlow(declared ?? wholeBytesMax);
    let length = 0;
    const keep = (chunk: Uint8Array) => {
      if (length + chunk.length > bytes.length) bytes = grown(bytes, length + chunk.length, bytesMax);
      bytes.set(chunk, length);
      length += chunk.length;
      return true;
    };
    const isWhole = await this.slowBodies.chunks(request.body, (chunk) => {
      const needed = length + chunk.length;
      if (needed > bytesMax) return false;
      return reservation.has(needed) ? keep(chunk) : reservation.grow(needed).then(() => keep(chunk));
    });
    if (!isWhole) throw new PayloadTooLargeError(bytesMax);
    return length === bytes.length ? bytes : bytes.subarray(0, length);
  }

  /**
   * Reads a body to its end and discards it.
   *
   * @param bytesMax where to stop.
   * @throws {PayloadTooLargeError} the body is larger.
   * @throws {IncompleteBodyError} the client disconnected, or sends too slowly.
   */
  async drain(request: Request, bytesMax: number): Promise<void> {
    if (request.body === null) return;
    const isTooLarge = (declaredBytes(request) ?? 0) > bytesMax;
    let length = 0;
    const count = (chunk: Uint8Array) => {
      length += chunk.length;
      return length <= bytesMax;
    };
    if (isTooLarge || !(await this.slowBodies.chunks(request.body, count)))
      throw new PayloadTooLargeError(bytesMax);
  }
}

/**
 * Memory reservation of a body. A body of undeclared length reserves more as it grows: many client libraries declare no
 * length, and nearly all of their bodies are small.
 */
class BodyCapacity {
  private bytes = wholeBytesMax;
  private reserved: (() => void) | undefined;

  constructor(
    private readonly small: BodyBudget,
    private readonly large: BodyBudget,
    private readonly bytesMax: number,
  ) {}

  /** Whether this size is within the reservation. */
  has(bytes: number): boolean {
    return bytes <= this.bytes;
  }

  /** Waits for capacity for at least this many bytes. @throws {HttpError} 503 after the maximum wait. */
  grow(bytes: number): Promise<void> {
    return this.take(Math.min(bytes <= smallBytesMax ? smallBytesMax : this.bytesMax, this.bytesMax));
  }

  /** Waits for capacity for exactly this many bytes. @throws {HttpError} 503 after the maximum wait. */
  async take(bytes: number): Promise<void> {
    const leave = await (bytes > smallBytesMax ? this.large : this.small).take(bytes);
    this.leave();
    this.reserved = leave;
    this.bytes = bytes;
  }

  /** Releases the reservation. */
  leave(): void {
    this.reserved?.();
    this.reserved = undefined;
  }
}

/** A copy with at least double capacity, within the limit. */
function grown(bytes: Buffer<ArrayBuffer>, needed: number, bytesMax: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(Math.min(bytesMax, Math.max(needed, bytes.length * 2)));
  larger.set(bytes);
  return larger;
}

/** A repeated length arrives as a list; the server has already rejected differing and invalid lengths. */
export function declaredBytes(request: Request): number | undefined {
  const header = request.headers.get("content-length");
  return header === null ? undefined : Number.parseInt(header, 10);
}

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

/** Less nesting than for events: conditions of flags and cohorts are stored and read recursively. */
const jsonLimits: JsonLimits = { levels: 200, containers: 100_000 };

/** Other encodings are rejected: with replacement characters, the stored text would differ from the sent one. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a decompressed body.
 *
 * @returns an object for an empty body, a form or an upload (files as text); any JSON value otherwise, long integers as
 * by `parseExactJson`.
 * @throws {HttpError} 400 not JSON, not UTF-8 or nested too deep, 415 another media type.
 */
export async function parseBody(bytes: Uint8Array, contentType: string): Promise<unknown> {
  const mediaType = contentType.split(";", 1)[0]!.trim().toLowerCase();
  if (bytes.length === 0) return {};
  if (mediaType === "multipart/form-data") return parseForm(bytes, contentType);
  const isForm = mediaType === "application/x-www-form-urlencoded";
  if (!isForm && mediaType !== "" && mediaType !== "application/json" && !mediaType.endsWith("+json")) {
    throw unsupportedMediaType(mediaType);
  }
  const text = decoded(bytes);
  // `curl -d '{...}'` sends JSON with the content type of a form.
  const isJson = !isForm || /^\s*[[{]/.test(text);
  return isJson ? parseString(text) : Object.fromEntries(new URLSearchParams(text));
}

function decoded(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw parseError("the body is not UTF-8");
  }
}

/**
 * JSON of a body, or of a field of a form.
 *
 * @throws {NestingTooDeepError} @throws {JsonTooComplexError} @throws {SyntaxError}
 */
export function parseLimitedJson(text: string): unknown {
  checkJson(text, jsonLimits);
  return parseExactJson(text);
}

function parseString(text: string): unknown {
  try {
    return parseLimitedJson(text);
  } catch (error) {
    throw parseError(parserMessage(error));
  }
}

async function parseForm(bytes: Uint8Array, contentType: string): Promise<Record<string, string>> {
  try {
    const form = await new Response(bytes as never, { headers: { "content-type": contentType } }).formData();
    const fields: Record<string, string> = {};
    for (const [name, value] of form as unknown as Iterable<[string, string | Blob]>) {
      fields[name] = typeof value === "string" ? value : await value.text();
    }
    return fields;
  } catch {
    throw parseError("the form could not be read");
  }
}
