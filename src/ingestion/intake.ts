/**
 * Takes the events of one request from its bytes to the journal.
 *
 * One append per request: its events are durable together, in order, before anybody is told so.
 */

import type { CaptureFields } from "../http/decode/form.ts";
import type { Content } from "../http/route.ts";
import { EntryWriter } from "../journal/entry-writer.ts";
import { nowMicros } from "../lib/time.ts";
import { sendTime } from "./event-time.ts";
import type { RawItem } from "./item-table.ts";
import { type ItemOptions, normalize, type RequestFacts, requestFacts } from "./normalize.ts";
import type { Outcome, Warning, WarningType } from "./outcome.ts";
import { type Payload, parsePayload } from "./payload.ts";
import type { CaptureDependencies, CaptureProject } from "./ports.ts";
import { findToken, unknownToken } from "./token.ts";

/** How a route takes events without a name. */
export type NamelessRule = "drop each" | "refuse a lone one" | "name them $identify";

/** A request with its body taken apart and nothing decided yet. */
export interface OpenedRequest {
  readonly payload: Payload;
  readonly query: CaptureFields;
  readonly form: CaptureFields | undefined;
  readonly receivedMicros: number;
  readonly clientIp: string | undefined;
}

/** What a request brings, as the edge hands it over. */
export interface SentRequest {
  content(kind: "events"): Promise<Content>;
  readonly address: string | undefined;
}

/** Told what became of each event of a request. */
export type OutcomeObserver = (item: RawItem, outcome: Outcome) => void;

/** After this many events, about 5 ms of work, other requests get their turn. */
const eventsPerTurn = 1_000;
/** Two bytes of a body can be an event that is dropped; its note would be 50 times as long. */
const notesInFullMax = 10_000;
/** From this length on, the steps before the first event get a turn of their own. */
const longTextLength = 1024 * 1024;

/** The road that all capture routes share. */
export class Intake {
  private readonly nowMicros: () => number;
  private readonly makeUuid: () => string;

  constructor(private readonly deps: CaptureDependencies) {
    this.nowMicros = deps.nowMicros ?? nowMicros;
    this.makeUuid = deps.makeUuid ?? (() => Bun.randomUUIDv7());
  }

  /**
   * Reads and parses a request.
   *
   * @throws {InvalidPayload} @throws {PayloadTooLarge} @throws {BodyInterrupted}
   */
  async open(sent: SentRequest, rule: NamelessRule): Promise<OpenedRequest> {
    const { text, query, form } = await sent.content("events");
    const receivedMicros = this.nowMicros();
    if (text.length >= longTextLength) await nextTurn();
    const payload = parsePayload(text, rule !== "refuse a lone one");
    if (text.length >= longTextLength) await nextTurn();
    return { payload, query, form, receivedMicros, clientIp: sent.address };
  }

  /**
   * Stores the events of a request of the classic routes.
   *
   * @throws {KeyRefused} and what the journal throws; nothing was stored then.
   */
  async store(opened: OpenedRequest, rule: NamelessRule): Promise<void> {
    const { payload, query, form } = opened;
    const project = this.projectOf(findToken(payload, [form?.token, query.token]));
    const facts = requestFacts({
      receivedMicros: opened.receivedMicros,
      sentAtMicros: sendTime([payload.sentAt, query.sentAt, form?.sentAt]),
      isHistorical: payload.isHistorical,
      clientIp: opened.clientIp,
      anonymizeIps: project.anonymizeIps,
      nameOfNameless: rule === "name them $identify" ? "$identify" : undefined,
      makeUuid: this.makeUuid,
    });
    await this.append(project, payload, facts);
  }

  /** @throws {KeyRefused} no project has this key. */
  projectOf(token: string): CaptureProject {
    const project = this.deps.projects.findByToken(token);
    if (project === undefined) throw unknownToken();
    return project;
  }

  /** The facts of a request whose transport knows its send time. */
  factsOf(opened: OpenedRequest, project: CaptureProject, sentAtMicros: number | undefined): RequestFacts {
    return requestFacts({
      receivedMicros: opened.receivedMicros,
      sentAtMicros,
      isHistorical: opened.payload.isHistorical,
      clientIp: opened.clientIp,
      anonymizeIps: project.anonymizeIps,
      makeUuid: this.makeUuid,
    });
  }

  /**
   * Normalises all events of a request and appends what is left of them, with the notes about them, at once.
   *
   * @param optionsOf what the transport sends beside an event's properties.
   * @throws what the journal throws; nothing was stored then.
   */
  async append(
    project: CaptureProject,
    payload: Payload,
    facts: RequestFacts,
    optionsOf?: (item: RawItem) => ItemOptions,
    observe?: OutcomeObserver,
  ): Promise<void> {
    const { items, isHistorical } = payload;
    const writer = new EntryWriter(project.id, facts.receivedMicros, isHistorical);
    const entries: string[] = [];
    const notes = new Notes(writer, entries);
    for (let index = 0; index < items.length; index++) {
      if (index > 0 && index % eventsPerTurn === 0) await nextTurn();
      const item = items.at(index);
      const outcome = normalize(item, facts, optionsOf?.(item));
      observe?.(item, outcome);
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
    await this.deps.journal.append(isHistorical ? "historical" : "realtime", entries);
  }
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

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
