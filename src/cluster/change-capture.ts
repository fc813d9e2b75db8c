/**
 * Captures changes of the tables of an SQLite file that are replicated to PostgreSQL. Triggers record the key of each
 * changed row, for every connection; SQLite itself serializes rows to JSON and back.
 */

import type { Database, Statement } from "bun:sqlite";

/** A row in the format stored in PostgreSQL. */
export interface SharedRow {
  tbl: string;
  /** JSON array of the primary key. */
  key: string;
  /** JSON object of the columns; null if the row is deleted. */
  body: string | null;
}

/** Changed rows at one point in time. */
export interface ChangedRows {
  rows: SharedRow[];
  /** The last captured change included. */
  last: number;
}

/** AUTOINCREMENT counters: replicated, so that no node ever reuses a number. */
const sequences = "sqlite_sequence";

interface Column {
  name: string;
  type: string;
  /** Position in the primary key, from 1; 0 for other columns. */
  pk: number;
}

class CapturedTable {
  private readonly put: Statement;
  private readonly remove: Statement;
  private readonly read: Statement<{ key: string; body: string | null }, [number, number]>;
  private readonly readAll: Statement<{ key: string; body: string | null }, []>;
  readonly triggers: string;
  readonly markAll: string;
  readonly table: string;
  private readonly cells: string;

  constructor(client: Database, name: string) {
    const table = quoted(name);
    this.table = table;
    const columns = client
      .query<Column, []>(`SELECT name, type, pk FROM pragma_table_info(${literal(name)})`)
      .all();
    const keys = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    const keyNames =
      keys.length > 0 ? keys.map((key) => quoted(key.name)) : name === sequences ? ["name"] : ["rowid"];
    const getKey = (row: string) => `json_array(${keyNames.map((key) => `${row}.${key}`).join(", ")})`;
    const isKey = keyNames.map((key, index) => `t.${key} = json_extract(d.key, '$[${index}]')`).join(" AND ");
    const members = columns.map(({ name: column, type }) => {
      const cell = `t.${quoted(column)}`;
      const value = type === "BLOB" ? `CASE WHEN ${cell} IS NULL THEN NULL ELSE hex(${cell}) END` : cell;
      return `${literal(column)}, ${value}`;
    });
    const values = columns.map(({ name: column, type }) => {
      const value = `json_extract(?2, ${literal(`$.${JSON.stringify(column)}`)})`;
      return type === "BLOB" ? `unhex(${value})` : value;
    });
    const names = columns.map((column) => quoted(column.name));
    // Tables without a primary key keep their rowid.
    if (keyNames[0] === "rowid") {
      names.unshift("rowid");
      values.unshift("json_extract(?1, '$[0]')");
    }
    this.cells = names.join(", ");
    this.read = client.query(
      `SELECT d.key, CASE WHEN t.${keyNames[0]} IS NULL THEN NULL ELSE json_object(${members.join(", ")}) END AS body
       FROM (SELECT DISTINCT key FROM copy_changed WHERE rowid > ? AND rowid <= ? AND tbl = ${literal(name)}) d LEFT JOIN ${table} t ON ${isKey}`,
    );
    this.readAll = client.query(
      `SELECT ${getKey("t")} AS key, json_object(${members.join(", ")}) AS body FROM ${table} t`,
    );
    this.put = client.query(
      // The condition references ?1 because not every table uses it in its values.
      `INSERT OR REPLACE INTO ${table} (${names.join(", ")}) SELECT ${values.join(", ")} WHERE ?1 IS NOT NULL`,
    );
    this.remove = client.query(
      `DELETE FROM ${table} WHERE ${keyNames.map((key, position) => `${key} = json_extract(?1, '$[${position}]')`).join(" AND ")}`,
    );
    const note = (row: string) => `INSERT INTO copy_changed VALUES (${literal(name)}, ${getKey(row)});`;
    const trigger = (suffix: string, event: string, body: string, condition = "") =>
      `CREATE TRIGGER ${quoted(`copy_${name}_${suffix}`)} AFTER ${event} ON ${table}
       WHEN ${condition}NOT EXISTS (SELECT 1 FROM copy_applying) BEGIN ${body} END;`;
    const isOther = keyNames.map((key) => `OLD.${key} IS NOT NEW.${key}`).join(" OR ");
    this.triggers =
      name === sequences
        ? ""
        : trigger("insert", "INSERT", note("NEW")) +
          trigger("update", "UPDATE", note("NEW")) +
          trigger("rename", "UPDATE", note("OLD"), `(${isOther}) AND `) +
          trigger("delete", "DELETE", note("OLD"));
    this.markAll = `INSERT INTO copy_changed SELECT ${literal(name)}, ${getKey("t")} FROM ${table} t`;
  }

  all(): IterableIterator<{ key: string; body: string | null }> {
    return this.readAll.iterate();
  }

  /** @param after @param last range of rowids in `copy_changed` */
  changed(after: number, last: number): { key: string; body: string | null }[] {
    return this.read.all(after, last);
  }

  /** SQL that copies all rows from the same table of another database. */
  copyFrom(schema: string): string {
    const { table, cells } = this;
    return `INSERT INTO main.${table} (${cells}) SELECT ${cells} FROM ${schema}.${table}`;
  }

  write({ key, body }: SharedRow): void {
    if (body === null) this.remove.run(key);
    else this.put.run(key, body);
  }
}

export class ChangeCapture {
  private readonly tables: ReadonlyMap<string, CapturedTable>;

  /** Reads the current schema and starts capturing. */
  constructor(private readonly client: Database) {
    dropTriggers(client);
    // No unique key: inserting a duplicate is cheaper than looking it up.
    client.run(`CREATE TABLE IF NOT EXISTS copy_changed (tbl TEXT NOT NULL, key TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS copy_applying (one INTEGER PRIMARY KEY)`);
    const names = client
      .query<{ name: string }, []>(
        `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'copy\\_%' ESCAPE '\\'
         AND name <> 'schema_migration' AND (name NOT LIKE 'sqlite\\_%' ESCAPE '\\' OR name = '${sequences}')`,
      )
      .all();
    this.tables = new Map(names.map(({ name }) => [name, new CapturedTable(client, name)]));
    for (const { triggers: sql } of this.tables.values()) if (sql !== "") client.run(sql);
  }

  get hasChanges(): boolean {
    return this.client.query("SELECT 1 FROM copy_changed LIMIT 1").get() !== null;
  }

  /** Marks every row as changed. */
  markAll(): void {
    for (const { markAll } of this.tables.values()) this.client.run(markAll);
  }

  /**
   * The current state of the changed rows, without duplicates: all, or those of the oldest `count` changes. They stay
   * marked until `forget`.
   * @param after the last change of the previous part
   */
  changed(count = Number.MAX_SAFE_INTEGER, after = 0): ChangedRows {
    const { client } = this;
    return client
      .transaction(() => {
        const { last } = client
          .query<{ last: number | null }, [number, number]>(
            "SELECT max(rowid) AS last FROM (SELECT rowid FROM copy_changed WHERE rowid > ? ORDER BY rowid LIMIT ?)",
          )
          .get(after, count)!;
        if (last === null) return { rows: [], last: after };
        const rows = [...this.tables].flatMap(([tbl, table]) =>
          (tbl === sequences ? [...table.all()] : table.changed(after, last)).map((row) => ({ tbl, ...row })),
        );
        return { rows, last };
      })
      .immediate();
  }

  /** Unmarks rows that PostgreSQL has; changes made since `changed` stay marked. */
  forget({ last }: ChangedRows): void {
    this.client.run("DELETE FROM copy_changed WHERE rowid <= ?", [last]);
  }

  /** Discards the captured changes of these rows. */
  forgetRows(rows: readonly SharedRow[]): void {
    for (const { tbl, key } of rows)
      this.client.run("DELETE FROM copy_changed WHERE tbl = ? AND key = ?", [tbl, key]);
  }

  /** All rows, unordered. */
  *all(): Generator<SharedRow> {
    for (const [tbl, table] of this.tables) for (const row of table.all()) yield { tbl, ...row };
  }

  /** Stops capturing and removes all traces from the file. */
  drop(): void {
    dropTriggers(this.client);
    const names = this.client
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'copy\\_%' ESCAPE '\\'",
      )
      .all();
    for (const { name } of names) this.client.run(`DROP TABLE ${quoted(name)}`);
  }

  /** Keys of the AUTOINCREMENT counters, which are replicated like rows. */
  numberKeys(): Pick<SharedRow, "tbl" | "key">[] {
    if (!this.tables.has(sequences)) return [];
    const rows = this.client
      .query<{ key: string }, []>(`SELECT json_array(name) AS key FROM ${sequences}`)
      .all();
    return rows.map(({ key }) => ({ tbl: sequences, key }));
  }

  /** Keys of rows that may differ from PostgreSQL. */
  unshipped(): Pick<SharedRow, "tbl" | "key">[] {
    return this.client
      .query<{ tbl: string; key: string }, []>("SELECT DISTINCT tbl, key FROM copy_changed")
      .all();
  }

  /**
   * Replaces all rows by those of a file with the same schema, without capturing that. Readers see the rows of before
   * or those of after. Foreign keys are off.
   * @param then runs in the same transaction; the file is the database `fresh`
   */
  replaceBy(path: string, then: () => void): void {
    const { client } = this;
    client.run(`ATTACH ? AS ${attached}`, [path]);
    try {
      client
        .transaction(() => {
          client.run("INSERT INTO copy_applying VALUES (1)");
          for (const { table } of this.tables.values()) client.run(`DELETE FROM main.${table}`);
          for (const [name, table] of this.tables)
            if (name !== sequences) client.run(table.copyFrom(attached));
          // Last, because the inserts above change the counters.
          const counters = this.tables.get(sequences);
          if (counters !== undefined) {
            client.run(`DELETE FROM main.${counters.table}`);
            client.run(counters.copyFrom(attached));
          }
          client.run("DELETE FROM copy_applying; DELETE FROM copy_changed");
          then();
        })
        .immediate();
    } finally {
      client.run(`DETACH ${attached}`);
    }
  }

  /** Writes rows from PostgreSQL without capturing them. The caller holds a transaction, with foreign keys off. */
  write(rows: readonly SharedRow[]): void {
    const { client } = this;
    client.run("INSERT INTO copy_applying VALUES (1)");
    // If two rows have swapped a unique value, the first write deletes the other row, which is written later in the
    // list.
    const isSequence = ({ tbl }: SharedRow) => tbl === sequences;
    for (const row of rows) if (!isSequence(row)) this.tables.get(row.tbl)?.write(row);
    // Last, because the inserts above change the counters.
    for (const row of rows.filter(isSequence)) {
      this.tables.get(sequences)?.write({ ...row, body: null });
      if (row.body !== null) this.tables.get(sequences)?.write(row);
    }
    client.run("DELETE FROM copy_applying");
  }
}

/** A database attached to the connection. */
const attached = "fresh";

function dropTriggers(client: Database): void {
  const triggers = client
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'copy\\_%' ESCAPE '\\'",
    )
    .all();
  for (const { name } of triggers) client.run(`DROP TRIGGER ${quoted(name)}`);
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
