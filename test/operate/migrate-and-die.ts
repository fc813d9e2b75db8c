/**
 * Opens a store, as a process that a kill ends at one of the statements of its migrations.
 *
 * Usage: bun migrate-and-die.ts <metadata|people|events> <path> <statement>; exits with 0 when it was open before.
 */

import { Database } from "bun:sqlite";
import { DuckDBConnection } from "@duckdb/node-api";
import { openMetadata } from "../../src/accounts/metadata.ts";
import { openEventDatabase } from "../../src/events/duckdb/database.ts";
import { openPersons } from "../../src/persons/open.ts";

/** Opens a store in a process that dies at a statement. */
export async function openAndDie(
  store: string,
  path: string,
  statement: number,
): Promise<"killed" | "opened"> {
  const child = Bun.spawn([process.execPath, import.meta.path, store, path, String(statement)], {
    stderr: "pipe",
  });
  const [code, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (child.signalCode === "SIGKILL") return "killed";
  if (code !== 0) throw new Error(stderr);
  return "opened";
}

let left = Number.POSITIVE_INFINITY;

function dieInTime(): void {
  left -= 1;
  if (left === 0) process.kill(process.pid, "SIGKILL");
}

if (import.meta.main) {
  const [store, path, statement] = process.argv.slice(2);
  left = Number(statement);
  const runSqlite = Database.prototype.run;
  Database.prototype.run = function (this: Database, ...args: Parameters<typeof runSqlite>) {
    const result = runSqlite.apply(this, args);
    dieInTime();
    return result;
  } as typeof runSqlite;
  const runDuckDb = DuckDBConnection.prototype.run;
  DuckDBConnection.prototype.run = async function (
    this: DuckDBConnection,
    ...args: Parameters<typeof runDuckDb>
  ) {
    const result = await runDuckDb.apply(this, args);
    dieInTime();
    return result;
  } as typeof runDuckDb;

  if (store === "metadata") openMetadata(path!).close();
  if (store === "people") openPersons(path!).$client.close();
  if (store === "events") {
    const settings = {
      memoryLimitBytes: 256 * 1024 * 1024,
      threads: 1,
      temporaryFolder: `${path}.temporary`,
    };
    (await openEventDatabase(path!, settings)).close();
  }
}
