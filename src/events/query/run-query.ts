/** Runs an operator's statement over the documented views of one project. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { type Static, Type } from "@sinclair/typebox";
import { AppError } from "../../lib/errors.ts";
import type { Json } from "../../lib/json.ts";
import { exactly } from "../../lib/schema.ts";
import { columnTypeName } from "./column-types.ts";
import { ResultTooLarge, statementFailure } from "./failures.ts";
import { parseStatement } from "./parse.ts";
import { streamedRows } from "./streamed-rows.ts";
import { jsonText } from "./values.ts";
import { createViews, type ViewSources } from "./views.ts";

export const rowsDefault = 10_000;
export const rowsMax = 100_000;

export interface QueryRequest {
  projectId: number;
  sql: string;
  /** 1 to `rowsMax`. */
  limit: number;
  /** Smaller than the usual limit of bytes. */
  bytesMax?: number;
  /** The answer also has the members that clients of PostHog read: `types`, `results`, `hasMore`. */
  hasLists?: boolean;
}

export const QueryResult = exactly({
  columns: Type.Array(Type.String()),
  rows: Type.Array(Type.Record(Type.String(), Type.Unsafe<Json>(Type.Unknown()))),
  /** There are more rows than were asked for. */
  truncated: Type.Boolean(),
});
export type QueryResult = Static<typeof QueryResult>;

/** The result of a request with `hasLists`. */
export const QueryResultWithLists = exactly({
  ...QueryResult.properties,
  /** Name and type of each column, as ClickHouse names types. */
  types: Type.Array(Type.Tuple([Type.String(), Type.String()])),
  /** The values of each row, in the order of the columns. */
  results: Type.Array(Type.Array(Type.Unsafe<Json>(Type.Unknown()))),
  /** The same as `truncated`. */
  hasMore: Type.Boolean(),
});
export type QueryResultWithLists = Static<typeof QueryResultWithLists>;

export interface QuerySources extends ViewSources {
  /** Of the answer's JSON. */
  resultBytesMax: number;
}

/**
 * Answers a statement with the JSON of a `QueryResult`, in portions.
 *
 * @param connection one of its own: views stay on it; whoever gave it stops it when it takes too long.
 * @throws {StatementRefused} @throws {StatementFailed} @throws {ResultTooLarge}
 */
export async function runQuery(
  connection: DuckDBConnection,
  sources: QuerySources,
  { projectId, sql, limit, hasLists = false, bytesMax = sources.resultBytesMax }: QueryRequest,
): Promise<Uint8Array[]> {
  const parsed = await parseStatement(connection, sql);
  await createViews(connection, sources, { projectId, ...parsed });
  try {
    return await read(connection, parsed.sql, {
      ...{ limit, hasLists },
      bytesMax: Math.min(bytesMax, sources.resultBytesMax),
    });
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw statementFailure(error);
  }
}

/** Gathered before it becomes bytes, and other work gets its turn. */
const portionLength = 256 * 1024;

async function read(
  connection: DuckDBConnection,
  sql: string,
  { limit, hasLists, bytesMax }: { limit: number; hasLists: boolean; bytesMax: number },
): Promise<Uint8Array[]> {
  const api = await import("@duckdb/node-api");
  const { columns, types, chunks } = await streamedRows(connection, sql);
  const size = new Size(bytesMax);
  const answer = new Answer(`{"columns":${JSON.stringify(columns)},"rows":[`, size);
  // After the rows, so that each can be sent as soon as it is there.
  const lists = hasLists ? new Answer("", size) : undefined;
  const names = columns.map((name, index) => `${index === 0 ? "{" : ","}${JSON.stringify(name)}:`);
  const end = (isTruncated: boolean) => {
    const rowsEnd = `],"truncated":${isTruncated}`;
    if (lists === undefined) return answer.end(`${rowsEnd}}`);
    const pairs = columns.map((name, index) => [name, columnTypeName(api, types[index]!)]);
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
        const text = jsonText(api, vectors[index]!.getItem(row), types[index]);
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

/** Bytes of an answer, which are not more than they may be. */
class Size {
  private bytes = 0;
  constructor(private readonly bytesMax: number) {}

  /** @throws {ResultTooLarge} */
  add(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > this.bytesMax) throw new ResultTooLarge(this.bytesMax);
  }
}

/** JSON text that becomes bytes. */
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
