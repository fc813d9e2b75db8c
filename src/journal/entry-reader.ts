/**
 * Parses journal lines. An event's properties stay JSON until a caller parses them: parsed values take many times the
 * memory, so never hold those of many events. Lines not in the form of `EntryWriter` are parsed as a whole.
 */

import { hasSurrogateEscape, sanitizeJson } from "../lib/json/canonical.ts";
import {
  type Entry,
  EntryWriter,
  type EventEntry,
  entryStart,
  eventFrame,
  getLine,
  getSeq,
  type JournalNote,
  type NoteKind,
  type PersonMode,
} from "./entry.ts";

export interface DecodedEntries {
  /** In line order. */
  entries: Entry[];
  /** Lines that are not entries; given the journal's hashes, only a bug can cause them. */
  rejected: string[];
}

const newline = 0x0a;
const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const firstPrintable = 0x20;
const uuidLength = 36;
/** Numbers with more digits exceed JavaScript's safe integers. */
const digitsMax = 16;
const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const propertiesMark = Buffer.from(eventFrame.beforeProperties);
const escapeMark = Buffer.from("\\u");

/**
 * Decodes the lines after a sequence number; skips header and block lines.
 * @param bytes a whole segment or whole lines of one; the entries refer to them
 */
export function decodeEntries(bytes: Buffer, afterSeq: number): DecodedEntries {
  const decoded: DecodedEntries = { entries: [], rejected: [] };
  // Journals of versions before 0.2 may contain escapes that the event store's JSON reader rejects.
  const isSuspect = bytes.includes(escapeMark);
  const reader = new EventReader(bytes);
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(newline, start);
    const end = found === -1 ? bytes.length : found;
    const lineStart = start;
    start = end + 1;
    if (!isEntry(bytes, lineStart)) continue;
    if (getSeq(bytes, lineStart) <= afterSeq) continue;
    const isPlain = !isSuspect || !bytes.subarray(lineStart, end).includes(escapeMark);
    const entry =
      (isPlain ? reader.read(lineStart, end) : undefined) ?? decodeLine(bytes.subarray(lineStart, end));
    if (entry === undefined) decoded.rejected.push(bytes.toString("utf8", lineStart, end));
    else decoded.entries.push(entry);
  }
  return decoded;
}

/** The parsed properties of an event; undefined if they are not a JSON object. */
export function getProperties(entry: EventEntry): Record<string, unknown> | undefined {
  const properties = parsed(toDisplayString(entry.propertiesText));
  if (typeof properties !== "object" || properties === null) return undefined;
  return properties as Record<string, unknown>;
}

/** The line that an event was read from. */
export function writtenLine(entry: EventEntry): string {
  const {
    seq,
    projectId,
    receivedMicros,
    historical,
    event: name,
    timeMicros: time,
    hasGeneratedUuid,
  } = entry;
  const { uuid, distinctId, mode, elementsChain, propertiesText } = entry;
  const properties = toDisplayString(propertiesText);
  const written = { uuid, name, distinctId, time, mode, elementsChain, properties, hasGeneratedUuid };
  return getLine(seq, new EntryWriter(projectId, receivedMicros, historical).event(written)).trimEnd();
}

function toDisplayString(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return buffer.toString("utf8");
}

function isEntry(bytes: Buffer, start: number): boolean {
  for (let index = 0; index < entryStart.length; index++) {
    if (bytes[start + index] !== entryStart.charCodeAt(index)) return false;
  }
  return true;
}

const utf8 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));
const afterStart = utf8(entryStart);
const projectMember = utf8(',"project_id":');
const uuidMember = utf8(',"uuid":"');
const eventMember = utf8(eventFrame.beforeName);
const distinctIdMember = utf8(eventFrame.beforeId);
const timeMember = utf8(eventFrame.beforeTime);
const receivedMember = utf8(',"received":');
const historicalMember = utf8(',"historical":');
const modeMember = utf8(',"mode":"');
const generatedUuidMember = utf8('","made_uuid":');
const chainMember = utf8(',"elements_chain":');
const propertiesMember = utf8(eventFrame.beforeProperties);
const trueText = utf8("true");
const falseText = utf8("false");
const nullText = utf8(eventFrame.noChain);
const full = utf8("full");
const propertyless = utf8("propertyless");

/** Fast path: reads event lines in exactly the form that `EntryWriter` writes. */
class EventReader {
  private readonly octets: Uint8Array;
  private at = 0;

  constructor(private readonly bytes: Buffer) {
    this.octets = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** @param end offset of the line break @returns undefined for other lines */
  read(start: number, end: number): EventEntry | undefined {
    this.at = start;
    if (!this.passed(afterStart)) return undefined;
    const seq = this.number();
    if (!this.passed(projectMember)) return undefined;
    const projectId = this.number();
    if (!this.passed(uuidMember)) return undefined;
    const uuid = this.bytes.toString("latin1", this.at, this.at + uuidLength);
    this.at += uuidLength;
    if (!uuidPattern.test(uuid) || !this.passed(eventMember)) return undefined;
    const event = this.text(end);
    if (event === undefined || !this.passed(distinctIdMember)) return undefined;
    const distinctId = this.text(end);
    if (distinctId === undefined || !this.passed(timeMember)) return undefined;
    const timeMicros = this.number();
    if (!this.passed(receivedMember)) return undefined;
    const receivedMicros = this.number();
    if (!this.passed(historicalMember)) return undefined;
    const historical = this.boolean();
    if (historical === undefined || !this.passed(modeMember)) return undefined;
    const mode = this.passed(full) ? "full" : this.passed(propertyless) ? "propertyless" : undefined;
    if (mode === undefined || !this.passed(generatedUuidMember)) return undefined;
    const hasGeneratedUuid = this.boolean();
    if (hasGeneratedUuid === undefined || !this.passed(chainMember)) return undefined;
    const elementsChain = this.passed(nullText) ? null : this.text(end);
    if (elementsChain === undefined || !this.passed(propertiesMember)) return undefined;
    const { octets, at } = this;
    if (octets[at] !== openBrace || octets[end - 1] !== closeBrace || octets[end - 2] !== closeBrace)
      return undefined;
    if (Number.isNaN(seq + projectId + timeMicros + receivedMicros)) return undefined;
    const propertiesText = this.bytes.subarray(at, end - 1);
    // Unrolled: hot path, runs once per event.
    return {
      kind: "event",
      seq,
      projectId,
      uuid,
      event,
      distinctId,
      timeMicros,
      receivedMicros,
      historical,
      mode,
      hasGeneratedUuid,
      elementsChain,
      propertiesText,
    };
  }

  /** Skips the expected text if it is next. */
  private passed(expected: Uint8Array): boolean {
    const { octets, at } = this;
    for (let index = 0; index < expected.length; index++) {
      if (octets[at + index] !== expected[index]) return false;
    }
    this.at = at + expected.length;
    return true;
  }

  /** An integer; NaN if absent or too large. */
  private number(): number {
    const { octets } = this;
    const sign = octets[this.at] === 0x2d ? -1 : 1;
    const first = sign === 1 ? this.at : this.at + 1;
    let value = 0;
    let at = first;
    for (; at - first < digitsMax; at++) {
      const digit = octets[at]! - 0x30;
      if (!(digit >= 0 && digit <= 9)) break;
      value = value * 10 + digit;
    }
    this.at = at;
    // JSON numbers have no leading zeros.
    if (octets[first] === 0x30 && at - first > 1) return Number.NaN;
    return at > first && Number.isSafeInteger(value) ? sign * value : Number.NaN;
  }

  private boolean(): boolean | undefined {
    if (this.passed(falseText)) return false;
    return this.passed(trueText) ? true : undefined;
  }

  /** A string; undefined if absent. */
  private text(end: number): string | undefined {
    const { octets, bytes } = this;
    const start = this.at;
    if (octets[start] !== quote) return undefined;
    let hasEscape = false;
    let at = start + 1;
    for (; at < end && octets[at] !== quote; at++) {
      if (octets[at]! < firstPrintable) return undefined;
      if (octets[at] !== backslash) continue;
      hasEscape = true;
      at += 1;
    }
    if (at >= end) return undefined;
    this.at = at + 1;
    if (!hasEscape) return bytes.toString("utf8", start + 1, at);
    return parsed(bytes.toString("utf8", start, at + 1)) as string | undefined;
  }
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
  note?: NoteKind;
  type: string;
  details: Record<string, unknown>;
}

/** Parses an entry line of any form. */
function decodeLine(line: Buffer): Entry | undefined {
  const written = line.toString("utf8");
  const text = hasSurrogateEscape(written) ? sanitizeJson(written) : written;
  const raw = parsed(text) as RawEntry | undefined;
  if (raw === undefined) return undefined;
  const common = {
    seq: raw.seq,
    projectId: raw.project_id,
    receivedMicros: raw.received,
    historical: raw.historical,
  };
  if (raw.note !== undefined)
    return { ...common, kind: raw.note, type: raw.type, details: raw.details } satisfies JournalNote;
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
    hasGeneratedUuid: raw.made_uuid,
    elementsChain: raw.elements_chain ?? null,
    propertiesText: bytes.subarray(mark + propertiesMark.length, bytes.length - 1),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
