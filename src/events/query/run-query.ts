/** Runs an operator's statement over the documented views of one project. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { type Static, Type } from "@sinclair/typebox";
import { AppError } from "../../lib/errors.ts";
import type { Json } from "../../lib/json.ts";
import { exactly } from "../../lib/schema.ts";
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
}

export const QueryResult = exactly({
  columns: Type.Array(Type.String()),
  rows: Type.Array(Type.Record(Type.String(), Type.Unsafe<Json>(Type.Unknown()))),
  /** There are more rows than were asked for. */
  truncated: Type.Boolean(),
});
export type QueryResult = Static<typeof QueryResult>;

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
  { projectId, sql, limit }: QueryRequest,
): Promise<Uint8Array[]> {
  const parsed = await parseStatement(connection, sql);
  await createViews(connection, sources, { projectId, ...parsed });
  try {
    return await read(connection, parsed.sql, limit, sources.resultBytesMax);
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
  limit: number,
  bytesMax: number,
): Promise<Uint8Array[]> {
  const api = await import("@duckdb/node-api");
  const { columns, types, chunks } = await streamedRows(connection, sql);
  const answer = new Answer(`{"columns":${JSON.stringify(columns)},"rows":[`, bytesMax);
  const names = columns.map((name, index) => `${index === 0 ? "{" : ","}${JSON.stringify(name)}:`);
  let rows = 0;
  for await (const chunk of chunks) {
    const vectors = columns.map((_, index) => chunk.getColumnVector(index));
    for (let row = 0; row < chunk.rowCount; row++, rows++) {
      if (rows === limit) return answer.end(`],"truncated":true}`);
      if (rows > 0) answer.add(",");
      for (let index = 0; index < names.length; index++) {
        answer.add(names[index]!);
        answer.add(jsonText(api, vectors[index]!.getItem(row), types[index]));
      }
      answer.add("}");
      if (answer.isLong) await answer.flush();
    }
  }
  return answer.end(`],"truncated":false}`);
}

/** JSON text that becomes bytes, and is not more of them than it may be. */
class Answer {
  private readonly portions: Uint8Array[] = [];
  private bytes = 0;

  constructor(
    private text: string,
    private readonly bytesMax: number,
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
    this.bytes += portion.length;
    if (this.bytes > this.bytesMax) throw new ResultTooLarge(this.bytesMax);
    this.portions.push(portion);
  }
}
