/**
 * `make bench-queries`: what insights take over millions of events, before and after properties got their columns, each
 * beside the same question asked of hand-made typed columns in the same file.
 *
 * The data are made once, straight into the event store's schema, and kept in `dist/`: `EVENTS=10000000 make bench-queries`.
 * Settings are those of the executable: DuckDB's default memory, all processors but one (`THREADS=2` tries others). Prints
 * medians and ratios, and writes `dist/bench-queries.json`.
 */

import { existsSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { duckdbSql } from "../../src/events/dialect.ts";
import { type EventDatabase, openEventDatabase } from "../../src/events/duckdb/database.ts";
import { PropertyColumns } from "../../src/events/duckdb/property-columns.ts";
import { computeInsight } from "../../src/events/insights/insights.ts";
import type { JsonObject } from "../../src/lib/json.ts";

const events = Number(process.env.EVENTS ?? 3_000_000);
const rounds = Number(process.env.ROUNDS ?? 5);
const threads = Number(process.env.THREADS ?? Math.max(1, availableParallelism() - 1));
const users = Number(process.env.USERS ?? 100_000);
const folder = resolve(import.meta.dir, "../../dist");
const path = `${folder}/bench-queries-${events}.duckdb`;
const start = Date.UTC(2026, 9, 1);
const spanMs = 30 * 86_400_000;
const now = start + spanMs;
const properties = ["$browser", "plan", "city", "price"];

function open(file: string): Promise<EventDatabase> {
  const settings = {
    memoryLimitBytes: 512 * 1024 ** 2,
    threads,
    temporaryFolder: `${folder}/bench-queries.tmp`,
  };
  return openEventDatabase(file, settings);
}

/** Events as people's are (`people-like.ts`), but made by DuckDB: 900 bytes of properties, thirty of them, in order of time. */
function insertSql(from: number, to: number): string {
  const text = (...choices: string[]) => `[${choices.map((choice) => `'${choice}'`).join(", ")}]`;
  const path = `${text("", "pricing", "docs/install", "blog/a-longer-title-of-a-post", "account/settings", "straße")}[1 + i % 6]`;
  const session = `'01a1fb87-8ea9-71da-a728-' || lpad(to_hex(u), 12, '0')`;
  return `INSERT INTO events BY NAME
    WITH drawn AS (
      SELECT i, (pow(random(), 2) * ${users})::INTEGER AS u, random() AS r, random() AS kind,
        ${start}::BIGINT + (i::DOUBLE / ${events} * ${spanMs})::BIGINT AS ms FROM range(${from}, ${to}) t(i)
    )
    SELECT 1 AS project_id, false AS historical, i + 1 AS seq, ms AS uuid_time, 'full' AS mode,
      (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex((r * 4095)::INTEGER), 3, '0') || 'a' || lpad(to_hex(i * 7919), 15, '0'))::UUID AS uuid,
      CASE WHEN kind < 0.02 THEN '$identify' WHEN kind < 0.3 THEN '$pageview' WHEN kind < 0.5 THEN 'button clicked'
        WHEN kind < 0.7 THEN '$autocapture' WHEN kind < 0.85 THEN 'search used' WHEN kind < 0.95 THEN '$pageleave' ELSE 'item added' END AS event,
      'user-' || u || '@shop.example' AS distinct_id, make_timestamp(ms * 1000) AS timestamp, make_timestamp(ms * 1000 + 5000) AS received_at,
      '{"$lib":"web","$lib_version":"1.434.18","$os":"' || CASE WHEN u % 3 = 0 THEN 'Linux' ELSE 'Mac OS X' END
      || '","$os_version":"' || CASE WHEN u % 3 = 0 THEN '6.1' ELSE '10.15.7' END
      || '","$browser":"' || CASE u % 5 WHEN 0 THEN 'Firefox' WHEN 1 THEN 'Safari' ELSE 'Chrome' END || '","$browser_version":' || (140 + u % 20)
      || ',"$device_type":"' || CASE WHEN u % 4 = 0 THEN 'Mobile' ELSE 'Desktop' END || '","$current_url":"https://shop.example/' || ${path}
      || '?page=' || (i % 97) || '","$host":"shop.example","$pathname":"/' || ${path}
      || '","$screen_height":1080,"$screen_width":1920,"$viewport_height":950,"$viewport_width":' || (1280 + u % 7)
      || ',"$session_id":"' || ${session} || '","$window_id":"' || ${session} || '","$device_id":"' || ${session}
      || '","$referrer":"https://search.example/","$referring_domain":"search.example"'
      || ',"$raw_user_agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0","$insert_id":"' || to_hex(i)
      || '","$time":' || (ms / 1000.0) || ',"plan":"' || CASE WHEN u % 7 = 0 THEN 'enterprise' ELSE 'free' END || '","price":' || round(r * 100, 2)
      || ',"cart":{"items":' || (i % 5) || ',"currency":"EUR"},"city":"'
      || ${text("Köln", "São Paulo", "Kraków", "Zürich", "Reykjavík", "Málaga", "Boston", "Lyon")}[1 + (r * 8)::INTEGER % 8]
      || '","variant":"' || CASE WHEN u % 2 = 0 THEN 'control' ELSE 'test' END || '","position":' || (i % 50)
      || ',"isTrial":' || (u % 2 = 0) || ',"referrer_code":null}' AS properties
    FROM drawn`;
}

async function makeData(): Promise<void> {
  if (existsSync(path)) return;
  const unfinished = `${path}.part`;
  rmSync(unfinished, { force: true });
  const database = await open(unfinished);
  const connection = await database.connect();
  for (let from = 0; from < events; from += 500_000) {
    await connection.run(insertSql(from, Math.min(events, from + 500_000)));
    await connection.run("CHECKPOINT");
  }
  for (const statement of [
    "INSERT INTO person_distinct_id SELECT 1, distinct_id, uuid(), 1 FROM (SELECT DISTINCT distinct_id FROM events)",
    `INSERT INTO person SELECT 1, person_uuid, now()::TIMESTAMP, '{"email":"' || distinct_id || '","plan":"free"}', distinct_id
     FROM person_distinct_id`,
    `CREATE TABLE hand_made AS SELECT timestamp, event, distinct_id, json_extract_string(properties, '/$browser') AS browser FROM events`,
    "CHECKPOINT",
  ]) {
    await connection.run(statement);
  }
  database.close();
  renameSync(unfinished, path);
}

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
    // Each step's first time after the step before it; the appliance also tries the later beginnings.
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
      ...{ kind: "TrendsQuery", series: [{ event: "$pageview" }], dateRange },
      breakdownFilter: { breakdown: "$browser" },
    },
    byHand: `SELECT ${day}, browser, count(*) ${pageviews} GROUP BY ALL`,
  },
];

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}

async function measure(connection: DuckDBConnection, columns: PropertyColumns, count: number) {
  const figures: Record<string, { ours: number; byHand: number }> = {};
  for (const { name, query, byHand } of questions) {
    const request = { projectId: 1, timezone: "Europe/Berlin", now, query };
    const store = duckdbSql(connection, columns.place("e"));
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

await makeData();
const copy = `${path}.run`;
rmSync(copy, { force: true });
await Bun.write(copy, Bun.file(path));
const database = await open(copy);
const connection = await database.connect();
const columns = await PropertyColumns.open(connection);
const before = await measure(connection, columns, 1);
await columns.add(connection, properties);
const pieces: number[] = [];
while (columns.isFilling) pieces.push(await seconds(() => columns.fillPiece(connection)));
await connection.run("CHECKPOINT");
const after = await measure(connection, columns, rounds);
const fixed = (value: number) => value.toFixed(3);
console.log(
  `${events} events of ${users} users, ${threads} thread(s) of DuckDB, medians of ${rounds}, seconds`,
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
  seconds: pieces.reduce((sum, piece) => sum + piece, 0),
  "median piece": median(pieces),
  "bytes per event before": statSync(path).size / events,
};
console.log(filling);
writeFileSync(
  `${folder}/bench-queries.json`,
  JSON.stringify({ events, users, threads, before, after, filling }, null, 2),
);
database.close();
for (const file of [copy, `${copy}.wal`]) rmSync(file, { force: true });
