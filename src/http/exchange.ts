/** One request while it is served: what handlers ask of it, each part worked out when it is asked for. */

import { queryFields } from "./decode/form.ts";
import { decompressed, textOf, unwrap, type WrappedBody } from "./decode/unwrap.ts";
import type { Connection, EdgeDeps, RegisteredPath } from "./edge-deps.ts";
import { parseBody } from "./parse-body.ts";
import { Query } from "./query.ts";
import type { Admission } from "./route.ts";

/** How long a client may take to read a piece of a long answer. */
const readingSeconds = 120;

const requestIdShape = /^[\x21-\x7e]{1,128}$/;

/** The id of a request: the client's, when it is short and printable, else a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && requestIdShape.test(given) ? given : Bun.randomUUIDv7();
}

/** What is behind the question mark of an absolute address without a fragment. */
function searchOf(url: string): string {
  const mark = url.indexOf("?");
  return mark === -1 ? "" : url.slice(mark + 1);
}

const noParams: Record<string, string> = {};

/** Memory reserved for its body is held until `end`, which the edge calls for every request. */
export class Exchange {
  readonly requestId: string;
  /** By the clock of `performance.now`. */
  readonly startedAt = performance.now();
  /** Parameters of the path; empty until the path is known. */
  params: Record<string, string> = noParams;
  /** Set once the caller is authorized. */
  admission: Admission | undefined;
  /** Why the request was rejected, for people. */
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
    this.requestId = requestIdOf(request);
  }

  /** Gives back what was taken for the request. */
  end(): void {
    this.release?.();
  }

  get now(): Date {
    this.foundNow ??= this.deps.now();
    return this.foundNow;
  }

  get query(): URLSearchParams {
    this.foundQuery ??= new Query(searchOf(this.request.url));
    return this.foundQuery;
  }

  get baseUrl(): string {
    return this.deps.places.baseUrlOf(this.requested, this.connection.peer(), this.request.headers);
  }

  get url(): string {
    const { pathname, search } = this.requested;
    return this.baseUrl + pathname + search;
  }

  get isVouchedFor(): boolean {
    const peer = this.connection.peer();
    return peer !== undefined && this.deps.places.isTrusted(peer);
  }

  get address(): string | undefined {
    return this.deps.places.clientOf(this.connection.peer(), this.request.headers);
  }

  private get requested(): URL {
    this.requestedUrl ??= new URL(this.request.url);
    return this.requestedUrl;
  }

  /**
   * Does work that may take longer than the server waits otherwise.
   *
   * @returns what the work returns; a client that does not read the answer is cut off as any other, a little later.
   */
  async unhurried<Result>(work: () => Promise<Result>): Promise<Result> {
    this.connection.allowSilence(0);
    try {
      return await work();
    } finally {
      this.connection.allowSilence(readingSeconds);
    }
  }

  async wrapped(kind: "events" | "api"): Promise<WrappedBody & { limitBytes: number }> {
    const { bytesMax, apiBytesMax } = this.deps.bodies.limits;
    const limitBytes = kind === "events" ? bytesMax : Math.min(bytesMax, apiBytesMax);
    const bytes = await this.deps.bodies.read(this.request, limitBytes, this.hold);
    const contentEncoding = this.request.headers.get("content-encoding");
    return { bytes, query: queryFields(this.request.url), contentEncoding, limitBytes };
  }

  async text(): Promise<string> {
    const { limitBytes, ...body } = await this.wrapped("api");
    return textOf(await unwrap(body, limitBytes));
  }

  /**
   * The body as a management route takes it.
   *
   * @param isUpload whether files may come in it.
   * @throws {PayloadTooLarge} @throws {BodyInterrupted} @throws {InvalidPayload} @throws {HttpFailure}
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
