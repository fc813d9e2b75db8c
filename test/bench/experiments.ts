/**
 * `make bench-experiments`: results of an experiment with three metrics over 10 million events, 165,000 persons exposed,
 * on one thread, before and after its properties are materialized. Prints seconds and CPU seconds (median of `ROUNDS`).
 */

import { existsSync, renameSync, rmSync } from "node:fs";
import { RunningQueries } from "../../src/engine/running-queries.ts";
import { PropertyColumns } from "../../src/events/duckdb/property-columns.ts";
import { duckdbSql } from "../../src/events/duckdb/sql-dialect.ts";
import type { ExperimentRequest, ExperimentSums } from "../../src/events/insights/experiment.ts";
import { computeExperiment } from "../../src/events/insights/experiment-sql.ts";
import { readMetric, toMetricRequest } from "../../src/experiments/metrics.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { dayMs } from "../../src/lib/time.ts";
import { dataEnd, dataFolder, generateData, openData, queryMemoryBytes } from "./query-data.ts";

// `query-data.ts` reads it: 500,000 distinct ids.
if (process.env.USERS === undefined) throw new Error("Run make bench-experiments, which sets USERS.");
const events = Number(process.env.EVENTS ?? 10_000_000);
const rounds = Number(process.env.ROUNDS ?? 3);
const lookbackDays = 14;
const flagKey = "new-checkout";

/** The file with a tenth of exposures, by a third of the persons; four fifths of the ids have owners. */
async function generateExposures(): Promise<string> {
  const path = `${dataFolder}/bench-experiments-${events}.duckdb`;
  if (existsSync(path)) return path;
  const base = await generateData(Math.round(events * 0.9), 1);
  renameSync(base, `${path}.part`);
  const database = await openData(`${path}.part`, 1);
  const connection = await database.connect();
  const variant = "CASE WHEN hash(distinct_id || 'variant') % 2 = 0 THEN 'control' ELSE 'test' END";
  for (const statement of [
    "DROP TABLE hand_made",
    `INSERT INTO events SELECT * REPLACE ('$feature_flag_called' AS event, seq + ${events} AS seq, uuid() AS uuid,
       '{"$feature_flag":"${flagKey}","$feature_flag_response":"' || ${variant} || '",' || substr(properties, 2) AS properties)
     FROM events WHERE hash(distinct_id) % 300 < 113 AND seq % 3 = 0`,
    "DELETE FROM person_distinct_id WHERE hash(distinct_id || 'owner') % 5 = 0",
    "CHECKPOINT",
  ])
    await connection.run(statement);
  database.close();
  renameSync(`${path}.part`, path);
  return path;
}

const item = (math: string): JsonObject => ({
  kind: "EventsNode",
  event: "item added",
  math,
  ...(math === "sum" ? { math_property: "price" } : {}),
});
const sentMetrics: JsonObject[] = [
  { metric_type: "mean", source: item("sum") },
  { metric_type: "funnel", series: [{ kind: "EventsNode", event: "search used" }] },
  { metric_type: "ratio", numerator: item("sum"), denominator: item("total") },
];
const metrics = sentMetrics.map((metric) => toMetricRequest(readMetric(metric, "metrics"), lookbackDays));
const request: ExperimentRequest = {
  flagKey,
  variants: ["control", "test"],
  multiple: "exclude",
  maturedOnly: false,
  periodStarts: [],
  start: (dataEnd - 15 * dayMs) * 1_000,
  end: dataEnd * 1_000,
  metrics,
};

const path = `${await generateExposures()}.run`;
await Bun.write(path, Bun.file(path.slice(0, -".run".length)));
const database = await openData(path, 1);
const queries = new RunningQueries(database, {
  memoryLimitBytes: queryMemoryBytes,
  onStuck: (reason) => {
    throw new Error(`A query did not stop: ${reason}`);
  },
});
const own = await database.connect();
const columns = await PropertyColumns.open(own);

async function compute(): Promise<ExperimentSums> {
  const found = await queries.run(
    (connection) =>
      computeExperiment(duckdbSql(connection, columns.location("e")), {
        projectId: 1,
        timezone: "UTC",
        now: dataEnd,
        query: request as never,
      }),
    { endsAt: performance.now() + 600_000 },
  );
  return found as unknown as ExperimentSums;
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

async function measure(name: string): Promise<void> {
  const seconds: number[] = [];
  const cpu: number[] = [];
  let persons = 0;
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    const started = performance.now();
    const { exposures } = await compute();
    seconds.push((performance.now() - started) / 1_000);
    const { user, system } = process.cpuUsage(before);
    cpu.push((user + system) / 1e6);
    persons = exposures.reduce((sum, one) => sum + one.persons, 0);
  }
  console.log(
    `${name}: ${median(seconds).toFixed(2)} s, ${median(cpu).toFixed(2)} s of CPU, ${persons} persons exposed`,
  );
}

await measure("before property columns");
await columns.add(own, ["$feature_flag", "$feature_flag_response", "price"]);
while (columns.isFilling) await columns.fillChunk(own);
await own.run("CHECKPOINT");
await measure("with property columns");
own.closeSync();
database.close();
for (const file of [path, `${path}.wal`]) rmSync(file, { force: true });
