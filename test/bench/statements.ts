/**
 * `make bench-statements`: the statements and insights of `statement-list.ts` over millions of events, as the engine runs
 * them at its default limits of memory, time and result size: `EVENTS=10000000 make bench-statements`. Fails if one returns
 * no result. Prints seconds and the peak memory by purpose, and writes `dist/bench-statements.json`.
 */

import { rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { RunningQueries } from "../../src/engine/running-queries.ts";
import { computeInsight } from "../../src/events/api/compute-query.ts";
import type { EventDatabase } from "../../src/events/duckdb/database.ts";
import { PropertyColumns } from "../../src/events/duckdb/property-columns.ts";
import { duckdbSql } from "../../src/events/duckdb/sql-dialect.ts";
import { runQuery } from "../../src/events/query/run-query.ts";
import { residentBytes } from "../../src/lib/memory-budget.ts";
import { openPersons } from "../../src/persons/open.ts";
import { dataEnd, dataFolder, generateData, openData, queryMemoryBytes } from "./query-data.ts";
import { groupedByProperty, type Statement, statements } from "./statement-list.ts";

const MiB = 1024 * 1024;
const events = Number(process.env.EVENTS ?? 3_000_000);
const only = process.env.ONLY;
const threads = Number(process.env.THREADS ?? Math.max(1, availableParallelism() - 1));
/** Defaults of `query-timeout` and `query-result-limit`. */
const timeoutMs = Number(process.env.TIMEOUT ?? 30) * 1_000;
const resultBytesMax = 64 * MiB;
const typed =
  "SELECT date_trunc('day', timestamp) AS day, browser, count(*) AS n FROM hand_made GROUP BY day, browser ORDER BY day, browser";

const people = openPersons(":memory:");
// A copy: the benchmark adds a column.
const path = await generateData(events, threads);
const copy = `${path}.run`;
rmSync(copy, { force: true });
await Bun.write(copy, Bun.file(path));
const database = await openData(copy, threads);
const queries = new RunningQueries(database, {
  memoryLimitBytes: queryMemoryBytes,
  onStuck: (reason) => {
    throw new Error(`A query did not stop: ${reason}`);
  },
});
const own = await database.connect();
const columns = await PropertyColumns.open(own);

async function ask(statement: Statement): Promise<void> {
  const endsAt = performance.now() + timeoutMs;
  if ("insight" in statement) {
    const request = { projectId: 1, timezone: "Europe/Berlin", now: dataEnd, query: statement.insight };
    await queries.run((connection) => computeInsight(duckdbSql(connection, columns.location("e")), request), {
      endsAt,
    });
    return;
  }
  const { sql, isHogql } = statement;
  const hogql = isHogql ? { weekStartDay: 1 as const, timezone: "UTC", placeholders: {} } : undefined;
  await queries.run(
    (connection) =>
      runQuery(
        connection,
        { people, resultBytesMax, eventProperties: columns.location("e") },
        { projectId: 1, sql, limit: 10_000, hogql },
      ),
    { endsAt, isForeign: true },
  );
}

/** The highest memory while work runs. */
async function peak(store: EventDatabase, work: () => Promise<void>) {
  let computing = 0;
  let resident = 0;
  let isDone = false;
  const look = (async () => {
    while (!isDone) {
      computing = Math.max(computing, (await store.memory()).computing);
      resident = Math.max(resident, residentBytes());
      await Bun.sleep(50);
    }
  })();
  let failure: string | undefined;
  const started = performance.now();
  await work().catch((error) => {
    failure = (error as Error).message;
  });
  const seconds = (performance.now() - started) / 1_000;
  isDone = true;
  await look;
  return { seconds, computing: Math.round(computing / MiB), resident: Math.round(resident / MiB), failure };
}

const results = [];
for (const statement of statements) {
  if (only !== undefined && !statement.name.includes(only)) continue;
  const result = { name: statement.name, ...(await peak(database, () => ask(statement))) };
  results.push(result);
  const { name, seconds, computing, resident, failure = "" } = result;
  console.log(`${name}: ${seconds.toFixed(2)} s, ${computing} MiB, resident ${resident} MiB ${failure}`);
}
const byHand = (await peak(database, async () => void (await own.runAndReadAll(typed)))).seconds;
const fromJson = results.find(({ name }) => name === groupedByProperty.name)?.seconds;
people.$client.run(
  "INSERT INTO property_name (project_id, owner, name, type, last_seen) VALUES (1, 'event', '$browser', 'String', 0)",
);
await columns.add(own, ["$browser"]);
while (columns.isFilling) await columns.fillChunk(own);
await own.run("CHECKPOINT");
const withColumn = (await peak(database, () => ask(groupedByProperty))).seconds;
if (fromJson !== undefined)
  console.log(`${groupedByProperty.name} ÷ a typed column: ${(fromJson / byHand).toFixed(1)}`);
console.log(
  `With the property materialized: ${(withColumn / byHand).toFixed(1)} (${withColumn.toFixed(2)} s)`,
);
writeFileSync(
  `${dataFolder}/bench-statements.json`,
  JSON.stringify({ events, threads, results, byHand, withColumn }, null, 2),
);
own.closeSync();
database.close();
people.$client.close();
rmSync(`${dataFolder}/bench-queries.tmp`, { recursive: true, force: true });
for (const file of [copy, `${copy}.wal`]) rmSync(file, { force: true });
const failed = results.filter(({ failure }) => failure !== undefined);
console.log(`${results.length - failed.length} of ${results.length} statements returned a result.`);
process.exit(failed.length === 0 ? 0 : 1);
