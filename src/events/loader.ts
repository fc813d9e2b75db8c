/** Loads journal segments into the event store: one transaction a batch, with the lane's cursor. */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { Lane } from "../journal/segment.ts";
import { type EventDatabase, inTransaction } from "./database.ts";
import { quoted } from "./sql-text.ts";

/** The members of a journal entry that the event store takes. */
const entryColumns =
  "{seq: 'BIGINT', project_id: 'INTEGER', uuid: 'UUID', event: 'VARCHAR', distinct_id: 'VARCHAR', time: 'BIGINT', " +
  "received: 'BIGINT', mode: 'VARCHAR', made_uuid: 'BOOLEAN', elements_chain: 'VARCHAR', properties: 'JSON'}";

/** One entry is at most 1 MB of properties; this bounds what a damaged line can take. */
const entryBytesMax = 64 * 1024 * 1024;

export interface Batch {
  lane: Lane;
  /** Segment files, oldest first. */
  paths: readonly string[];
  /** The cursor after this batch. */
  last: number;
}

export class EventLoader {
  private checkpointsHeldUntil = 0;
  private isCheckpointWanted = false;

  private constructor(
    private readonly connection: DuckDBConnection,
    private readonly cursors: Record<Lane, number>,
  ) {}

  static async open(database: EventDatabase): Promise<EventLoader> {
    const connection = await database.connect();
    const cursors: Record<Lane, number> = { realtime: 0, historical: 0 };
    const rows = await connection.runAndReadAll("SELECT lane, seq FROM load_cursor");
    for (const [lane, seq] of rows.getRows()) cursors[lane as Lane] = Number(seq);
    return new EventLoader(connection, cursors);
  }

  /** The last sequence number of a lane that is in the event store. */
  cursor(lane: Lane): number {
    return this.cursors[lane];
  }

  /**
   * Reads a batch's events into memory and tells which of them the event store has already.
   *
   * A line that DuckDB can not read is left out, so that it does not hold up everything behind it; the caller sees
   * it by the count.
   *
   * @returns how many events were read, and the sequence numbers of those whose uuid is stored in the same project.
   */
  async stage(batch: Batch): Promise<{ count: number; known: Set<number> }> {
    await this.connection.run(
      `CREATE OR REPLACE TEMP TABLE stage AS
       SELECT *, CASE WHEN uuid_extract_version(uuid) = 7 THEN epoch_ms(uuid_extract_timestamp(uuid)) END AS uuid_time
       FROM read_ndjson([${batch.paths.map(quoted).join(", ")}], columns = ${entryColumns},
         maximum_object_size = ${entryBytesMax}, ignore_errors = true)
       WHERE uuid IS NOT NULL AND seq > ${this.cursors[batch.lane]} AND seq <= ${batch.last}`,
    );
    // Most uuids carry their time, and a copy carries the same: only row groups of that time are read.
    const known = await this.connection.runAndReadAll(
      `SELECT s.seq FROM (SELECT * FROM stage WHERE NOT made_uuid AND uuid_time IS NOT NULL) s
       SEMI JOIN events e ON e.uuid_time = s.uuid_time AND e.uuid = s.uuid AND e.project_id = s.project_id
       UNION ALL
       SELECT s.seq FROM (SELECT * FROM stage WHERE NOT made_uuid AND uuid_time IS NULL) s
       SEMI JOIN (SELECT * FROM events WHERE uuid_time IS NULL) e ON e.uuid = s.uuid AND e.project_id = s.project_id`,
    );
    const count = await this.connection.runAndReadAll("SELECT count(*) FROM stage");
    return {
      count: Number(count.getRows()[0]![0]),
      known: new Set(known.getRows().map(([seq]) => Number(seq))),
    };
  }

  /** The sequence numbers of the staged events. */
  async stagedSeqs(): Promise<Set<number>> {
    const rows = await this.connection.runAndReadAll("SELECT seq FROM stage");
    return new Set(rows.getRows().map(([seq]) => Number(seq)));
  }

  /**
   * Makes the staged batch readable and moves the cursor, both or neither.
   *
   * @param left sequence numbers that are not stored: duplicates.
   * @returns    how many events were stored.
   */
  async commit(batch: Batch, left: ReadonlySet<number>): Promise<number> {
    const { connection } = this;
    if (left.size > 0) {
      await connection.run(`DELETE FROM stage WHERE seq IN (${[...left].join(", ")})`);
    }
    const stored = await inTransaction(connection, async () => {
      // Sorted by time, so that a time range touches few row groups.
      const inserted = await connection.run(
        `INSERT INTO events
         SELECT project_id, ${batch.lane === "historical"}, seq, uuid, uuid_time, event, distinct_id, make_timestamp(time),
           make_timestamp(received), mode, elements_chain, properties
         FROM stage ORDER BY project_id, time, seq`,
      );
      await connection.run("UPDATE load_cursor SET seq = $1 WHERE lane = $2", [
        BigInt(batch.last),
        batch.lane,
      ]);
      return inserted.rowsChanged;
    });
    this.cursors[batch.lane] = batch.last;
    if (this.isCheckpointWanted && (await tryCheckpoint(this.connection))) this.isCheckpointWanted = false;
    return stored;
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
    return await tryCheckpoint(this.connection);
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
