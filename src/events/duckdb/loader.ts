/** Loads journal entries into DuckDB: one transaction per batch, with the lane's cursor. */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { StorableEvent } from "../../journal/entry.ts";
import type { Lane } from "../../journal/segment.ts";
import { type EventColumnKind, eventColumnNames, eventColumns, uuidTime, valueFor } from "../columns.ts";
import { type EventIdentity, type EventStore, StagingError } from "../store.ts";
import { type AppendColumn, type AppendTable, appendRows } from "./append.ts";
import { type EventDatabase, inTransaction } from "./database.ts";
import { PropertyColumns } from "./property-columns.ts";
import { RecentUuids } from "./recent-uuids.ts";

/** Frees memory if a load runs out of it. */
export interface LoadBudget {
  loadWithinBudget<Result>(work: () => Promise<Result>): Promise<Result>;
}

const appendKinds = {
  ...({ integer: "integer", bigint: "bigint", boolean: "boolean", uuid: "uuid" } as const),
  ...({ text: "text", instant: "bigint", json: "text" } as const),
} satisfies Record<EventColumnKind, AppendColumn<StorableEvent>["kind"]>;

/** Values of a filler in place of an event's strings, which may be long. */
const emptyStrings: Partial<StorableEvent> = Object.fromEntries(
  Object.values(eventColumns).flatMap(({ kind, member, isNullable }) => {
    if (member === undefined || appendKinds[kind] !== "text") return [];
    return [[member, kind === "json" ? Buffer.from("{}") : isNullable ? null : ""]];
  }),
);

/** Fillers have a negative project ID, so they belong to no project. Values that the file is sorted by are kept. */
const eventTable: AppendTable<StorableEvent> = {
  name: "events",
  columns: eventColumnNames.map((name) => {
    const column = eventColumns[name];
    return { kind: appendKinds[column.kind], getValue: valueFor<never>(column) };
  }),
  // The table also has materialized columns; see `property-columns.ts`.
  columnNames: eventColumnNames,
  filler: (event) => ({ ...event, ...emptyStrings, projectId: -event.projectId }),
};

const incomingTable: AppendTable<EventIdentity> = {
  name: "incoming",
  catalog: "temp",
  columns: [
    { kind: "bigint", getValue: ({ seq }) => seq },
    { kind: "uuid", getValue: ({ uuid }) => uuid },
    { kind: "bigint", getValue: ({ uuid }) => uuidTime(uuid) },
    { kind: "integer", getValue: ({ projectId }) => projectId },
  ],
  filler: (event) => event,
};

/**
 * The only writer of events in a DuckDB file. A resolved `load` is committed with the lane's cursor; `checkpoint` moves
 * it from DuckDB's log to the file. Loads and other changes of the table are serialized. DuckDB's errors are passed
 * through and leave the lane's cursor unchanged.
 */
export class EventLoader implements EventStore {
  private checkpointsHeldUntil = 0;
  private isCheckpointWanted = false;
  private turn: Promise<unknown> = Promise.resolve();
  /** Ends the turn of a transaction with staged events, if any. */
  private endStaging: (() => void) | undefined;

  private constructor(
    private readonly connection: DuckDBConnection,
    /** Separate, because the other connection may have an open transaction. */
    private readonly lookup: DuckDBConnection,
    private readonly cursors: Record<Lane, number>,
    private readonly recent: RecentUuids,
    /** Filled for every loaded event. */
    readonly propertyColumns: PropertyColumns,
  ) {}

  /**
   * A row group: whole ones are written directly to the file; for smaller loads DuckDB writes a log and rewrites
   * blocks.
   */
  readonly eventsPerLoad = 122_880;

  /** Frees memory used by concurrent queries; the default does nothing. */
  budget: LoadBudget = { loadWithinBudget: (work) => work() };

  static async open(database: EventDatabase): Promise<EventLoader> {
    const connection = await database.connect();
    const cursors: Record<Lane, number> = { realtime: 0, historical: 0 };
    const rows = await connection.runAndReadAll("SELECT lane, seq FROM load_cursor");
    for (const [lane, seq] of rows.getRows()) cursors[lane as Lane] = Number(seq);
    const lookup = await database.connect();
    const recent = await recentUuids(connection);
    return new EventLoader(connection, lookup, cursors, recent, await PropertyColumns.open(connection));
  }

  /** Runs work between two loads: changes of the table `events` must not overlap with a load. */
  async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return await done;
  }

  cursor(lane: Lane): number {
    return this.cursors[lane];
  }

  unfinished(): undefined {
    // Transactions are atomic.
    return undefined;
  }

  start(): void {}

  cancel(): void {}

  isNew(projectId: number, uuid: string): boolean {
    return this.recent.isNew(projectId, uuid);
  }

  async known(events: readonly EventIdentity[]): Promise<Set<number>> {
    const doubtful = events.filter(({ projectId, uuid }) => !this.isNew(projectId, uuid));
    return doubtful.length === 0
      ? new Set()
      : await this.budget.loadWithinBudget(() => this.findKnown(doubtful));
  }

  private async findKnown(events: readonly EventIdentity[]): Promise<Set<number>> {
    const { lookup: connection } = this;
    await connection.run(
      "CREATE OR REPLACE TEMP TABLE incoming (seq BIGINT, uuid UUID, uuid_time BIGINT, project_id INTEGER)",
    );
    await appendRows(connection, incomingTable, events);
    // Most UUIDs contain their time, and duplicates have the same: only row groups of that time are read.
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
        this.budget.loadWithinBudget(() => inTransaction(connection, () => finish(events.length > 0))),
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
    // Before the events are stored: a stored UUID must never be unknown.
    for (const { projectId, uuid } of events) this.recent.add(projectId, uuid);
    await appendRows(this.connection, eventTable, inOrder(events));
  }

  /** Starts a turn of `inTurn`. @returns a function that ends it */
  private async ownTurn(): Promise<() => void> {
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    void this.inTurn(() => {
      started.resolve();
      return ended.promise;
    });
    await started.promise;
    return ended.resolve;
  }

  private async orUnstaged(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      await this.unstage();
      throw new StagingError(error);
    }
  }

  /** Prevents checkpoints for this long while the file is copied; 0 ends that. */
  holdCheckpoints(ms: number): void {
    this.checkpointsHeldUntil = performance.now() + ms;
  }

  /**
   * Moves loaded events from DuckDB's log to its file, which allows the journal to delete them.
   * @returns false if another writer is active or checkpoints are held; nothing was written
   */
  async checkpoint(): Promise<boolean> {
    if (performance.now() < this.checkpointsHeldUntil) return false;
    return await this.inTurn(() => this.budget.loadWithinBudget(() => tryCheckpoint(this.connection)));
  }

  /**
   * Checkpoints although checkpoints are held, as soon as no writer is active: between two batches, or on another
   * connection if there are none. Best effort: otherwise the copied file is older, and the journal has the rest.
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

/** Maximum stored UUIDs with future times that are read at startup. */
const laterUuidsMax = 10_000;

/** The cutoff is 0 without events, otherwise now; infinite if too many stored UUIDs are later than now. */
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
  return events.toSorted((a, b) => a.projectId - b.projectId || a.timeMicros - b.timeMicros || a.seq - b.seq);
}

/** Ten seconds: writing a row group may take a writer that long. */
const checkpointAttempts = 500;
const checkpointPauseMs = 20;

/** @returns false if a writer is active */
async function tryCheckpoint(connection: DuckDBConnection): Promise<boolean> {
  try {
    await connection.run("CHECKPOINT");
    return true;
  } catch (error) {
    if (String(error).includes("Cannot CHECKPOINT")) return false;
    throw error;
  }
}
