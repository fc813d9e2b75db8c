/** Runs an operator's statement over the documented views of one project. */

import type { DuckDBConnection, DuckDBType } from "@duckdb/node-api";
import { type Static, Type } from "@sinclair/typebox";
import { AppError } from "../../lib/errors.ts";
import type { Json } from "../../lib/json/value.ts";
import { strictObject } from "../../lib/schema.ts";
import { streamedRows } from "../duckdb/row-stream.ts";
import { ResultTooLargeError, statementFailure } from "../duckdb/statement-errors.ts";
import { type HogqlOptions, parseStatement } from "./parse.ts";
import { toJsonString, utcTimes, zonedTimes } from "./values.ts";
import { createViews, findColumns, type ViewSources, withTypes } from "./views.ts";

export const rowsDefault = 10_000;
export const rowsMax = 100_000;

export interface QueryRequest {
  projectId: number;
  sql: string;
  /** 1 to `rowsMax`. */
  limit: number;
  /** Below the default limit of bytes. */
  bytesMax?: number;
  /** The statement is HogQL, and the result also has the members that PostHog clients read. */
  hogql?: HogqlOptions;
}

export const QueryResult = strictObject({
  columns: Type.Array(Type.String()),
  rows: Type.Array(Type.Record(Type.String(), Type.Unsafe<Json>(Type.Unknown()))),
  /** There are more rows than requested. */
  truncated: Type.Boolean(),
});
export type QueryResult = Static<typeof QueryResult>;

/** The result of a request with `hogql`. */
export const QueryResultWithLists = strictObject({
  ...QueryResult.properties,
  /** Name and type of each column, by ClickHouse's type names. */
  types: Type.Array(Type.Tuple([Type.String(), Type.String()])),
  /** The values of each row, in column order. */
  results: Type.Array(Type.Array(Type.Unsafe<Json>(Type.Unknown()))),
  /** Same as `truncated`. */
  hasMore: Type.Boolean(),
});
export type QueryResultWithLists = Static<typeof QueryResultWithLists>;

export interface QuerySources extends ViewSources {
  /** Limit of the result's JSON. */
  resultBytesMax: number;
}

/**
 * Returns the chunks of a `QueryResult` in JSON.
 * @param connection used exclusively: views remain on it, and its owner interrupts it at the time limit
 * @throws {StatementRejectedError} @throws {StatementFailedError} @throws {ResultTooLargeError}
 */
export async function runQuery(
  connection: DuckDBConnection,
  sources: QuerySources,
  { projectId, sql, limit, hogql, bytesMax = sources.resultBytesMax }: QueryRequest,
): Promise<Uint8Array[]> {
  const columns = findColumns(sources, projectId);
  const parsed = await parseStatement(connection, sql, withTypes(hogql, sources, projectId), columns);
  await createViews(connection, sources, { projectId, ...parsed });
  try {
    return await read(connection, parsed.sql, {
      limit,
      timezone: hogql?.timezone,
      bytesMax: Math.min(bytesMax, sources.resultBytesMax),
    });
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw statementFailure(error);
  }
}

/** Characters buffered before encoding and yielding to other work. */
const portionLength = 256 * 1024;

async function read(
  connection: DuckDBConnection,
  sql: string,
  { limit, timezone, bytesMax }: { limit: number; timezone: string | undefined; bytesMax: number },
): Promise<Uint8Array[]> {
  const api = await import("@duckdb/node-api");
  const times = timezone === undefined ? utcTimes : zonedTimes(timezone, { hasOffset: true });
  const { columns, types, chunks } = await streamedRows(connection, sql);
  const size = new Size(bytesMax);
  const answer = new Answer(`{"columns":${JSON.stringify(columns)},"rows":[`, size);
  // After the rows, so that each can be sent as soon as it is available.
  const lists = timezone === undefined ? undefined : new Answer("", size);
  const names = columns.map((name, index) => `${index === 0 ? "{" : ","}${JSON.stringify(name)}:`);
  const end = (isTruncated: boolean) => {
    const rowsEnd = `],"truncated":${isTruncated}`;
    if (lists === undefined || timezone === undefined) return answer.end(`${rowsEnd}}`);
    const pairs = columns.map((name, index) => [name, columnTypeName(api, types[index]!, timezone)]);
    const before = answer.end(
      `${rowsEnd},"types":${JSON.stringify(pairs)},"hasMore":${isTruncated},"results":[`,
    );
    return [...before, ...lists.end("]}")];
  };
  let rows = 0;
  for await (const chunk of chunks) {
    const vectors = columns.map((_, index) => chunk.getColumnVector(index));
    for (let row = 0; row < chunk.rowCount; row++, rows++) {
      if (rows === limit) return end(true);
      if (rows > 0) answer.add(",");
      lists?.add(rows > 0 ? ",[" : "[");
      for (let index = 0; index < names.length; index++) {
        const text = toJsonString({ api, times }, vectors[index]!.getItem(row), types[index]);
        answer.add(names[index]!);
        answer.add(text);
        lists?.add(index > 0 ? `,${text}` : text);
      }
      answer.add("}");
      lists?.add("]");
      if (answer.isLong) await answer.flush();
      if (lists?.isLong) await lists.flush();
    }
  }
  return end(false);
}

/** Counts the bytes of a result against its limit. */
class Size {
  private bytes = 0;
  constructor(private readonly bytesMax: number) {}

  /** @throws {ResultTooLargeError} */
  add(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > this.bytesMax) throw new ResultTooLargeError(this.bytesMax);
  }
}

/** A buffer of JSON that is encoded in chunks. */
class Answer {
  private readonly portions: Uint8Array[] = [];

  constructor(
    private text: string,
    private readonly size: Size,
  ) {}

  add(text: string): void {
    this.text += text;
  }

  get isLong(): boolean {
    return this.text.length >= portionLength;
  }

  async flush(): Promise<void> {
    this.take();
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }

  end(text: string): Uint8Array[] {
    this.add(text);
    this.take();
    return this.portions;
  }

  private take(): void {
    const portion = Buffer.from(this.text);
    this.text = "";
    this.size.add(portion.length);
    this.portions.push(portion);
  }
}

type Api = typeof import("@duckdb/node-api");

/** The name of a column's type; nullability is not expressed. @param timezone the zone of times */
function columnTypeName(api: Api, type: DuckDBType, timezone: string): string {
  const { DuckDBTypeId: id } = api;
  switch (type.typeId) {
    case id.BOOLEAN:
      return "Bool";
    case id.TINYINT:
      return "Int8";
    case id.SMALLINT:
      return "Int16";
    case id.INTEGER:
      return "Int32";
    case id.BIGINT:
      return "Int64";
    case id.HUGEINT:
      return "Int128";
    case id.UTINYINT:
      return "UInt8";
    case id.USMALLINT:
      return "UInt16";
    case id.UINTEGER:
      return "UInt32";
    case id.UBIGINT:
      return "UInt64";
    case id.UHUGEINT:
      return "UInt128";
    case id.FLOAT:
      return "Float32";
    case id.DOUBLE:
      return "Float64";
    case id.DECIMAL: {
      const { width, scale } = type as DuckDBType & { width: number; scale: number };
      return `Decimal(${width}, ${scale})`;
    }
    case id.DATE:
      return "Date";
    case id.TIMESTAMP:
    case id.TIMESTAMP_TZ:
      return `DateTime64(6, '${timezone}')`;
    case id.UUID:
      return "UUID";
    case id.LIST:
    case id.ARRAY: {
      const { valueType } = type as DuckDBType & { valueType: DuckDBType };
      return `Array(${columnTypeName(api, valueType, timezone)})`;
    }
    case id.MAP: {
      const { keyType, valueType } = type as DuckDBType & { keyType: DuckDBType; valueType: DuckDBType };
      return `Map(${columnTypeName(api, keyType, timezone)}, ${columnTypeName(api, valueType, timezone)})`;
    }
    // JSON, structs, intervals and others are returned as strings or JSON.
    default:
      return "String";
  }
}
