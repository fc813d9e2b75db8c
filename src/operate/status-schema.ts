/** Output of `flagkeep status --json`. */

import { type Static, Type } from "@sinclair/typebox";
import { LastBackup } from "../backup/last-backup.ts";
import { EngineState } from "../engine/supervisor.ts";
import { lanes } from "../journal/segment.ts";
import { DateTime, NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";
import { ReadinessState } from "./readiness.ts";
import { RetentionState } from "./retention.ts";
import { Scrub } from "./scrub-schedule.ts";
import { WorkerState } from "./worker-state.ts";

const LaneName = Type.Union(lanes.map((lane) => Type.Literal(lane)));
/** `unreachable`: a process uses the data directory, but its control socket does not answer. */
const states = ["starting", "ready", "stopping", "stopped", "unreachable"] as const;

export type LaneStatus = Static<typeof LaneStatus>;
const LaneStatus = strictObject({
  lane: LaneName,
  /** The last acknowledged entry. */
  last_seq: NonNegativeInt,
  /** The last loaded entry. */
  applied_seq: NonNegativeInt,
  lag_entries: NonNegativeInt,
  /** Bytes waiting to be written to disk. */
  queued_bytes: NonNegativeInt,
});

export type DiskUse = Static<typeof DiskUse>;
const DiskUse = strictObject({
  metadata_bytes: NonNegativeInt,
  people_bytes: NonNegativeInt,
  events_bytes: NonNegativeInt,
  journal_bytes: NonNegativeInt,
  quarantine_bytes: NonNegativeInt,
  archive_bytes: NonNegativeInt,
  /** DuckDB's library, unpacked. */
  library_bytes: NonNegativeInt,
  /** `backups` and `backups-unsent`, wherever new ones are written. */
  backups_bytes: NonNegativeInt,
  /** Everything else in the data directory: imports, working files, certificates. */
  other_bytes: NonNegativeInt,
});

const StoredEvents = strictObject({
  /** Events ever stored, including those deleted by retention. */
  events: NonNegativeInt,
  /** Bytes of stores, journal and archive in `disk` per stored event; null without events. */
  bytes_per_event: nullable(Type.Number({ minimum: 0 })),
});

export type Volume = Static<typeof Volume>;
const Volume = strictObject({
  free_bytes: NonNegativeInt,
  total_bytes: NonNegativeInt,
  /** Free disk space below which new events are rejected; null when not running. */
  needed_bytes: nullable(NonNegativeInt),
});

/** A transaction in PostgreSQL that has delayed loading for more than 5 s; `pid` is null if it is prepared. */
export const HeldBackBy = strictObject({
  pid: nullable(NonNegativeInt),
  name: Type.String(),
  seconds: NonNegativeInt,
});

export type Status = Static<typeof Status>;
export const Status = strictObject({
  running: Type.Boolean(),
  state: Type.Union(states.map((state) => Type.Literal(state))),
  version: Type.String(),
  /** Null when not listening. */
  url: nullable(Type.String()),
  started_at: nullable(DateTime),
  uptime_seconds: nullable(NonNegativeInt),
  /** Recently accepted journal entries: events, and ingestion warnings. */
  events_per_second: Type.Number({ minimum: 0 }),
  journal: Type.Array(LaneStatus),
  /** Readiness per role with reasons; empty when not running. */
  roles: Type.Array(ReadinessState),
  /** HTTP workers; empty if the server process handles all requests, or not running. */
  workers: Type.Array(WorkerState),
  engine: EngineState,
  /** ClickHouse database of the events, without its password; null: the data directory, or not running. */
  events_at: nullable(Type.String()),
  /** Cluster state; null: single node, or not running. */
  shared: nullable(
    strictObject({
      /** The address of the PostgreSQL database, without its password. */
      postgres: Type.String(),
      /** Why PostgreSQL cannot be used now; null: it can. */
      trouble: nullable(Type.String()),
      /** Null: loading is not paused. */
      loading_paused_until: nullable(DateTime),
      loading_held_back_by: nullable(HeldBackBy),
      /** Of this node, with persons in PostgreSQL only; null: every node has all persons. */
      person_cache: nullable(
        strictObject({
          entries: NonNegativeInt,
          bytes: NonNegativeInt,
          bytes_max: NonNegativeInt,
          /** IDs and groups of flag requests since the start that were cached, and that were not. */
          hits: NonNegativeInt,
          misses: NonNegativeInt,
          /** Time since the last read of changes. */
          feed_age_seconds: NonNegativeInt,
        }),
      ),
      fronts: Type.Array(
        strictObject({
          name: Type.String(),
          version: Type.String(),
          is_this: Type.Boolean(),
          loads_events: Type.Boolean(),
        }),
      ),
    }),
  ),
  /** Which SQLite file is corrupt or missing, and what to do; null: no known corruption. */
  sqlite_corruption: nullable(Type.String()),
  disk: DiskUse,
  stored: StoredEvents,
  /** The disk of the data directory. */
  volume: Volume,
  /** Loaded entries that are in neither the archive nor a backup: a corrupt event store would lose them. */
  given_up: Type.Array(
    strictObject({
      lane: LaneName,
      first_seq: NonNegativeInt,
      last_seq: NonNegativeInt,
      reason: Type.Union([Type.Literal("size"), Type.Literal("disk")]),
      at: DateTime,
    }),
  ),
  /**
   * Acknowledged entries that were never loaded, because their segment was corrupt; the file names what is left of it.
   */
  skipped_entries: Type.Array(
    strictObject({
      lane: LaneName,
      first_seq: NonNegativeInt,
      last_seq: NonNegativeInt,
      file: Type.String(),
    }),
  ),
  /** Event retention; null: forever, or not running. */
  retention: nullable(RetentionState),
  /** Replaced project keys that are still accepted; empty when not running. */
  replaced_keys: Type.Array(
    strictObject({
      project_id: Type.Integer(),
      kind: Type.Union([Type.Literal("public"), Type.Literal("secret")]),
      ends_at: DateTime,
      /** With the replaced key since its replacement, and with the current one. */
      requests: NonNegativeInt,
      requests_with_new: NonNegativeInt,
      last_used_at: nullable(DateTime),
    }),
  ),
  /** Null before the first attempt. */
  last_backup: nullable(LastBackup),
  /** Null before the first scrub. */
  last_scrub: nullable(Scrub),
  /** Null without a schedule. */
  next_backup: nullable(
    strictObject({
      at: DateTime,
      /** Cron expression. */
      schedule: Type.String(),
      /** Time zone of the expression: that of the server. */
      time_zone: Type.String(),
    }),
  ),
  /** Of the last 24 hours. */
  warnings: Type.Array(
    strictObject({ project_id: Type.Integer(), type: Type.String(), count: NonNegativeInt }),
  ),
  /** Spikes that have not ended. */
  spikes: Type.Array(
    strictObject({
      id: Type.Integer(),
      project_id: Type.Integer(),
      started_at: DateTime,
      peak_per_minute: Type.Number({ minimum: 0 }),
      usual_per_minute: Type.Number({ minimum: 0 }),
    }),
  ),
});
