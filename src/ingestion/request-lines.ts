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
import { EntryList } from "./entry-list.ts";
import { sendTime } from "./event-time.ts";
import { normalize, type RequestFacts, requestFacts } from "./normalize.ts";
import { type Payload, parsePayload } from "./payload.ts";
import type { CaptureProject } from "./ports.ts";
import { scan, scannedLines } from "./scan/scanned-lines.ts";
import type { ScannedBody } from "./scan/scanner.ts";
import { chosenToken, findToken } from "./token.ts";

/** How a route takes events without a name. */
export type NamelessRule = "drop each" | "refuse a lone one" | "name them $identify";

/** What the way to the journal must know of the route. */
export type Protocol =
  | { readonly kind: "classic"; readonly rule: NamelessRule }
  | { readonly kind: "analytics"; readonly sentAt: string | null; readonly sdkInfo: string | null };

/** When and from where a request came. */
export interface Arrival {
  /** Epoch microseconds. */
  readonly receivedMicros: number;
  readonly clientIp: string | undefined;
}

/** A body with its wrappings taken off. */
export interface OpenedBody extends UnwrappedBody {
  readonly query: CaptureFields;
}

/** What the journal gets. */
export interface RequestLines {
  readonly lane: Lane;
  readonly entries: readonly EntryText[];
  /** Body of the answer, where the protocol tells what became of each event. */
  readonly results: string | undefined;
}

/** Gives others their turn; called now and then. */
type Pause = () => Promise<void>;

/** After this many events, about a millisecond of work, others get their turn. */
const eventsPerTurn = 200;

/** A body of some bytes at the most that nothing is wrapped around; undefined for any other. */
export function openPlainBody(body: WrappedBody, bytesMax: number): OpenedBody | undefined {
  const plain = body.bytes.length > bytesMax ? undefined : unwrapped(body);
  return plain && { content: plain.content, form: plain.form, query: body.query };
}

/** Takes the wrappings off a body. @throws {InvalidPayload} @throws {PayloadTooLarge} */
export async function openBody(body: WrappedBody, limitBytes: number): Promise<OpenedBody> {
  const { content, form } = await unwrap(body, limitBytes);
  return { content, form, query: body.query };
}

/** A request whose project is still to be found. */
export interface ReadRequest {
  /** The project's key. @throws {KeyRefused} */
  token(): string;
  /**
   * Writes the lines of all events, and notes about them.
   *
   * @param makeUuid for events without one.
   * @param pause    gives others their turn; absent where there are none.
   */
  lines(
    project: CaptureProject,
    arrival: Arrival,
    makeUuid: () => string,
    pause?: Pause,
  ): RequestLines | Promise<RequestLines>;
}

/**
 * Reads what is in a body.
 *
 * @returns to be used at once: another request may be read later.
 * @throws {InvalidPayload} @throws {PayloadTooDense}
 */
export function readRequest(opened: OpenedBody, protocol: Protocol): ReadRequest {
  const { content } = opened;
  const isClassic = protocol.kind === "classic";
  const scanned = isClassic && typeof content !== "string" ? scan(content) : undefined;
  return scanned === undefined
    ? new ParsedRequest(opened, protocol)
    : new ScannedRequest(opened, protocol, scanned);
}

/** A usual request: its bytes are copied into the lines. */
class ScannedRequest implements ReadRequest {
  constructor(
    private readonly opened: OpenedBody,
    private readonly protocol: Protocol,
    private readonly scanned: ScannedBody,
  ) {}

  token(): string {
    const { query, form } = this.opened;
    return chosenToken(this.scanned.token, [form?.token, query.token]);
  }

  lines(project: CaptureProject, arrival: Arrival, makeUuid: () => string, pause?: Pause) {
    const { opened, protocol, scanned } = this;
    const facts = factsOf(opened, protocol, scanned, project, arrival, makeUuid);
    const entries = scannedLines(scanned, project.id, facts);
    if (entries === undefined)
      return new ParsedRequest(opened, protocol).lines(project, arrival, makeUuid, pause);
    return { lane: laneOf(scanned), entries, results: undefined };
  }
}

/** Any request: its events are parsed. */
export class ParsedRequest implements ReadRequest {
  private readonly payload: Payload;

  constructor(
    private readonly opened: OpenedBody,
    private readonly protocol: Protocol,
  ) {
    const canBeNameless = protocol.kind === "classic" && protocol.rule !== "refuse a lone one";
    this.payload = parsePayload(textOf(opened), canBeNameless);
  }

  token(): string {
    const { query, form } = this.opened;
    return findToken(this.payload, [form?.token, query.token]);
  }

  async lines(project: CaptureProject, arrival: Arrival, makeUuid: () => string, pause?: Pause) {
    const { opened, protocol, payload } = this;
    const facts = factsOf(opened, protocol, payload, project, arrival, makeUuid);
    const results = protocol.kind === "analytics" ? new AnalyticsResults(protocol.sdkInfo) : undefined;
    const entries = await payloadLines(payload, project, facts, results, pause);
    return { lane: laneOf(payload), entries, results: results?.text() };
  }
}

const laneOf = ({ isHistorical }: { isHistorical: boolean }): Lane =>
  isHistorical ? "historical" : "realtime";

function factsOf(
  { query, form }: OpenedBody,
  protocol: Protocol,
  { sentAt, isHistorical }: Pick<Payload, "sentAt" | "isHistorical">,
  { anonymizeIps }: CaptureProject,
  arrival: Arrival,
  makeUuid: () => string,
): RequestFacts {
  const isClassic = protocol.kind === "classic";
  const sent = isClassic ? [sentAt, query.sentAt, form?.sentAt] : [protocol.sentAt];
  const nameOfNameless = isClassic && protocol.rule === "name them $identify" ? "$identify" : undefined;
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
): Promise<EntryText[]> {
  const list = new EntryList(new EntryWriter(project.id, facts.receivedMicros, isHistorical));
  for (let index = 0; index < items.length; index++) {
    if (pause !== undefined && index > 0 && index % eventsPerTurn === 0) await pause();
    const item = items.at(index);
    const outcome = normalize(item, facts, results?.optionsOf(item));
    results?.add(item, outcome);
    list.add(outcome);
  }
  return list.end();
}
