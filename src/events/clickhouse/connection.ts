/**
 * Statements to a ClickHouse server with its official HTTP client. Errors are either about the statement
 * (`ClickHouseError`), or about the server or connection, in which case the result of the statement is unknown
 * (`ClickHouseUnreachableError`).
 */

import { Readable } from "node:stream";
import {
  type ClickHouseClient,
  ClickHouseError,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
  type Row,
} from "@clickhouse/client";
import { AppError, firstLine } from "../../lib/errors.ts";
import { type ClickHouseAddress, redactUrl } from "../../lib/store-urls.ts";

/** The server did not respond completely, or is temporarily unable to; the statement may have been executed. */
export class ClickHouseUnreachableError extends AppError {
  readonly code = "events_unreachable";
  override readonly hint = "Flagkeep reconnects automatically; events stay in the journal until then.";
  constructor(address: ClickHouseAddress, reason: unknown) {
    super(`ClickHouse at ${redactUrl(address)} is unreachable: ${firstLine(reason)}`);
  }
}

/** Options of a query. */
export interface ClickHouseRequestOptions {
  signal?: AbortSignal;
  /** Seconds; default: the server's limit. */
  timeoutSeconds?: number;
}

/** Timeout of a request: queries have their own limit, and loads are retried. */
const requestMs = 600_000;
/** Large, for statements with the UUIDs of a batch or the distinct IDs of a person. */
const statementBytesMax = 64 * 1024 * 1024;
const connectionsMax = 16;

/** Make the engine's SQL equivalent in ClickHouse and DuckDB. */
const querySettings: ClickHouseSettings = {
  join_use_nulls: 1,
  cast_keep_nullable: 1,
  prefer_column_name_to_alias: 1,
  output_format_json_quote_64bit_integers: 0,
  output_format_json_quote_denormals: 0,
  max_query_size: String(statementBytesMax),
  readonly: "2",
};

export class ClickHouseConnection {
  private readonly client: ClickHouseClient;

  constructor(readonly address: ClickHouseAddress) {
    const { url, user, password, database } = address;
    this.client = createClient({
      url,
      password,
      database,
      username: user,
      application: "flagkeep",
      request_timeout: requestMs,
      max_open_connections: connectionsMax,
      // It would log statements with their data.
      log: { level: ClickHouseLogLevel.OFF },
      clickhouse_settings: { wait_end_of_query: 1, cancel_http_readonly_queries_on_client_close: 1 },
    });
  }

  /** Rows of a SELECT. */
  async rows(sql: string, asking: ClickHouseRequestOptions = {}): Promise<unknown[][]> {
    return await this.mapErrors(asking, async () => {
      const result = await this.select(sql, asking);
      return await result.json<unknown[]>();
    });
  }

  /** Like `rows`, in batches. */
  async *portions(sql: string, asking: ClickHouseRequestOptions = {}): AsyncGenerator<unknown[][]> {
    const result = await this.mapErrors(asking, () => this.select(sql, asking));
    const parts = result.stream<unknown[]>()[Symbol.asyncIterator]() as AsyncIterator<Row<unknown[]>[]>;
    for (;;) {
      const part = await this.mapErrors(asking, () => parts.next());
      if (part.done) return;
      yield part.value.map((row) => row.json());
    }
  }

  /** Runs a statement without a result. */
  async command(sql: string, settings: ClickHouseSettings = {}): Promise<void> {
    await this.mapErrors(
      {},
      async () => void (await this.client.command({ query: sql, clickhouse_settings: settings })),
    );
  }

  /**
   * Inserts rows encoded by `RowBinary` in one block.
   * @param check a condition that the server evaluates when it reads the block, and the types of the columns
   */
  async insert(
    table: string,
    columns: readonly string[],
    bytes: Uint8Array,
    settings: ClickHouseSettings = {},
    check?: { condition: string; types: readonly string[] },
  ): Promise<void> {
    const names = columns.join(", ");
    const structure = columns.map((name, index) => `${name} ${check?.types[index]}`).join(", ");
    // Some versions deduplicate an INSERT with a SELECT only if it is sorted, whatever its token.
    const source =
      check === undefined
        ? ""
        : ` SELECT ${names} FROM input('${structure}') WHERE ${check.condition} ORDER BY ALL`;
    await this.mapErrors({}, async () => {
      const { stream } = await this.client.exec({
        query: `INSERT INTO ${table} (${names})${source} FORMAT RowBinary`,
        values: Readable.from([bytes], { objectMode: false }),
        clickhouse_settings: {
          async_insert: 0,
          // Timestamps of malicious clients can be in any partition.
          max_partitions_per_insert_block: "0",
          ...settings,
        },
      });
      // Only a complete response confirms the insert.
      for await (const _ of stream);
    });
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  private select(sql: string, { signal, timeoutSeconds }: ClickHouseRequestOptions) {
    return this.client.query({
      query: sql,
      format: "JSONCompactEachRow",
      abort_signal: signal,
      clickhouse_settings: { ...querySettings, max_execution_time: timeoutSeconds },
    });
  }

  private async mapErrors<Result>(
    { signal }: ClickHouseRequestOptions,
    work: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      const isAnswer = error instanceof ClickHouseError && !serverCodes.includes(error.code);
      throw isAnswer ? error : new ClickHouseUnreachableError(this.address, error);
    }
  }
}

/**
 * Error codes about the server, independent of the statement: users and privileges, missing databases and tables, disk,
 * load and quotas, replicas and Keeper, shutdown.
 */
const serverCodes: readonly string[] = [
  "60",
  "81",
  "192",
  "193",
  "194",
  "195",
  "497",
  "516",
  "74",
  "75",
  "76",
  "243",
  "425",
  "201",
  "202",
  "252",
  "439",
  "745",
  "209",
  "210",
  "225",
  "242",
  "279",
  "285",
  "286",
  "289",
  "319",
  "369",
  "999",
  "236",
];
/** Error codes of statements that exceed the time limit or the memory limit. */
export const timeoutCodes: readonly string[] = ["159", "160"];
export const memoryCodes: readonly string[] = ["241"];
export { ClickHouseError };
