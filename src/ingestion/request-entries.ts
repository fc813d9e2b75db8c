/**
 * From the bytes of a request to the lines of the journal: everything that takes time, and nothing that asks anybody.
 *
 * Small requests go this way in the server's own thread, large ones in a thread of their own (`large-bodies.ts`).
 */

import type { CaptureFields } from "../http/decode/form.ts";
import { textOf, type UnwrappedBody, unwrap, unwrapped, type WrappedBody } from "../http/decode/unwrap.ts";
import { type EntryText, EntryWriter } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { AnalyticsResults } from "./analytics-items.ts";
import { EntryList, type NoteCount } from "./entry-list.ts";
import { sendTime } from "./event-time.ts";
import { normalize, type RequestFacts, requestFacts } from "./normalize.ts";
import { type Payload, parsePayload } from "./payload.ts";
import type { CaptureProject } from "./ports.ts";
import { scan, scannedLines } from "./scan/scanned-lines.ts";
import type { ScannedBody } from "./scan/scanner.ts";
import { chosenToken, claimedToken } from "./token.ts";

/** How a route takes events without a name. */
export type MissingNamePolicy = "drop" | "reject-single" | "treat-as-identify";

/** What the way to the journal must know of the route. */
export type Protocol =
  | { readonly kind: "classic"; readonly rule: MissingNamePolicy }
  | { readonly kind: "analytics"; readonly sentAt: string | null; readonly sdkInfo: string | null };

/** When and from where a request came. */
export interface ReceiptInfo {
  /** Epoch microseconds. */
  readonly receivedMicros: number;
  readonly clientIp: string | undefined;
}

/** A body with its wrappings taken off. */
export interface CaptureBody extends UnwrappedBody {
  readonly query: CaptureFields;
}

/** What the journal gets. */
export interface RequestEntries {
  readonly lane: Lane;
  readonly entries: readonly EntryText[];
  /** Body of the answer, where the protocol tells what became of each event. */
  readonly results: string | undefined;
}

/** Gives others their turn; called now and then. */
type Pause = () => Promise<void>;

/** What all parts of a large body have in common. */
export interface SharedResults {
  readonly notes: NoteCount;
  readonly results: AnalyticsResults | undefined;
}

/** After this many events, about a millisecond of work, others get their turn. */
const eventsPerTurn = 200;

/** A body of some bytes at the most that nothing is wrapped around; undefined for any other. */
export function openPlainBody(body: WrappedBody, bytesMax: number): CaptureBody | undefined {
  const plain = body.bytes.length > bytesMax ? undefined : unwrapped(body);
  return plain && { content: plain.content, form: plain.form, query: body.query };
}

/** Takes the wrappings off a body. @throws {InvalidPayload} @throws {PayloadTooLarge} */
export async function readCaptureBody(body: WrappedBody, limitBytes: number): Promise<CaptureBody> {
  const { content, form } = await unwrap(body, limitBytes);
  return { content, form, query: body.query };
}

/** A request whose project is still to be found. */
export interface ReadRequest {
  readonly lane: Lane;
  /** The position of its first event in the whole body. */
  readonly firstPosition: number;
  /** What the body gives as the project's key; undefined where it gives none. @throws {KeyRefused} it gives several. */
  claim(): unknown;
  /** The project's key. @throws {KeyRefused} */
  token(): string;
  /**
   * Writes the lines of all events, and notes about them.
   *
   * @param makeUuid for events without one.
   * @param pause    gives others their turn; absent where there are none.
   * @param shared   of the whole body, where this is a part of it; `notes` and `results` are the caller's to end then.
   */
  lines(
    project: CaptureProject,
    arrival: ReceiptInfo,
    makeUuid: () => string,
    pause?: Pause,
    shared?: SharedResults,
  ): RequestEntries | Promise<RequestEntries>;
}

/**
 * Reads what is in a body.
 *
 * @param firstPosition the position of its first event, where it is a part of a body.
 * @returns to be used at once: another request may be read later.
 * @throws {InvalidPayload} @throws {PayloadTooDense}
 */
export function readRequest(opened: CaptureBody, protocol: Protocol, firstPosition = 0): ReadRequest {
  const { content } = opened;
  const isClassic = protocol.kind === "classic";
  const scanned = isClassic && typeof content !== "string" ? scan(content) : undefined;
  return scanned === undefined
    ? new ParsedRequest(opened, protocol, firstPosition)
    : new ScannedRequest(opened, protocol, scanned, firstPosition);
}

/** A usual request: its bytes are copied into the lines. */
class ScannedRequest implements ReadRequest {
  constructor(
    private readonly opened: CaptureBody,
    private readonly protocol: Protocol,
    private readonly scanned: ScannedBody,
    readonly firstPosition: number,
  ) {}

  get lane(): Lane {
    return laneOf(this.scanned);
  }

  claim(): unknown {
    return this.scanned.token;
  }

  token(): string {
    return tokenOf(this.opened, this.claim());
  }

  lines(
    project: CaptureProject,
    arrival: ReceiptInfo,
    makeUuid: () => string,
    pause?: Pause,
    shared?: SharedResults,
  ) {
    const { opened, protocol, scanned } = this;
    const facts = factsOf(opened, protocol, scanned, project, arrival, makeUuid);
    const entries = scannedLines(scanned, project.id, facts, shared?.notes);
    if (entries === undefined)
      return new ParsedRequest(opened, protocol, this.firstPosition).lines(
        project,
        arrival,
        makeUuid,
        pause,
        shared,
      );
    return { lane: this.lane, entries, results: undefined };
  }
}

/** Any request: its events are parsed. */
export class ParsedRequest implements ReadRequest {
  private readonly payload: Payload;

  constructor(
    private readonly opened: CaptureBody,
    private readonly protocol: Protocol,
    readonly firstPosition = 0,
  ) {
    const canBeNameless = protocol.kind === "classic" && protocol.rule !== "reject-single";
    this.payload = parsePayload(textOf(opened), canBeNameless, firstPosition);
  }

  get lane(): Lane {
    return laneOf(this.payload);
  }

  claim(): unknown {
    return claimedToken(this.payload);
  }

  token(): string {
    return tokenOf(this.opened, this.claim());
  }

  async lines(
    project: CaptureProject,
    arrival: ReceiptInfo,
    makeUuid: () => string,
    pause?: Pause,
    shared?: SharedResults,
  ) {
    const { opened, protocol, payload } = this;
    const facts = factsOf(opened, protocol, payload, project, arrival, makeUuid);
    const results = shared === undefined ? resultsOf(protocol) : shared.results;
    const entries = await payloadLines(payload, project, facts, results, pause, shared?.notes);
    return { lane: this.lane, entries, results: shared === undefined ? results?.text() : undefined };
  }
}

/** The project's key, where a body gives this one. @throws {KeyRefused} */
export function tokenOf({ query, form }: CaptureBody, claim: unknown): string {
  return chosenToken(claim, [form?.token, query.token]);
}

/** Collects what the answer tells of each event; undefined where the protocol does not. */
export function resultsOf(protocol: Protocol): AnalyticsResults | undefined {
  return protocol.kind === "analytics" ? new AnalyticsResults(protocol.sdkInfo) : undefined;
}

const laneOf = ({ isHistorical }: { isHistorical: boolean }): Lane =>
  isHistorical ? "historical" : "realtime";

function factsOf(
  { query, form }: CaptureBody,
  protocol: Protocol,
  { sentAt, isHistorical }: Pick<Payload, "sentAt" | "isHistorical">,
  { anonymizeIps }: CaptureProject,
  arrival: ReceiptInfo,
  makeUuid: () => string,
): RequestFacts {
  const isClassic = protocol.kind === "classic";
  const sent = isClassic ? [sentAt, query.sentAt, form?.sentAt] : [protocol.sentAt];
  const nameOfNameless = isClassic && protocol.rule === "treat-as-identify" ? "$identify" : undefined;
  return requestFacts({
    ...arrival,
    sentAtMicros: sendTime(sent),
    ...{ isHistorical, anonymizeIps, nameOfNameless, makeUuid },
  });
}

/** The lines of all items. */
export async function payloadLines(
  { items, isHistorical }: Payload,
  project: CaptureProject,
  facts: RequestFacts,
  results?: AnalyticsResults,
  pause?: Pause,
  notes?: NoteCount,
): Promise<EntryText[]> {
  const list = new EntryList(new EntryWriter(project.id, facts.receivedMicros, isHistorical), notes);
  for (let index = 0; index < items.length; index++) {
    if (pause !== undefined && index > 0 && index % eventsPerTurn === 0) await pause();
    const item = items.at(index);
    const outcome = normalize(item, facts, results?.optionsOf(item));
    results?.add(item, outcome);
    list.add(outcome);
  }
  return list.end();
}
