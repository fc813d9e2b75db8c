/**
 * Takes the events of one request from its bytes to the journal.
 *
 * All events of a request are durable, in order, before anybody is told so. Small requests are taken apart at once,
 * those of some size one by one, each in a turn of its own, and large ones in another thread: whoever sends them waits,
 * and nobody else.
 */

import { InvalidPayload, PayloadTooLarge } from "../http/decode/failures.ts";
import { startsLikeJson, type WrappedBody } from "../http/decode/unwrap.ts";
import type { EntryText } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { nowMicros } from "../lib/time.ts";
import { Turns } from "../lib/turns.ts";
import { LargeBodies } from "./large-bodies.ts";
import type { CaptureDependencies, CaptureProject } from "./ports.ts";
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

/** What a request brings, as the edge hands it over. */
export interface SentRequest {
  wrapped(kind: "events"): Promise<WrappedBody & { limitBytes: number }>;
  readonly address: string | undefined;
}

/** Bodies of JSON up to this size are taken apart at once, in about a quarter of a millisecond. */
const smallBytesMax = 16 * 1024;
/** Of any other body, packed for all that is known: it can be many times as long. A few events, or one in base64. */
const smallPackedBytesMax = 2 * 1024;
/** Bodies up to this size, as sent and unpacked, are taken apart in the server's own thread: a few milliseconds. */
const ownThreadBytesMax = 512 * 1024;

/** Who imports wait as, among the addresses of clients. */
const importing = "import";
const newline = 0x0a;
/** As clients send old events. */
const importProtocol: Protocol = { kind: "classic", rule: "drop" };

/** The road that all capture routes share. */
export class Intake {
  private readonly nowMicros: () => number;
  private readonly makeUuid: () => string;
  private readonly turns = new Turns();
  private readonly large = new LargeBodies();

  constructor(private readonly deps: CaptureDependencies) {
    this.nowMicros = deps.nowMicros ?? nowMicros;
    this.makeUuid = deps.makeUuid ?? (() => Bun.randomUUIDv7());
  }

  /**
   * Reads a request and stores its events.
   *
   * @param known the project, where the route knows it without the body.
   * @throws {InvalidPayload} @throws {PayloadTooLarge} @throws {BodyInterrupted} @throws {KeyRefused} nothing was stored then.
   * @throws what the journal throws; of a large body, the first events may be stored: whoever sends it again sends them with
   *         the same uuids, and they count once.
   */
  async take(
    sent: SentRequest,
    protocol: Protocol,
    known?: CaptureProject,
  ): Promise<Pick<RequestEntries, "results">> {
    const { limitBytes, ...body } = await sent.wrapped("events");
    const arrival = { receivedMicros: this.nowMicros(), clientIp: sent.address };
    const { clientIp: sender = "" } = arrival;
    const projectOf = (token: string) => this.projectOf(token);
    const smallMax = startsLikeJson(body.bytes) ? smallBytesMax : smallPackedBytesMax;
    if (body.bytes.length > smallMax) await this.turns.next(sender);
    const opened = openPlainBody(body, ownThreadBytesMax) ?? (await this.openHere(body, limitBytes));
    if (opened === undefined) {
      const append = (lane: Lane, entries: readonly EntryText[]) => this.deps.journal.append(lane, entries);
      return await this.large.take({ body, protocol, limitBytes, arrival, known }, { projectOf, append });
    }
    const request = readRequest(opened, protocol);
    const project = known ?? projectOf(request.token());
    const pause = () => this.turns.next(sender);
    const written = request.lines(project, arrival, this.makeUuid, pause);
    const lines = written instanceof Promise ? await written : written;
    await this.deps.journal.append(lines.lane, lines.entries);
    return lines;
  }

  /** The body, taken apart; undefined when it is too large to be taken apart here. */
  private async openHere(body: WrappedBody, limitBytes: number): Promise<CaptureBody | undefined> {
    if (body.bytes.length > ownThreadBytesMax) return undefined;
    const hereMax = Math.min(limitBytes, ownThreadBytesMax);
    try {
      return await readCaptureBody(body, hereMax);
    } catch (error) {
      if (error instanceof PayloadTooLarge && hereMax < limitBytes) return undefined;
      throw error;
    }
  }

  /** @throws {KeyRefused} no project has this key. */
  projectOf(token: string): CaptureProject {
    const project = this.deps.projects.findByToken(token);
    if (project === undefined) throw unknownToken();
    return project;
  }

  /**
   * Appends the events of an import to the historical lane, all or none, as `/batch/` does, but with no client whose address
   * would be an event's `$ip`.
   *
   * @param requests lines, each the body of a request as `/batch/` takes it, taken apart in a turn of its own.
   * @throws what the journal throws, or that a request is none; nothing was stored then.
   */
  async appendImported(project: CaptureProject, requests: Uint8Array): Promise<void> {
    const arrival = { receivedMicros: this.nowMicros(), clientIp: undefined };
    const pause = () => this.turns.next(importing);
    const entries: EntryText[] = [];
    for (const content of linesOf(requests)) {
      await pause();
      const opened: CaptureBody = { content, form: undefined, query: {} };
      // Parsing gives others their turn between events; copying does not.
      const isLarge = content.length > ownThreadBytesMax;
      const request = isLarge
        ? new ParsedRequest(opened, importProtocol)
        : readRequest(opened, importProtocol);
      const lines = await request.lines(project, arrival, this.makeUuid, pause);
      if (lines.lane !== "historical") throw new InvalidPayload("an import brings old events");
      for (const entry of lines.entries) entries.push(entry);
    }
    await this.deps.journal.append("historical", entries);
  }
}

function* linesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(newline, start);
    const end = found === -1 ? bytes.length : found;
    yield bytes.subarray(start, end);
    start = end + 1;
  }
}
