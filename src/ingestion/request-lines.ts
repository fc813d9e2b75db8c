/**
 * From the bytes of a request to the lines of the journal: everything that takes time, and nothing that asks anybody.
 *
 * Small requests go this way in the server's own thread, large ones in a thread of their own (`large-bodies.ts`).
 */

import type { CaptureFields } from "../http/decode/form.ts";
import { unwrap, type WrappedBody } from "../http/decode/unwrap.ts";
import { type EntryText, EntryWriter } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { AnalyticsResults } from "./analytics-items.ts";
import { sendTime } from "./event-time.ts";
import { normalize, type RequestFacts, requestFacts } from "./normalize.ts";
import type { Warning, WarningType } from "./outcome.ts";
import { type Payload, parsePayload } from "./payload.ts";
import type { CaptureProject } from "./ports.ts";
import { findToken } from "./token.ts";

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

/** A body taken apart. */
export interface OpenedBody {
  readonly payload: Payload;
  readonly query: CaptureFields;
  readonly form: CaptureFields | undefined;
}

/** What the journal gets. */
export interface RequestLines<Entry extends EntryText = EntryText> {
  readonly lane: Lane;
  readonly entries: readonly Entry[];
  /** Body of the answer, where the protocol tells what became of each event. */
  readonly results: string | undefined;
}

/** Gives others their turn; called now and then. */
type Pause = () => Promise<void>;

/** After this many events, about a millisecond of work, others get their turn. */
const eventsPerTurn = 200;
/** Two bytes of a body can be an event that is dropped; its note would be 50 times as long. */
const notesInFullMax = 10_000;

/**
 * Unwraps and parses a body.
 *
 * @throws {InvalidPayload} @throws {PayloadTooLarge}
 */
export async function openBody(
  body: WrappedBody,
  protocol: Protocol,
  limitBytes: number,
): Promise<OpenedBody> {
  const { text, form } = await unwrap(body, limitBytes);
  const canBeNameless = protocol.kind === "classic" && protocol.rule !== "refuse a lone one";
  return { payload: parsePayload(text, canBeNameless), query: body.query, form };
}

/** The project key in a body. @throws {KeyRefused} */
export function tokenOf({ payload, query, form }: OpenedBody): string {
  return findToken(payload, [form?.token, query.token]);
}

/**
 * Normalises all events of a request and writes what is left of them, with the notes about them.
 *
 * @param makeUuid for events without one.
 * @param pause    gives others their turn; absent where there are none.
 */
export async function requestLines(
  opened: OpenedBody,
  protocol: Protocol,
  project: CaptureProject,
  arrival: Arrival,
  makeUuid: () => string,
  pause?: Pause,
): Promise<RequestLines<string>> {
  const { payload, query, form } = opened;
  const isClassic = protocol.kind === "classic";
  const sent = isClassic ? [payload.sentAt, query.sentAt, form?.sentAt] : [protocol.sentAt];
  const facts = requestFacts({
    ...arrival,
    sentAtMicros: sendTime(sent),
    isHistorical: payload.isHistorical,
    anonymizeIps: project.anonymizeIps,
    nameOfNameless: isClassic && protocol.rule === "name them $identify" ? "$identify" : undefined,
    makeUuid,
  });
  const results = isClassic ? undefined : new AnalyticsResults(protocol.sdkInfo);
  const entries = await payloadLines(payload, project, facts, results, pause);
  return { lane: payload.isHistorical ? "historical" : "realtime", entries, results: results?.text() };
}

/** The lines of all items. */
export async function payloadLines(
  { items, isHistorical }: Payload,
  project: CaptureProject,
  facts: RequestFacts,
  results?: AnalyticsResults,
  pause?: Pause,
): Promise<string[]> {
  const writer = new EntryWriter(project.id, facts.receivedMicros, isHistorical);
  const entries: string[] = [];
  const notes = new Notes(writer, entries);
  for (let index = 0; index < items.length; index++) {
    if (pause !== undefined && index > 0 && index % eventsPerTurn === 0) await pause();
    const item = items.at(index);
    const outcome = normalize(item, facts, results?.optionsOf(item));
    results?.add(item, outcome);
    if (outcome.kind === "event") {
      entries.push(writer.event(outcome.event));
      for (const warning of outcome.warnings) notes.add("warning", warning);
    } else if (outcome.kind === "dropped") {
      notes.add("drop", outcome.reason);
    } else {
      notes.add("warning", outcome.warning);
    }
  }
  notes.end();
  return entries;
}

/** Puts notes among the lines of a request: the first ones in full, of a flood of further ones only how many. */
class Notes {
  private written = 0;
  private readonly further = new Map<
    string,
    { kind: "warning" | "drop"; type: WarningType; count: number }
  >();

  constructor(
    private readonly writer: EntryWriter,
    private readonly entries: string[],
  ) {}

  add(kind: "warning" | "drop", warning: Warning): void {
    if (this.written < notesInFullMax) {
      this.written++;
      this.entries.push(this.writer.note(kind, warning));
      return;
    }
    const key = `${kind} ${warning.type}`;
    const seen = this.further.get(key);
    if (seen !== undefined) seen.count++;
    else this.further.set(key, { kind, type: warning.type, count: 1 });
  }

  end(): void {
    for (const { kind, type, count } of this.further.values()) {
      this.entries.push(this.writer.note(kind, { type, details: { count } }));
    }
  }
}
