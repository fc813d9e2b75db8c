/**
 * Columns of the table `events` that hold single properties as text, so that a query need not read the JSON of every event.
 *
 * Such a column holds exactly what `memberText` gives for the JSON, which stays the truth. New events get their values in the
 * transaction that loads them; older ones piece by piece, the newest first, each piece with the place it has come to in one
 * transaction. A query uses a column when all events have their value. Which properties get one: `promotion.ts`.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import { type PropertyPlace, textsAt } from "../dialect.ts";
import { inTransaction } from "./database.ts";

interface Column {
  readonly name: string;
  readonly column: string;
  filledFrom: number;
  /** Row numbers below were there when it was added. */
  readonly rows: number;
  /** Not used by queries any more; when it may be dropped. */
  droppableAt?: number;
}

/** A property with a column of its own, as `status` shows it. */
export interface PromotedProperty {
  name: string;
  /** The part of the events that have their value there, 0 to 1; queries use it at 1. */
  filled: number;
}

/** Rows that are filled in one transaction, a third of a row group: about a twentieth of a second. */
const pieceRows = 40_960;
/** Values longer than this on average (of those in a piece) are better left where they are. */
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

  /** Every property that has a column, filled or not. */
  list(): PromotedProperty[] {
    return this.columns
      .filter(({ droppableAt }) => droppableAt === undefined)
      .map(({ name, filledFrom, rows }) => ({ name, filled: rows === 0 ? 1 : 1 - filledFrom / rows }));
  }

  /**
   * The properties of events in a query, by column where there is one.
   *
   * @param table  what the table `events` is called in it.
   * @param onName told of every property that the query reads.
   */
  place(table: string, onName: (name: string) => void = () => undefined): PropertyPlace {
    return {
      json: `${table}.properties`,
      columnOf: (name) => {
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
   * Gives the events their values that the transaction of this connection has just added.
   *
   * @param after the last sequence number of the lane before them.
   */
  async fillNew(connection: DuckDBConnection, historical: boolean, after: number): Promise<void> {
    await fill(
      connection,
      this.columns,
      (table) => `${table}.historical = ${historical} AND ${table}.seq > ${after}`,
    );
  }

  /** Adds columns, which have to be filled then. No event may be loaded meanwhile. */
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

  /** From now on no query uses the column; it goes at `at` (of `performance.now`), when none can be using it any more. */
  retire(name: string, at: number): void {
    this.columns = this.columns.map((column) =>
      column.name === name ? { ...column, droppableAt: column.droppableAt ?? at } : column,
    );
  }

  /** Drops the columns whose time has come. No event may be loaded meanwhile. */
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
   * Fills the next piece of the columns that lack most.
   *
   * Row numbers fall when events go by age, and never rise: downwards no row is left out, whatever happens in between.
   *
   * @returns properties whose values are too long for a column.
   */
  async fillPiece(connection: DuckDBConnection): Promise<string[]> {
    const to = Math.max(0, ...this.columns.map(({ filledFrom }) => filledFrom));
    const filled = this.columns.filter(({ filledFrom }) => filledFrom > 0 && filledFrom === to);
    if (filled.length === 0) return [];
    const from = Math.max(0, to - pieceRows);
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

/** The same for the same name, so that a column that comes back cannot be taken for another property's. */
function columnName(name: string): string {
  return `property_${new Bun.CryptoHasher("sha256").update(name).digest("hex").slice(0, 32)}`;
}

/** @param rows which rows, as a condition on a table of that name. */
async function fill(
  connection: DuckDBConnection,
  columns: readonly Column[],
  rows: (table: string) => string,
): Promise<void> {
  if (columns.length === 0) return;
  const texts = textsAt(
    "e.properties",
    columns.map(({ name }) => name),
  );
  const values = columns.map(({ column }, index) => `${column} = f.texts[${index + 1}]`);
  // The JSON of an event is read once for all of its columns.
  await connection.run(
    `UPDATE events SET ${values.join(", ")}
     FROM (SELECT e.rowid AS place, ${texts} AS texts FROM events e WHERE ${rows("e")}) f
     WHERE events.rowid = f.place AND ${rows("events")}`,
  );
}
