/**
 * How fast flags are answered: 100 active flags, stored persons, 2,000 requests a second, alone and while
 * 10,000 events a second come in. `bun test/bench/flags.ts`; figures, not tests.
 */

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { initialisedDirectory, TestAppliance, until } from "../support/appliance.ts";
import { benchBatch, withFreshUuids } from "./events.ts";
import { type LoadResult, postBytes, runLoad } from "./load.ts";

const seconds = Number(process.env.FLAGKEEP_BENCH_SECONDS ?? 10);
const flagCount = 100;
const personCount = 5_000;
const requestsPerSecond = 2_000;
const eventsPerSecond = 10_000;
const eventsPerBatch = 100;

// The events come from a process of their own, so that making them does not delay the requests that are measured.
const [role, url, token] = process.argv.slice(2);
if (role === "ingest") await ingest(url!, token!);
else await main();

async function main(): Promise<void> {
  await using appliance = await TestAppliance.start({ directory: await initialisedDirectory() });
  await createFlags(appliance);
  await createPersons(appliance);
  const next = flagRequests(appliance);
  const load = { url: appliance.url, connections: 64, next };
  await runLoad({ ...load, seconds: 2, requestsPerSecond });

  console.log(
    `${availableParallelism()} cores; ${flagCount} flags, ${personCount} persons, ${requestsPerSecond} requests/s for ${seconds} s, clients on the same machine\n`,
  );
  const rows = [
    [
      "scenario",
      "requests/s",
      "p50 ms",
      "p99 ms",
      "max ms",
      "failed",
      "events/s",
      "front µs/request",
      "front MB",
    ],
  ];
  const measured = async (
    scenario: string,
    run: () => Promise<LoadResult>,
    events?: () => Promise<number>,
  ) => {
    const before = processorMicros(appliance.process.pid);
    const result = await run();
    const micros = processorMicros(appliance.process.pid) - before;
    rows.push(rowOf(scenario, result, (await events?.()) ?? 0, micros, appliance));
  };
  await measured("alone", () => runLoad({ ...load, seconds, requestsPerSecond }));
  const ingestion = Bun.spawn(
    [process.execPath, import.meta.path, "ingest", appliance.url, appliance.token],
    { stdout: "pipe", stderr: "inherit" },
  );
  await Bun.sleep(1_000);
  await measured(
    "while events come in",
    () => runLoad({ ...load, seconds, requestsPerSecond }),
    async () => (JSON.parse(await new Response(ingestion.stdout).text()) as { events: number }).events,
  );
  await measured("as fast as possible", () =>
    runLoad({ url: appliance.url, connections: 16, next, seconds: seconds / 2 }),
  );
  printTable(rows);
}

/** Sends batches at a fixed rate a little longer than the measurement takes. */
async function ingest(to: string, key: string): Promise<void> {
  const batches = Array.from({ length: 8 }, (_, number) =>
    withFreshUuids(postBytes(to, "/batch/", benchBatch(key, eventsPerBatch, number * eventsPerBatch))),
  );
  let count = 0;
  const result = await runLoad({
    url: to,
    connections: 8,
    seconds: seconds + 1,
    requestsPerSecond: eventsPerSecond / eventsPerBatch,
    next: () => batches[count++ % batches.length]!(),
  });
  const events = ((result.requests - result.failures) * eventsPerBatch) / result.seconds;
  console.log(JSON.stringify({ events: Math.round(events) }));
}

/** Every kind of flag that people have: shares, properties, variants, payloads, versions, several conditions. */
async function createFlags(appliance: TestAppliance): Promise<void> {
  const property = (key: string, operator: string, value: unknown) => ({
    type: "person",
    key,
    operator,
    value,
  });
  for (let i = 0; i < flagCount; i++) {
    const conditions = [
      { properties: [], rollout_percentage: i },
      { properties: [property("plan", "exact", ["pro", "enterprise"])], rollout_percentage: 100 },
      {
        properties: [property("email", "icontains", `@company${i % 10}.`), property("logins", "gt", "5")],
        rollout_percentage: 50,
      },
      { properties: [property("$app_version", "semver_gte", `1.${i % 7}.0`)], rollout_percentage: 30 },
    ];
    const variants = ["control", "one", "two", "three"].map((key) => ({ key, rollout_percentage: 25 }));
    const filters = {
      groups: [conditions[i % 4]!, conditions[(i + 1) % 4]!],
      ...(i % 3 === 0 ? { multivariate: { variants }, payloads: { one: '{"colour":"red","size":12}' } } : {}),
    };
    const response = await appliance.api("/api/projects/1/feature_flags/", {
      method: "POST",
      body: { key: `flag-${i}`, name: `Flag number ${i}`, filters, _should_create_usage_dashboard: false },
    });
    if (response.status !== 201) throw new Error(await response.text());
  }
}

async function createPersons(appliance: TestAppliance): Promise<void> {
  for (let from = 0; from < personCount; from += 500) {
    const batch = Array.from({ length: 500 }, (_, index) => {
      const number = from + index;
      const $set = {
        plan: ["free", "pro", "trial"][number % 3],
        email: `user${number}@company${number % 20}.example.com`,
        logins: number % 12,
        $app_version: `1.${number % 9}.${number % 4}`,
        country: "DE",
        language: "de-DE",
        company_size: number % 500,
        referrer: "https://www.example.com/some/page/somewhere",
      };
      return { event: "$set", distinct_id: `user-${number}`, properties: { $set } };
    });
    const response = await appliance.batch(batch);
    if (response.status !== 200) throw new Error(await response.text());
  }
  await until(async () => {
    const answer = await appliance.api(`/api/projects/1/persons/?distinct_id=user-${personCount - 1}`);
    return ((await answer.json()) as { results: unknown[] }).results.length === 1;
  }, "the persons are stored");
}

/** Requests as a server library sends them, each for another person. */
function flagRequests(appliance: TestAppliance): () => Uint8Array {
  const requests = Array.from({ length: personCount }, (_, number) => {
    const body = {
      token: appliance.token,
      distinct_id: `user-${number}`,
      groups: {},
      person_properties: { distinct_id: `user-${number}` },
      group_properties: {},
      geoip_disable: true,
    };
    return postBytes(appliance.url, "/flags/?v=2", Buffer.from(JSON.stringify(body)), {
      "User-Agent": "posthog-node/5.70.0",
    });
  });
  let count = 0;
  // A step that shares no factor with the number of persons, so that neighbours are not asked for in turn.
  return () => requests[(count++ * 7_919) % requests.length]!;
}

/** Processor time that a process has used, in microseconds. */
function processorMicros(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

function rowOf(
  scenario: string,
  result: LoadResult,
  events: number,
  micros: number,
  appliance: TestAppliance,
): string[] {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${appliance.process.pid}/status`, "utf8"))?.[1];
  return [
    scenario,
    String(Math.round(result.requests / result.seconds)),
    result.p50.toFixed(2),
    result.p99.toFixed(2),
    result.max.toFixed(2),
    String(result.failures),
    String(events),
    String(Math.round(micros / result.requests)),
    String(Math.round(Number(kilobytes) / 1_024)),
  ];
}

function printTable(table: string[][]): void {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join("  "));
}
