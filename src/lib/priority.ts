/** Lowers the priority of background work when processors are scarce. On Linux each thread has its own priority. */

import { readdirSync, readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { basename } from "node:path";

/** Nice value of work that must not delay captures and flag responses. */
const behind = 10;

/** Lowers the priority of all threads of this process; threads started later inherit that of their parent. */
export function lowerProcessPriority(): void {
  for (const thread of listThreads()) lowerPriority(thread);
}

/** Lowers the priority of this thread only; does nothing if priorities are per process. */
export function lowerThreadPriority(): void {
  try {
    lowerPriority(Number(basename(readlinkSync("/proc/thread-self"))));
  } catch {
    // Not Linux.
  }
}

export function lowerPriority(id: number): void {
  try {
    setPriority(id, behind);
  } catch {
    // Not permitted, or already exited; the priority stays the same.
  }
}

function listThreads(): number[] {
  try {
    return readdirSync("/proc/self/task").map(Number);
  } catch {
    // Not Linux: priorities are per process.
    return [0];
  }
}
