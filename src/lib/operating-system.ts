/** Priorities of processes and threads, threads of embedded code, and functions of the C library. */

import { dlopen, type FFIFunction } from "bun:ffi";
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

// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_VERSION: string | undefined;
const isExecutable = typeof FLAGKEEP_VERSION === "string";

/** @param file path from the root of the project; an entry point in build.ts */
export function startThread(file: `src/${string}.ts`): Worker {
  return new Worker(isExecutable ? `./${file}` : new URL(`../../${file}`, import.meta.url).href);
}

/** Undefined with a different C library, or without one of these functions. */
export function cLibrary<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  const names = process.platform === "darwin" ? ["libSystem.B.dylib"] : ["libc.so.6", "libc.so"];
  for (const name of names) {
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // Try the next name.
    }
  }
  return undefined;
}
