/** Who goes first where there are fewer processors than work. On Linux each thread has a priority of its own. */

import { readdirSync, readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { basename } from "node:path";

/** The priority of work that captures and flag answers must not wait for. */
const behind = 10;

/** Puts all threads of this process behind others; threads started later take the priority of their maker. */
export function putProcessBehind(): void {
  for (const thread of ownThreads()) putBehind(thread);
}

/** Puts this thread alone behind others; does nothing where a process has one priority. */
export function putThreadBehind(): void {
  try {
    putBehind(Number(basename(readlinkSync("/proc/thread-self"))));
  } catch {
    // Not Linux.
  }
}

/** Puts a process or a thread behind others. */
export function putBehind(id: number): void {
  try {
    setPriority(id, behind);
  } catch {
    // Not allowed here, or it has ended; it works at the same priority then.
  }
}

function ownThreads(): number[] {
  try {
    return readdirSync("/proc/self/task").map(Number);
  } catch {
    // Not Linux: the process has one priority.
    return [0];
  }
}
