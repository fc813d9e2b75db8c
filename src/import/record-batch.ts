/** Records of a file that are sent together: their events, rejects and counts. */

import { InvalidItemError, PayloadTooComplexError } from "../http/decode/errors.ts";
import { normalize, requestFacts } from "../ingestion/normalize.ts";
import type { Outcome, WarningType } from "../ingestion/outcome.ts";
import { parsePayload } from "../ingestion/payload.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import { nowMicros } from "../lib/time.ts";
import { isGroupIdentify } from "../persons/identity/event-names.ts";
import { propertyBytesMax } from "../persons/identity/property-state.ts";
import { addName, emptyCounts, type ImportCounts } from "./counts.ts";
import { toObject } from "./map/lenient-json.ts";
import type { MappedRecord, Snapshot, SourceUser } from "./map/mapped.ts";
import type { FinishedEvent } from "./map/to-events.ts";
import { parseJsonString } from "./read/json-text.ts";
import type { ReadRecord } from "./read/record.ts";
import type { Reject } from "./reject-file.ts";
import type { CopiedItem } from "./settled-batch.ts";
import type { SnapshotRow } from "./snapshots.ts";

/** Such events would get the time of the import, which is never right for old data. */
const warningsWithoutTime = new Set<WarningType>([
  "ignored_invalid_timestamp",
  "historical_event_without_timestamp",
]);

/** An event that ingestion rejects because of its size (contract, import O4). */
export const tooLarge = "message_size_too_large";

/** In UTF-8, a character of a JavaScript string has at most this many bytes. */
const bytesPerCharacter = 3;

/** Whether the JSON of an event has more bytes than this; `length` is in bytes unless it is a string. */
function isLarger(text: string | { length: number }, bytesMax: number): boolean {
  if (typeof text !== "string") return text.length > bytesMax;
  return text.length * bytesPerCharacter > bytesMax && Buffer.byteLength(text) > bytesMax;
}

/** Why each of the events with these JSON texts would be dropped; undefined for accepted ones. */
function getRejections(texts: readonly string[]): (string | undefined)[] {
  if (texts.length === 0) return [];
  try {
    return rejections(texts);
  } catch {
    // One invalid event would fail the whole batch.
    return texts.map((text) => {
      try {
        return rejections([text])[0];
      } catch (error) {
        if (error instanceof PayloadTooComplexError) return tooLarge;
        return error instanceof InvalidItemError ? error.reason : "invalid_payload";
      }
    });
  }
}

function rejections(texts: readonly string[]): (string | undefined)[] {
  const facts = requestFacts({
    receivedMicros: nowMicros(),
    sentAtMicros: undefined,
    isHistorical: true,
    clientIp: undefined,
    anonymizeIps: false,
    generateUuid: () => "00000000-0000-4000-8000-000000000000",
  });
  const { items } = parsePayload(`[${texts.join(",")}]`, true);
  return texts.map((_, index) => toRejection(normalize(items.at(index), facts)));
}

function toRejection(outcome: Outcome): string | undefined {
  if (outcome.kind === "notice") return outcome.warning.type;
  if (outcome.kind === "dropped") return outcome.reason.type;
  return outcome.warnings.find(({ type }) => warningsWithoutTime.has(type))?.type;
}

/** Which properties of one event exceed the limit of a person or a group. @param text JSON of an event or its record. */
function getSizeViolation(text: string): string | undefined {
  const event = parseJsonString(text) as JsonObject;
  const properties = toObject(event.properties);
  const getSize = (...values: (Json | undefined)[]) =>
    Buffer.byteLength(JSON.stringify(Object.assign({}, ...values.map(toObject))));
  const { $set, $set_once, $group_set } = properties;
  if (isGroupIdentify(String(event.event)))
    return getSize($group_set) > propertyBytesMax ? "group_properties_size_violation" : undefined;
  const bytes = getSize($set_once, event.$set_once, $set, event.$set);
  return bytes > propertyBytesMax ? "person_properties_size_violation" : undefined;
}

/** A mapped event, and its record. */
export type MappedItem = FinishedEvent & {
  line: number;
  record: JsonObject;
  /** It is checked like an event, and stored until all files are read. */
  snapshot?: { snapshot: Snapshot; timestamp: string };
};
/** An event to be sent, and its line. */
export type LineItem = MappedItem | (CopiedItem & { line: number; snapshot?: undefined });

/** Such an event would get the time of the import. */
const withoutTime = new Set(["ignored_invalid_timestamp", "historical_event_without_timestamp"]);

export class RecordBatch {
  private items: LineItem[] = [];
  private records: ReadRecord[] = [];
  private readonly omissions = new Omissions();
  private readonly placeholders: number[] = [];
  private readonly usersInSource: { line: number; user: SourceUser }[] = [];
  /** Lines that `check` has rejected. */
  private readonly rejected = new Map<number, string>();
  rejects: Reject[] = [];
  /** Records that are loaded, but not completely: they are listed in the reject file too, and not counted as rejected. */
  incomplete: Reject[] = [];
  /** Bytes of the events. */
  bytes = 0;

  /** Its size in records or, if they are more, events. */
  get size(): number {
    return Math.max(this.records.length, this.items.length);
  }

  /** The last record. */
  get last(): ReadRecord | undefined {
    return this.records.at(-1);
  }

  take(read: ReadRecord): void {
    this.records.push(read);
  }

  add(item: LineItem): void {
    this.items.push(item);
    this.bytes += item.text.length;
  }

  /** Parts of a record that are not in its events. */
  omit(line: number, mapped: Pick<MappedRecord, "omitted" | "leftOut" | "warnings">): void {
    this.omissions.add(line, mapped);
  }

  /** The record has a placeholder ID. */
  addPlaceholder(line: number): void {
    this.placeholders.push(line);
  }

  /** The record has a user that a file of merges may name. */
  addSourceUser(line: number, user: SourceUser): void {
    this.usersInSource.push({ line, user });
  }

  /** Users of the records that are not rejected. */
  get sourceUsers(): SourceUser[] {
    const end = this.last?.line ?? 0;
    return this.usersInSource.flatMap(({ line, user }) =>
      line > end || this.rejected.has(line) ? [] : [user],
    );
  }

  /**
   * Rejects what ingestion would not store. A record is taken completely or not at all.
   *
   * @param eventBytesMax of the JSON of an event.
   */
  check(eventBytesMax: number): void {
    this.checkEvents(this.items, eventBytesMax);
    this.checkPropertySizes();
    if (this.rejected.size > 0) this.checkEvents(this.removeRejected(), eventBytesMax);
    if (this.rejected.size > 0) this.items = this.items.filter(({ line }) => !this.rejected.has(line));
    this.rejects.sort((a, b) => a.line - b.line);
  }

  private checkEvents(items: readonly LineItem[], eventBytesMax: number): void {
    // Rows of persons and groups have the limit of their properties.
    for (const item of items)
      if (item.snapshot === undefined && isLarger(item.text, eventBytesMax))
        this.reject(item.line, tooLarge, getRecord(item));
    const mapped = items.filter((item): item is MappedItem => typeof item.text === "string");
    const rejections = getRejections(mapped.map(({ text }) => text));
    mapped.forEach(({ line, record, timeProblem }, index) => {
      const rejection = rejections[index];
      const reason =
        rejection === undefined || withoutTime.has(rejection) ? (timeProblem ?? rejection) : rejection;
      if (reason !== undefined) this.reject(line, reason, record);
    });
  }

  /**
   * Removes the rejected records; the next record that would have generated the same event generates it instead.
   *
   * @returns the events generated instead.
   */
  private removeRejected(): MappedItem[] {
    const claims = new Map<string, NonNullable<MappedItem["claim"]>>();
    const left = this.items.filter((item) => {
      const isRejected = this.rejected.has(item.line);
      if (isRejected && "claim" in item && item.claim !== undefined) claims.set(item.claim.news, item.claim);
      return !isRejected;
    });
    if (claims.size === 0) {
      this.items = left;
      return [];
    }
    const instead: MappedItem[] = [];
    this.items = left.flatMap((item): LineItem[] => {
      if (!("spares" in item) || item.spares === undefined) return [item];
      const generated = item.spares.flatMap(({ news, make }): MappedItem[] => {
        const claim = claims.get(news);
        if (claim === undefined) return [];
        claims.delete(news);
        return [{ ...make(), claim, line: item.line, record: item.record }];
      });
      instead.push(...generated);
      return [...generated, item];
    });
    for (const claim of claims.values()) claim.release();
    return instead;
  }

  private reject(line: number, reason: string, record: Reject["record"]): void {
    if (this.rejected.has(line)) return;
    this.rejected.set(line, reason);
    this.rejects.push({ line, reason, record });
  }

  /** Finds properties of persons and groups that ingestion does not store: their event stays (contract, import O4). */
  private checkPropertySizes(): void {
    for (const item of this.items) {
      if (!isLarger(item.text, propertyBytesMax) || this.rejected.has(item.line)) continue;
      const reason = getSizeViolation(typeof item.text === "string" ? item.text : item.text.record);
      if (reason === undefined) continue;
      this.incomplete.push({ line: item.line, reason, record: getRecord(item) });
      this.omissions.add(item.line, { warnings: [reason] });
    }
  }

  /** Removes this line and those after it. */
  endBefore(end: number): void {
    this.records = this.records.filter(({ line }) => line < end);
    this.items = this.items.filter(({ line }) => line < end);
    this.rejects = this.rejects.filter(({ line }) => line < end);
    this.incomplete = this.incomplete.filter(({ line }) => line < end);
  }

  /** Whether a record is loaded, or left out on purpose. */
  get isUseful(): boolean {
    return this.items.length > 0 || this.omissions.hasLeftOut;
  }

  /** The events, and those by which rows of persons and groups were checked. */
  get all(): readonly LineItem[] {
    return this.items;
  }

  /** The events to be sent. */
  get events(): LineItem[] {
    return this.items.every(({ snapshot }) => snapshot === undefined)
      ? this.items
      : this.items.filter(({ snapshot }) => snapshot === undefined);
  }

  /** The rows of persons and groups. @param file number of the file in the import */
  snapshots(file: number): SnapshotRow[] {
    return this.items.flatMap(({ snapshot, line }) =>
      snapshot === undefined ? [] : [{ ...snapshot, line, file }],
    );
  }

  counts(): Partial<ImportCounts> {
    const end = this.last?.line ?? 0;
    return {
      read: this.records.length,
      rejected: this.rejects.length,
      placeholder_ids: this.placeholders.filter((line) => line <= end).length,
      ...this.omissions.counts((line) => line <= end && !this.rejected.has(line)),
    };
  }
}

function getRecord(item: LineItem): Reject["record"] {
  return "record" in item ? item.record : item.text.record;
}

/** Parts of a batch's records that are not in its events (contract, import 1.2). */

type Omission = Pick<MappedRecord, "omitted" | "leftOut" | "warnings">;

class Omissions {
  private readonly list: {
    line: number;
    names: readonly string[];
    leftOut: string | undefined;
    warnings: readonly string[];
  }[] = [];

  /** Adds what a record does not pass on to its events. */
  add(line: number, { omitted, leftOut, warnings = [] }: Omission): void {
    const names = [...(omitted ?? [])];
    if (names.length > 0 || leftOut !== undefined || warnings.length > 0)
      this.list.push({ line, names, leftOut, warnings });
  }

  /** Whether a record was left out on purpose. */
  get hasLeftOut(): boolean {
    return this.list.some(({ leftOut }) => leftOut !== undefined);
  }

  /** The counts of the records that match a condition. */
  counts(isCounted: (line: number) => boolean): Pick<ImportCounts, "left_out" | "not_taken" | "warnings"> {
    const { left_out, not_taken, warnings } = emptyCounts();
    for (const omission of this.list) {
      if (!isCounted(omission.line)) continue;
      // Sorted, so that the order does not depend on how the record was read.
      for (const name of [...omission.names].sort()) addName(not_taken, name);
      for (const name of omission.warnings) addName(warnings, name);
      if (omission.leftOut !== undefined) addName(left_out, omission.leftOut);
    }
    return { left_out, not_taken, warnings };
  }
}
