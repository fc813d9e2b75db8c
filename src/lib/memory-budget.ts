/**
 * Divides the memory that Flagkeep may use among its parts, where that is less than the parts would take by themselves.
 *
 * What is left of a budget is for the programs themselves: about 100 MiB for each of the two processes.
 */

import { readFileSync } from "node:fs";

const MiB = 1024 * 1024;

/** With so much or more the defaults of the settings fit. */
const roomyBytes = 2048 * MiB;

/**
 * Pages of the store of persons that a connection keeps in memory where there is no budget: for whoever writes it the
 * indexes of about a million persons.
 */
export const peopleCacheBytesMax = { writer: 128 * MiB, reader: 32 * MiB };

/** The settings that a budget decides where nobody has. */
export interface MemoryShares {
  "duckdb-memory-limit": number;
  "bodies-in-flight": number;
  "journal-queue": number;
}

/** What each part gets of a budget, in bytes. */
export function memoryShares(bytes: number): MemoryShares {
  return {
    "duckdb-memory-limit": atLeast(64 * MiB, bytes / 4),
    "bodies-in-flight": atLeast(16 * MiB, bytes / 8),
    "journal-queue": atLeast(8 * MiB, bytes / 16),
  };
}

/** Segments that are loaded as one step, in bytes. */
export interface StepBytes {
  /** When their events are held until all of them are loaded. */
  held: number;
  /** When the event store takes the events in advance. */
  staged: number;
}

/** How the engine keeps within a budget. */
export interface EngineMemory {
  stepBytes: StepBytes;
  /** What of a step is taken at once. */
  portionBytes: number;
  /** Queries of operators are stopped when the process has more of its own than this; files it reads do not count. */
  ownBytesMax: number;
  /** What the collector of JavaScript's garbage takes for the machine's memory. */
  heapBytes: number;
  /** Pages of the store of persons that it keeps. */
  peopleCacheBytes: number;
}

/** Where there is no budget: in advance, of usual events, as many as the event store best loads at once. */
export const roomyStepBytes: StepBytes = { held: 64 * MiB, staged: 160 * MiB };
/** What of a step is taken at once where there is no budget. */
export const roomyPortionBytes = 8 * MiB;

/** @param bytes the whole budget, of which the engine is one part. */
export function engineMemory(bytes: number): EngineMemory {
  return {
    stepBytes: {
      held: Math.min(roomyStepBytes.held, atLeast(4 * MiB, bytes / 64)),
      staged: Math.min(roomyStepBytes.staged, atLeast(4 * MiB, bytes / 16)),
    },
    portionBytes: Math.min(roomyPortionBytes, atLeast(MiB, bytes / 256)),
    ownBytesMax: Math.floor(bytes * 0.65),
    heapBytes: Math.floor(bytes / 4),
    peopleCacheBytes: Math.min(peopleCacheBytesMax.writer, atLeast(8 * MiB, bytes / 16)),
  };
}

/** Pages of the store of persons that the front keeps to read it, in bytes. */
export function frontPeopleCacheBytes(bytes: number): number {
  return Math.min(peopleCacheBytesMax.reader, atLeast(4 * MiB, bytes / 64));
}

/**
 * The budget to keep within: what was asked for, else what the machine or the container has; null: there is plenty.
 *
 * @param asked of the setting `memory`.
 */
export function memoryBudget(asked: number | null, available = process.constrainedMemory()): number | null {
  if (asked !== null) return asked;
  return available > 0 && available < roomyBytes ? available : null;
}

/** What a process has in memory. Quicker than what the runtime offers; 0 of another one where that cannot be known. */
export function residentBytes(pid: number | "self" = "self"): number {
  const pages = pagesOf(pid);
  if (pages !== undefined) return pages.resident * pageBytes;
  return pid === "self" ? process.memoryUsage.rss() : 0;
}

/**
 * What a process has in memory besides what it read from files, which the system takes back when it is short. 0 where that
 * cannot be known.
 */
export function ownBytes(pid: number | "self" = "self"): number {
  const pages = pagesOf(pid);
  return pages === undefined ? 0 : (pages.resident - pages.shared) * pageBytes;
}

const pageBytes = 4096;

/** Asked fifty times a second. */
function pagesOf(pid: number | "self"): { resident: number; shared: number } | undefined {
  try {
    const [, resident, shared] = readFileSync(`/proc/${pid}/statm`, "latin1").split(" ").map(Number);
    return { resident: resident!, shared: shared! };
  } catch {
    // Not Linux, or it has just ended.
    return undefined;
  }
}

const atLeast = (least: number, bytes: number) => Math.floor(Math.max(least, bytes));
