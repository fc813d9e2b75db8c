/** A request while it is served, with lazily computed parts. */

import { parseBody } from "./body.ts";
import { decodeBody, decompressed, type EncodedBody, toDisplayString } from "./decode/decode-body.ts";
import { queryFields } from "./decode/form.ts";
import type { Connection, EdgeDeps, RegisteredPath } from "./edge-deps.ts";
import { Query } from "./params.ts";
import type { Admission } from "./route.ts";

/** How long a client may take to read a part of a long response. */
const readingSeconds = 120;

const requestIdShape = /^[\x21-\x7e]{1,128}$/;

/** The request ID: the client's if it is short and printable, else a new one. */
function getRequestId(request: Request): string {
  const requestId = request.headers.get("x-request-id");
  return requestId !== null && requestIdShape.test(requestId) ? requestId : Bun.randomUUIDv7();
}

/** The query string of an absolute URL without a fragment. */
function getSearch(url: string): string {
  const mark = url.indexOf("?");
  return mark === -1 ? "" : url.slice(mark + 1);
}

const emptyParams: Record<string, string> = {};

/** The memory reserved for its body is held until `end`, which the edge calls for every request. */
export class RequestContext {
  readonly requestId: string;
  /** By the clock of `performance.now`. */
  readonly startedAt = performance.now();
  /** Path parameters; empty until the path is known. */
  params: Record<string, string> = emptyParams;
  /** Set once the caller is authorized. */
  admission: Admission | undefined;
  /** Human-readable reason of a rejection. */
  reason: string | undefined;
  body: unknown;
  private requestedUrl: URL | undefined;
  private foundQuery: URLSearchParams | undefined;
  private foundNow: Date | undefined;
  private release: (() => void) | undefined;
  private readonly hold = (release: () => void) => {
    this.release = release;
  };

  constructor(
    readonly request: Request,
    private readonly connection: Connection,
    public registered: RegisteredPath,
    readonly deps: EdgeDeps,
  ) {
    this.requestId = getRequestId(request);
  }

  /** Releases the resources of the request. */
  end(): void {
    this.release?.();
  }

  get now(): Date {
    this.foundNow ??= this.deps.now();
    return this.foundNow;
  }

  /** The time that a change records. */
  set now(now: Date) {
    this.foundNow = now;
  }

  get query(): URLSearchParams {
    this.foundQuery ??= new Query(getSearch(this.request.url));
    return this.foundQuery;
  }

  get baseUrl(): string {
    return this.deps.origins.getBaseUrl(this.requested, this.connection.peer(), this.request.headers);
  }

  get url(): string {
    const { pathname, search } = this.requested;
    return this.baseUrl + pathname + search;
  }

  get isViaTrustedProxy(): boolean {
    const peer = this.connection.peer();
    return peer !== undefined && this.deps.origins.isTrusted(peer);
  }

  get address(): string | undefined {
    return this.deps.origins.getClient(this.connection.peer(), this.request.headers);
  }

  private get requested(): URL {
    this.requestedUrl ??= new URL(this.request.url);
    return this.requestedUrl;
  }

  /**
   * Runs work that may exceed the idle timeout.
   *
   * @returns the result of the work; a client that does not read the response is cut off as usual, but later.
   */
  async withoutIdleTimeout<Result>(work: () => Promise<Result>): Promise<Result> {
    this.connection.allowSilence(0);
    try {
      return await work();
    } finally {
      this.connection.allowSilence(readingSeconds);
    }
  }

  async wrapped(kind: "events" | "api"): Promise<EncodedBody & { limitBytes: number }> {
    const { bytesMax, apiBytesMax } = this.deps.bodies.limits;
    const limitBytes = kind === "events" ? bytesMax : Math.min(bytesMax, apiBytesMax);
    const bytes = await this.deps.bodies.read(this.request, limitBytes, this.hold);
    const contentEncoding = this.request.headers.get("content-encoding");
    return { bytes, query: queryFields(this.request.url), contentEncoding, limitBytes };
  }

  async text(): Promise<string> {
    const { limitBytes, ...body } = await this.wrapped("api");
    return toDisplayString(await decodeBody(body, limitBytes));
  }

  /**
   * The parsed body of a management route.
   *
   * @param isUpload whether it may contain files.
   * @throws {PayloadTooLargeError} @throws {IncompleteBodyError} @throws {InvalidPayloadError} @throws {HttpError}
   */
  async parsedBody(isUpload: boolean): Promise<unknown> {
    const { headers } = this.request;
    const { bytesMax, apiBytesMax } = this.deps.bodies.limits;
    const contentType = headers.get("content-type") ?? "";
    const limitBytes = isUpload && isForm(contentType) ? bytesMax : Math.min(bytesMax, apiBytesMax);
    const sent = await this.deps.bodies.read(this.request, limitBytes, this.hold);
    return await parseBody(
      await decompressed(sent, headers.get("content-encoding"), limitBytes),
      contentType,
    );
  }

  async discard(bytesMax: number): Promise<void> {
    await this.deps.bodies.drain(this.request, bytesMax);
  }
}

function isForm(contentType: string): boolean {
  return /^\s*multipart\/form-data/i.test(contentType);
}
