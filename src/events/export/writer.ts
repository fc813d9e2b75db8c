/** Writes exported rows as NDJSON, CSV or Parquet, in chunks. */

import { zstdCompressSync } from "node:zlib";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import Papa from "papaparse";
import {
  type ExportColumn,
  type ExportFormat,
  type ExportRow,
  type ExportValue,
  jsonLine,
} from "./columns.ts";

/** Receives the bytes of a file in order. */
export type Sink = (bytes: Uint8Array) => Promise<void>;

export interface RowWriter {
  write(rows: readonly ExportRow[]): Promise<void>;
  /** Writes the end of the file. */
  finish(): Promise<void>;
}

/** Passes the file to the sink in chunks, the last ones in `finish`; errors of the sink are passed through. */
export function rowWriter(format: ExportFormat, columns: readonly ExportColumn[], sink: Sink): RowWriter {
  switch (format) {
    case "ndjson":
      return new LineWriter((row) => `${jsonLine(columns, row)}\n`, sink);
    case "csv":
      return new LineWriter(csvLine, sink, csvLine(columns.map(({ name }) => name)));
    case "parquet":
      return new ParquetRows(columns, sink);
  }
}

/** Buffered characters before a write. */
const writeLength = 1024 * 1024;

class LineWriter implements RowWriter {
  constructor(
    private readonly line: (row: ExportRow) => string,
    private readonly sink: Sink,
    private text = "",
  ) {}

  async write(rows: readonly ExportRow[]): Promise<void> {
    for (const row of rows) {
      this.text += this.line(row);
      if (this.text.length >= writeLength) await this.flush();
    }
  }

  async finish(): Promise<void> {
    await this.flush();
  }

  private async flush(): Promise<void> {
    const text = this.text;
    this.text = "";
    if (text !== "") await this.sink(Buffer.from(text));
  }
}

/** A CSV row that readers parse to exactly these values, with its line break. */
export function csvLine(row: ExportRow): string {
  return `${Papa.unparse([row as ExportValue[]], { newline: "\n" })}\n`;
}

type ParquetOptions = ConstructorParameters<typeof ParquetWriter>[0];
type SchemaElement = ParquetOptions["schema"][number];

/** Limits of a row group; the first one reached applies. */
const groupRows = 100_000;
const groupLength = 64 * 1024 * 1024;

class ParquetRows implements RowWriter {
  private readonly bytes = new ByteWriter();
  private readonly parquet: ParquetWriter;
  private rows: ExportRow[] = [];
  private length = 0;

  constructor(
    private readonly columns: readonly ExportColumn[],
    private readonly sink: Sink,
  ) {
    this.parquet = new ParquetWriter({
      writer: this.bytes,
      schema: [{ name: "root", num_children: columns.length }, ...columns.flatMap(getSchema)],
      codec: "ZSTD",
      compressors: { ZSTD: (input) => zstdCompressSync(input) },
      createdBy: "Flagkeep",
    });
  }

  async write(rows: readonly ExportRow[]): Promise<void> {
    for (const row of rows) {
      this.rows.push(row);
      for (const value of row) if (typeof value === "string") this.length += value.length;
      if (this.rows.length >= groupRows || this.length >= groupLength) await this.writeGroup();
    }
  }

  async finish(): Promise<void> {
    await this.writeGroup();
    await this.parquet.finish();
    await this.flush();
  }

  private async writeGroup(): Promise<void> {
    const { rows } = this;
    if (rows.length === 0) return;
    this.rows = [];
    this.length = 0;
    const columnData = this.columns.map(({ name, kind }, index) => ({
      name,
      data: rows.map((row) => parquetValue(kind, row[index]!)) as never,
      // Values are nearly unique: a dictionary would cost their size in memory.
      ...(kind === "json" ? { encoding: "PLAIN" as const, statistics: false } : {}),
    }));
    await this.parquet.write({ columnData, rowGroupSize: rows.length });
    await this.flush();
  }

  private async flush(): Promise<void> {
    const { bytes } = this;
    await this.sink(bytes.getBytes().slice());
    bytes.index = 0;
  }
}

function getSchema({ name, kind }: ExportColumn): SchemaElement[] {
  const optional = { name, repetition_type: "OPTIONAL" } as const;
  switch (kind) {
    case "uuid":
      return [{ ...optional, type: "FIXED_LEN_BYTE_ARRAY", type_length: 16, logical_type: { type: "UUID" } }];
    case "integer":
      return [{ ...optional, type: "INT64" }];
    case "number":
      return [{ ...optional, type: "DOUBLE" }];
    case "boolean":
      return [{ ...optional, type: "BOOLEAN" }];
    case "instant":
      return [
        {
          ...optional,
          type: "INT64",
          converted_type: "TIMESTAMP_MICROS",
          logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
        },
      ];
    case "list":
      return [
        { ...optional, converted_type: "LIST", num_children: 1 },
        { name: "list", repetition_type: "REPEATED", num_children: 1 },
        { name: "element", repetition_type: "OPTIONAL", type: "BYTE_ARRAY", converted_type: "UTF8" },
      ];
    default:
      return [{ ...optional, type: "BYTE_ARRAY", converted_type: "UTF8" }];
  }
}

function parquetValue(kind: ExportColumn["kind"], value: ExportValue): unknown {
  if (value === null) return null;
  if (kind === "integer") return BigInt(value);
  if (kind === "number") return Number(value);
  if (kind === "list") return JSON.parse(value as string);
  if (kind === "instant") return toMicros(value as string);
  return value;
}

/** Epoch microseconds of an ISO 8601 time in UTC; `Date` ignores digits after the milliseconds. */
function toMicros(text: string): bigint {
  const micros = /\.\d{3}(\d{3})Z$/.exec(text)?.[1] ?? "0";
  return BigInt(Date.parse(text)) * 1_000n + BigInt(micros);
}
