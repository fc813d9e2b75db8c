/**
 * From the bytes of a request to its journal entries: everything that takes processor time, and nothing that waits for
 * others.
 *
 * Small requests are processed in the main thread, large ones in a separate thread (`large-bodies.ts`).
 */

import {
  type DecodedBody,
  decodeBody,
  type EncodedBody,
  toDisplayString,
  unwrapped,
} from "../http/decode/decode-body.ts";
import type { CaptureFields } from "../http/decode/form.ts";
import { type EntryJson, EntryWriter } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { AnalyticsResults } from "./analytics-items.ts";
import { EntryList, type NoteCount } from "./entry-list.ts";
import { sendTime } from "./event-time.ts";
import { normalize, type RequestFacts, requestFacts } from "./normalize.ts";
import { type Payload, parsePayload } from "./payload.ts";
import type { CaptureProject } from "./ports.ts";
import { scan, scannedLines } from "./scanned-lines.ts";
import type { ScannedBody } from "./scanner.ts";
import { chosenToken, claimedToken } from "./token.ts";

/** Handling of events without a name. */
export type MissingNamePolicy = "drop" | "reject-single" | "treat-as-identify";

/** Route options for processing. */
export type Protocol =
  | { readonly kind: "classic"; readonly rule: MissingNamePolicy }
  | { readonly kind: "analytics"; readonly sentAt: string | null; readonly sdkInfo: string | null };

/** When and from where a request arrived. */
export interface ReceiptInfo {
  /** Epoch microseconds. */
  readonly receivedMicros: number;
  readonly clientIp: string | undefined;
}

/** A decoded body. */
export interface CaptureBody extends DecodedBody {
  readonly query: CaptureFields;
}

export interface RequestEntries {
  readonly lane: Lane;
  readonly entries: readonly EntryJson[];
  /** Response body, if the protocol reports a result per event. */
  readonly results: string | undefined;
}

/** Yields to other requests; called periodically. */
type Pause = () => Promise<void>;

/** Shared by all parts of a large body. */
export interface SharedResults {
  readonly notes: NoteCount;
  readonly results: AnalyticsResults | undefined;
}

/** After this many events, about a millisecond of work, other requests are served. */
const eventsPerTurn = 200;

/** A body without encodings and of limited size; undefined for any other. */
export function openPlainBody(body: EncodedBody, bytesMax: number): CaptureBody | undefined {
  const plain = body.bytes.length > bytesMax ? undefined : unwrapped(body);
  return plain && { content: plain.content, form: plain.form, query: body.query };
}

/** Decodes a body. @throws {InvalidPayloadError} @throws {PayloadTooLargeError} */
export async function readCaptureBody(body: EncodedBody, limitBytes: number): Promise<CaptureBody> {
  const { content, form } = await decodeBody(body, limitBytes);
  return { content, form, query: body.query };
}

/** A parsed request whose project is not known yet. */
export interface ReadRequest {
  readonly lane: Lane;
  /** The position of its first event in the whole body. */
  readonly firstPosition: number;
  /** The project key in the body; undefined without one. @throws {InvalidApiKeyError} it contains several. */
  claim(): unknown;
  /** The project's key. @throws {InvalidApiKeyError} */
  token(): string;
  /**
   * Journal entries of all events, and notes about them.
   *
   * @param generateUuid for events without one.
   * @param pause    yields to other requests; absent in a separate thread.
   * @param shared   of the whole body, if this is a part of it; the caller then ends `notes` and `results`.
   */
  lines(
    project: CaptureProject,
    arrival: ReceiptInfo,
    generateUuid: () => string,
    pause?: Pause,
    shared?: SharedResults,
  ): RequestEntries | Promise<RequestEntries>;
}

/**
 * Parses a body.
 *
 * @param firstPosition the position of its first event, if it is a part of a body.
 * @returns a request to use immediately, before another one is read.
 * @throws {InvalidPayloadError} @throws {PayloadTooComplexError}
 */
export function readRequest(opened: CaptureBody, protocol: Protocol, firstPosition = 0): ReadRequest {
  const { content } = opened;
  const isClassic = protocol.kind === "classic";
  const scanned = isClassic && typeof content !== "string" ? scan(content) : undefined;
  return scanned === undefined
    ? new ParsedRequest(opened, protocol, firstPosition)
    : new ScannedRequest(opened, protocol, scanned, firstPosition);
}

/** Fast path: the bytes of a typical request are copied into the entries. */
class ScannedRequest implements ReadRequest {
  constructor(
    private readonly opened: CaptureBody,
    private readonly protocol: Protocol,
    private readonly scanned: ScannedBody,
    readonly firstPosition: number,
  ) {}

  get lane(): Lane {
    return getLane(this.scanned);
  }

  claim(): unknown {
    return this.scanned.token;
  }

  token(): string {
    return getToken(this.opened, this.claim());
  }

  lines(
    project: CaptureProject,
    arrival: ReceiptInfo,
    generateUuid: () => string,
    pause?: Pause,
    shared?: SharedResults,
  ) {
    const { opened, protocol, scanned } = this;
    const facts = getFacts(opened, protocol, scanned, project, arrival, generateUuid);
    const entries = scannedLines(scanned, project.id, facts, shared?.notes);
    if (entries === undefined)
      return new ParsedRequest(opened, protocol, this.firstPosition).lines(
        project,
        arrival,
        generateUuid,
        pause,
        shared,
      );
    return { lane: this.lane, entries, results: undefined };
  }
}

/** Slow path for any request: its events are parsed. */
export class ParsedRequest implements ReadRequest {
  private readonly payload: Payload;

  constructor(
    private readonly opened: CaptureBody,
    private readonly protocol: Protocol,
    readonly firstPosition = 0,
  ) {
    const canBeNameless = protocol.kind === "classic" && protocol.rule !== "reject-single";
    this.payload = parsePayload(toDisplayString(opened), canBeNameless, firstPosition);
  }

  get lane(): Lane {
    return getLane(this.payload);
  }

  claim(): unknown {
    return claimedToken(this.payload);
  }

  token(): string {
    return getToken(this.opened, this.claim());
  }

  async lines(
    project: CaptureProject,
    arrival: ReceiptInfo,
    generateUuid: () => string,
    pause?: Pause,
    shared?: SharedResults,
  ) {
    const { opened, protocol, payload } = this;
    const facts = getFacts(opened, protocol, payload, project, arrival, generateUuid);
    const results = shared === undefined ? getResults(protocol) : shared.results;
    const entries = await payloadLines(payload, project, facts, results, pause, shared?.notes);
    return { lane: this.lane, entries, results: shared === undefined ? results?.text() : undefined };
  }
}

/** The project's key for the key claimed in a body. @throws {InvalidApiKeyError} */
export function getToken({ query, form }: CaptureBody, claim: unknown): string {
  return chosenToken(claim, [form?.token, query.token]);
}

/** Collects a result per event; undefined if the protocol has none. */
export function getResults(protocol: Protocol): AnalyticsResults | undefined {
  return protocol.kind === "analytics" ? new AnalyticsResults(protocol.sdkInfo) : undefined;
}

const getLane = ({ isHistorical }: { isHistorical: boolean }): Lane =>
  isHistorical ? "historical" : "realtime";

function getFacts(
  { query, form }: CaptureBody,
  protocol: Protocol,
  { sentAt, isHistorical }: Pick<Payload, "sentAt" | "isHistorical">,
  { anonymizeIps }: CaptureProject,
  arrival: ReceiptInfo,
  generateUuid: () => string,
): RequestFacts {
  const isClassic = protocol.kind === "classic";
  const sent = isClassic ? [sentAt, query.sentAt, form?.sentAt] : [protocol.sentAt];
  const nameOfNameless = isClassic && protocol.rule === "treat-as-identify" ? "$identify" : undefined;
  return requestFacts({
    ...arrival,
    sentAtMicros: sendTime(sent),
    isHistorical,
    anonymizeIps,
    nameOfNameless,
    generateUuid,
  });
}

/** The journal entries of all items. */
async function payloadLines(
  { items, isHistorical }: Payload,
  project: CaptureProject,
  facts: RequestFacts,
  results?: AnalyticsResults,
  pause?: Pause,
  notes?: NoteCount,
): Promise<EntryJson[]> {
  const list = new EntryList(new EntryWriter(project.id, facts.receivedMicros, isHistorical), notes);
  for (let index = 0; index < items.length; index++) {
    if (pause !== undefined && index > 0 && index % eventsPerTurn === 0) await pause();
    const item = items.at(index);
    const outcome = normalize(item, facts, results?.getOptions(item));
    results?.add(item, outcome);
    list.add(outcome);
  }
  return list.end();
}
