/**
 * Loads journal entries into ClickHouse exactly once. The end of a batch is recorded in the person store before any
 * request. A retry, also after a crash, looks up stored rows and sends the missing ones with the same insert tokens, so
 * that ClickHouse deduplicates requests whose response was lost. In a cluster, inserts also have a deadline.
 */

import type { ClickHouseSettings } from "@clickhouse/client";
import type { StorableEvent } from "../../journal/entry.ts";
import type { Lane } from "../../journal/segment.ts";
import type { LoadProgress, StartedLoad } from "../../persons/external-events.ts";
import { type EventColumn, eventColumnNames, eventColumns, uuidTime, valueFor } from "../columns.ts";
import { type EventIdentity, type EventStore, LoadCancelledError } from "../store.ts";
import { ClickHouseError, ClickHouseUnreachableError } from "./connection.ts";
import { deadlineCondition, type InsertFence, lateInsertCode } from "./insert-fence.ts";
import { readableJson } from "./readable-json.ts";
import { RowBinary } from "./row-binary.ts";
import type { ClickHouseStore } from "./store.ts";

const firstPauseMs = 100;
const pauseMsMax = 5_000;
/** UUIDs per lookup. */
const uuidsAtOnce = 20_000;
/** Ranges of UUID times with smaller gaps are merged; above the maximum number of ranges, the rest is one range. */
const timeGapMs = 3_600_000;
const timeRangesMax = 100;
/** Rows per insert, far below ClickHouse's block size: atomic in each partition. */
const chunkRows = 100_000;
const chunkBytes = 48 * 1024 * 1024;
const oneBlock: ClickHouseSettings = {
  max_insert_block_size: "1048449",
  min_insert_block_size_rows: "1048449",
  min_insert_block_size_bytes: "268402944",
};
const quorumTimeoutMs = 60_000;

/** Server-side limit of an insert that is fenced: by far more than it takes. */
const fencedSecondsMax = 120;
/** Rows per insert are halved, down to this, while inserts take longer than a lease. */
const rowsMin = 1_000;
/** Interval of checking whether the lease was renewed. */
const renewalPollMs = 100;

/** Encodes a value by the column's type. */
type Write = (rows: RowBinary, event: StorableEvent) => void;

const columns: readonly (readonly [name: string, type: string, write: Write])[] = [
  ...eventColumnNames.map((name) => {
    const column = eventColumns[name];
    return [column.clickhouse ?? name, getType(column), getWriter(column)] as const;
  }),
  ["properties_read", "String", (rows, event) => rows.text(readableJson(event.propertiesText) ?? "")],
];

const columnNames = columns.map(([name]) => name);
const columnTypes = columns.map(([, type]) => type);
const writes = columns.map(([, , write]) => write);

/** Without `LowCardinality`, which has the same binary format. */
function getType({ kind, isNullable }: EventColumn): string {
  const types = { integer: "Int32", boolean: "Bool", uuid: "UUID", bigint: "Int64", instant: "Int64" };
  const type = kind === "text" || kind === "json" ? "String" : types[kind];
  return isNullable === true ? `Nullable(${type})` : type;
}

function getWriter(column: EventColumn): Write {
  const value = valueFor<never>(column);
  switch (column.kind) {
    case "integer":
      return (rows, event) => rows.int32(value(event));
    case "boolean":
      return (rows, event) => rows.boolean(value(event));
    case "uuid":
      return (rows, event) => rows.uuid(value(event));
    case "bigint":
    case "instant":
      return column.isNullable
        ? (rows, event) => rows.int64OrNull(value(event))
        : (rows, event) => rows.int64(value(event));
    case "text":
    case "json":
      return column.isNullable
        ? (rows, event) => rows.textOrNull(value(event))
        : (rows, event) => rows.text(value(event));
  }
}

export class ClickHouseLoader implements EventStore {
  private isCancelled = false;
  private wake: (() => void) | undefined;
  /** The current batch may already be stored. */
  private isUncertain: boolean;
  private checkpointsHeldUntil = 0;

  /** Rows per insert. */
  private rowsAtOnce = chunkRows;

  /**
   * @param onProblem receives why loading has to wait, and null when it resumes
   * @param fence in a cluster
   * @param progress of this engine, if several load
   */
  constructor(
    private readonly store: ClickHouseStore,
    private readonly onProblem: (reason: ClickHouseUnreachableError | null) => void = () => undefined,
    private readonly fence?: InsertFence,
    private readonly progress: LoadProgress = store.outside,
  ) {
    this.isUncertain = progress.started !== undefined;
  }

  cursor(lane: Lane): number {
    return this.progress.loaded[lane];
  }

  unfinished(): StartedLoad | undefined {
    return this.progress.started;
  }

  start(load: StartedLoad): void {
    const { started } = this.progress;
    if (started?.lane === load.lane && started.last === load.last) return;
    if (started !== undefined)
      throw new Error(`The ${started.lane} batch to ${started.last} is not finished.`);
    this.progress.start(load);
  }

  async known(events: readonly EventIdentity[]): Promise<Set<number>> {
    const known = new Set<number>();
    for (let start = 0; start < events.length; start += uuidsAtOnce) {
      const part = events.slice(start, start + uuidsAtOnce);
      for (const seq of await this.untilDone(() => this.findKnown(part))) known.add(seq);
    }
    return known;
  }

  async load(lane: Lane, last: number, events: readonly StorableEvent[]): Promise<void> {
    this.start({ lane, last });
    const first = this.cursor(lane) + 1;
    const { id } = this.store.outside.storeId();
    const { batchName, started } = this.progress;
    const token = `${id}${batchName}:${lane}:${first}:${last}`;
    this.isUncertain ||= started?.isResumed === true;
    if (this.isUncertain && this.fence !== undefined) await this.waitUntil(this.fence.previousEnd);
    await this.untilDone(async () => {
      const missing = this.isUncertain ? await this.missing(lane, first, last) : () => true;
      this.isUncertain = true;
      // The division into chunks is deterministic: missing rows are sent with the token of their chunk.
      for (const [index, chunk] of getChunks(events).entries()) {
        const rows = chunk.filter(missing);
        if (rows.length > 0) await this.insertAll(rows, `${token}:${index}`);
      }
    });
    this.progress.finish(lane, last);
    this.isUncertain = false;
  }

  /**
   * Lets the journal delete nothing for this long while the person store and then the journal are copied; 0 ends that.
   */
  holdCheckpoints(ms: number): void {
    this.checkpointsHeldUntil = performance.now() + ms;
  }

  /** ClickHouse makes rows durable on insert. @returns false while checkpoints are held */
  async checkpoint(): Promise<boolean> {
    return performance.now() >= this.checkpointsHeldUntil;
  }

  cancel(): void {
    this.isCancelled = true;
    this.wake?.();
  }

  /** In several inserts if one takes longer than a lease. */
  private async insertAll(events: readonly StorableEvent[], token: string): Promise<void> {
    const size = this.rowsAtOnce;
    try {
      if (events.length <= size) return await this.insert(events, token);
      for (let start = 0; start < events.length; start += size)
        await this.insert(events.slice(start, start + size), `${token}:${start}:${size}`);
    } catch (error) {
      if (error instanceof ClickHouseError && error.code === lateInsertCode)
        this.rowsAtOnce = Math.max(rowsMin, Math.ceil(Math.min(size, events.length) / 2));
      throw error;
    }
  }

  private async insert(events: readonly StorableEvent[], token: string): Promise<void> {
    const rows = new RowBinary();
    for (const event of events) for (const write of writes) write(rows, event);
    const { quorum } = this.store.address;
    const settings: ClickHouseSettings = {
      ...oneBlock,
      insert_deduplicate: 1,
      insert_deduplication_token: token,
    };
    if (quorum !== null) {
      settings.insert_quorum = String(quorum);
      settings.insert_quorum_parallel = 0;
      settings.insert_quorum_timeout = quorumTimeoutMs;
    }
    // On a cluster, wait until the rows are on their shards.
    if (this.store.address.cluster !== null) settings.distributed_foreground_insert = 1;
    if (this.fence !== undefined) {
      settings.max_execution_time = fencedSecondsMax;
      // One block: its deadline is checked once.
      Object.assign(settings, { max_threads: 1, max_insert_threads: "1" });
    }
    const check = this.fence && { types: columnTypes, condition: await this.condition(this.fence) };
    await this.store.connection.insert("events", columnNames, rows.bytes, settings, check);
  }

  /** Waits while the lease is not renewed. @throws {LoadCancelledError} */
  private async condition(fence: InsertFence): Promise<string> {
    for (;;) {
      const condition = await deadlineCondition(this.store.connection, fence);
      if (condition !== undefined) return condition;
      await this.waitUntil(performance.now() + renewalPollMs);
    }
  }

  /** @throws {LoadCancelledError} */
  private async waitUntil(end: number): Promise<void> {
    const leftMs = end - performance.now();
    if (leftMs > 0) await this.pause(leftMs);
    if (this.isCancelled) throw new LoadCancelledError();
  }

  /** Finds the missing events of a batch that may be stored. */
  private async missing(lane: Lane, first: number, last: number): Promise<(event: StorableEvent) => boolean> {
    const stored = await this.store.connection.rows(
      `SELECT seq FROM events WHERE historical = ${lane === "historical"} AND seq >= ${first} AND seq <= ${last}${this.sequential}`,
    );
    const seqs = new Set(stored.map(([seq]) => Number(seq)));
    return ({ seq }) => !seqs.has(seq);
  }

  /** With a quorum, reads include all writes confirmed by it. */
  private get sequential(): string {
    return this.store.address.quorum === null ? "" : " SETTINGS select_sequential_consistency = 1";
  }

  private async findKnown(events: readonly EventIdentity[]): Promise<number[]> {
    if (events.length === 0) return [];
    const projects = [...new Set(events.map(({ projectId }) => projectId))];
    const uuids = events.map(({ uuid }) => uuid).join(",");
    const found = await this.store.connection.rows(
      `SELECT project_id, uuid, historical, seq FROM events
       WHERE project_id IN (${projects.join(", ")}) AND (${getTimes(events)})
         AND uuid IN (SELECT toUUID(arrayJoin(splitByChar(',', '${uuids}'))))${this.sequential}`,
    );
    const stored = new Set<string>();
    for (const [projectId, uuid, historical, seq] of found) {
      const lane = historical === true ? "historical" : "realtime";
      const event = { projectId: Number(projectId), lane, seq: Number(seq) } as const;
      if (!this.progress.isUnfinished(event)) stored.add(`${projectId} ${uuid}`);
    }
    return events.filter(({ projectId, uuid }) => stored.has(`${projectId} ${uuid}`)).map(({ seq }) => seq);
  }

  /** Retries until success. @throws {LoadCancelledError} @throws {OperatorActionError} */
  private async untilDone<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
      if (this.isCancelled) throw new LoadCancelledError();
      try {
        await this.store.open();
        const result = await work();
        this.onProblem(null);
        return result;
      } catch (error) {
        // The server's operator has to fix a lack of disk space or memory, or wrong tables.
        const isServers = error instanceof ClickHouseError;
        if (!isServers && !(error instanceof ClickHouseUnreachableError)) throw error;
        this.onProblem(isServers ? new ClickHouseUnreachableError(this.store.address, error) : error);
      }
      await this.pause(pauseMs);
    }
  }

  private async pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.wake = resolve;
    const timer = setTimeout(resolve, ms);
    if (this.isCancelled) resolve();
    await promise;
    clearTimeout(timer);
  }
}

/** Deterministic chunks of one insert each. */
function getChunks(events: readonly StorableEvent[]): StorableEvent[][] {
  const chunks: StorableEvent[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const event of events) {
    if (bytes >= chunkBytes || chunks.at(-1)!.length === chunkRows) {
      chunks.push([]);
      bytes = 0;
    }
    chunks.at(-1)!.push(event);
    bytes += event.propertiesText.length;
  }
  return chunks;
}

/** Most UUIDs contain their time, and duplicates have the same: only parts of that time are read. */
function getTimes(events: readonly EventIdentity[]): string {
  const times = events.flatMap(({ uuid }) => uuidTime(uuid) ?? []).sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const time of times) {
    const range = ranges.at(-1);
    if (range !== undefined && (time - range[1] <= timeGapMs || ranges.length === timeRangesMax))
      range[1] = time;
    else ranges.push([time, time]);
  }
  const conditions = ranges.map(([from, to]) => `uuid_time BETWEEN ${from} AND ${to}`);
  if (times.length < events.length) conditions.push("uuid_time IS NULL");
  return conditions.join(" OR ");
}
