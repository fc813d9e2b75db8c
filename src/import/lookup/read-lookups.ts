/** The first pass over the files of an import: lookup files are read before events, whatever the order of the files. */

import { statSync } from "node:fs";
import type { AppError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { addName, emptyCounts, type ImportCounts } from "../counts.ts";
import { tableOf } from "../files.ts";
import { detectFormat, type ImportFormat, type RecordFormat } from "../map/formats.ts";
import { detectLookup, type LookupKind, lookupAlone, lookupKey, lookupOf } from "../map/lookups.ts";
import { restOf } from "../map/members.ts";
import { snowplowRow } from "../map/snowplow.ts";
import { type Content, contentsOf } from "../read/contents.ts";
import { FileUnreadable, InputDamaged } from "../read/input.ts";
import { recordSource } from "../read/read-records.ts";
import type { LookupStore } from "./lookup-store.ts";

export interface LookupOrder {
  paths: readonly string[];
  format: ImportFormat;
  nulls?: readonly string[];
  workFolder: string;
  store: LookupStore;
}

export interface LookupFiles {
  /** Names of the contents that hold lookup rows: the pass over events leaves them out. */
  names: ReadonlySet<string>;
  counts: ImportCounts;
  /** Lookup files that could not be read to their end, or that are without their events. */
  failures: AppError[];
}

/** @param isRead whether the store has the rows already. @throws {FileUnreadable} only lookup files were found. */
export async function readLookups(order: LookupOrder, isRead: boolean): Promise<LookupFiles> {
  const counts = emptyCounts();
  const failures: AppError[] = [];
  const found = new Map<string, LookupKind>();
  const formats = new Set<RecordFormat>();
  let others = 0;
  const silent = { onBytes: () => undefined, workFolder: order.workFolder };
  for (const path of order.paths) {
    // What can be read only once is left to the pass over events.
    if (path === "-" || !statSync(path).isFile()) continue;
    try {
      for await (const content of contentsOf(path, silent)) {
        const seen = await readOne(content, order, isRead, counts, failures);
        if (seen.kind !== undefined) found.set(content.name, seen.kind);
        else others += 1;
        if (seen.format !== undefined) formats.add(seen.format);
        await content.close();
      }
    } catch (error) {
      // The pass over events reports it.
      if (!(error instanceof InputDamaged || error instanceof FileUnreadable)) throw error;
      others += 1;
    }
  }
  if (order.format !== "auto") formats.add(order.format as RecordFormat);
  for (const [name, kind] of found) {
    if (formats.has(lookupOf(kind).source)) continue;
    const error = new FileUnreadable(lookupAlone(name, kind));
    if (others === 0) throw error;
    failures.push(error);
  }
  if (!isRead) order.store.complete();
  return { names: new Set(found.keys()), counts, failures };
}

async function readOne(
  content: Content,
  { format, nulls = [], workFolder, store }: LookupOrder,
  isRead: boolean,
  counts: ImportCounts,
  failures: AppError[],
): Promise<{ kind?: LookupKind; format?: RecordFormat }> {
  const forced = format === "csv" || format === "parquet" ? format : undefined;
  const options = { onBytes: () => undefined, workFolder, nulls, snowplowRow };
  let kind: LookupKind | undefined;
  try {
    const { records } = recordSource(content, forced, options);
    for await (const batch of records)
      for (const { record } of batch) {
        if (kind === undefined) {
          if (record === undefined) return {};
          kind = detectLookup(record, tableOf(content.name), format);
          if (kind === undefined) {
            const seems = detectFormat(record);
            return seems === undefined || seems === "totals" ? {} : { format: seems };
          }
        }
        counts.read += 1;
        if (record === undefined) {
          addName(counts.left_out, unreadableRow);
          continue;
        }
        takeRow(store, kind, record, isRead, counts);
      }
  } catch (error) {
    if (kind === undefined || !(error instanceof InputDamaged)) throw error;
    failures.push(error);
  }
  return kind === undefined ? {} : { kind };
}

const unreadableRow = "lookup row that cannot be read";
const withoutId = "lookup row without an id";

function takeRow(
  store: LookupStore,
  kind: LookupKind,
  row: JsonObject,
  isRead: boolean,
  counts: ImportCounts,
): void {
  const { keys, used, omitted = [] } = lookupOf(kind);
  const rest = used === undefined ? [] : restOf(row, [...keys, ...used]);
  const dropped = omitted.filter((name) => row[name] !== undefined && row[name] !== null && row[name] !== "");
  for (const name of [...rest, ...dropped]) addName(counts.not_taken, name);
  const id = lookupKey(kind, row);
  if (id === undefined) addName(counts.left_out, withoutId);
  else if (!isRead) store.add(kind, id, row);
}
