/**
 * Checks both SQLite files in a separate process: corruption is found before a request reads the page, without delaying
 * capture or flags.
 */

import { existsSync } from "node:fs";
import { basename } from "node:path";
import type { Subprocess } from "bun";
import { firstLine } from "../lib/errors.ts";
import { lowerPriority } from "../lib/operating-system.ts";
import { checkSqlite } from "../lib/sqlite.ts";
import type { Log } from "../log.ts";
import { paths } from "../paths.ts";

/** Timeout of a check; `flagkeep scrub` reads files of any size. */
const checkMsMax = 30 * 60_000;

/** A file, and the first problem found in it. */
export interface CorruptFile {
  file: string;
  complaint: string;
}

/** Reads both files completely. @returns the corrupt ones; a missing file is not corrupt */
export function corruptSqliteFiles(dataDir: string): CorruptFile[] {
  const { metadata, people } = paths(dataDir);
  return [metadata, people].flatMap((path) => {
    const complaint = existsSync(path) ? checkSqlite(path) : null;
    return complaint === null ? [] : [{ file: basename(path), complaint }];
  });
}

export interface SqliteCheckDeps {
  dataDir: string;
  /**
   * How to start this executable as the checking process; the data directory is appended. Empty: checks are disabled.
   */
  command: readonly string[];
  log: Pick<Log, "warn">;
  onChecked: (corrupt: readonly CorruptFile[]) => void;
}

/** Runs one check at a time, at low priority. */
export class SqliteCheck {
  private child: Subprocess<"ignore", "pipe", "ignore"> | undefined;
  private isStopped = false;

  constructor(private readonly deps: SqliteCheckDeps) {}

  /** Checks both files; does nothing while a check is running. Never throws. */
  async run(): Promise<void> {
    const { dataDir, command, log, onChecked } = this.deps;
    if (this.child !== undefined || this.isStopped || command.length === 0) return;
    try {
      const child = Bun.spawn([...command, dataDir], {
        stdin: "ignore",
        stdout: "pipe",
        stderr: "ignore",
        env: process.env,
        timeout: checkMsMax,
      });
      this.child = child;
      lowerPriority(child.pid);
      const output = await new Response(child.stdout).text();
      await child.exited;
      if (this.isStopped) return;
      if (child.exitCode === 0) onChecked(JSON.parse(output) as CorruptFile[]);
      else log.warn({ code: child.exitCode, signal: child.signalCode }, "failed to check the SQLite files");
    } catch (error) {
      log.warn({ error: firstLine(error) }, "failed to check the SQLite files");
    } finally {
      this.child = undefined;
    }
  }

  /** Cancels a running check. */
  async stop(): Promise<void> {
    this.isStopped = true;
    this.child?.kill("SIGTERM");
    await this.child?.exited;
  }
}
