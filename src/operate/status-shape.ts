/** What `flagkeep status --json` prints. */

import { type Static, Type } from "@sinclair/typebox";
import { LastBackup } from "../backup/last-backup.ts";
import { EngineState } from "../engine/supervisor.ts";
import { lanes } from "../journal/segment.ts";
import { Count, exactly, Instant, orNull } from "../lib/schema.ts";
import { RetentionState } from "./retention.ts";
import { RoleState } from "./roles.ts";
import { Scrub } from "./scrub/last-scrub.ts";

const LaneName = Type.Union(lanes.map((lane) => Type.Literal(lane)));
/** `unreachable`: a process uses the data directory, but its control socket does not answer. */
const states = ["starting", "ready", "stopping", "stopped", "unreachable"] as const;

export type LaneStatus = Static<typeof LaneStatus>;
const LaneStatus = exactly({
  lane: LaneName,
  /** The last entry that was acknowledged. */
  last_seq: Count,
  /** The last entry that was loaded. */
  applied_seq: Count,
  lag_entries: Count,
  /** Bytes that wait for the disk. */
  queued_bytes: Count,
});

export type DiskUse = Static<typeof DiskUse>;
const DiskUse = exactly({
  metadata_bytes: Count,
  people_bytes: Count,
  events_bytes: Count,
  journal_bytes: Count,
  quarantine_bytes: Count,
  archive_bytes: Count,
  /** DuckDB's library, unpacked. */
  library_bytes: Count,
  /** In `backups` and `backups-unsent`, wherever new ones go. */
  backups_bytes: Count,
  /** All else in the data directory: imports, working files, certificates. */
  other_bytes: Count,
});

const StoredEvents = exactly({
  /** Events that were stored since the beginning, those that went by age included. */
  events: Count,
  /** Stores, journal and archive of `disk`, per such event; null when there are none. */
  bytes_per_event: orNull(Type.Number({ minimum: 0 })),
});

export type Volume = Static<typeof Volume>;
const Volume = exactly({
  free_bytes: Count,
  total_bytes: Count,
  /** New events are refused while less is free; null when it does not run. */
  needed_bytes: orNull(Count),
});

export type Status = Static<typeof Status>;
export const Status = exactly({
  running: Type.Boolean(),
  state: Type.Union(states.map((state) => Type.Literal(state))),
  version: Type.String(),
  /** Null when it does not listen. */
  url: orNull(Type.String()),
  started_at: orNull(Instant),
  uptime_seconds: orNull(Count),
  /** Journal entries accepted lately: events, and notes about odd ones. */
  events_per_second: Type.Number({ minimum: 0 }),
  journal: Type.Array(LaneStatus),
  /** What can be served, and what cannot and why; empty when it does not run. */
  roles: Type.Array(RoleState),
  engine: EngineState,
  /** The ClickHouse database that keeps the events, without its password; null: the data directory, or not running. */
  events_at: orNull(Type.String()),
  /** What several fronts share; null: nothing, or not running. */
  shared: orNull(
    exactly({
      /** The address of the PostgreSQL database, without its password. */
      postgres: Type.String(),
      /** Why it cannot be used at this moment; null: it can. */
      trouble: orNull(Type.String()),
      fronts: Type.Array(
        exactly({
          name: Type.String(),
          version: Type.String(),
          is_this: Type.Boolean(),
          loads_events: Type.Boolean(),
        }),
      ),
    }),
  ),
  disk: DiskUse,
  stored: StoredEvents,
  /** That holds the data directory. */
  volume: Volume,
  /** Loaded entries that are neither archived any more nor in a backup: a broken event store would lose them. */
  given_up: Type.Array(
    exactly({
      lane: LaneName,
      first_seq: Count,
      last_seq: Count,
      reason: Type.Union([Type.Literal("size"), Type.Literal("disk")]),
      at: Instant,
    }),
  ),
  /** How long events are kept; null: for ever, or not running. */
  retention: orNull(RetentionState),
  /** Keys of projects that were replaced and count for a while yet; empty when it does not run. */
  replaced_keys: Type.Array(
    exactly({
      project_id: Type.Integer(),
      kind: Type.Union([Type.Literal("public"), Type.Literal("secret")]),
      ends_at: Instant,
      /** With the replaced key since then, and with the present one. */
      requests: Count,
      requests_with_new: Count,
      last_used_at: orNull(Instant),
    }),
  ),
  /** Null when none was tried yet. */
  last_backup: orNull(LastBackup),
  /** Null when there was none yet. */
  last_scrub: orNull(Scrub),
  /** Null when none is scheduled. */
  next_backup: orNull(
    exactly({
      at: Instant,
      /** Cron expression. */
      schedule: Type.String(),
      /** In which the expression is meant: that of the server. */
      time_zone: Type.String(),
    }),
  ),
  /** Of the last 24 hours. */
  warnings: Type.Array(exactly({ project_id: Type.Integer(), type: Type.String(), count: Count })),
  /** Spikes that did not end yet. */
  spikes: Type.Array(
    exactly({
      id: Type.Integer(),
      project_id: Type.Integer(),
      started_at: Instant,
      peak_per_minute: Type.Number({ minimum: 0 }),
      usual_per_minute: Type.Number({ minimum: 0 }),
    }),
  ),
});
