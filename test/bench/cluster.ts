/**
 * Measures a new node of a cluster with many persons as rows: how long until it evaluates flags, its memory, and the
 * latency of flags of persons that are not cached and that are. Client, node, PostgreSQL and ClickHouse share the machine.
 */

import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { SQL } from "bun";
import { TestCluster } from "../support/cluster.ts";
import type { ServerProcess } from "../support/server.ts";

const personCount = Number(process.env.PERSONS ?? 1_000_000);
const rounds = Number(process.env.ROUNDS ?? 5);
const requests = Number(process.env.REQUESTS ?? 2_000);
const personsPerStatement = 100_000;

interface Round {
  startSeconds: number;
  startMegabytes: number;
  /** Reading one person by a connection of its own: the least that is possible on this machine at the time. */
  queryMs: number[];
  coldMs: number[];
  cachedMs: number[];
  megabytes: number;
  anonymousMegabytes: number;
}

async function addPersons(cluster: TestCluster): Promise<void> {
  for (let from = 1; from <= personCount; from += personsPerStatement) {
    const numbers = `generate_series(${from}, ${Math.min(personCount, from + personsPerStatement - 1)}) AS n`;
    await cluster.ask(`
      INSERT INTO flagkeep.person (id, project_id, uuid, version, main_distinct_id, is_main_alias, is_identified,
        joined_count, created_at, properties, property_times)
      SELECT 1000000 + n, 1, gen_random_uuid(), 0, 'p' || n, false, true, 1, 1,
        '{"plan":"pro","n":' || n || ',"text":"' || repeat('x', 200) || '"}', '' FROM ${numbers};
      INSERT INTO flagkeep.distinct_id (project_id, id_hash, distinct_id, person_id, joined)
      SELECT 1, substr(encode(sha256(('p' || n)::bytea), 'hex'), 1, 32)::uuid, 'p' || n, 1000000 + n, 0 FROM ${numbers}`);
  }
  // Otherwise these run in the background of the measurement.
  for (const work of ["VACUUM ANALYZE flagkeep.person", "VACUUM ANALYZE flagkeep.distinct_id", "CHECKPOINT"])
    await cluster.ask(work);
}

async function evaluate(node: ServerProcess, person: number): Promise<number> {
  const startedAt = performance.now();
  const answer = await node.post("/flags/?v=2", { api_key: node.token, distinct_id: `p${person}` });
  const { flags } = (await answer.json()) as { flags: Record<string, { enabled: boolean }> };
  if (!flags.pros?.enabled) throw new Error(`The flag of person ${person} is off.`);
  return performance.now() - startedAt;
}

const random = () => 1 + Math.floor(Math.random() * personCount);

function memoryMegabytes(node: ServerProcess, name: "VmRSS" | "RssAnon"): number {
  const status = readFileSync(`/proc/${node.process.pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)![1]) / 1024;
}

async function measureQueries(cluster: TestCluster, persons: readonly number[]): Promise<number[]> {
  const sql = new SQL(cluster.postgresUrl, { max: 1 });
  const times = [];
  for (const person of persons) {
    const startedAt = performance.now();
    await sql`SELECT p.* FROM flagkeep.distinct_id d JOIN flagkeep.person p ON p.id = d.person_id
      WHERE d.project_id = 1 AND d.id_hash = substr(encode(sha256(${`p${person}`}::text::bytea), 'hex'), 1, 32)::uuid`;
    times.push(performance.now() - startedAt);
  }
  await sql.close();
  return times;
}

async function measure(cluster: TestCluster, number: number): Promise<Round> {
  const startedAt = performance.now();
  const node = await cluster.startNode(number);
  await evaluate(node, random());
  const startSeconds = (performance.now() - startedAt) / 1_000;
  const startMegabytes = memoryMegabytes(node, "VmRSS");
  // The first requests compile the code.
  for (let n = 0; n < 500; n++) await evaluate(node, random());
  const persons = Array.from({ length: requests }, random);
  const queryMs = await measureQueries(cluster, persons);
  const coldMs = [];
  const cachedMs = [];
  for (const person of persons) coldMs.push(await evaluate(node, person));
  for (const person of persons) cachedMs.push(await evaluate(node, person));
  const megabytes = memoryMegabytes(node, "VmRSS");
  const anonymousMegabytes = memoryMegabytes(node, "RssAnon");
  await cluster.kill(number);
  return { startSeconds, startMegabytes, queryMs, coldMs, cachedMs, megabytes, anonymousMegabytes };
}

const quantile = (values: readonly number[], share: number) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!;

await using cluster = await TestCluster.start(1, { args: ["--cluster-persons", "rows"] });
const isPro = { key: "plan", type: "person", value: "pro", operator: "exact" };
const filters = { groups: [{ properties: [isPro], rollout_percentage: 100 }] };
const body = { key: "pros", active: true, filters };
await cluster.nodes[0]!.api("/api/projects/1/feature_flags/", { method: "POST", body });
await addPersons(cluster);
console.log(`${personCount} persons, ${cpus().length} CPUs, load ${loadavg()[0]!.toFixed(1)}`);
const results: Round[] = [];
for (let round = 1; round <= rounds; round++) {
  const result = await measure(cluster, round);
  results.push(result);
  const { startSeconds, startMegabytes, queryMs, coldMs, cachedMs, megabytes, anonymousMegabytes } = result;
  const latencies = (values: readonly number[]) =>
    `p50 ${quantile(values, 0.5).toFixed(2)}, p99 ${quantile(values, 0.99).toFixed(2)} ms`;
  console.log(
    `round ${round}: ready after ${startSeconds.toFixed(1)} s with ${startMegabytes.toFixed(0)} MB; query ${latencies(queryMs)}; not cached ${latencies(coldMs)}; ` +
      `cached ${latencies(cachedMs)}; ${megabytes.toFixed(0)} MB (${anonymousMegabytes.toFixed(0)} MB without the executable)`,
  );
}
const median = (get: (round: Round) => number) => quantile(results.map(get), 0.5).toFixed(2);
console.log(`medians of ${rounds}:`);
console.table({
  "first flag of a new node, s": median((round) => round.startSeconds),
  "memory after the start, MB": median((round) => round.startMegabytes),
  "a query of one person, p50, ms": median((round) => quantile(round.queryMs, 0.5)),
  "a query of one person, p99, ms": median((round) => quantile(round.queryMs, 0.99)),
  "not cached, p50, ms": median((round) => quantile(round.coldMs, 0.5)),
  "not cached, p99, ms": median((round) => quantile(round.coldMs, 0.99)),
  "cached, p50, ms": median((round) => quantile(round.cachedMs, 0.5)),
  "cached, p99, ms": median((round) => quantile(round.cachedMs, 0.99)),
  "memory afterwards, MB": median((round) => round.megabytes),
  "of it without the executable, MB": median((round) => round.anonymousMegabytes),
});
