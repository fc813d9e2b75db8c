/**
 * What a line of the journal says, how it is written and how it is read back.
 *
 *   {"seq":7,"project_id":1,"uuid":"…","event":"…","distinct_id":"…","time":…,"received":…,"historical":false,
 *    "mode":"full","made_uuid":false,"elements_chain":null,"properties":{…}}
 *   {"seq":8,"project_id":1,"note":"warning","type":"…","received":…,"historical":false,"details":{…}}
 *   {"seq":9,"project_id":1,"note":"person_deleted","type":"person_deleted",…,"details":{"uuid":"…","distinct_id":"…"}}
 *
 * The order of the members is part of the format. `properties` is the last one, so that its text can be stored without
 * being written anew.
 */

import { hasSuspectEscape, storableJson } from "../lib/unicode.ts";

/** `propertyless`: the event leaves persons and groups alone. */
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
  readonly properties: Record<string, unknown>;
}

/** One event, as a line has it. */
export interface EventEntry extends JournalEvent {
  /** The uuid was made at ingestion, so no second copy of the event can have it. */
  readonly hasMadeUuid: boolean;
  readonly elementsChain: string | null;
  /** UTF-8 of a JSON object, as the client wrote it. */
  readonly propertiesText: Uint8Array;
}

/** One event, as the event store needs it. */
export type StorableEvent = Omit<EventEntry, "properties" | "kind">;

/** An event without its properties as values: those of a whole step would take many times the room of their text. */
export function storable(event: EventEntry): StorableEvent {
  const { seq, projectId, uuid, event: name, distinctId, timeMicros, receivedMicros, historical } = event;
  const { mode, hasMadeUuid, elementsChain, propertiesText } = event;
  return {
    ...{ seq, projectId, uuid, event: name, distinctId, timeMicros, receivedMicros, historical },
    ...{ mode, hasMadeUuid, elementsChain, propertiesText },
  };
}

/**
 * Something that is remembered besides events: what ingestion says of an event it changed (`warning`) or refused
 * (`drop`), and that a person was deleted, which must hold whenever the journal is applied again.
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

/** How many events a note is about: of a request with very many faults, ingestion writes the last ones as one note. */
export function noteCount({ details }: JournalNote): number {
  return typeof details.count === "number" ? details.count : 1;
}

/** An event as everything after ingestion sees it. */
export interface CanonicalEvent {
  /** Lower case, hyphenated. */
  readonly uuid: string;
  /** The uuid was made here, so no second copy of the event can have it. */
  readonly isUuidMade: boolean;
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
    // The journal copies the text once more, and the number of pieces is what that costs: so they are few.
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
      event.isUuidMade ? made : sent,
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
/** How every line of an entry begins, and none other. */
export const entryStart = '{"seq":';
/** What a line has besides the entry: its start, the digits of the largest number, a comma and the line's end. */
const lineFrameBytesMax = entryStart.length + 16 + 2;
const propertiesMark = Buffer.from(',"properties":');
const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface DecodedEntries {
  /** In the order of the lines. */
  entries: Entry[];
  /** Lines that are no entries; the journal's hashes make that impossible short of a defect. */
  refused: string[];
}

/**
 * Reads the lines of a segment behind a sequence number; its header and its block lines are passed over.
 *
 * @param bytes a whole segment, or whole lines of one; the entries refer to them.
 */
export function decodeEntries(bytes: Buffer, afterSeq: number): DecodedEntries {
  const decoded: DecodedEntries = { entries: [], refused: [] };
  // Once for all lines: a text of its own for each would cost a third of what parsing it does.
  const text = bytes.toString("utf8");
  const isSuspect = text.includes("\\u");
  for (let start = 0, textStart = 0; start < bytes.length; ) {
    const found = bytes.indexOf(newline, start);
    const end = found === -1 ? bytes.length : found;
    const foundInText = text.indexOf("\n", textStart);
    const textEnd = foundInText === -1 ? text.length : foundInText;
    const line = bytes.subarray(start, end);
    const isWanted = text.startsWith(entryStart, textStart) && seqOf(line) > afterSeq;
    const written = isWanted ? text.slice(textStart, textEnd) : "";
    start = end + 1;
    textStart = textEnd + 1;
    if (!isWanted) continue;
    const entry = decodeEntry(line, written, isSuspect);
    if (entry === undefined) decoded.refused.push(written);
    else decoded.entries.push(entry);
  }
  return decoded;
}

/** An entry as `EntryWriter` wrote it, or its UTF-8. */
export type EntryText = string | Uint8Array;

/** The line of an entry. */
export const lineOf = (seq: number, entry: string): string => `${entryStart}${seq},${entry}\n`;

/** The lines of entries of which some are UTF-8 already, numbered from `first`. */
export function linesOf(first: number, entries: readonly EntryText[]): Buffer {
  const bytesOf = (entry: EntryText) => (typeof entry === "string" ? Buffer.byteLength(entry) : entry.length);
  const sizeMax = entries.reduce((sum, entry) => sum + bytesOf(entry) + lineFrameBytesMax, 0);
  const lines = Buffer.allocUnsafeSlow(sizeMax);
  let end = 0;
  for (const [index, entry] of entries.entries()) {
    end += lines.write(`${entryStart}${first + index},`, end, "latin1");
    if (typeof entry === "string") end += lines.write(entry, end);
    else {
      lines.set(entry, end);
      end += entry.length;
    }
    lines[end] = newline;
    end += 1;
  }
  return lines.subarray(0, end);
}

/** The sequence number of the entry that begins here. */
export function seqOf(line: Uint8Array): number {
  let seq = 0;
  for (let index = entryStart.length; index < line.length; index++) {
    const digit = line[index]! - 0x30;
    if (digit < 0 || digit > 9) break;
    seq = seq * 10 + digit;
  }
  return seq;
}

interface RawEntry {
  seq: number;
  project_id: number;
  uuid: string;
  event: string;
  distinct_id: string;
  time: number;
  received: number;
  historical: boolean;
  mode: PersonMode;
  made_uuid: boolean;
  elements_chain?: string | null;
  properties: Record<string, unknown>;
  note?: NoteKind;
  type: string;
  details: Record<string, unknown>;
}

/** @param isSuspect whether the text can hold an escape as it was allowed once. */
function decodeEntry(line: Buffer, written: string, isSuspect: boolean): Entry | undefined {
  // Journals of versions before 0.2 may hold what the event store's reader of JSON refuses.
  const text = isSuspect && hasSuspectEscape(written) ? storableJson(written) : written;
  const raw = parsed(text);
  if (raw === undefined) return undefined;
  const common = {
    seq: raw.seq,
    projectId: raw.project_id,
    receivedMicros: raw.received,
    historical: raw.historical,
  };
  if (raw.note !== undefined) return { ...common, kind: raw.note, type: raw.type, details: raw.details };
  const bytes = text === written ? line : Buffer.from(text);
  const mark = bytes.indexOf(propertiesMark);
  if (mark === -1 || !uuidPattern.test(raw.uuid)) return undefined;
  return {
    ...common,
    kind: "event",
    uuid: raw.uuid,
    event: raw.event,
    distinctId: raw.distinct_id,
    timeMicros: raw.time,
    mode: raw.mode,
    hasMadeUuid: raw.made_uuid,
    elementsChain: raw.elements_chain ?? null,
    properties: raw.properties,
    propertiesText: bytes.subarray(mark + propertiesMark.length, bytes.length - 1),
  };
}

function parsed(text: string): RawEntry | undefined {
  try {
    return JSON.parse(text) as RawEntry;
  } catch {
    return undefined;
  }
}
