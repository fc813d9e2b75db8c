/**
 * Hands rows over to DuckDB column by column, without files and without SQL text: the event store may touch no file but
 * its own, and what is stored is not read as JSON a second time.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { Vector } from "@duckdb/node-bindings";
import { fourDigits } from "../columns.ts";
import { TextWords } from "./text-words.ts";

/** A column of rows to append, in the order of the table's columns. */
export type AppendColumn<Row> =
  | { readonly kind: "boolean"; readonly of: (row: Row) => boolean }
  | { readonly kind: "integer"; readonly of: (row: Row) => number }
  /** Also for TIMESTAMP: microseconds since 1970. Whole numbers that JavaScript can hold. */
  | { readonly kind: "bigint"; readonly of: (row: Row) => number | null }
  /** Hyphenated, lower case. */
  | { readonly kind: "uuid"; readonly of: (row: Row) => string }
  /** Also for JSON: well-formed UTF-8, which nobody checks. */
  | { readonly kind: "text"; readonly of: (row: Row) => string | Uint8Array | null };

/** A table that rows are appended to. */
export interface AppendTable<Row> {
  readonly name: string;
  /** `temp` for the connection's own. */
  readonly catalog?: string;
  /** One per column of the table, in its order when there are no `columnNames`. */
  readonly columns: readonly AppendColumn<Row>[];
  /** Of a table that may have further columns, wherever: the names of `columns`. The others stay null. */
  readonly columnNames?: readonly string[];
  /** A row that nobody reads, without long texts; see `vectors`. */
  readonly filler: (row: Row) => Row;
}

/** What DuckDB takes, and later reads, at once: a vector. */
const vectorRows = 2_048;
/** What a row may weigh, in bytes of its texts, before it takes the room of several. */
const rowBytes = 4 * 1024;
const two32 = 2 ** 32;
/** Exact: another exponent. */
const perTwo32 = 2 ** -32;

/**
 * Appends rows to a table, in their order, inside the connection's transaction when it has one.
 *
 * Lets other work of the process go on between chunks; rows that are made on demand are asked for a chunk at a time.
 *
 * @throws what DuckDB says; the transaction has to be rolled back then.
 */
export async function appendRows<Row>(
  connection: DuckDBConnection,
  table: AppendTable<Row>,
  rows: Iterable<Row>,
): Promise<void> {
  // Loaded late: the native library is put in place only in the process that needs it.
  const [{ DuckDBDataChunk }, bindings] = await Promise.all([
    import("@duckdb/node-api"),
    import("@duckdb/node-bindings"),
  ]);
  // A CommonJS module, whose type does not tell of its default export; the executable's own has nothing else.
  const duckdb = (bindings as unknown as { default: Bindings }).default;
  const appender = await connection.createAppender(table.name, null, table.catalog);
  try {
    const filled = await columnsByPlace(connection, table);
    const types = filled.map((_, index) => appender.columnType(index));
    const texts = new TextWords(vectorRows);
    for (const part of vectors(table, rows)) {
      const chunk = DuckDBDataChunk.create(types, part.length);
      for (let index = 0; index < types.length; index++) {
        const vector = duckdb.data_chunk_get_vector(chunk.chunk, index);
        const column = filled[index];
        if (column === undefined) Validity.none(part.length).writeTo(duckdb, vector);
        else fill(duckdb, vector, column, part, texts);
      }
      appender.appendDataChunk(chunk);
      texts.release();
      // In small steps, because this is done on the thread that answers queries.
      appender.flushSync();
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
  } catch (error) {
    // Else closing it would append what it holds.
    appender.clear();
    throw error;
  } finally {
    appender.closeSync();
  }
}

/** For each column of the table what fills it, if anything. */
async function columnsByPlace<Row>(
  connection: DuckDBConnection,
  { name, columns, columnNames }: AppendTable<Row>,
): Promise<readonly (AppendColumn<Row> | undefined)[]> {
  if (columnNames === undefined) return columns;
  const inTable = (await connection.run(`SELECT * FROM ${name} LIMIT 0`)).columnNames();
  return inTable.map((each) => columns[columnNames.indexOf(each)]);
}

/**
 * The rows in portions of at most a vector, long ones followed by fillers.
 *
 * DuckDB reads and writes its file in vectors, each as a whole in memory: a hundred events of 19 MB in one vector would
 * take 1.9 GB, whatever its limit is, and checkpoints would fail for good. So a row is given as many places as it has
 * times `rowBytes`, and no vector weighs more than 8 MB and a row; reading JSON takes five times that. Rows without content cost nothing on the disk.
 */
function* vectors<Row>({ columns, filler }: AppendTable<Row>, rows: Iterable<Row>): Generator<Row[]> {
  const texts = columns.filter((column) => column.kind === "text");
  let part: Row[] = [];
  for (const row of rows) {
    let bytes = 0;
    for (const { of } of texts) bytes += of(row)?.length ?? 0;
    for (let place = 0; place === 0 || place < bytes / rowBytes; place++) {
      part.push(place === 0 ? row : filler(row));
      if (part.length < vectorRows) continue;
      yield part;
      part = [];
    }
  }
  if (part.length > 0) yield part;
}

type Bindings = typeof import("@duckdb/node-bindings");

function fill<Row>(
  duckdb: Bindings,
  vector: Vector,
  column: AppendColumn<Row>,
  rows: readonly Row[],
  texts: TextWords,
): void {
  const values =
    column.kind === "text"
      ? textWords(duckdb, vector, column.of, rows, texts)
      : fixedValues(duckdb, vector, column, rows);
  duckdb.copy_data_to_vector(vector, 0, values.buffer as ArrayBuffer, 0, values.byteLength);
}

function textWords<Row>(
  duckdb: Bindings,
  vector: Vector,
  of: (row: Row) => string | Uint8Array | null,
  rows: readonly Row[],
  texts: TextWords,
): Uint32Array {
  const valid = new Validity(rows.length);
  texts.begin(rows.length);
  for (let index = 0; index < rows.length; index++) {
    const value = of(rows[index]!);
    if (value === null) valid.setNull(index);
    else texts.set(index, value);
  }
  valid.writeTo(duckdb, vector);
  return texts.words;
}

function fixedValues<Row>(
  duckdb: Bindings,
  vector: Vector,
  column: Exclude<AppendColumn<Row>, { kind: "text" }>,
  rows: readonly Row[],
): Uint8Array | Int32Array | Uint32Array {
  const { length } = rows;
  switch (column.kind) {
    case "boolean": {
      const bytes = new Uint8Array(length);
      for (let index = 0; index < length; index++) bytes[index] = column.of(rows[index]!) ? 1 : 0;
      return bytes;
    }
    case "integer": {
      const numbers = new Int32Array(length);
      for (let index = 0; index < length; index++) numbers[index] = column.of(rows[index]!);
      return numbers;
    }
    case "bigint":
      return wholeNumbers(duckdb, vector, column.of, rows);
    case "uuid":
      return uuidWords(column.of, rows);
  }
}

/** 64 bits each, the lower half first. */
function wholeNumbers<Row>(
  duckdb: Bindings,
  vector: Vector,
  of: (row: Row) => number | null,
  rows: readonly Row[],
): Uint32Array {
  const words = new Uint32Array(2 * rows.length);
  const valid = new Validity(rows.length);
  for (let index = 0; index < rows.length; index++) {
    const value = of(rows[index]!);
    if (value === null) {
      valid.setNull(index);
      continue;
    }
    const upper = Math.floor(value * perTwo32);
    words[2 * index] = value - upper * two32;
    words[2 * index + 1] = upper;
  }
  valid.writeTo(duckdb, vector);
  return words;
}

/** DuckDB keeps a uuid as a number of 128 bits whose highest bit is turned over, so that its order is that of the text. */
function uuidWords<Row>(of: (row: Row) => string, rows: readonly Row[]): Uint32Array {
  const words = new Uint32Array(4 * rows.length);
  for (let index = 0; index < rows.length; index++) {
    const uuid = of(rows[index]!);
    const at = 4 * index;
    words[at + 3] = ((fourDigits(uuid, 0) << 16) | fourDigits(uuid, 4)) ^ 0x8000_0000;
    words[at + 2] = (fourDigits(uuid, 9) << 16) | fourDigits(uuid, 14);
    words[at + 1] = (fourDigits(uuid, 19) << 16) | fourDigits(uuid, 24);
    words[at] = (fourDigits(uuid, 28) << 16) | fourDigits(uuid, 32);
  }
  return words;
}

/** Which values of a vector are there: a bit each, in words of 64. */
class Validity {
  private readonly bits: Uint8Array;
  private hasNull = false;

  constructor(count: number) {
    this.bits = new Uint8Array(Math.ceil(count / 64) * 8).fill(0xff);
  }

  static none(count: number): Validity {
    const valid = new Validity(count);
    valid.hasNull = true;
    valid.bits.fill(0);
    return valid;
  }

  setNull(index: number): void {
    this.hasNull = true;
    this.bits[index >> 3]! &= ~(1 << (index & 7));
  }

  writeTo(duckdb: Bindings, vector: Vector): void {
    if (!this.hasNull) return;
    duckdb.vector_ensure_validity_writable(vector);
    duckdb.copy_data_to_vector_validity(vector, 0, this.bits.buffer as ArrayBuffer, 0, this.bits.length);
  }
}
