/**
 * Processes the events of a request from its bytes to the journal.
 *
 * All events of a request are durable, in order, before the response. Small requests are processed immediately, medium
 * ones one per event loop tick, and large ones in another thread: they delay only their own clients.
 */

import { type EncodedBody, startsLikeJson } from "../http/decode/decode-body.ts";
import { InvalidPayloadError, PayloadTooLargeError } from "../http/decode/errors.ts";
import type { EntryJson } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { TickQueue } from "../lib/concurrency.ts";
import { nowMicros } from "../lib/time.ts";
import { LargeBodies } from "./large-bodies.ts";
import type { CaptureDeps, CaptureProject } from "./ports.ts";
import {
  type CaptureBody,
  openPlainBody,
  ParsedRequest,
  type Protocol,
  type RequestEntries,
  readCaptureBody,
  readRequest,
} from "./request-entries.ts";
import { unknownToken } from "./token.ts";

/** A request as the edge passes it on. */
export interface SentRequest {
  wrapped(kind: "events"): Promise<EncodedBody & { limitBytes: number }>;
  readonly address: string | undefined;
}

/** JSON bodies up to this size are processed immediately, in about 0.25 ms. */
const smallBytesMax = 16 * 1024;
/** Limit for any other body, which may be compressed and expand many times. A few events, or one in base64. */
const smallPackedBytesMax = 2 * 1024;
/** Bodies up to this size, as sent and decompressed, are processed in the main thread: a few milliseconds. */
const mainThreadBytesMax = 512 * 1024;

/** Queue key of imports, next to the addresses of clients. */
const importing = "import";
const newline = 0x0a;
/** Like clients that send old events. */
const importProtocol: Protocol = { kind: "classic", rule: "drop" };

/** The event pipeline of all capture routes. */
export class CaptureHandler {
  private readonly nowMicros: () => number;
  private readonly generateUuid: () => string;
  private readonly turns = new TickQueue();
  private readonly large = new LargeBodies();

  constructor(private readonly deps: CaptureDeps) {
    this.nowMicros = deps.nowMicros ?? nowMicros;
    this.generateUuid = deps.generateUuid ?? (() => Bun.randomUUIDv7());
  }

  /**
   * Reads a request and stores its events.
   *
   * @param known the project, if the route knows it without the body.
   * @throws {InvalidPayloadError} @throws {PayloadTooLargeError} @throws {IncompleteBodyError}
   * @throws {InvalidApiKeyError} nothing was stored.
   * @throws errors of the journal; the first events of a large body may be stored: a retry has the same UUIDs, so they
   * count once.
   */
  async take(
    sent: SentRequest,
    protocol: Protocol,
    known?: CaptureProject,
  ): Promise<Pick<RequestEntries, "results">> {
    const { limitBytes, ...body } = await sent.wrapped("events");
    const arrival = { receivedMicros: this.nowMicros(), clientIp: sent.address };
    const { clientIp: sender = "" } = arrival;
    const getProject = (token: string) => this.findProject(token);
    const smallMax = startsLikeJson(body.bytes) ? smallBytesMax : smallPackedBytesMax;
    if (body.bytes.length > smallMax) await this.turns.next(sender);
    const opened = openPlainBody(body, mainThreadBytesMax) ?? (await this.openInThisThread(body, limitBytes));
    if (opened === undefined) {
      const append = (lane: Lane, entries: readonly EntryJson[]) => this.deps.journal.append(lane, entries);
      return await this.large.take(
        { body, protocol, limitBytes, arrival, known },
        { findProject: getProject, append },
      );
    }
    const request = readRequest(opened, protocol);
    const project = known ?? getProject(request.token());
    const pause = () => this.turns.next(sender);
    const written = request.lines(project, arrival, this.generateUuid, pause);
    const lines = written instanceof Promise ? await written : written;
    await this.deps.journal.append(lines.lane, lines.entries);
    return lines;
  }

  /** The decoded body; undefined when it is too large for the main thread. */
  private async openInThisThread(body: EncodedBody, limitBytes: number): Promise<CaptureBody | undefined> {
    if (body.bytes.length > mainThreadBytesMax) return undefined;
    const hereMax = Math.min(limitBytes, mainThreadBytesMax);
    try {
      return await readCaptureBody(body, hereMax);
    } catch (error) {
      if (error instanceof PayloadTooLargeError && hereMax < limitBytes) return undefined;
      throw error;
    }
  }

  /** @throws {InvalidApiKeyError} the key belongs to no project. */
  findProject(token: string): CaptureProject {
    const project = this.deps.projects.findByToken(token);
    if (project === undefined) throw unknownToken();
    return project;
  }

  /**
   * Appends the events of an import to the historical lane, all or none, like `/batch/`, but without a client address
   * as the events' `$ip`.
   *
   * @param requests lines, each the body of a `/batch/` request, processed in a separate tick.
   * @throws errors of the journal, or an invalid request; nothing was stored.
   */
  async appendImported(project: CaptureProject, requests: Uint8Array): Promise<void> {
    const arrival = { receivedMicros: this.nowMicros(), clientIp: undefined };
    const pause = () => this.turns.next(importing);
    const entries: EntryJson[] = [];
    for (const content of getLines(requests)) {
      await pause();
      const opened: CaptureBody = { content, form: undefined, query: {} };
      // Parsing yields between events; copying does not.
      const isLarge = content.length > mainThreadBytesMax;
      const request = isLarge
        ? new ParsedRequest(opened, importProtocol)
        : readRequest(opened, importProtocol);
      const lines = await request.lines(project, arrival, this.generateUuid, pause);
      if (lines.lane !== "historical") throw new InvalidPayloadError("an import contains old events");
      for (const entry of lines.entries) entries.push(entry);
    }
    await this.deps.journal.append("historical", entries);
  }
}

function* getLines(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(newline, start);
    const end = found === -1 ? bytes.length : found;
    yield bytes.subarray(start, end);
    start = end + 1;
  }
}
