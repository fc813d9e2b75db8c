/**
 * Persons and groups described by rows of an import: of several rows of one the highest version counts, and their
 * events follow those of all files (contract, import O1 to O3).
 *
 * The rows are in an SQLite file next to the progress of the import: memory does not grow with them, and `--resume`
 * continues.
 */

import { Database } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { Json, JsonObject } from "../lib/json/value.ts";
import { parseInstant } from "../lib/timestamp.ts";
import { getSnapshotId } from "./map/event-id.ts";
import { isPlaceholder } from "./map/identity.ts";
import {
  deletedReason,
  type GroupSnapshot,
  type PersonSnapshot,
  type Snapshot,
  toEvent,
} from "./map/mapped.ts";
import type { FinishedEvent } from "./map/to-events.ts";
import { parseCheckedJson } from "./read/json-text.ts";
import type { Resolved } from "./send-resolved.ts";

/** Why a row with a newer version elsewhere is left out. */
const supersededReason = "superseded";
/** Why a row that assigns a placeholder ID to a person is left out. */
const placeholderReason = "placeholder id of a person";

/** A row and its source. */
export interface SnapshotRow {
  snapshot: Snapshot;
  /** Number of the file in the import. */
  file: number;
  line: number;
  /** Of the row, else of its file; ISO. */
  timestamp: string;
}

/** The result of the rows of one person or one group. */
interface ResolvedSnapshot extends Resolved {
  /** The distinct IDs of a person that is deleted in the source, except those that now belong to another person. */
  deleted: readonly string[];
}

interface StoredRow {
  kind: Snapshot["kind"];
  id: string;
  version: number;
  content: string;
}
interface StoredContent {
  timestamp: string;
  isDeleted: boolean;
  properties: JsonObject;
}

const schema = `
  CREATE TABLE IF NOT EXISTS snapshot (
    kind TEXT, id TEXT, version NUMERIC, file INTEGER, line INTEGER, content TEXT,
    PRIMARY KEY (kind, id, version, file, line)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS distinct_id (
    distinct_id TEXT, version NUMERIC, file INTEGER, line INTEGER, place INTEGER, person TEXT,
    PRIMARY KEY (distinct_id, version, file, line, place)
  ) WITHOUT ROWID;
`;

export class SnapshotStore implements Disposable {
  private database: Database | undefined;

  /** @param path of the SQLite file, created with the first row; `:memory:` for none. */
  constructor(private readonly path: string) {}

  /** Whether an earlier run has left rows. */
  get isEmpty(): boolean {
    return (
      this.database === undefined || this.database.query("SELECT 1 FROM snapshot LIMIT 1").get() === null
    );
  }

  /** Stores rows durably; a row that is stored already is not stored twice. */
  add(rows: readonly SnapshotRow[]): void {
    if (rows.length === 0) return;
    const database = this.open();
    const addRow = database.query("INSERT OR IGNORE INTO snapshot VALUES (?, ?, ?, ?, ?, ?)");
    const addId = database.query("INSERT OR IGNORE INTO distinct_id VALUES (?, ?, ?, ?, ?, ?)");
    database.transaction(() => {
      for (const { snapshot, file, line, timestamp } of rows) {
        const { kind, properties, isDeleted, version } = snapshot;
        const id = kind === "person" ? snapshot.id : JSON.stringify([snapshot.type, snapshot.key]);
        const distinctIds = kind === "person" ? snapshot.distinctIds : [];
        const content = JSON.stringify({ timestamp, isDeleted, properties });
        addRow.run(kind, id, version, file, line, content);
        if (kind !== "person") continue;
        distinctIds.forEach((each, at) => void addId.run(each, snapshot.idVersion, file, line, at, id));
      }
    })();
  }

  /** The result for each person and each group, in a fixed order. */
  *resolve(): Generator<ResolvedSnapshot> {
    if (this.isEmpty) return;
    const database = this.open();
    database.run(`
      CREATE TABLE IF NOT EXISTS assigned AS
        SELECT distinct_id, person, file, line, place FROM (
          SELECT *, row_number() OVER (
            PARTITION BY distinct_id ORDER BY version DESC, file DESC, line DESC, place
          ) AS rank FROM distinct_id
        ) WHERE rank = 1;
    `);
    database.run("CREATE INDEX IF NOT EXISTS assigned_person ON assigned (person, file, line, place)");
    const getIds = database.query<{ distinct_id: string }, [string]>(
      "SELECT distinct_id FROM assigned WHERE person = ? ORDER BY file, line, place",
    );
    const rows = database.query<StoredRow, []>(
      "SELECT kind, id, version, content FROM snapshot ORDER BY kind, id, version, file, line",
    );
    let last: StoredRow | undefined;
    let count = 0;
    for (const row of rows.iterate()) {
      const isSame = last !== undefined && last.kind === row.kind && last.id === row.id;
      if (last !== undefined && !isSame) {
        yield resolveOne(last, count, getIds);
        count = 0;
      }
      count += 1;
      last = row;
    }
    if (last !== undefined) yield resolveOne(last, count, getIds);
  }

  /** The distinct IDs of each person that is deleted in the source. */
  *deletedPersons(): Generator<readonly string[]> {
    for (const { deleted } of this.resolve()) if (deleted.length > 0) yield deleted;
  }

  [Symbol.dispose](): void {
    this.database?.close();
    this.database = undefined;
  }

  /** Opens the rows of an earlier run, if any. */
  resume(): void {
    if (existsSync(this.path)) this.open();
  }

  private open(): Database {
    if (this.database !== undefined) return this.database;
    if (this.path !== ":memory:") mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    const database = new Database(this.path, { create: true, strict: true });
    database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000");
    database.run(schema);
    this.database = database;
    return database;
  }
}

function resolveOne(
  row: StoredRow,
  count: number,
  idsOf: { all: (person: string) => { distinct_id: string }[] },
): ResolvedSnapshot {
  const content = parseCheckedJson(row.content) as unknown as StoredContent;
  const ids = row.kind === "person" ? idsOf.all(row.id).map(({ distinct_id }) => distinct_id) : [];
  const real = ids.filter((id) => !isPlaceholder(id));
  const joined = real.length === 0 ? ids.slice(0, 1) : real;
  if (content.isDeleted) {
    const superseded = Array<string>(count - 1).fill(supersededReason);
    return { events: [], leftOut: [...superseded, deletedReason], deleted: joined };
  }
  const events = row.kind === "person" ? personEvents(row, content, joined) : [groupEvent(row, content)];
  const unused = Math.max(0, count - events.length);
  const placeholders = Math.min(ids.length - joined.length, unused);
  const leftOut = [
    ...Array<string>(placeholders).fill(placeholderReason),
    ...Array<string>(unused - placeholders).fill(supersededReason),
  ];
  return { events, leftOut, deleted: [] };
}

/**
 * The properties under the first distinct ID, into which the others are merged.
 *
 * @param ids without placeholders, which all persons share (contract, import I7), unless it is the only one.
 */
function personEvents(row: StoredRow, content: StoredContent, ids: readonly string[]): FinishedEvent[] {
  const [first, ...others] = ids;
  // All its IDs belong to other persons now.
  if (first === undefined) return [];
  const { timestamp, properties } = content;
  const state = [row.id, row.version, timestamp, properties] as Json;
  return [
    finished(
      `person:${JSON.stringify(state)}`,
      timestamp,
      toEvent("$set", first, timestamp, { $set: properties }),
    ),
    ...others.map((alias) =>
      finished(
        `person-id:${JSON.stringify([row.id, first, alias])}`,
        timestamp,
        toEvent("$merge_dangerously", first, timestamp, { alias }),
      ),
    ),
  ];
}

function groupEvent(row: StoredRow, { timestamp, properties }: StoredContent): FinishedEvent {
  const [type, key] = JSON.parse(row.id) as [string, string];
  const members = { $group_type: type, $group_key: key, $group_set: properties };
  const state = [type, key, row.version, timestamp, properties] as Json;
  return finished(
    `group:${JSON.stringify(state)}`,
    timestamp,
    toEvent("$groupidentify", `$${type}_${key}`, timestamp, members),
  );
}

function finished(key: string, timestamp: string, event: JsonObject): FinishedEvent {
  const uuid = getSnapshotId(key, timestamp);
  const about = { distinctId: String(event.distinct_id), micros: parseInstant(timestamp)! };
  return {
    uuid,
    text: JSON.stringify({ ...event, uuid }),
    timeProblem: undefined,
    isGenerated: false,
    about,
  };
}

/** The event by which a row is checked before it is stored. */
export function checkEvent(snapshot: Snapshot, timestamp: string): JsonObject {
  return snapshot.kind === "person" ? personCheck(snapshot, timestamp) : groupCheck(snapshot, timestamp);
}

function personCheck({ distinctIds, id, properties }: PersonSnapshot, timestamp: string): JsonObject {
  return toEvent("$set", distinctIds[0] ?? id, timestamp, { $set: properties });
}

function groupCheck({ type, key, properties }: GroupSnapshot, timestamp: string): JsonObject {
  const members = { $group_type: type, $group_key: key, $group_set: properties };
  return toEvent("$groupidentify", `$${type}_${key}`, timestamp, members);
}
