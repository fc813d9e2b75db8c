/**
 * Rows of lookup files, by the ids under which events look for them. They are in an SQLite file next to the progress of the
 * import: memory does not grow with them, and `--resume` finds which of them were joined (contract, import 2.6, 2.11).
 */

import { Database } from "bun:sqlite";
import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { JsonObject } from "../../lib/json.ts";
import type { LookupKind } from "../map/lookups.ts";
import { parseJsonText } from "../read/json-text.ts";

const schema = `
  CREATE TABLE IF NOT EXISTS lookup_row (
    kind TEXT, key TEXT, number INTEGER, content TEXT, PRIMARY KEY (kind, key, number)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS joined (kind TEXT, key TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS complete (is_complete INTEGER);
`;
/** Changes in one transaction. */
const changesMax = 5_000;

export class LookupStore implements Disposable {
  private database: Database | undefined;
  private readonly kinds = new Set<LookupKind>();
  private changes = 0;
  private rows = 0;

  /** @param path of the SQLite file, which is created with the first row; undefined for a temporary one. */
  constructor(private readonly path: string | undefined) {}

  /** Opens what an earlier run has read. @returns whether it had read all lookup files. */
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

  /** Stores a row under an id. */
  add(kind: LookupKind, key: string, row: JsonObject): void {
    this.kinds.add(kind);
    this.rows += 1;
    this.run("INSERT INTO lookup_row VALUES (?, ?, ?, ?)", kind, key, this.rows, JSON.stringify(row));
  }

  /** All lookup files were read. */
  complete(): void {
    if (this.database === undefined) return;
    this.run("INSERT INTO complete VALUES (1)");
    this.save();
  }

  /** The rows under an id, in reading order; they count as joined from now on. */
  take(kind: LookupKind, key: string | undefined): JsonObject[] {
    if (key === undefined || !this.kinds.has(kind)) return [];
    const found = this.open()
      .query<{ content: string }, [string, string]>(
        "SELECT content FROM lookup_row WHERE kind = ? AND key = ? ORDER BY number",
      )
      .all(kind, key)
      .map(({ content }) => parseJsonText(content) as JsonObject);
    if (found.length > 0) this.run("INSERT OR IGNORE INTO joined VALUES (?, ?)", kind, key);
    return found;
  }

  /** Rows of lookups that were joined with an event, and those that were not. */
  rowCounts(): { joined: number; alone: number } {
    if (this.database === undefined) return { joined: 0, alone: 0 };
    const count = "SELECT count(*) AS n FROM lookup_row";
    const isJoined = "(kind, key) IN (SELECT kind, key FROM joined)";
    const { n: all } = this.database.query<{ n: number }, []>(count).get()!;
    const { n: joined } = this.database.query<{ n: number }, []>(`${count} WHERE ${isJoined}`).get()!;
    return { joined, alone: all - joined };
  }

  /** Makes what was noted outlast this process. */
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
    // A file without a name goes with the connection.
    const database = new Database(this.path ?? "", { create: true });
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = NORMAL");
    database.run("PRAGMA cache_size = -16000");
    database.run(schema);
    this.database = database;
    return database;
  }
}
