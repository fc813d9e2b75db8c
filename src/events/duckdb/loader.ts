/** Loads journal entries into the event store: one transaction a batch, with the lane's cursor. */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { StorableEvent } from "../../journal/entry.ts";
import type { Lane } from "../../journal/segment.ts";
import { type EventColumnKind, eventColumnNames, eventColumns, uuidTime, valueFor } from "../columns.ts";
import { type EventIdentity, type EventStore, StagingFailed } from "../store.ts";
import { type AppendColumn, type AppendTable, appendRows } from "./append.ts";
import { type EventDatabase, inTransaction } from "./database.ts";
import { PropertyColumns } from "./property-columns.ts";
import { RecentUuids } from "./recent-uuids.ts";

/** Makes room when there is no memory to load. */
export interface LoadingRoom {
  loadInRoom<Result>(work: () => Promise<Result>): Promise<Result>;
}

const appendKinds = {
  ...({ integer: "integer", bigint: "bigint", boolean: "boolean", uuid: "uuid" } as const),
  ...({ text: "text", instant: "bigint", json: "text" } as const),
} satisfies Record<EventColumnKind, AppendColumn<StorableEvent>["kind"]>;

/** What a filler has instead of an event's texts, which may be long. */
const noTexts: Partial<StorableEvent> = Object.fromEntries(
  Object.values(eventColumns).flatMap(({ kind, member, isNullable }) => {
    if (member === undefined || appendKinds[kind] !== "text") return [];
    return [[member, kind === "json" ? Buffer.from("{}") : isNullable ? null : ""]];
  }),
);

/** Fillers belong to no project: their number is negative. What the file is sorted by stays. */
const eventTable: AppendTable<StorableEvent> = {
  name: "events",
  columns: eventColumnNames.map((name) => {
    const column = eventColumns[name];
    return { kind: appendKinds[column.kind], of: valueFor<never>(column) };
  }),
  // Properties with a column of their own lie beside them; see `property-columns.ts`.
  columnNames: eventColumnNames,
  filler: (event) => ({ ...event, ...noTexts, projectId: -event.projectId }),
};

const incomingTable: AppendTable<EventIdentity> = {
  name: "incoming",
  catalog: "temp",
  columns: [
    { kind: "bigint", of: ({ seq }) => seq },
    { kind: "uuid", of: ({ uuid }) => uuid },
    { kind: "bigint", of: ({ uuid }) => uuidTime(uuid) },
    { kind: "integer", of: ({ projectId }) => projectId },
  ],
  filler: (event) => event,
};

/**
 * The only writer of events in a DuckDB file. What `load` has resolved for is committed together with the lane's cursor;
 * `checkpoint` takes it from DuckDB's log into the file. Loadings, and whatever else changes the table, take turns. Throws what
 * DuckDB throws, and the lane stands where it stood.
 */
export class EventLoader implements EventStore {
  private checkpointsHeldUntil = 0;
  private isCheckpointWanted = false;
  private turn: Promise<unknown> = Promise.resolve();
  /** Set while a transaction holds staged events: ends its turn. */
  private endStaging: (() => void) | undefined;

  private constructor(
    private readonly connection: DuckDBConnection,
    /** Beside a transaction of the other one. */
    private readonly lookup: DuckDBConnection,
    private readonly cursors: Record<Lane, number>,
    private readonly recent: RecentUuids,
    /** Filled for every event that is loaded. */
    readonly propertyColumns: PropertyColumns,
  ) {}

  /** A row group: a whole one goes straight into the file; of less, DuckDB writes a log first, and parts of the file anew. */
  readonly eventsPerLoad = 122_880;

  /** Set while others' queries may run beside it: what to do when they have taken the memory. */
  room: LoadingRoom = { loadInRoom: (work) => work() };

  static async open(database: EventDatabase): Promise<EventLoader> {
    const connection = await database.connect();
    const cursors: Record<Lane, number> = { realtime: 0, historical: 0 };
    const rows = await connection.runAndReadAll("SELECT lane, seq FROM load_cursor");
    for (const [lane, seq] of rows.getRows()) cursors[lane as Lane] = Number(seq);
    const lookup = await database.connect();
    const recent = await recentUuids(connection);
    return new EventLoader(connection, lookup, cursors, recent, await PropertyColumns.open(connection));
  }

  /** Does something between two loadings: what changes the table `events` must not meet one. */
  async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return await done;
  }

  cursor(lane: Lane): number {
    return this.cursors[lane];
  }

  unfinished(): undefined {
    // A transaction is there or not.
    return undefined;
  }

  begin(): void {}

  giveUp(): void {}

  isNew(projectId: number, uuid: string): boolean {
    return this.recent.isNew(projectId, uuid);
  }

  async known(events: readonly EventIdentity[]): Promise<Set<number>> {
    const doubtful = events.filter(({ projectId, uuid }) => !this.isNew(projectId, uuid));
    return doubtful.length === 0 ? new Set() : await this.room.loadInRoom(() => this.findKnown(doubtful));
  }

  private async findKnown(events: readonly EventIdentity[]): Promise<Set<number>> {
    const { lookup: connection } = this;
    await connection.run(
      "CREATE OR REPLACE TEMP TABLE incoming (seq BIGINT, uuid UUID, uuid_time BIGINT, project_id INTEGER)",
    );
    await appendRows(connection, incomingTable, events);
    // Most uuids carry their time, and a copy carries the same: only row groups of that time are read.
    const known = await connection.runAndReadAll(
      `SELECT s.seq FROM (SELECT * FROM incoming WHERE uuid_time IS NOT NULL) s
       SEMI JOIN events e ON e.uuid_time = s.uuid_time AND e.uuid = s.uuid AND e.project_id = s.project_id
       UNION ALL
       SELECT s.seq FROM (SELECT * FROM incoming WHERE uuid_time IS NULL) s
       SEMI JOIN (SELECT * FROM events WHERE uuid_time IS NULL) e ON e.uuid = s.uuid AND e.project_id = s.project_id`,
    );
    return new Set(known.getRows().map(([seq]) => Number(seq)));
  }

  async stage(events: readonly StorableEvent[]): Promise<void> {
    await this.orUnstaged(async () => {
      if (this.endStaging === undefined) {
        this.endStaging = await this.ownTurn();
        await this.connection.run("BEGIN TRANSACTION");
      }
      await this.append(events);
    });
  }

  async unstage(): Promise<void> {
    if (this.endStaging === undefined) return;
    await this.connection.run("ROLLBACK").catch(() => undefined);
    this.endStaging();
    this.endStaging = undefined;
  }

  async load(lane: Lane, last: number, events: readonly StorableEvent[]): Promise<void> {
    const { connection } = this;
    const finish = async (hasEvents: boolean) => {
      await this.append(events);
      if (hasEvents)
        await this.propertyColumns.fillNew(connection, lane === "historical", this.cursors[lane]);
      await connection.run("UPDATE load_cursor SET seq = $1 WHERE lane = $2", [BigInt(last), lane]);
    };
    if (this.endStaging === undefined) {
      await this.inTurn(() =>
        this.room.loadInRoom(() => inTransaction(connection, () => finish(events.length > 0))),
      );
    } else {
      await this.orUnstaged(async () => {
        await finish(true);
        await connection.run("COMMIT");
      });
      this.endStaging();
      this.endStaging = undefined;
    }
    this.cursors[lane] = last;
    if (this.isCheckpointWanted && (await tryCheckpoint(connection))) this.isCheckpointWanted = false;
  }

  private async append(events: readonly StorableEvent[]): Promise<void> {
    // Before they are stored: it must not happen that they are and are not known.
    for (const { projectId, uuid } of events) this.recent.add(projectId, uuid);
    await appendRows(this.connection, eventTable, inOrder(events));
  }

  /** Begins a turn of `inTurn`. @returns ends it. */
  private async ownTurn(): Promise<() => void> {
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    void this.inTurn(() => {
      begun.resolve();
      return ended.promise;
    });
    await begun.promise;
    return ended.resolve;
  }

  private async orUnstaged(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      await this.unstage();
      throw new StagingFailed(error);
    }
  }

  /** Lets no checkpoint begin for so long, because the file is being copied; 0 ends that. */
  holdCheckpoints(ms: number): void {
    this.checkpointsHeldUntil = performance.now() + ms;
  }

  /**
   * Writes what was loaded from DuckDB's log into its file; only then the journal may forget it.
   *
   * @returns false when another writer is busy at this moment or checkpoints are held; nothing was written then.
   */
  async checkpoint(): Promise<boolean> {
    if (performance.now() < this.checkpointsHeldUntil) return false;
    return await this.inTurn(() => this.room.loadInRoom(() => tryCheckpoint(this.connection)));
  }

  /**
   * Writes the file even though checkpoints are held, as soon as no writer is busy: between two batches, or by another
   * connection when there are none. Not being able to is no failure: the file is older then, and the journal has the rest.
   */
  async checkpointForCopy(other: DuckDBConnection): Promise<void> {
    this.isCheckpointWanted = true;
    for (let attempt = 0; attempt < checkpointAttempts && this.isCheckpointWanted; attempt++) {
      if (await tryCheckpoint(other)) break;
      await Bun.sleep(checkpointPauseMs);
    }
    this.isCheckpointWanted = false;
  }
}

/** Stored uuids of a later time than now that are read at the start. */
const laterUuidsMax = 10_000;

/** What is known at the start: that there are no events, or none of the time to come. */
async function recentUuids(connection: DuckDBConnection): Promise<RecentUuids> {
  const isEmpty = (await connection.runAndReadAll("SELECT 1 FROM events LIMIT 1")).currentRowCount === 0;
  const now = Date.now();
  const recent = new RecentUuids(isEmpty ? 0 : now);
  const later = await connection.runAndReadAll(
    "SELECT project_id, uuid::VARCHAR FROM events WHERE uuid_time >= $1 LIMIT $2",
    [BigInt(now), laterUuidsMax],
  );
  if (later.currentRowCount === laterUuidsMax) return new RecentUuids(Number.POSITIVE_INFINITY);
  for (const [projectId, uuid] of later.getRows() as [number, string][]) recent.add(projectId, uuid);
  return recent;
}

/** By time, so that a time range touches few row groups, and parts of them. */
function inOrder(events: readonly StorableEvent[]): StorableEvent[] {
  return events.toSorted(
    (one, other) =>
      one.projectId - other.projectId || one.timeMicros - other.timeMicros || one.seq - other.seq,
  );
}

/** Ten seconds: a writer may be as long at a row group. */
const checkpointAttempts = 500;
const checkpointPauseMs = 20;

/** @returns false when a writer is busy. */
async function tryCheckpoint(connection: DuckDBConnection): Promise<boolean> {
  try {
    await connection.run("CHECKPOINT");
    return true;
  } catch (error) {
    if (String(error).includes("Cannot CHECKPOINT")) return false;
    throw error;
  }
}
