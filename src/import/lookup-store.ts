/**
 * Rows of lookup files, by the IDs that events use to find them, in an SQLite file next to the progress of the import:
 * memory does not grow with them, and `--resume` knows which were joined (contract, import 2.6, 2.11).
 */

import { Database } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { JsonObject } from "../lib/json/value.ts";
import { type LookupKind, type MergeKind, mergeKinds } from "./map/lookups.ts";
import type { SourceUser } from "./map/mapped.ts";
import { parseJsonString } from "./read/json-text.ts";

const schema = `
  CREATE TABLE IF NOT EXISTS lookup_row (
    kind TEXT, key TEXT, number INTEGER, content TEXT, PRIMARY KEY (kind, key, number)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS joined (kind TEXT, key TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS source_user (
    kind TEXT, source_id TEXT, distinct_id TEXT, is_user INTEGER, UNIQUE (kind, source_id, distinct_id)
  );
  CREATE TABLE IF NOT EXISTS complete (is_complete INTEGER);
`;
/** Changes per transaction. */
const changesMax = 5_000;

export class LookupStore implements Disposable {
  private database: Database | undefined;
  private readonly kinds = new Set<LookupKind>();
  private changes = 0;
  private rows = 0;

  /** @param path of the SQLite file, created with the first row; undefined for a temporary one. */
  constructor(private readonly path: string | undefined) {}

  /** Opens the rows of an earlier run. @returns whether it had read all lookup files. */
  resume(): boolean {
    if (this.path === undefined || !existsSync(this.path)) return false;
    const database = this.open();
    if (database.query("SELECT 1 FROM complete").get() !== null) {
      const found = database.query<{ kind: LookupKind }, []>("SELECT DISTINCT kind FROM lookup_row");
      for (const { kind } of found.all()) this.kinds.add(kind);
      return true;
    }
    database.run("DELETE FROM lookup_row");
    return false;
  }

  add(kind: LookupKind, key: string, row: JsonObject): void {
    this.kinds.add(kind);
    this.rows += 1;
    this.run("INSERT INTO lookup_row VALUES (?, ?, ?, ?)", kind, key, this.rows, JSON.stringify(row));
  }

  /** Marks all lookup files as read. */
  complete(): void {
    if (this.database === undefined) return;
    this.run("INSERT INTO complete VALUES (1)");
    this.save();
  }

  /** Whether rows of this kind exist. */
  has(kind: LookupKind): boolean {
    return this.kinds.has(kind);
  }

  /** All rows of a kind, in reading order. */
  *getRows(kind: LookupKind): Generator<JsonObject> {
    if (!this.kinds.has(kind)) return;
    const found = this.open().query<{ content: string }, [string]>(
      "SELECT content FROM lookup_row WHERE kind = ? ORDER BY number",
    );
    for (const { content } of found.iterate(kind)) yield parseJsonString(content) as JsonObject;
  }

  /** Records the distinct IDs in events of a source user, for rows that merge such users. */
  addSourceUser(kind: MergeKind, { id, ids }: SourceUser): void {
    for (const { distinctId, isUser } of ids)
      this.run(
        `INSERT INTO source_user VALUES (?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET is_user = max(is_user, excluded.is_user)`,
        kind,
        id,
        distinctId,
        isUser ? 1 : 0,
      );
  }

  /** The distinct IDs of a source user, in the order they were found. */
  sourceUserIds(kind: MergeKind, id: string): SourceUser["ids"] {
    return this.open()
      .query<{ distinct_id: string; is_user: number }, [string, string]>(
        "SELECT distinct_id, is_user FROM source_user WHERE kind = ? AND source_id = ? ORDER BY rowid",
      )
      .all(kind, id)
      .map(({ distinct_id, is_user }) => ({ distinctId: distinct_id, isUser: is_user === 1 }));
  }

  /** The rows of an ID, in reading order; they count as joined from now on. */
  take(kind: LookupKind, key: string | undefined): JsonObject[] {
    if (key === undefined || !this.kinds.has(kind)) return [];
    const found = this.open()
      .query<{ content: string }, [string, string]>(
        "SELECT content FROM lookup_row WHERE kind = ? AND key = ? ORDER BY number",
      )
      .all(kind, key)
      .map(({ content }) => parseJsonString(content) as JsonObject);
    if (found.length > 0) this.run("INSERT OR IGNORE INTO joined VALUES (?, ?)", kind, key);
    return found;
  }

  /** Lookup rows joined with an event, and those that were not; rows that merge users are not counted. */
  rowCounts(): { joined: number; alone: number } {
    if (this.database === undefined) return { joined: 0, alone: 0 };
    const merges = mergeKinds.map((kind) => `'${kind}'`).join();
    const count = `SELECT count(*) AS n FROM lookup_row WHERE kind NOT IN (${merges})`;
    const isJoined = "(kind, key) IN (SELECT kind, key FROM joined)";
    const { n: all } = this.database.query<{ n: number }, []>(count).get()!;
    const { n: joined } = this.database.query<{ n: number }, []>(`${count} AND ${isJoined}`).get()!;
    return { joined, alone: all - joined };
  }

  /** Persists pending changes. */
  save(): void {
    if (this.changes === 0) return;
    this.changes = 0;
    this.open().run("COMMIT");
  }

  [Symbol.dispose](): void {
    if (this.database === undefined) return;
    this.save();
    this.database.close();
    this.database = undefined;
  }

  private run(sql: string, ...values: (string | number)[]): void {
    const database = this.open();
    if (this.changes === 0) database.run("BEGIN");
    database.query(sql).run(...values);
    this.changes += 1;
    if (this.changes >= changesMax) this.save();
  }

  private open(): Database {
    if (this.database !== undefined) return this.database;
    if (this.path !== undefined) mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    // SQLite deletes an unnamed database with its connection.
    const database = new Database(this.path ?? "", { create: true });
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = NORMAL");
    database.run("PRAGMA cache_size = -16000");
    database.run(schema);
    this.database = database;
    return database;
  }
}
