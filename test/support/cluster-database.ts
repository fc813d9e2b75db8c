/** The PostgreSQL of a test file, and databases of clusters on it. */

import { afterAll, beforeAll } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { hasPostgres, startPostgres, type TestPostgres } from "./postgres.ts";
import { until } from "./server.ts";

export let server: TestPostgres;
let databases = 0;

/** Starts `server` for the tests of a file, if PostgreSQL is installed. */
export function usePostgres(): void {
  if (!hasPostgres) return;
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(async () => await server[Symbol.asyncDispose]());
}

export const openPostgres = (url: string, connections = 4) =>
  new Postgres(parsePostgresUrl(url)!, { connections, name: "test" });

/** Creates the database of a new cluster. */
export async function createDatabase(
  on = server,
): Promise<{ postgres: Postgres; url: string; database: string }> {
  databases += 1;
  const database = `cluster_${databases}`;
  const url = await on.create(database);
  const postgres = openPostgres(url);
  await migratePostgres(postgres);
  return { postgres, url, database };
}

/** Waits until a connection to a database of `server` waits for a lock. */
export async function untilLockAwaited(database: string): Promise<void> {
  await until(async () => {
    const waiting = await server.run(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '${database}'`,
    );
    return waiting.length > 0;
  }, "a connection waits for a lock");
}
