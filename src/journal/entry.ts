/**
 * What a line of the journal says, and how it is written; `entry-reader.ts` reads it back.
 *
 *   {"seq":7,"project_id":1,"uuid":"…","event":"…","distinct_id":"…","time":…,"received":…,"historical":false,
 *    "mode":"full","made_uuid":false,"elements_chain":null,"properties":{…}}
 *   {"seq":8,"project_id":1,"note":"warning","type":"…","received":…,"historical":false,"details":{…}}
 *   {"seq":9,"project_id":1,"note":"person_deleted","type":"person_deleted",…,"details":{"uuid":"…","distinct_id":"…"}}
 *
 * The order of the members is part of the format. `properties` is the last one, so that its JSON can be stored without
 * being serialized again.
 */

import type { Members } from "../scan/members.ts";

/** `propertyless` is the stored name of an anonymous event: it changes no persons and groups. */
export type PersonMode = "full" | "propertyless";

/** One event, as persons and groups need it. */
export interface JournalEvent {
  readonly kind: "event";
  /** Position in its lane, strictly increasing. */
  readonly seq: number;
  readonly projectId: number;
  /** Lower case, hyphenated. */
  readonly uuid: string;
  readonly event: string;
  readonly distinctId: string;
  /** When it happened, epoch microseconds, UTC. */
  readonly timeMicros: number;
  /** When Flagkeep received it, epoch microseconds, UTC. */
  readonly receivedMicros: number;
  readonly historical: boolean;
  readonly mode: PersonMode;
  /** Of the JSON object that the client sent; see `entry-properties.ts` for how long they last. */
  readonly properties: Members;
}

/** One event with unparsed properties: JSON takes a fraction of the memory and time of parsed values. */
export interface EventEntry extends Omit<JournalEvent, "properties"> {
  /** The uuid was generated at ingestion, so no second copy of the event can have it. */
  readonly hasMadeUuid: boolean;
  readonly elementsChain: string | null;
  /** UTF-8 of a JSON object, as the client wrote it. */
  readonly propertiesText: Uint8Array;
}

/** One event, as the event store needs it. */
export type StorableEvent = Omit<EventEntry, "kind">;

/**
 * A journal entry that is not an event: an ingestion warning of a changed (`warning`) or rejected (`drop`) event, or a
 * deleted person, so that replaying the journal does not restore that person.
 */
export interface JournalNote {
  readonly kind: NoteKind;
  readonly seq: number;
  readonly projectId: number;
  /** The warning's type, e.g. `missing_event_name`. */
  readonly type: string;
  readonly receivedMicros: number;
  readonly historical: boolean;
  readonly details: Record<string, unknown>;
}

export type NoteKind = "warning" | "drop" | "person_deleted";
export type JournalItem = JournalEvent | JournalNote;
export type Entry = EventEntry | JournalNote;

/** Number of events that a note covers: ingestion folds the last warnings of a request into one note. */
export function noteCount({ details }: JournalNote): number {
  return typeof details.count === "number" ? details.count : 1;
}

/** An event as everything after ingestion sees it. */
export interface CanonicalEvent {
  /** Lower case, hyphenated. */
  readonly uuid: string;
  /** The uuid was generated here, so no second copy of the event can have it. */
  readonly hasMadeUuid: boolean;
  /** Never blank; of any length. */
  readonly name: string;
  /** Never blank; of any length. */
  readonly distinctId: string;
  /** Epoch microseconds, UTC. */
  readonly time: number;
  readonly mode: PersonMode;
  readonly elementsChain: string | null;
  /** The text of a JSON object, on one line. */
  readonly properties: string;
}

/** What stands between the parts of an event's entry. */
export const eventFrame = {
  beforeName: '","event":',
  beforeId: ',"distinct_id":',
  beforeTime: ',"time":',
  /** Behind the name of the mode. */
  made: '","made_uuid":true,"elements_chain":',
  sent: '","made_uuid":false,"elements_chain":',
  noChain: "null",
  beforeProperties: ',"properties":',
} as const;

/** Writes the entries of one request: the text of a line without its opening `{` and its sequence number, which `lineOf` adds. */
export class EntryWriter {
  private readonly head: string;
  private readonly request: string;
  /** What the line of every event begins with. */
  readonly beforeUuid: string;
  /** What stands in it between time and mode. */
  readonly beforeMode: string;

  /** @param receivedMicros when the request arrived, epoch microseconds. */
  constructor(projectId: number, receivedMicros: number, isHistorical: boolean) {
    this.head = `"project_id":${projectId},`;
    this.request = `"received":${receivedMicros},"historical":${isHistorical},`;
    this.beforeUuid = `${this.head}"uuid":"`;
    this.beforeMode = `,${this.request}"mode":"`;
  }

  /** The entry of an event. */
  event(event: CanonicalEvent): string {
    const { uuid, name, distinctId, time, elementsChain, properties } = event;
    const { beforeName, beforeId, beforeTime, made, sent, noChain, beforeProperties } = eventFrame;
    // Few string parts: the journal copies the string once more, at a cost per part.
    return this.beforeUuid.concat(
      uuid,
      beforeName,
      quoted(name),
      beforeId,
      quoted(distinctId),
      beforeTime,
      String(time),
      this.beforeMode,
      event.mode,
      event.hasMadeUuid ? made : sent,
      elementsChain === null ? noChain : JSON.stringify(elementsChain),
      beforeProperties,
      properties,
      "}",
    );
  }

  /** The entry of a warning, `drop` when its event was not stored, which the usage report counts; or of a deletion. */
  note(kind: NoteKind, { type, details }: Pick<JournalNote, "type" | "details">): string {
    return `${this.head}"note":"${kind}","type":"${type}",${this.request}"details":${JSON.stringify(details)}}`;
  }
}

const needsNoEscape = /^[ !#-[\]-~]*$/;

/** As JSON.stringify, in a third of the time for names and ids as they usually are. */
function quoted(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : JSON.stringify(text);
}

const newline = 0x0a;
/** Prefix of entry lines, and of no other line. */
export const entryStart = '{"seq":';
/** Bytes of a line without entry and number: its prefix, a comma and the line break. */
const lineFrameBytes = entryStart.length + 2;

/** An entry as `EntryWriter` wrote it, or its UTF-8. */
export type EntryText = string | Uint8Array;

/** The line of an entry. */
export const lineOf = (seq: number, entry: string): string => `${entryStart}${seq},${entry}\n`;

/** The lines of entries of which some are UTF-8 already, numbered from `first`; not written yet. */
export class Lines {
  /** In bytes. */
  readonly length: number;

  constructor(
    private readonly first: number,
    private readonly entries: readonly EntryText[],
  ) {
    let length = 0;
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index]!;
      length += lineFrameBytes + String(first + index).length;
      length += typeof entry === "string" ? Buffer.byteLength(entry) : entry.length;
    }
    this.length = length;
  }

  /** Writes them to a place of a buffer. @returns where they end. */
  write(buffer: Buffer, at: number): number {
    const { first, entries } = this;
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index]!;
      at += buffer.write(`${entryStart}${first + index},`, at, "latin1");
      if (typeof entry === "string") at += buffer.write(entry, at);
      else {
        buffer.set(entry, at);
        at += entry.length;
      }
      buffer[at] = newline;
      at += 1;
    }
    return at;
  }
}

/** The same, written. */
export function linesOf(first: number, entries: readonly EntryText[]): Buffer {
  const lines = new Lines(first, entries);
  const buffer = Buffer.allocUnsafeSlow(lines.length);
  lines.write(buffer, 0);
  return buffer;
}

/** The sequence number of the entry that begins at a place. */
export function seqOf(bytes: Uint8Array, start = 0): number {
  let seq = 0;
  for (let index = start + entryStart.length; index < bytes.length; index++) {
    const digit = bytes[index]! - 0x30;
    if (digit < 0 || digit > 9) break;
    seq = seq * 10 + digit;
  }
  return seq;
}
