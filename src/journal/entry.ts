/**
 * Format of a journal line; `entry-reader.ts` reads it.
 *
 *   {"seq":7,"project_id":1,"uuid":"…","event":"…","distinct_id":"…","time":…,"received":…,"historical":false,
 *    "mode":"full","made_uuid":false,"elements_chain":null,"properties":{…}}
 *   {"seq":8,"project_id":1,"note":"warning","type":"…","received":…,"historical":false,"details":{…}}
 *   {"seq":9,"project_id":1,"note":"person_deleted","type":"person_deleted",…,"details":{"uuid":"…","distinct_id":"…"}}
 *
 * The order of the members is part of the format. `properties` comes last, so that its JSON is stored without being
 * serialized again.
 */

import type { Members } from "../scan/members.ts";

/** `propertyless` is the stored name of an anonymous event, which does not change persons or groups. */
export type PersonMode = "full" | "propertyless";

/** An event as persons and groups need it. */
export interface JournalEvent {
  readonly kind: "event";
  /** Position in its lane, strictly increasing. */
  readonly seq: number;
  readonly projectId: number;
  /** Lower case, hyphenated. */
  readonly uuid: string;
  readonly event: string;
  readonly distinctId: string;
  /** When the event happened, epoch microseconds, UTC. */
  readonly timeMicros: number;
  /** When Flagkeep received it, epoch microseconds, UTC. */
  readonly receivedMicros: number;
  readonly historical: boolean;
  readonly mode: PersonMode;
  /** Of the JSON object sent by the client; `entry-properties.ts` limits how long they are valid. */
  readonly properties: Members;
}

/** An event with unparsed properties: JSON takes a fraction of the memory and time of parsed values. */
export interface EventEntry extends Omit<JournalEvent, "properties"> {
  /** The UUID was generated at ingestion, so the event cannot have a duplicate. */
  readonly hasGeneratedUuid: boolean;
  readonly elementsChain: string | null;
  /** JSON object as sent by the client, UTF-8. */
  readonly propertiesText: Uint8Array;
}

/** An event as the event store needs it. */
export type StorableEvent = Omit<EventEntry, "kind">;

/**
 * A journal entry that is not an event: an ingestion warning of a changed (`warning`) or rejected (`drop`) event, or a
 * deleted person, so that replaying the journal does not restore that person.
 */
export interface JournalNote {
  readonly kind: NoteKind;
  readonly seq: number;
  readonly projectId: number;
  /** Type of the warning, e.g. `missing_event_name`. */
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

/** A normalized event, as all code after ingestion sees it. */
export interface CanonicalEvent {
  /** Lower case, hyphenated. */
  readonly uuid: string;
  /** The UUID was generated here, so the event cannot have a duplicate. */
  readonly hasGeneratedUuid: boolean;
  /** Not blank; any length. */
  readonly name: string;
  /** Not blank; any length. */
  readonly distinctId: string;
  /** Epoch microseconds, UTC. */
  readonly time: number;
  readonly mode: PersonMode;
  readonly elementsChain: string | null;
  /** JSON object on a single line. */
  readonly properties: string;
}

/** Fixed parts of an event's line. */
export const eventFrame = {
  beforeName: '","event":',
  beforeId: ',"distinct_id":',
  beforeTime: ',"time":',
  /** Follows the mode. */
  generated: '","made_uuid":true,"elements_chain":',
  sent: '","made_uuid":false,"elements_chain":',
  noChain: "null",
  beforeProperties: ',"properties":',
} as const;

/**
 * Serializes the entries of one request: lines without the opening `{` and the sequence number, which `getLine` adds.
 */
export class EntryWriter {
  private readonly head: string;
  private readonly request: string;
  /** Constant start of each event's line. */
  readonly beforeUuid: string;
  /** Constant part between time and mode. */
  readonly beforeMode: string;

  /** @param receivedMicros arrival time of the request, epoch microseconds */
  constructor(projectId: number, receivedMicros: number, isHistorical: boolean) {
    this.head = `"project_id":${projectId},`;
    this.request = `"received":${receivedMicros},"historical":${isHistorical},`;
    this.beforeUuid = `${this.head}"uuid":"`;
    this.beforeMode = `,${this.request}"mode":"`;
  }

  event(event: CanonicalEvent): string {
    const { uuid, name, distinctId, time, elementsChain, properties } = event;
    const { beforeName, beforeId, beforeTime, generated, sent, noChain, beforeProperties } = eventFrame;
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
      event.hasGeneratedUuid ? generated : sent,
      elementsChain === null ? noChain : JSON.stringify(elementsChain),
      beforeProperties,
      properties,
      "}",
    );
  }

  /** Serializes a warning, a `drop` (the event was not stored; counted by the usage report) or a deletion. */
  note(kind: NoteKind, { type, details }: Pick<JournalNote, "type" | "details">): string {
    return `${this.head}"note":"${kind}","type":"${type}",${this.request}"details":${JSON.stringify(details)}}`;
  }
}

const needsNoEscape = /^[ !#-[\]-~]*$/;

/** Like JSON.stringify, in a third of the time for typical names and IDs. */
function quoted(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : JSON.stringify(text);
}

const newline = 0x0a;
/** Prefix of entry lines only. */
export const entryStart = '{"seq":';
/** Line bytes in addition to entry and sequence number: prefix, comma and line break. */
const lineFrameBytes = entryStart.length + 2;

/** An entry as serialized by `EntryWriter`, or its UTF-8. */
export type EntryJson = string | Uint8Array;

export const getLine = (seq: number, entry: string): string => `${entryStart}${seq},${entry}\n`;

/** Lines of entries, some of them already UTF-8, numbered from `first`; serialized by `write`. */
export class Lines {
  /** Size in bytes. */
  readonly length: number;

  constructor(
    private readonly first: number,
    private readonly entries: readonly EntryJson[],
  ) {
    let length = 0;
    for (let index = 0; index < entries.length; index++) {
      const entry = entries[index]!;
      length += lineFrameBytes + String(first + index).length;
      length += typeof entry === "string" ? Buffer.byteLength(entry) : entry.length;
    }
    this.length = length;
  }

  /** Writes the lines at an offset of a buffer. @returns the end offset */
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

/** Lines of entries in a new buffer. */
export function getLines(first: number, entries: readonly EntryJson[]): Buffer {
  const lines = new Lines(first, entries);
  const buffer = Buffer.allocUnsafeSlow(lines.length);
  lines.write(buffer, 0);
  return buffer;
}

/** The sequence number of the entry that starts at an offset. */
export function getSeq(bytes: Uint8Array, start = 0): number {
  let seq = 0;
  for (let index = start + entryStart.length; index < bytes.length; index++) {
    const digit = bytes[index]! - 0x30;
    if (digit < 0 || digit > 9) break;
    seq = seq * 10 + digit;
  }
  return seq;
}
