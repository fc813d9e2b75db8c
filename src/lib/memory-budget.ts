/**
 * Divides the memory budget of Flagkeep among its parts, if it is less than their defaults add up to.
 *
 * The rest of a budget is for the programs themselves: about 100 MiB for each of the two processes.
 */

import { readFileSync } from "node:fs";

const MiB = 1024 * 1024;

/** From this size on, the default settings fit. */
const ampleBytes = 2048 * MiB;

/** Default page cache of a connection to the persons store: for the writer, the indexes of about a million persons. */
export const personCacheBytesMax = { writer: 128 * MiB, reader: 32 * MiB };

/** Settings whose defaults depend on the budget. */
export interface MemoryAllocation {
  "duckdb-memory-limit": number;
  "bodies-in-flight": number;
  "journal-queue": number;
}

/** Bytes per part. */
export function memoryShares(bytes: number): MemoryAllocation {
  return {
    "duckdb-memory-limit": atLeast(64 * MiB, bytes / 4),
    "bodies-in-flight": atLeast(16 * MiB, bytes / 8),
    "journal-queue": atLeast(8 * MiB, bytes / 16),
  };
}

/** Bytes of segments loaded in one step. */
export interface StepBytes {
  /** With events held in memory until all of them are loaded. */
  held: number;
  /** With events staged in the event store. */
  staged: number;
}

/** Memory limits of the engine. */
export interface EngineMemory {
  stepBytes: StepBytes;
  /** Part of a step that is processed in one batch. */
  portionBytes: number;
  /**
   * Operator queries are cancelled when the process uses more private memory than this; pages of files it reads do not
   * count.
   */
  privateBytesMax: number;
  /** Memory size that the JavaScript garbage collector assumes for the machine. */
  heapBytes: number;
  /** Page cache of the persons store. */
  personCacheBytes: number;
}

/** Defaults without a budget; `staged` holds as many typical events as the event store loads best in one step. */
export const defaultStepBytes: StepBytes = { held: 64 * MiB, staged: 160 * MiB };
/** Default batch size without a budget. */
export const defaultBatchBytes = 8 * MiB;

/** @param bytes the whole budget, of which the engine is one part. */
export function engineMemory(bytes: number): EngineMemory {
  return {
    stepBytes: {
      held: Math.min(defaultStepBytes.held, atLeast(4 * MiB, bytes / 64)),
      staged: Math.min(defaultStepBytes.staged, atLeast(4 * MiB, bytes / 16)),
    },
    portionBytes: Math.min(defaultBatchBytes, atLeast(MiB, bytes / 256)),
    privateBytesMax: Math.floor(bytes * 0.65),
    heapBytes: Math.floor(bytes / 4),
    personCacheBytes: Math.min(personCacheBytesMax.writer, atLeast(8 * MiB, bytes / 16)),
  };
}

/** Page cache of the server process's read connection to the persons store, in bytes. */
export function serverPersonCacheBytes(bytes: number): number {
  return Math.min(personCacheBytesMax.reader, atLeast(4 * MiB, bytes / 64));
}

/**
 * The memory budget: the configured one, else that of the machine or the container; null: no limit needed.
 *
 * @param requested value of the setting `memory`.
 */
export function memoryBudget(
  requested: number | null,
  available = process.constrainedMemory(),
): number | null {
  if (requested !== null) return requested;
  return available > 0 && available < ampleBytes ? available : null;
}

/** Resident memory of a process. Faster than the runtime's function; 0 for another process whose memory is unknown. */
export function residentBytes(pid: number | "self" = "self"): number {
  const pages = getPages(pid);
  if (pages !== undefined) return pages.resident * pageBytes;
  return pid === "self" ? process.memoryUsage.rss() : 0;
}

/** Resident memory of a process without file pages, which the system can reclaim. 0 when unknown. */
export function privateBytes(pid: number | "self" = "self"): number {
  const pages = getPages(pid);
  return pages === undefined ? 0 : (pages.resident - pages.shared) * pageBytes;
}

const pageBytes = 4096;

/** Called fifty times per second. */
function getPages(pid: number | "self"): { resident: number; shared: number } | undefined {
  try {
    const [, resident, shared] = readFileSync(`/proc/${pid}/statm`, "latin1").split(" ").map(Number);
    return { resident: resident!, shared: shared! };
  } catch {
    // Not Linux, or the process has just exited.
    return undefined;
  }
}

const atLeast = (least: number, bytes: number) => Math.floor(Math.max(least, bytes));
