/**
 * Messages between the server process and the engine: commands on the engine's standard input, reports on its standard
 * output, one JSON object per line. Queries use HTTP over the engine's socket (`queries.ts`). When the server process
 * exits, its end of the pipes closes, and the engine exits.
 */

import type { MaterializedProperty } from "../events/duckdb/property-columns.ts";
import type { Lane, SealedSegment } from "../journal/segment.ts";
import type { EngineMemory } from "../lib/memory-budget.ts";
import type { ClickHouseAddress, PostgresAddress } from "../lib/store-urls.ts";
import type { SpikeSignal } from "../persons/spike-detector.ts";
import type { ProjectUsage } from "./pipeline/flag-usage.ts";
import type { AppliedBatch, Pause } from "./pipeline/pipeline.ts";
import type { CancelReason } from "./running-queries.ts";

/** The engine's socket in the data directory. */
export const engineSocketName = "engine.sock";

export interface EngineStart {
  dataDir: string;
  /** Generated at each start of the server process. */
  server: string;
  /** The external event store; null if events are in DuckDB. */
  eventsAt: ClickHouseAddress | null;
  /** The cluster's PostgreSQL, and this node's ID in it; null outside a cluster. */
  cluster: { postgres: PostgresAddress; node: string } | null;
  memoryLimitBytes: number;
  /** Maximum bytes of DuckDB's temporary files. */
  spillLimitBytes: number;
  /** Memory limits; null if memory is plentiful. */
  memory: EngineMemory | null;
  threads: number;
  queryTimeoutMs: number;
  /** Maximum number of property columns. */
  propertyColumnsMax: number;
  spikes: { factor: number; minimumPerMinute: number };
  archive: { bytesMax: number; reserveBytes: number };
  resultBytesMax: number;
  /** Why the event store's file is suspected to be corrupt without an error; empty if it is not. */
  doubt: string;
  /** Projects whose statements run alone; see `restart-policy.ts`. */
  suspects: number[];
}

export type Command =
  | { type: "start"; start: EngineStart }
  | { type: "segments"; segments: SealedSegment[] }
  | { type: "stop"; timeoutMs: number };

export type LogLevel = "debug" | "info" | "warn" | "error";

export type Report =
  /** This version must not open the stores; restarting the engine does not help. */
  | { type: "refused"; message: string; hint: string }
  /** The event store is being rebuilt: journal entries applied so far, and in total. */
  | { type: "rebuilding"; done: number; total: number }
  /** An operator has to act; `isStopped`: restarting the engine does not help before. */
  | { type: "trouble"; message: string; hint: string; isStopped: boolean }
  /** The engine exits because of this error and is restarted. `isAmbiguous`: the event store's file may be corrupt. */
  | { type: "failed"; message: string; hint: string; isAmbiguous: boolean }
  /** The engine has found corruption in an SQLite store. */
  | { type: "corrupt" }
  | { type: "ready"; cursors: Record<Lane, number> }
  | { type: "applied"; applied: AppliedBatch }
  /** Loading is paused because disk space is short; null: it has resumed. */
  | { type: "paused"; pause: Pause | null }
  /** All materialized properties. */
  | { type: "properties"; promoted: MaterializedProperty[] }
  /** A server that the engine needs is unavailable, or available again (null). */
  | { type: "away"; reason: { message: string; hint: string } | null }
  | { type: "released"; lane: Lane; lastSeq: number }
  | { type: "flag_usage"; usage: ProjectUsage[] }
  | { type: "spikes"; spikes: SpikeSignal[] }
  /** The engine exits to restart in another role of the cluster. */
  | { type: "changes_role"; reason: string }
  /** A user's statement has started or ended. */
  | { type: "statement"; projectId: number; change: 1 | -1 }
  /** The engine kills itself because a query did not stop. */
  | { type: "stuck"; reason: CancelReason }
  /** Sent every second: the engine does not hang. */
  | { type: "alive" }
  /** Sent every ten seconds. */
  | { type: "memory"; memory: MemoryUse }
  | { type: "log"; level: LogLevel; msg: string; fields: Record<string, unknown> };

/** Memory of the engine in bytes. */
export interface MemoryUse {
  /** Private memory; file-backed pages are excluded because the system can reclaim them. */
  own: number;
  /** JavaScript objects and the external memory they hold. */
  heap: number;
  /** Memory of DuckDB: cached file blocks and working memory; 0 with an external event store. */
  store_cache: number;
  store_work: number;
}

/** Calls back with every complete line of a stream, parsed. Each chunk of a long line is scanned only once. */
export async function readMessages<Message>(
  stream: ReadableStream<Uint8Array>,
  onMessage: (message: Message) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let started: string[] = [];
  for await (const chunk of stream) {
    const [first, ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    started.push(first!);
    for (const next of others) {
      const line = started.join("");
      started = [next];
      if (line.startsWith("{")) onMessage(JSON.parse(line) as Message);
    }
  }
}
