/** What the processes that are measured take. */

import { readFileSync } from "node:fs";

const ticksPerSecond = 100;

/** Processor time that a process has taken, all threads. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Memory of a process in bytes: resident, or (`Pss`) with pages that others have too divided among all who have them. */
export function memoryBytes(pid: number, kind: "Rss" | "Pss"): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(new RegExp(`^${kind}:\\s+(\\d+)`, "m").exec(rollup)![1]) * 1024;
}
