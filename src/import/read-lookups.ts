/**
 * The first pass over the files of an import: lookup files are read before events, and it is known which IDs are users
 * before the first device is linked, whatever the order of the files (contract, import 1.1 I2).
 */

import type { AppError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { addName, emptyCounts, type ImportCounts } from "./counts.ts";
import { getTable } from "./files.ts";
import type { LookupStore } from "./lookup-store.ts";
import { type FieldRule, withFields, withLowerNames } from "./map/fields.ts";
import {
  detectFormat,
  getUser,
  hasUsers,
  type ImportFormat,
  isFileType,
  type RecordFormat,
} from "./map/formats.ts";
import { detectLookup, getLookup, type LookupKind, lookupAlone, lookupKey } from "./map/lookups.ts";
import { getRest } from "./map/members.ts";
import { snowplowRow } from "./map/snowplow.ts";
import { type Content, getContents } from "./read/archive-contents.ts";
import { CorruptInputError, UnreadableFileError } from "./read/input.ts";
import { getInputName, type PipedInput } from "./read/piped-input.ts";
import { recordSource } from "./read/read-records.ts";
import { RecentStrings } from "./recent.ts";

export interface LookupOrder {
  paths: readonly string[];
  format: ImportFormat;
  fields: readonly FieldRule[];
  nulls?: readonly string[];
  workFolder: string;
  piped?: PipedInput | undefined;
  store: LookupStore;
  /** Called with the users that the records of a file name. */
  addUsers: (users: readonly string[]) => void;
}

export interface LookupFiles {
  /** Names of contents with lookup rows, which the pass over events skips. */
  names: ReadonlySet<string>;
  /** Files and contents with a wrong checksum, and messages: records of the readable part may be corrupt too. */
  corrupt: ReadonlyMap<string, string>;
  counts: ImportCounts;
  /** Lookup files that could not be read to their end, or whose events are missing. */
  failures: AppError[];
}

/** @param isRead whether the store has the rows already. @throws {UnreadableFileError} only lookup files were found. */
export async function readLookups(order: LookupOrder, isRead: boolean): Promise<LookupFiles> {
  const counts = emptyCounts();
  const failures: AppError[] = [];
  const found = new Map<string, LookupKind>();
  const formats = new Set<RecordFormat>();
  const corrupt = new Map<string, string>();
  let others = 0;
  const { workFolder, piped } = order;
  const silent = { onBytes: () => undefined, workFolder, piped };
  for (const path of order.paths) {
    try {
      for await (const content of getContents(path, silent)) {
        const { shared, drain } = isPacked(content) ? sharing(content) : { shared: content };
        try {
          const seen = await readOne(shared, order, isRead, counts, failures);
          if (seen.kind !== undefined) found.set(content.name, seen.kind);
          else others += 1;
          if (seen.format !== undefined) formats.add(seen.format);
          await drain?.();
        } catch (error) {
          if (!isUnreadable(error)) throw error;
          others += 1;
          if (error instanceof CorruptInputError && !error.isCutOff)
            // The checksum of a packed archive is that of all its files.
            corrupt.set(content.archive === "tar" ? getInputName(path) : content.name, error.message);
        }
        await content.close();
      }
    } catch (error) {
      // The pass over events reports it.
      if (!isUnreadable(error)) throw error;
      others += 1;
      if (error instanceof CorruptInputError && !error.isCutOff)
        corrupt.set(getInputName(path), error.message);
    }
  }
  if (order.format !== "auto") formats.add(order.format as RecordFormat);
  for (const [name, kind] of found) {
    if (formats.has(getLookup(kind).source)) continue;
    const error = new UnreadableFileError(lookupAlone(name, kind));
    if (others === 0) throw error;
    failures.push(error);
  }
  if (!isRead) order.store.complete();
  return { names: new Set(found.keys()), corrupt, counts, failures };
}

/** Whether unpacking checks the content. */
function isPacked({ packing, archive }: Content): boolean {
  return packing.length > 0 || archive !== undefined;
}

/** A content that is read to its end after its records, so that its checksum is checked. */
function sharing(content: Content): { shared: Content; drain: () => Promise<void> } {
  const iterator = content.bytes[Symbol.asyncIterator]();
  const bytes = { [Symbol.asyncIterator]: () => ({ next: () => iterator.next() }) };
  const drain = async () => {
    while (!(await iterator.next()).done);
  };
  return { shared: { ...content, bytes }, drain };
}

/** Records used for format detection. */
const samplesMax = 20;

async function readOne(
  content: Content,
  order: LookupOrder,
  isRead: boolean,
  counts: ImportCounts,
  failures: AppError[],
): Promise<{ kind?: LookupKind; format?: RecordFormat }> {
  const { format, fields, nulls = [], workFolder, store } = order;
  const forced = format === "csv" || format === "parquet" ? format : undefined;
  const options = { onBytes: () => undefined, workFolder, nulls, snowplowRow };
  let kind: LookupKind | undefined;
  let found = format === "auto" || isFileType(format) ? undefined : format;
  const users = new UserBatches(order.addUsers);
  try {
    const { records } = recordSource(content, forced, options);
    let samples = 0;
    for await (const batch of records)
      for (const { record: sent } of batch) {
        const record = sent && withLowerNames(sent);
        samples += 1;
        if (samples === 1 && record !== undefined)
          kind = detectLookup(record, getTable(content.name), format);
        if (kind === undefined) {
          if (record === undefined && samples < samplesMax) continue;
          const mapped = record && withFields(record, fields);
          found ??= mapped && detectEvents(mapped);
          if (found === undefined && samples < samplesMax) continue;
          if (found === undefined || !hasUsers(found)) return found === undefined ? {} : { format: found };
          if (mapped !== undefined) users.add(getUser(found, mapped));
          continue;
        }
        counts.read += 1;
        if (record === undefined) {
          addName(counts.left_out, unreadableRow);
          continue;
        }
        storeRow(store, kind, record, isRead, counts);
        if (kind === "session") users.add(getUser("umami", record));
      }
  } catch (error) {
    // The pass over events reports it.
    const isCutOff = error instanceof CorruptInputError && error.isCutOff;
    if (kind === undefined && found !== undefined && isCutOff) return { format: found };
    if (kind === undefined || !(error instanceof CorruptInputError)) throw error;
    failures.push(error);
  } finally {
    users.flush();
  }
  return kind !== undefined ? { kind } : found !== undefined ? { format: found } : {};
}

function detectEvents(record: JsonObject): RecordFormat | undefined {
  const seems = detectFormat(record);
  return seems === "totals" ? undefined : seems;
}

function isUnreadable(error: unknown): boolean {
  return error instanceof CorruptInputError || error instanceof UnreadableFileError;
}

const usersPerBatch = 5_000;

/** Users of a file, most of them once. */
class UserBatches {
  private readonly seen = new RecentStrings();
  private users: string[] = [];

  constructor(private readonly addUsers: LookupOrder["addUsers"]) {}

  add(user: string | undefined): void {
    if (user === undefined || !this.seen.add(user)) return;
    this.users.push(user);
    if (this.users.length >= usersPerBatch) this.flush();
  }

  flush(): void {
    this.addUsers(this.users);
    this.users = [];
  }
}

const unreadableRow = "lookup row that cannot be read";
const withoutId = "lookup row without an id";

function storeRow(
  store: LookupStore,
  kind: LookupKind,
  row: JsonObject,
  isRead: boolean,
  counts: ImportCounts,
): void {
  const { keys, used, omitted = [] } = getLookup(kind);
  const rest = used === undefined ? [] : getRest(row, [...keys, ...used]);
  const dropped = omitted.filter((name) => row[name] !== undefined && row[name] !== null && row[name] !== "");
  for (const name of [...rest, ...dropped]) addName(counts.not_taken, name);
  const id = lookupKey(kind, row);
  if (id === undefined) addName(counts.left_out, withoutId);
  else if (!isRead) store.add(kind, id, row);
}
