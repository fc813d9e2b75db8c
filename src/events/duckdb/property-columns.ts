/**
 * Materialized property columns of the table `events`, so that queries need not read the JSON of every event. Values
 * equal `memberText` of the JSON. New events are filled in their load's transaction, older ones in chunks, newest
 * first. Queries use a column once it is complete. `materialized-columns.ts` selects the properties.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { SentPropertiesLocation } from "../sql-dialect.ts";
import { inTransaction } from "./database.ts";
import { stringsAt } from "./sql-dialect.ts";

interface Column {
  readonly name: string;
  readonly column: string;
  filledFrom: number;
  /** Rows with lower IDs existed when the column was added. */
  readonly rows: number;
  /** Set if queries no longer use the column: when it may be dropped. */
  droppableAt?: number;
}

/** A materialized property, as in `status`. */
export interface MaterializedProperty {
  name: string;
  /** Fraction of events with a value, 0 to 1; queries use the column at 1. */
  filled: number;
}

/** Rows filled per transaction, a third of a row group: about 50 ms. */
const chunkRows = 40_960;
/** Properties with a higher average length (within a chunk) are not worth materializing. */
const averageLengthMax = 1_024;

export class PropertyColumns {
  private constructor(private columns: readonly Column[]) {}

  static async open(connection: DuckDBConnection): Promise<PropertyColumns> {
    const found = await connection.runAndReadAll("SELECT name, filled_from::DOUBLE FROM property_column");
    const columns = (found.getRows() as [string, number][]).map(([name, filledFrom]) => {
      return { name, column: columnName(name), filledFrom, rows: filledFrom };
    });
    return new PropertyColumns(columns);
  }

  /** Every property that has a column, complete or not. */
  list(): MaterializedProperty[] {
    return this.columns
      .filter(({ droppableAt }) => droppableAt === undefined)
      .map(({ name, filledFrom, rows }) => ({ name, filled: rows === 0 ? 1 : 1 - filledFrom / rows }));
  }

  /**
   * The properties of events in a query, by column if complete.
   * @param table alias of the table `events` @param onName called for every property that the query reads
   */
  location(table: string, onName: (name: string) => void = () => undefined): SentPropertiesLocation {
    return {
      json: `${table}.properties`,
      findColumn: (name) => {
        onName(name);
        const found = this.columns.find((column) => column.name === name);
        const isUsable = found?.filledFrom === 0 && found.droppableAt === undefined;
        return isUsable ? `${table}.${found.column}` : undefined;
      },
    };
  }

  get isFilling(): boolean {
    return this.columns.some(({ filledFrom }) => filledFrom > 0);
  }

  /**
   * Fills the events that the connection's transaction has just added.
   * @param after the previous last sequence number of the lane
   */
  async fillNew(connection: DuckDBConnection, historical: boolean, after: number): Promise<void> {
    await fill(
      connection,
      this.columns,
      (table) => `${table}.historical = ${historical} AND ${table}.seq > ${after}`,
    );
  }

  /** Adds columns, to be filled later. No event may be loaded meanwhile. */
  async add(connection: DuckDBConnection, names: readonly string[]): Promise<void> {
    const added = await inTransaction(connection, async () => {
      const last = await connection.runAndReadAll(
        "SELECT (coalesce(max(rowid), -1) + 1)::DOUBLE FROM events",
      );
      const rows = last.getRows()[0]![0] as number;
      for (const name of names) {
        await connection.run(`ALTER TABLE events ADD COLUMN ${columnName(name)} VARCHAR`);
        await connection.run("INSERT INTO property_column VALUES ($1, $2)", [name, BigInt(rows)]);
      }
      return names.map((name) => ({ name, column: columnName(name), filledFrom: rows, rows }));
    });
    this.columns = [...this.columns, ...added];
  }

  /**
   * Stops queries from using the column; it is dropped at `at` (by `performance.now`), when no query can still use it.
   */
  retire(name: string, at: number): void {
    this.columns = this.columns.map((column) =>
      column.name === name ? { ...column, droppableAt: column.droppableAt ?? at } : column,
    );
  }

  /** Drops the retired columns that are due. No event may be loaded meanwhile. */
  async dropRetired(connection: DuckDBConnection): Promise<void> {
    const now = performance.now();
    const going = this.columns.filter(({ droppableAt }) => droppableAt !== undefined && droppableAt <= now);
    if (going.length === 0) return;
    await inTransaction(connection, async () => {
      for (const { name, column } of going) {
        await connection.run(`ALTER TABLE events DROP COLUMN ${column}`);
        await connection.run("DELETE FROM property_column WHERE name = $1", [name]);
      }
    });
    this.columns = this.columns.filter((column) => !going.includes(column));
  }

  /**
   * Fills the next chunk of the least complete columns. Row IDs only decrease, when events expire; filling downwards
   * therefore skips no row. @returns properties whose values are too long for a column
   */
  async fillChunk(connection: DuckDBConnection): Promise<string[]> {
    const to = Math.max(0, ...this.columns.map(({ filledFrom }) => filledFrom));
    const filled = this.columns.filter(({ filledFrom }) => filledFrom > 0 && filledFrom === to);
    if (filled.length === 0) return [];
    const from = Math.max(0, to - chunkRows);
    const rows = (table: string) => `${table}.rowid >= ${from} AND ${table}.rowid < ${to}`;
    const lengths = await inTransaction(connection, async () => {
      await fill(connection, filled, rows);
      for (const { name } of filled) {
        await connection.run("UPDATE property_column SET filled_from = $1 WHERE name = $2", [
          BigInt(from),
          name,
        ]);
      }
      const averages = filled.map(({ column }) => `coalesce(avg(strlen(${column})), 0)`);
      return await connection.runAndReadAll(
        `SELECT ${averages.join(", ")} FROM events WHERE ${rows("events")}`,
      );
    });
    for (const column of filled) column.filledFrom = from;
    return filled
      .filter((_, index) => (lengths.getRows()[0]![index] as number) > averageLengthMax)
      .map(({ name }) => name);
  }
}

/** Deterministic by name, so that a re-added column is never mistaken for another property's. */
function columnName(name: string): string {
  return `property_${new Bun.CryptoHasher("sha256").update(name).digest("hex").slice(0, 32)}`;
}

/** @param rows condition on a table of that name */
async function fill(
  connection: DuckDBConnection,
  columns: readonly Column[],
  rows: (table: string) => string,
): Promise<void> {
  if (columns.length === 0) return;
  const texts = stringsAt(
    "e.properties",
    columns.map(({ name }) => name),
  );
  const values = columns.map(({ column }, index) => `${column} = f.texts[${index + 1}]`);
  // Parses the JSON of an event once for all its columns.
  await connection.run(
    `UPDATE events SET ${values.join(", ")}
     FROM (SELECT e.rowid AS row_id, ${texts} AS texts FROM events e WHERE ${rows("e")}) f
     WHERE events.rowid = f.row_id AND ${rows("events")}`,
  );
}
