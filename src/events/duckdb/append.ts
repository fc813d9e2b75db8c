/**
 * Appends rows to DuckDB by column, without files or SQL: the event store must not access other files, and JSON is not
 * parsed a second time.
 */

import { ptr } from "bun:ffi";
import type { DuckDBConnection } from "@duckdb/node-api";
import type { Vector } from "@duckdb/node-bindings";
import { fourDigits } from "../columns.ts";

/*
 * Strings in DuckDB's vector format, `duckdb_string_t` in `duckdb.h`: four 32-bit words with the length in bytes, then
 * up to twelve bytes inline, or a four-byte prefix and an address. One call passes a column and copies each string
 * once; a call per string would dominate the cost of an event.
 */

/** Undocumented methods of the runtime's buffers, without the argument checks that take longer than the work itself. */
export type FastBuffer = Buffer & {
  utf8Write(text: string, at: number): number;
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
};

/** Longer strings are not inline. */
const inlineMax = 12;
/** Strings are encoded into memory chunks of this size; a long one gets a separate chunk. */
const chunkBytes = 64 * 1024;
/** Maximum bytes of UTF-8 per UTF-16 code unit. */
const bytesPerUnit = 3;
const addressHighUnit = 2 ** 32;

const newChunk = () => Buffer.allocUnsafeSlow(chunkBytes) as FastBuffer;

class StringVector {
  private readonly all: Uint32Array<ArrayBuffer>;
  private readonly bytes: Uint8Array;
  private count = 0;
  private chunk = newChunk();
  private chunkAt = 0;
  /** Memory that addresses refer to, retained until DuckDB has copied it. */
  private held: unknown[] = [];

  /** @param countMax maximum number of strings per column */
  constructor(countMax: number) {
    this.all = new Uint32Array(4 * countMax);
    this.bytes = new Uint8Array(this.all.buffer);
  }

  /** Starts a column of empty strings. */
  start(count: number): void {
    this.count = count;
    this.all.fill(0, 0, 4 * count);
  }

  /** The strings set since `begin`, valid until the next `begin`; addresses are valid until `release`. */
  get words(): Uint32Array<ArrayBuffer> {
    return this.all.subarray(0, 4 * this.count);
  }

  /** @param text bytes must be well-formed UTF-8, which is not validated */
  set(index: number, text: string | Uint8Array): void {
    if (typeof text === "string") this.setText(index, text);
    else this.setBytes(index, text, 0, text.length);
  }

  /** Releases the memory that addresses refer to, once DuckDB has copied it. */
  release(): void {
    this.held = [];
    this.chunkAt = 0;
  }

  private setText(index: number, text: string): void {
    const { length } = text;
    const capacityBytes = length * bytesPerUnit;
    if (capacityBytes > chunkBytes) {
      const own = Buffer.from(text);
      this.setBytes(index, own, 0, own.length);
      return;
    }
    if (this.chunkAt + capacityBytes > chunkBytes) {
      this.held.push(this.chunk);
      this.chunk = newChunk();
      this.chunkAt = 0;
    }
    const written = this.chunk.utf8Write(text, this.chunkAt);
    this.setBytes(index, this.chunk, this.chunkAt, written);
    if (written > inlineMax) this.chunkAt += written;
  }

  private setBytes(index: number, source: Uint8Array, at: number, length: number): void {
    const { all, bytes } = this;
    const word = 4 * index;
    all[word] = length;
    const first = 4 * (word + 1);
    const copied = length <= inlineMax ? length : 4;
    for (let position = 0; position < copied; position++) bytes[first + position] = source[at + position]!;
    if (length <= inlineMax) return;
    if (source !== this.chunk) this.held.push(source);
    const address = ptr(source) + at;
    const upper = Math.floor(address / addressHighUnit);
    all[word + 2] = address - upper * addressHighUnit;
    all[word + 3] = upper;
  }
}

/** A column of rows to append, in the order of the table's columns. */
export type AppendColumn<Row> =
  | { readonly kind: "boolean"; readonly getValue: (row: Row) => boolean }
  | { readonly kind: "integer"; readonly getValue: (row: Row) => number }
  /** Also for TIMESTAMP: microseconds since 1970. Safe integers. */
  | { readonly kind: "bigint"; readonly getValue: (row: Row) => number | null }
  /** Hyphenated, lower case. */
  | { readonly kind: "uuid"; readonly getValue: (row: Row) => string }
  /** Also for JSON: well-formed UTF-8, which is not validated. */
  | { readonly kind: "text"; readonly getValue: (row: Row) => string | Uint8Array | null };

/** A table that rows are appended to. */
export interface AppendTable<Row> {
  readonly name: string;
  /** `temp` for temporary tables of the connection. */
  readonly catalog?: string;
  /** One per column of the table, in its order if there are no `columnNames`. */
  readonly columns: readonly AppendColumn<Row>[];
  /** Names of `columns`, if the table may have other columns; those stay null. */
  readonly columnNames?: readonly string[];
  /** A row that no query returns, without long strings; see `vectors`. */
  readonly filler: (row: Row) => Row;
}

/** DuckDB's vector size: the unit in which it appends and reads rows. */
const vectorRows = 2_048;
/** Bytes of strings per place in a vector; larger rows take several places. */
const rowBytes = 4 * 1024;
const two32 = 2 ** 32;
/** Exact in floating-point arithmetic: only the exponent changes. */
const perTwo32 = 2 ** -32;

/**
 * Appends rows in order, in the connection's transaction if there is one. Yields to other work between chunks; rows of
 * a generator are requested a chunk at a time. @throws DuckDB's errors; the transaction has to be rolled back
 */
export async function appendRows<Row>(
  connection: DuckDBConnection,
  table: AppendTable<Row>,
  rows: Iterable<Row>,
): Promise<void> {
  // Imported on demand: the native library is extracted only in the process that needs it.
  const [{ DuckDBDataChunk }, bindings] = await Promise.all([
    import("@duckdb/node-api"),
    import("@duckdb/node-bindings"),
  ]);
  // A CommonJS module whose type declares no default export; the executable's version has nothing else.
  const duckdb = (bindings as unknown as { default: Bindings }).default;
  const appender = await connection.createAppender(table.name, null, table.catalog);
  try {
    const filled = await columnsByIndex(connection, table);
    const types = filled.map((_, index) => appender.columnType(index));
    const texts = new StringVector(vectorRows);
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
      // In small steps, because it blocks the thread that serves queries.
      appender.flushSync();
      await new Promise<void>((resolve) => void setImmediate(resolve));
    }
  } catch (error) {
    // Otherwise closing it would append its contents.
    appender.clear();
    throw error;
  } finally {
    appender.closeSync();
  }
}

/** For each column of the table, the column that fills it, if any. */
async function columnsByIndex<Row>(
  connection: DuckDBConnection,
  { name, columns, columnNames }: AppendTable<Row>,
): Promise<readonly (AppendColumn<Row> | undefined)[]> {
  if (columnNames === undefined) return columns;
  const inTable = (await connection.run(`SELECT * FROM ${name} LIMIT 0`)).columnNames();
  return inTable.map((each) => columns[columnNames.indexOf(each)]);
}

/**
 * Splits rows into vectors, with fillers after large rows. DuckDB holds whole vectors in memory: a hundred events of 19
 * MB in one would take 1.9 GB regardless of its limit, and checkpoints would fail permanently. A row gets a place per
 * `rowBytes`, so a vector has at most 8 MB and one row; parsing JSON takes five times that. Fillers take no disk space.
 */
function* vectors<Row>({ columns, filler }: AppendTable<Row>, rows: Iterable<Row>): Generator<Row[]> {
  const texts = columns.filter((column) => column.kind === "text");
  let part: Row[] = [];
  for (const row of rows) {
    let bytes = 0;
    for (const { getValue } of texts) bytes += getValue(row)?.length ?? 0;
    for (let position = 0; position === 0 || position < bytes / rowBytes; position++) {
      part.push(position === 0 ? row : filler(row));
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
  texts: StringVector,
): void {
  const values =
    column.kind === "text"
      ? stringVectorWords(duckdb, vector, column.getValue, rows, texts)
      : fixedValues(duckdb, vector, column, rows);
  duckdb.copy_data_to_vector(vector, 0, values.buffer as ArrayBuffer, 0, values.byteLength);
}

function stringVectorWords<Row>(
  duckdb: Bindings,
  vector: Vector,
  getValue: (row: Row) => string | Uint8Array | null,
  rows: readonly Row[],
  texts: StringVector,
): Uint32Array {
  const valid = new Validity(rows.length);
  texts.start(rows.length);
  for (let index = 0; index < rows.length; index++) {
    const value = getValue(rows[index]!);
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
      for (let index = 0; index < length; index++) bytes[index] = column.getValue(rows[index]!) ? 1 : 0;
      return bytes;
    }
    case "integer": {
      const numbers = new Int32Array(length);
      for (let index = 0; index < length; index++) numbers[index] = column.getValue(rows[index]!);
      return numbers;
    }
    case "bigint":
      return wholeNumbers(duckdb, vector, column.getValue, rows);
    case "uuid":
      return uuidWords(column.getValue, rows);
  }
}

/** 64-bit integers, lower half first. */
function wholeNumbers<Row>(
  duckdb: Bindings,
  vector: Vector,
  getValue: (row: Row) => number | null,
  rows: readonly Row[],
): Uint32Array {
  const words = new Uint32Array(2 * rows.length);
  const valid = new Validity(rows.length);
  for (let index = 0; index < rows.length; index++) {
    const value = getValue(rows[index]!);
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

/** DuckDB stores a UUID as a 128-bit integer with the highest bit inverted, so that it sorts like its string. */
function uuidWords<Row>(getValue: (row: Row) => string, rows: readonly Row[]): Uint32Array {
  const words = new Uint32Array(4 * rows.length);
  for (let index = 0; index < rows.length; index++) {
    const uuid = getValue(rows[index]!);
    const at = 4 * index;
    words[at + 3] = ((fourDigits(uuid, 0) << 16) | fourDigits(uuid, 4)) ^ 0x8000_0000;
    words[at + 2] = (fourDigits(uuid, 9) << 16) | fourDigits(uuid, 14);
    words[at + 1] = (fourDigits(uuid, 19) << 16) | fourDigits(uuid, 24);
    words[at] = (fourDigits(uuid, 28) << 16) | fourDigits(uuid, 32);
  }
  return words;
}

/** Validity mask of a vector: one bit per value, in 64-bit words. */
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
