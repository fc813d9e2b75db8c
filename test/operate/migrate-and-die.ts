/**
 * Opens a store, as a process that a kill ends at one of the statements of its migrations.
 *
 * Usage: bun migrate-and-die.ts <metadata|people|events> <path> <statement>; exits with 0 when it was open before.
 */

import { Database } from "bun:sqlite";
import { DuckDBConnection } from "@duckdb/node-api";
import { openMetadata } from "../../src/accounts/metadata.ts";
import { openEventDatabase } from "../../src/events/database.ts";
import { openPeople } from "../../src/people/open.ts";

const [store, path, statement] = process.argv.slice(2);
let left = Number(statement);

function dieInTime(): void {
  left -= 1;
  if (left === 0) process.kill(process.pid, "SIGKILL");
}

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
if (store === "people") openPeople(path!).$client.close();
if (store === "events") {
  const settings = { memoryLimitBytes: 256 * 1024 * 1024, threads: 1, temporaryFolder: `${path}.temporary` };
  (await openEventDatabase(path!, settings)).close();
}
