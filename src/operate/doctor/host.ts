/** Doctor checks of the machine: disk space, clock, port. */

import { existsSync } from "node:fs";
import { listenErrorReason } from "../../http/server.ts";
import { bytesNeededToAccept, reservedBytes, systemDisk } from "../../journal/disk.ts";
import { readonlyClient } from "../../lib/sqlite.ts";
import { paths } from "../../paths.ts";
import { storeUsage } from "../disk-usage.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";

/** Nothing of Flagkeep is older. */
const earliestMs = Date.UTC(2025, 0, 1);
/** Clocks in a network differ slightly. */
const clockToleranceMs = 60_000;

/** Free disk space exceeds the journal's reserve plus what its waiting entries need. */
export async function checkDisk(dataDir: string, reserveBytes: number): Promise<Finding[]> {
  const { freeBytes, totalBytes } = await systemDisk.space(dataDir);
  const waiting = storeUsage(dataDir).journal_bytes;
  const reserve = bytesNeededToAccept(reservedBytes(reserveBytes, totalBytes), {
    unloaded: waiting,
    unwritten: 0,
  });
  const mib = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  const hint = "Free some space on the volume, or move the data directory to a larger one.";
  if (freeBytes < reserve) {
    const message = `${mib(freeBytes)} are free, less than the ${mib(reserve)} that pending events and the reserve need: new events are rejected.`;
    return [failure("disk", message, hint)];
  }
  if (freeBytes < 2 * reserve) {
    return [
      warning("disk", `${mib(freeBytes)} are free; new events are rejected below ${mib(reserve)}.`, hint),
    ];
  }
  return [ok("disk", `${mib(freeBytes)} are free.`)];
}

/** The clock is not earlier than timestamps already stored. */
export function checkClock(dataDir: string, now = Date.now()): Finding[] {
  const hint = "Set the clock and synchronize it, for example with chrony or systemd-timesyncd.";
  const shown = new Date(now).toISOString();
  if (now < earliestMs) return [failure("clock", `The clock shows ${shown}, which is impossible.`, hint)];
  const last = lastWrittenMs(dataDir);
  if (last > now + clockToleranceMs) {
    const message = `The clock shows ${shown}, but the journal has entries of ${new Date(last).toISOString()}.`;
    return [failure("clock", message, hint)];
  }
  return [ok("clock", `The clock shows ${shown}.`)];
}

function lastWrittenMs(dataDir: string): number {
  const dataPaths = paths(dataDir);
  const newest = (path: string, sql: string): number => {
    if (!existsSync(path)) return 0;
    try {
      const db = readonlyClient(path);
      try {
        return (db.query(sql).get() as { at: number | null }).at ?? 0;
      } finally {
        db.close();
      }
    } catch {
      // The file's own check reports that it is unreadable.
      return 0;
    }
  };
  return Math.max(
    newest(dataPaths.metadata, "SELECT max(created_at) AS at FROM activity"),
    newest(dataPaths.people, "SELECT max(last_at) / 1000 AS at FROM ingestion_warning"),
  );
}

/** The address can be listened on. Requires a stopped server. */
export async function checkPort(host: string, port: number): Promise<Finding[]> {
  const problem = await listenErrorReason(host, port);
  if (problem === undefined) return [ok("port", `${host}:${port} is free.`)];
  const message = `${host}:${port} cannot be listened on (${problem}).`;
  return [warning("port", message, "Stop the program that uses it, or choose another --host or --port.")];
}
