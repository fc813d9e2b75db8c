/** Persons as rows in PostgreSQL, for the engine of a cluster. */

import { ifAvailable, type Postgres, type Transaction } from "../cluster/connection.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import type { PersonWriter } from "../persons/person-writer.ts";
import { PostgresPersonSource } from "../persons/postgres/person-source.ts";
import { postgresPersonWriter, sweepPendingRows } from "../persons/postgres/person-writer.ts";
import { PostgresPersonReader } from "../persons/postgres/reader.ts";
import type { PersonSource } from "../persons/replica-source.ts";

export interface PersonRows {
  reader: PersonReader;
  writer: PersonWriter;
  /** For the replicas in the event store. */
  source: PersonSource;
  /** Moves and deletes pending overrides; call it when all received events are applied. */
  sweep(nowMicros: number): Promise<void>;
}

export interface PersonRowsDeps {
  /** Runs a change while no other node changes persons. */
  change<Result>(run: (t: Transaction) => Promise<Result>): Promise<Result>;
  /** Whether all engines have applied what was received. @throws {PostgresUnreachableError} */
  isCaughtUp(): Promise<boolean>;
}

export function openPersonRows(postgres: Postgres, deps: PersonRowsDeps): PersonRows {
  const sweep = async (nowMicros: number) => {
    if (!(await deps.isCaughtUp())) return;
    const pending = await postgres.run((sql) => sql`SELECT 1 FROM flagkeep.pending_override LIMIT 1`);
    if (pending.length > 0) await deps.change((t) => sweepPendingRows(t, nowMicros));
  };
  return {
    reader: new PostgresPersonReader(postgres),
    writer: postgresPersonWriter((run) => deps.change(run)),
    source: new PostgresPersonSource(postgres),
    sweep: async (nowMicros) => await ifAvailable(() => sweep(nowMicros)),
  };
}
