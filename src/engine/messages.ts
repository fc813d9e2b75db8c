/**
 * What the front and the engine say to each other.
 *
 * Commands go to the engine's standard input and reports come from its standard output, one JSON object a line.
 * Queries go over the engine's socket as HTTP (`queries.ts`). When the front dies its end of the pipes closes, and the
 * engine goes too.
 */

import type { PromotedProperty } from "../events/duckdb/property-columns.ts";
import type { Lane, SealedSegment } from "../journal/segment.ts";
import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import type { EngineMemory } from "../lib/memory-budget.ts";
import type { PostgresAddress } from "../lib/postgres-address.ts";
import type { SpikeSignal } from "../people/spikes/detector.ts";
import type { ProjectUsage } from "./pipeline/flag-usage.ts";
import type { AppliedBatch, Pause } from "./pipeline/pipeline.ts";
import type { StopReason } from "./running-queries.ts";

/** The name of the engine's socket in the data directory. */
export const engineSocketName = "engine.sock";

export interface EngineStart {
  dataDir: string;
  /** Another one at every start of the front. */
  front: string;
  /** Where events are kept outside of it; null: they are in DuckDB. */
  eventsAt: ClickHouseAddress | null;
  /** What several fronts share, and which of them this one's is; null: nothing. */
  shared: { postgres: PostgresAddress; front: string } | null;
  memoryLimitBytes: number;
  /** To keep within; null: there is plenty. */
  memory: EngineMemory | null;
  threads: number;
  queryTimeoutMs: number;
  /** How many properties may have a column of their own. */
  propertyColumnsMax: number;
  spikes: { factor: number; minimumPerMinute: number };
  archive: { bytesMax: number; reserveBytes: number };
  resultBytesMax: number;
  /** Why the event store's file is taken for damaged although nobody has said so; empty: it is not. */
  doubt: string;
  /** Projects whose statements run alone; see `statement-guard.ts`. */
  suspects: number[];
}

export type Command =
  | { type: "start"; start: EngineStart }
  | { type: "segments"; segments: SealedSegment[] }
  | { type: "stop"; timeoutMs: number };

export type LogLevel = "debug" | "info" | "warn" | "error";

export type Report =
  /** The stores must not be opened by this version; starting the engine again is no use. */
  | { type: "refused"; message: string; hint: string }
  /** The event store is being made again: journal entries applied so far, and all there are. */
  | { type: "rebuilding"; done: number; total: number }
  /** A person has to do something; `isStopped`: before that there is no use in starting the engine again. */
  | { type: "trouble"; message: string; hint: string; isStopped: boolean }
  /** The engine ends because of this; it is started again. `isDoubtful`: the event store's file may be the reason. */
  | { type: "failed"; message: string; hint: string; isDoubtful: boolean }
  | { type: "ready"; cursors: Record<Lane, number> }
  | { type: "applied"; applied: AppliedBatch }
  /** Loading waits for room on the disk; null: not any more. */
  | { type: "paused"; pause: Pause | null }
  /** All properties that have a column of their own. */
  | { type: "properties"; promoted: PromotedProperty[] }
  /** A server that the engine needs cannot be used, or can be again. */
  | { type: "away"; reason: { message: string; hint: string } | null }
  | { type: "released"; lane: Lane; lastSeq: number }
  | { type: "flag_usage"; usage: ProjectUsage[] }
  | { type: "spikes"; spikes: SpikeSignal[] }
  /** The engine ends to begin anew as the one of all fronts that loads events. */
  | { type: "takes_over" }
  /** Somebody's statement begins or has ended. */
  | { type: "statement"; projectId: number; change: 1 | -1 }
  /** The engine ends itself because a query did not stop. */
  | { type: "stuck"; reason: StopReason }
  /** Sent every second: the engine does not hang. */
  | { type: "alive" }
  /** Sent every ten seconds. */
  | { type: "memory"; memory: MemoryUse }
  | { type: "log"; level: LogLevel; msg: string; fields: Record<string, unknown> };

/** What the engine has in memory, in bytes. */
export interface MemoryUse {
  /** All that is the process's own; what it has of files, the system takes back when it is short. */
  own: number;
  /** Objects of JavaScript and what hangs on them. */
  heap: number;
  /** What DuckDB keeps of the event store's file, and what it needs besides; 0 where events are kept elsewhere. */
  store_cache: number;
  store_work: number;
}

/** Calls back with every whole line of a stream, parsed. A long line comes in many pieces, each of which is looked at once. */
export async function readMessages<Message>(
  stream: ReadableStream<Uint8Array>,
  onMessage: (message: Message) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let begun: string[] = [];
  for await (const chunk of stream) {
    const [first, ...others] = decoder.decode(chunk, { stream: true }).split("\n");
    begun.push(first!);
    for (const next of others) {
      const line = begun.join("");
      begun = [next];
      if (line.startsWith("{")) onMessage(JSON.parse(line) as Message);
    }
  }
}
