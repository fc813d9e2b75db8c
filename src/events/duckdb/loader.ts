/** Loads journal entries into the event store: one transaction a batch, with the lane's cursor. */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { StorableEvent } from "../../journal/entry.ts";
import type { Lane } from "../../journal/segment.ts";
import { type EventColumnKind, eventColumnNames, eventColumns, uuidTime, valueFor } from "../columns.ts";
import type { EventIdentity, EventStore } from "../store.ts";
import { type AppendColumn, type AppendTable, appendRows } from "./append.ts";
import { type EventDatabase, inTransaction } from "./database.ts";
import { PropertyColumns } from "./property-columns.ts";

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

export class EventLoader implements EventStore {
  private checkpointsHeldUntil = 0;
  private isCheckpointWanted = false;
  private turn: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly connection: DuckDBConnection,
    private readonly cursors: Record<Lane, number>,
    /** Filled for every event that is loaded. */
    readonly propertyColumns: PropertyColumns,
  ) {}

  /** Set while others' queries may run beside it: what to do when they have taken the memory. */
  room: LoadingRoom = { loadInRoom: (work) => work() };

  static async open(database: EventDatabase): Promise<EventLoader> {
    const connection = await database.connect();
    const cursors: Record<Lane, number> = { realtime: 0, historical: 0 };
    const rows = await connection.runAndReadAll("SELECT lane, seq FROM load_cursor");
    for (const [lane, seq] of rows.getRows()) cursors[lane as Lane] = Number(seq);
    return new EventLoader(connection, cursors, await PropertyColumns.open(connection));
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

  async known(events: readonly EventIdentity[]): Promise<Set<number>> {
    return events.length === 0 ? new Set() : await this.room.loadInRoom(() => this.findKnown(events));
  }

  private async findKnown(events: readonly EventIdentity[]): Promise<Set<number>> {
    const { connection } = this;
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

  async load(lane: Lane, last: number, events: readonly StorableEvent[]): Promise<void> {
    const { connection } = this;
    // Sorted by time, so that a time range touches few row groups.
    const sorted = events.toSorted(
      (one, other) =>
        one.projectId - other.projectId || one.timeMicros - other.timeMicros || one.seq - other.seq,
    );
    await this.inTurn(() =>
      this.room.loadInRoom(() =>
        inTransaction(connection, async () => {
          await appendRows(connection, eventTable, sorted);
          if (sorted.length > 0)
            await this.propertyColumns.fillNew(connection, lane === "historical", this.cursors[lane]);
          await connection.run("UPDATE load_cursor SET seq = $1 WHERE lane = $2", [BigInt(last), lane]);
        }),
      ),
    );
    this.cursors[lane] = last;
    if (this.isCheckpointWanted && (await tryCheckpoint(connection))) this.isCheckpointWanted = false;
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

/** Two seconds. */
const checkpointAttempts = 100;
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
