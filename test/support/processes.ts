/** Processes as Linux lists them, without programs that a machine may lack. */

import { readdirSync, readFileSync } from "node:fs";

/** Ids of the processes that a process has started and that were not reaped. */
export function getChildren(pid: number): number[] {
  const all = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return all.filter((one) => getParent(one) === pid).sort((a, b) => a - b);
}

function getParent(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Behind the name, which may hold anything: the state, then the parent.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}

/** A process and those that it and its children have started. */
export function getTree(pid: number): number[] {
  return [pid, ...getChildren(pid).flatMap(getTree)];
}

/** Resident bytes of a process; 0 once it has ended. */
export function getMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmRSS:\s*(\d+)/m.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
