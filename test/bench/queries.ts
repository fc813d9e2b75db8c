/**
 * `make bench-queries`: what insights take over millions of events, before and after properties got their columns, each
 * beside the same question asked of hand-made typed columns in the same file.
 *
 * The data are created once, straight into the event store's schema, and kept in `dist/`: `EVENTS=10000000 make bench-queries`.
 * Settings are those of the executable: DuckDB's default memory, all processors but one (`THREADS=2` tries others). Prints
 * medians and ratios, and writes `dist/bench-queries.json`.
 */

import { rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { DuckDBConnection } from "@duckdb/node-api";
import { computeInsight } from "../../src/events/api/compute-query.ts";
import { PropertyColumns } from "../../src/events/duckdb/property-columns.ts";
import { duckdbSql } from "../../src/events/duckdb/sql-dialect.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { dataEnd, dataFolder, generateData, openData, userCount } from "./query-data.ts";

const events = Number(process.env.EVENTS ?? 3_000_000);
const rounds = Number(process.env.ROUNDS ?? 5);
const threads = Number(process.env.THREADS ?? Math.max(1, availableParallelism() - 1));
const properties = ["$browser", "plan", "city", "price"];

const dateRange = { date_from: "-29d", date_to: null };
const steps = ["$pageview", "button clicked", "item added"];
const day = "date_trunc('day', timestamp)";
const pageviews = "FROM hand_made WHERE event = '$pageview'";

const questions: { name: string; query: JsonObject; byHand: string }[] = [
  {
    name: "trend",
    query: { kind: "TrendsQuery", series: [{ event: "$pageview" }], dateRange },
    byHand: `SELECT ${day}, count(*) ${pageviews} GROUP BY ALL`,
  },
  {
    name: "unique persons",
    query: { kind: "TrendsQuery", series: [{ event: "$pageview", math: "dau" }], dateRange },
    byHand: `SELECT ${day}, count(DISTINCT distinct_id) ${pageviews} GROUP BY ALL`,
  },
  {
    name: "funnel of three steps",
    query: { kind: "FunnelsQuery", series: steps.map((event) => ({ event })), dateRange },
    // Each step's first time after the step before it; the server also tries the later beginnings.
    byHand: `WITH found AS MATERIALIZED (
        SELECT distinct_id AS who, timestamp, event FROM hand_made WHERE event IN (${steps.map((step) => `'${step}'`).join(", ")})
      ),
      s0 AS (SELECT who, min(timestamp) AS at FROM found WHERE event = '${steps[0]}' GROUP BY who),
      s1 AS (SELECT who, s0.at AS start, min(timestamp) AS at FROM found JOIN s0 USING (who)
        WHERE event = '${steps[1]}' AND timestamp > s0.at AND timestamp <= s0.at + INTERVAL 14 DAY GROUP BY ALL),
      s2 AS (SELECT who, min(timestamp) AS at FROM found JOIN s1 USING (who)
        WHERE event = '${steps[2]}' AND timestamp > s1.at AND timestamp <= s1.start + INTERVAL 14 DAY GROUP BY ALL)
      SELECT (SELECT count(*) FROM s0), (SELECT count(*) FROM s1), (SELECT count(*) FROM s2)`,
  },
  {
    name: "trend by a property",
    query: {
      kind: "TrendsQuery",
      series: [{ event: "$pageview" }],
      dateRange,
      breakdownFilter: { breakdown: "$browser" },
    },
    byHand: `SELECT ${day}, browser, count(*) ${pageviews} GROUP BY ALL`,
  },
];

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1_000;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}

async function measure(connection: DuckDBConnection, columns: PropertyColumns, count: number) {
  const figures: Record<string, { ours: number; byHand: number }> = {};
  for (const { name, query, byHand } of questions) {
    const request = { projectId: 1, timezone: "Europe/Berlin", now: dataEnd, query };
    const store = duckdbSql(connection, columns.location("e"));
    const ours: number[] = [];
    const hand: number[] = [];
    for (let round = 0; round < count; round++) {
      ours.push(await seconds(() => computeInsight(store, request)));
      hand.push(await seconds(() => connection.runAndReadAll(byHand)));
    }
    figures[name] = { ours: median(ours), byHand: median(hand) };
  }
  return figures;
}

const path = await generateData(events, threads);
const copy = `${path}.run`;
rmSync(copy, { force: true });
await Bun.write(copy, Bun.file(path));
const database = await openData(copy, threads);
const connection = await database.connect();
const columns = await PropertyColumns.open(connection);
const before = await measure(connection, columns, 1);
await columns.add(connection, properties);
const timings: number[] = [];
while (columns.isFilling) timings.push(await seconds(() => columns.fillChunk(connection)));
await connection.run("CHECKPOINT");
const after = await measure(connection, columns, rounds);
const fixed = (value: number) => value.toFixed(3);
console.log(
  `${events} events of ${userCount} users, ${threads} thread(s) of DuckDB, medians of ${rounds}, seconds`,
);
console.table(
  questions.map(({ name }) => ({
    question: name,
    "from JSON": fixed(before[name]!.ours),
    "with columns": fixed(after[name]!.ours),
    "by hand": fixed(after[name]!.byHand),
    ratio: (after[name]!.ours / after[name]!.byHand).toFixed(2),
  })),
);
const filling = {
  columns: properties.length,
  seconds: timings.reduce((sum, timing) => sum + timing, 0),
  "median piece": median(timings),
  "bytes per event before": statSync(path).size / events,
};
console.log(filling);
writeFileSync(
  `${dataFolder}/bench-queries.json`,
  JSON.stringify({ events, users: userCount, threads, before, after, filling }, null, 2),
);
database.close();
for (const file of [copy, `${copy}.wal`]) rmSync(file, { force: true });
