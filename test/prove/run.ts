/**
 * Runs the endurance tests for hours: `make prove [PROVE=kill SHARE=0.1]`. It continues where it was stopped, and can be stopped at any
 * time.
 *
 * Each proof is run in portions; what is done is kept in `dist/prove.json` and told in the table of `docs/reliability.md`.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");
const resultFile = join(root, "dist/prove.json");
const page = join(root, "docs/reliability.md");
/** So much of each proof is run. */
const share = Number(process.env.SHARE ?? 1);
const only = process.env.PROVE;

interface Proof {
  name: string;
  /** What is counted. */
  unit: string;
  /** How many are wanted, and in one portion. */
  wanted: number;
  portion: number;
  /** @param done how many were run before; another portion has to be another one. */
  command: (portion: number, done: number) => { args: string[]; env?: Record<string, string> };
}

const tests = (...args: string[]) => ["test", "--timeout", "3600000", ...args];

const proofs: Proof[] = [
  {
    name: "kill",
    unit: "kills of the server and its engine under load",
    wanted: 1_000,
    portion: 50,
    command: (portion, done) => ({
      args: ["test/kill-test/run.ts", "--rounds", String(portion), "--seed", String(done + 1)],
    }),
  },
  {
    name: "crash",
    unit: "kills under mixed load with identity and history",
    wanted: 1_000,
    portion: 50,
    command: (portion, done) => ({
      args: tests("test/crash/kill.test.ts"),
      env: { FLAGKEEP_TEST_CRASH_ROUNDS: String(portion), FLAGKEEP_TEST_SEED: String(done + 1) },
    }),
  },
  {
    name: "cluster",
    unit: "faults of a cluster with partitioned loading under load",
    wanted: 1_000,
    portion: 16,
    command: (portion, done) => ({
      args: tests("test/cluster/partition-faults.test.ts"),
      env: { FLAGKEEP_TEST_PARTITION_ROUNDS: String(portion), FLAGKEEP_TEST_SEED: String(done + 1) },
    }),
  },
  {
    name: "power",
    unit: "power losses on a disk in memory, writes torn and out of order",
    wanted: 10_000,
    portion: 1_000,
    command: (portion, done) => ({
      args: tests("test/journal/failing-disk.test.ts", "-t", "power loss"),
      env: { FLAGKEEP_TEST_POWER_LOSSES: String(portion), FLAGKEEP_TEST_POWER_FROM: String(done + 1) },
    }),
  },
  {
    name: "bodies",
    unit: "wrong bodies to every route of the executable that takes one",
    wanted: 1_000_000,
    portion: 20_000,
    command: (portion, done) => ({
      args: ["test/prove/bodies.ts", "--count", String(portion), "--seed", String(done + 1)],
    }),
  },
  {
    name: "random",
    unit: "rounds of all property-based tests with new cases, ten times as many",
    wanted: 20,
    portion: 1,
    command: (_, done) => ({
      args: tests("test/ingestion", "test/persons", "test/flags", "test/events", "test/http", "test/import"),
      env: { FLAGKEEP_TEST_SEED: String(done + 1), FLAGKEEP_TEST_RUNS: "10" },
    }),
  },
  {
    name: "damage",
    unit: "rounds of corruption to every block of each store and every byte of the journal's end",
    wanted: 5,
    portion: 1,
    command: () => ({ args: tests("test/journal", "test/backup/recovery", "test/operate/scrub.test.ts") }),
  },
  {
    name: "blocks",
    unit: "blocks of 4 KiB of the three stores, each corrupted once",
    wanted: 2_000,
    portion: 200,
    command: (portion, done) => ({
      args: ["test/prove/blocks.ts", "--count", String(portion), "--from", String(done + 1)],
    }),
  },
  {
    name: "disk",
    unit: "rounds of volumes of 133 MB, 256 MB, 1 GB and 20 GB that fill up and are freed",
    wanted: 10,
    portion: 1,
    command: () => ({
      args: tests("test/crash/disk-full.test.ts"),
      env: { FLAGKEEP_TEST_VOLUMES: "133m,256m,1g,20g" },
    }),
  },
];

/** By name. */
type Results = Record<string, { done: number; failed: number; at: string }>;

const results: Results = existsSync(resultFile) ? JSON.parse(readFileSync(resultFile, "utf8")) : {};
for (const proof of proofs) {
  if (only !== undefined && proof.name !== only) continue;
  await run(proof);
}
process.exit(Object.values(results).some(({ failed }) => failed > 0) ? 1 : 0);

async function run({ name, unit, wanted, portion, command }: Proof): Promise<void> {
  const goal = Math.ceil(wanted * share);
  results[name] ??= { done: 0, failed: 0, at: "" };
  const result = results[name];
  while (result.done < goal) {
    const count = Math.min(portion, goal - result.done);
    const { args, env } = command(count, result.done);
    const child = Bun.spawn([process.execPath, ...args], {
      cwd: root,
      stdout: "pipe",
      stderr: "pipe",
      env: { ...process.env, ...env },
    });
    const [output, errors, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) {
      result.failed += 1;
      const path = join(root, `dist/prove-${name}-${result.done + 1}.log`);
      writeFileSync(path, output + errors);
      console.log(`${name}: FAILED, see ${path}`);
    }
    result.done += count;
    result.at = new Date().toISOString();
    writeFileSync(resultFile, `${JSON.stringify(results, null, 1)}\n`);
    writePage();
    console.log(`${name}: ${result.done} of ${goal} ${unit}, ${result.failed} portions failed`);
  }
}

/** The table between two marks of the page. */
function writePage(): void {
  const text = readFileSync(page, "utf8");
  const rows = proofs.flatMap(({ name, unit }) => {
    const result = results[name];
    // What was run on another machine stays.
    const known = text.split("\n").filter((line) => line.startsWith(`| ${unit} |`));
    return result === undefined || result.done === 0
      ? known
      : [`| ${unit} | ${result.done.toLocaleString("en")} | ${result.failed} | ${result.at.slice(0, 10)} |`];
  });
  const table = ["| test | count | failed portions | last run |", "|---|---|---|---|", ...rows].join("\n");
  const marked = /(<!-- prove -->\n)[\s\S]*?(<!-- \/prove -->)/;
  writeFileSync(
    page,
    text.replace(marked, (_, begin, end) => `${begin}\n${table}\n\n${end}`),
  );
}
