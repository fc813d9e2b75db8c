/**
 * Loads journal entries into ClickHouse, each once.
 *
 * The border of a batch is written into the people store before anything is asked for, and the insert bears the batch's name:
 * whoever sends it again after a crash or a lost answer sends the same rows under the same name, which ClickHouse stores
 * once. Before that it is looked up what is there, so that it does not matter for how long a name is remembered.
 */

import type { ClickHouseSettings } from "@clickhouse/client";
import type { StorableEvent } from "../../journal/entry.ts";
import type { Lane } from "../../journal/segment.ts";
import type { BegunLoad } from "../../people/outside-events.ts";
import { type EventColumn, eventColumnNames, eventColumns, uuidTime, valueFor } from "../columns.ts";
import { type EventIdentity, type EventStore, LoadGivenUp } from "../store.ts";
import { ClickHouseError, EventsUnreachable } from "./connection.ts";
import { readableJson } from "./readable-json.ts";
import { RowBinary } from "./row-binary.ts";
import type { ClickHouseStore } from "./store.ts";

const firstPauseMs = 100;
const pauseMsMax = 5_000;
/** Uuids that are looked for in one statement. */
const uuidsAtOnce = 20_000;
/** Times of uuids that lie closer are looked for as one range; more ranges than this are one. */
const timeGapMs = 3_600_000;
const timeRangesMax = 100;
/** Rows of one insert, far fewer than ClickHouse makes a block of: it is there in each partition as a whole or not at all. */
const pieceRows = 100_000;
const pieceBytes = 48 * 1024 * 1024;
const oneBlock: ClickHouseSettings = {
  max_insert_block_size: "1048449",
  min_insert_block_size_rows: "1048449",
  min_insert_block_size_bytes: "268402944",
};
const quorumTimeoutMs = 60_000;

/** Puts a value into a row, as the column's type wants it. */
type Write = (rows: RowBinary, event: StorableEvent) => void;

const columns: readonly (readonly [name: string, write: Write])[] = [
  ...eventColumnNames.map((name) => {
    const column = eventColumns[name];
    return [column.clickhouse ?? name, writerOf(column)] as const;
  }),
  ["properties_read", (rows, event) => rows.text(readableJson(event.propertiesText) ?? "")],
];

const columnNames = columns.map(([name]) => name);
const writes = columns.map(([, write]) => write);

function writerOf(column: EventColumn): Write {
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
  private isGivenUp = false;
  private wake: (() => void) | undefined;
  /** The batch under way may have reached the store already. */
  private isUncertain: boolean;
  private checkpointsHeldUntil = 0;

  /**
   * @param onTrouble told why loading has to wait, and with null when it goes on.
   */
  constructor(
    private readonly store: ClickHouseStore,
    private readonly onTrouble: (reason: EventsUnreachable | null) => void = () => undefined,
  ) {
    this.isUncertain = store.outside.begun !== undefined;
  }

  cursor(lane: Lane): number {
    return this.store.outside.loaded[lane];
  }

  unfinished(): BegunLoad | undefined {
    return this.store.outside.begun;
  }

  begin(load: BegunLoad): void {
    const { begun } = this.store.outside;
    if (begun?.lane === load.lane && begun.last === load.last) return;
    if (begun !== undefined) throw new Error(`The ${begun.lane} batch to ${begun.last} is not finished.`);
    this.store.outside.begin(load);
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
    this.begin({ lane, last });
    const first = this.cursor(lane) + 1;
    const { id } = this.store.outside.storeId();
    const token = `${id}:${lane}:${first}:${last}`;
    await this.untilDone(async () => {
      const missing = this.isUncertain ? await this.missing(lane, first, last) : () => true;
      this.isUncertain = true;
      // The same pieces each time: what is missing of one is sent under the name of that one.
      for (const [index, piece] of piecesOf(events).entries()) {
        const rows = piece.filter(missing);
        if (rows.length > 0) await this.insert(rows, `${token}:${index}`);
      }
    });
    this.store.outside.finish(lane, last);
    this.isUncertain = false;
  }

  /** Lets the journal forget nothing for so long, because the store of persons and then the journal are copied; 0 ends that. */
  holdCheckpoints(ms: number): void {
    this.checkpointsHeldUntil = performance.now() + ms;
  }

  /** What the server has taken is on its disk. @returns false while it is held. */
  async checkpoint(): Promise<boolean> {
    return performance.now() >= this.checkpointsHeldUntil;
  }

  giveUp(): void {
    this.isGivenUp = true;
    this.wake?.();
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
    // On a cluster the rows are on their shards before the answer.
    if (this.store.address.cluster !== null) settings.distributed_foreground_insert = 1;
    await this.store.connection.insert("events", columnNames, rows.bytes, settings);
  }

  /** Which events are not stored, of a batch that may be. */
  private async missing(lane: Lane, first: number, last: number): Promise<(event: StorableEvent) => boolean> {
    const stored = await this.store.connection.rows(
      `SELECT seq FROM events WHERE historical = ${lane === "historical"} AND seq >= ${first} AND seq <= ${last}${this.sequential}`,
    );
    const seqs = new Set(stored.map(([seq]) => Number(seq)));
    return ({ seq }) => !seqs.has(seq);
  }

  /** With a quorum a reader sees what the quorum has. */
  private get sequential(): string {
    return this.store.address.quorum === null ? "" : " SETTINGS select_sequential_consistency = 1";
  }

  private async findKnown(events: readonly EventIdentity[]): Promise<number[]> {
    if (events.length === 0) return [];
    const projects = [...new Set(events.map(({ projectId }) => projectId))];
    const uuids = events.map(({ uuid }) => uuid).join(",");
    const found = await this.store.connection.rows(
      `SELECT project_id, uuid, historical, seq FROM events
       WHERE project_id IN (${projects.join(", ")}) AND (${timesOf(events)})
         AND uuid IN (SELECT toUUID(arrayJoin(splitByChar(',', '${uuids}'))))${this.sequential}`,
    );
    const { begun } = this.store.outside;
    const stored = new Set<string>();
    for (const [projectId, uuid, historical, seq] of found) {
      // Of the batch under way itself, which may have reached the store.
      const isOwn =
        begun !== undefined &&
        (begun.lane === "historical") === historical &&
        Number(seq) > this.cursor(begun.lane) &&
        Number(seq) <= begun.last;
      if (!isOwn) stored.add(`${projectId} ${uuid}`);
    }
    return events.filter(({ projectId, uuid }) => stored.has(`${projectId} ${uuid}`)).map(({ seq }) => seq);
  }

  /** Tries again for as long as nobody knows better. @throws {LoadGivenUp} @throws {OperatorNeeded} */
  private async untilDone<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
      if (this.isGivenUp) throw new LoadGivenUp();
      try {
        await this.store.open();
        const result = await work();
        this.onTrouble(null);
        return result;
      } catch (error) {
        // A server that is short of room, of memory, or that was given other tables, is mended there.
        const isServers = error instanceof ClickHouseError;
        if (!isServers && !(error instanceof EventsUnreachable)) throw error;
        this.onTrouble(isServers ? new EventsUnreachable(this.store.address, error) : error);
      }
      await this.pause(pauseMs);
    }
  }

  private async pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.wake = resolve;
    const timer = setTimeout(resolve, ms);
    if (this.isGivenUp) resolve();
    await promise;
    clearTimeout(timer);
  }
}

/** In portions of one insert each, always the same. */
function piecesOf(events: readonly StorableEvent[]): StorableEvent[][] {
  const pieces: StorableEvent[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const event of events) {
    if (bytes >= pieceBytes || pieces.at(-1)!.length === pieceRows) {
      pieces.push([]);
      bytes = 0;
    }
    pieces.at(-1)!.push(event);
    bytes += event.propertiesText.length;
  }
  return pieces;
}

/** Most uuids carry their time, and a copy carries the same: only the parts of the table of that time are read. */
function timesOf(events: readonly EventIdentity[]): string {
  const times = events.flatMap(({ uuid }) => uuidTime(uuid) ?? []).sort((one, other) => one - other);
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
