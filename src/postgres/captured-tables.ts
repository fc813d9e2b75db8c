/**
 * The tables of an SQLite file whose rows are kept in PostgreSQL too: triggers note the key of every row that changes, by
 * whichever connection, and rows are read and written as JSON, by SQLite itself.
 */

import type { Database, Statement } from "bun:sqlite";

/** A row as PostgreSQL keeps it. */
export interface SharedRow {
  tbl: string;
  /** A JSON array: its primary key. */
  key: string;
  /** A JSON object: its columns. Null: the row is gone. */
  body: string | null;
}

/** Rows that have changed, at some moment. */
export interface ChangedRows {
  rows: SharedRow[];
  /** The last note by then. */
  last: number;
}

/** The numbers that SQLite has given out; a number is never given again, also not by another front. */
const sequences = "sqlite_sequence";

interface Column {
  name: string;
  type: string;
  /** Place in the primary key, from 1; 0: not in it. */
  pk: number;
}

class CapturedTable {
  private readonly put: Statement;
  private readonly remove: Statement;
  private readonly read: Statement<{ key: string; body: string | null }, [number]>;
  private readonly readAll: Statement<{ key: string; body: string | null }, []>;
  readonly triggers: string;
  readonly markAll: string;

  constructor(client: Database, name: string) {
    const table = quoted(name);
    const columns = client
      .query<Column, []>(`SELECT name, type, pk FROM pragma_table_info(${literal(name)})`)
      .all();
    const keys = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk);
    const keyNames =
      keys.length > 0 ? keys.map((key) => quoted(key.name)) : name === sequences ? ["name"] : ["rowid"];
    const keyOf = (row: string) => `json_array(${keyNames.map((key) => `${row}.${key}`).join(", ")})`;
    const isKey = keyNames.map((key, place) => `t.${key} = json_extract(d.key, '$[${place}]')`).join(" AND ");
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
    // A table without a key of its own keeps its row's number.
    if (keyNames[0] === "rowid") {
      names.unshift("rowid");
      values.unshift("json_extract(?1, '$[0]')");
    }
    this.read = client.query(
      `SELECT d.key, CASE WHEN t.${keyNames[0]} IS NULL THEN NULL ELSE json_object(${members.join(", ")}) END AS body
       FROM (SELECT DISTINCT key FROM copy_changed WHERE rowid <= ? AND tbl = ${literal(name)}) d LEFT JOIN ${table} t ON ${isKey}`,
    );
    this.readAll = client.query(
      `SELECT ${keyOf("t")} AS key, json_object(${members.join(", ")}) AS body FROM ${table} t`,
    );
    this.put = client.query(
      // With ?1 in it, whether or not a value takes it.
      `INSERT OR REPLACE INTO ${table} (${names.join(", ")}) SELECT ${values.join(", ")} WHERE ?1 IS NOT NULL`,
    );
    this.remove = client.query(
      `DELETE FROM ${table} WHERE ${keyNames.map((key, place) => `${key} = json_extract(?1, '$[${place}]')`).join(" AND ")}`,
    );
    const note = (row: string) => `INSERT INTO copy_changed VALUES (${literal(name)}, ${keyOf(row)});`;
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
    this.markAll = `INSERT INTO copy_changed SELECT ${literal(name)}, ${keyOf("t")} FROM ${table} t`;
  }

  all(): IterableIterator<{ key: string; body: string | null }> {
    return this.readAll.iterate();
  }

  /** @param last the last note that counts. */
  changed(last: number): { key: string; body: string | null }[] {
    return this.read.all(last);
  }

  write({ key, body }: SharedRow): void {
    if (body === null) this.remove.run(key);
    else this.put.run(key, body);
  }
}

export class CapturedTables {
  private readonly tables: ReadonlyMap<string, CapturedTable>;

  /** Reads the schema as it is now, and has changes noted from now on. */
  constructor(private readonly client: Database) {
    dropTriggers(client);
    // Not unique: noting the same row again is cheaper than looking for it.
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

  /** Every row counts as changed. */
  markAll(): void {
    for (const { markAll } of this.tables.values()) this.client.run(markAll);
  }

  /** The changed rows as they are now, each once: all, or those of the oldest so many notes. They count until `forget`. */
  changed(notes = Number.MAX_SAFE_INTEGER): ChangedRows {
    const { client } = this;
    return client
      .transaction(() => {
        const { last } = client
          .query<{ last: number | null }, [number]>(
            "SELECT max(rowid) AS last FROM (SELECT rowid FROM copy_changed ORDER BY rowid LIMIT ?)",
          )
          .get(notes)!;
        if (last === null) return { rows: [], last: 0 };
        const rows = [...this.tables].flatMap(([tbl, table]) =>
          (tbl === sequences ? [...table.all()] : table.changed(last)).map((row) => ({ tbl, ...row })),
        );
        return { rows, last };
      })
      .immediate();
  }

  /** These are in PostgreSQL. What was changed since counts as changed still. */
  forget({ last }: ChangedRows): void {
    this.client.run("DELETE FROM copy_changed WHERE rowid <= ?", [last]);
  }

  /** What was changed of these rows is not to be there. */
  forgetRows(rows: readonly SharedRow[]): void {
    for (const { tbl, key } of rows)
      this.client.run("DELETE FROM copy_changed WHERE tbl = ? AND key = ?", [tbl, key]);
  }

  /** Every row, in no order. */
  *all(): Generator<SharedRow> {
    for (const [tbl, table] of this.tables) for (const row of table.all()) yield { tbl, ...row };
  }

  /** Ends the noting: the file is as it was before. */
  drop(): void {
    dropTriggers(this.client);
    const names = this.client
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'copy\\_%' ESCAPE '\\'",
      )
      .all();
    for (const { name } of names) this.client.run(`DROP TABLE ${quoted(name)}`);
  }

  /** The keys of the numbers that were given out, which are in PostgreSQL like other rows. */
  numberKeys(): Pick<SharedRow, "tbl" | "key">[] {
    if (!this.tables.has(sequences)) return [];
    const rows = this.client
      .query<{ key: string }, []>(`SELECT json_array(name) AS key FROM ${sequences}`)
      .all();
    return rows.map(({ key }) => ({ tbl: sequences, key }));
  }

  /** The keys of rows that are not in PostgreSQL as they are here, as far as is known. */
  unshipped(): Pick<SharedRow, "tbl" | "key">[] {
    return this.client
      .query<{ tbl: string; key: string }, []>("SELECT DISTINCT tbl, key FROM copy_changed")
      .all();
  }

  /** Writes rows as they are in PostgreSQL, in the caller's transaction and with foreign keys off; nobody notes them. */
  write(rows: readonly SharedRow[]): void {
    const { client } = this;
    client.run("INSERT INTO copy_applying VALUES (1)");
    // Where two have exchanged what is unique, the first to come takes the other one away, which comes again.
    const isSequence = ({ tbl }: SharedRow) => tbl === sequences;
    for (const row of rows) if (!isSequence(row)) this.tables.get(row.tbl)?.write(row);
    // SQLite has written some by itself meanwhile.
    for (const row of rows.filter(isSequence)) {
      this.tables.get(sequences)?.write({ ...row, body: null });
      if (row.body !== null) this.tables.get(sequences)?.write(row);
    }
    client.run("DELETE FROM copy_applying");
  }
}

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
