/**
 * Statements to a ClickHouse server, by ClickHouse's own client over HTTP.
 *
 * Every failure is one of two: the server said something of the statement (`ClickHouseError`), or of itself, or nothing, so
 * that nobody knows what became of the statement (`EventsUnreachable`).
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
import { type ClickHouseAddress, shownAddress } from "../../lib/clickhouse-address.ts";
import { AppError, firstLine } from "../../lib/errors.ts";

/** The server did not answer, or not to the end, or cannot do anything now: what it was asked for is done or not. */
export class EventsUnreachable extends AppError {
  readonly code = "events_unreachable";
  override readonly hint = "It is tried again by itself; events wait in the journal until then.";
  constructor(address: ClickHouseAddress, reason: unknown) {
    super(
      `The events are in ClickHouse, and ${shownAddress(address)} cannot be reached: ${firstLine(reason)}`,
    );
  }
}

/** What asks, and how long it may take. */
export interface Asking {
  signal?: AbortSignal;
  /** Seconds; left out: as long as the server lets it. */
  timeoutSeconds?: number;
}

/** A request may take so long: a query has a limit of its own, and a load is tried again. */
const requestMs = 600_000;
/** Many literals: the uuids of a batch, the distinct ids of a person. */
const statementBytesMax = 64 * 1024 * 1024;
const connectionsMax = 16;

/** The engine's SQL means the same in both engines with these. */
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
      ...{ url, password, database },
      username: user,
      application: "flagkeep",
      request_timeout: requestMs,
      max_open_connections: connectionsMax,
      // It would log statements, with what is in them.
      log: { level: ClickHouseLogLevel.OFF },
      clickhouse_settings: { wait_end_of_query: 1, cancel_http_readonly_queries_on_client_close: 1 },
    });
  }

  /** Rows of a SELECT. */
  async rows(sql: string, asking: Asking = {}): Promise<unknown[][]> {
    return await this.told(asking, async () => {
      const result = await this.select(sql, asking);
      return await result.json<unknown[]>();
    });
  }

  /** The same in portions. */
  async *portions(sql: string, asking: Asking = {}): AsyncGenerator<unknown[][]> {
    const result = await this.told(asking, () => this.select(sql, asking));
    const parts = result.stream<unknown[]>()[Symbol.asyncIterator]() as AsyncIterator<Row<unknown[]>[]>;
    for (;;) {
      const part = await this.told(asking, () => parts.next());
      if (part.done) return;
      yield part.value.map((row) => row.json());
    }
  }

  /** A statement that answers nothing. */
  async command(sql: string, settings: ClickHouseSettings = {}): Promise<void> {
    await this.told(
      {},
      async () => void (await this.client.command({ query: sql, clickhouse_settings: settings })),
    );
  }

  /** Inserts rows that `RowBinary` has written, in one block. */
  async insert(
    table: string,
    columns: readonly string[],
    bytes: Uint8Array,
    settings: ClickHouseSettings = {},
  ): Promise<void> {
    await this.told({}, async () => {
      const { stream } = await this.client.exec({
        query: `INSERT INTO ${table} (${columns.join(", ")}) FORMAT RowBinary`,
        values: Readable.from([bytes], { objectMode: false }),
        clickhouse_settings: {
          async_insert: 0,
          // Time zones of hostile clients' clocks may touch every partition there can be.
          max_partitions_per_insert_block: "0",
          ...settings,
        },
      });
      // Only the end of the answer says that it is done.
      for await (const _ of stream);
    });
  }

  async close(): Promise<void> {
    await this.client.close();
  }

  private select(sql: string, { signal, timeoutSeconds }: Asking) {
    return this.client.query({
      query: sql,
      format: "JSONCompactEachRow",
      abort_signal: signal,
      clickhouse_settings: { ...querySettings, max_execution_time: timeoutSeconds },
    });
  }

  private async told<Result>({ signal }: Asking, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      const isAnswer = error instanceof ClickHouseError && !serverCodes.includes(error.code);
      throw isAnswer ? error : new EventsUnreachable(this.address, error);
    }
  }
}

/**
 * What the server says of itself, whatever it is asked: of users and rights, of databases and tables that are not there, of its
 * disk, its load and quotas, its replicas and their keepers, of its end.
 */
const serverCodes: readonly string[] = [
  ...["60", "81", "192", "193", "194", "195", "497", "516"],
  ...["74", "75", "76", "243", "425", "201", "202", "252", "439", "745"],
  ...["209", "210", "225", "242", "279", "285", "286", "289", "319", "369", "999", "236"],
];
/** What the server says of a statement that took too long, or too much memory. */
export const timeoutCodes: readonly string[] = ["159", "160"];
export const memoryCodes: readonly string[] = ["241"];
export { ClickHouseError };
