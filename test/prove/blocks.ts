/**
 * Corrupts the stores of a stopped data directory, one block of 4 KiB after the other: `bun test/prove/blocks.ts --count 100 --from 1`.
 *
 * Of the event store `flagkeep scrub` has to name the corruption, unless nothing that is stored has changed. SQLite's stores have no
 * checksums: a changed value in a page is not noticed, and only counted here. Nothing may end in a crash or without an answer.
 */

import { Database } from "bun:sqlite";
import { cpSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { randomFrom } from "../support/seeded-random.ts";
import { flagkeep, ServerProcess, temporaryFolder } from "../support/server.ts";

const { values } = parseArgs({
  options: { count: { type: "string", default: "100" }, from: { type: "string", default: "1" } },
});
const count = Number(values.count);
const from = Number(values.from);
const random = randomFrom(from);
const blockBytes = 4_096;
const corruptBytes = 64;

const parts: Record<string, string> = {
  "events.duckdb": "events",
  "people.sqlite": "people",
  "flagkeep.sqlite": "metadata",
};

const folder = temporaryFolder();
const sound = join(folder, "sound");
await makeSound();
const blocks = Object.keys(parts).flatMap((name) =>
  Array.from({ length: Math.ceil(statSync(join(sound, name)).size / blockBytes) }, (_, index) => ({
    name,
    index,
  })),
);
const before = Object.fromEntries(
  await Promise.all(Object.keys(parts).map(async (name) => [name, await content(sound, name)] as const)),
);
const counted = { named: 0, unchanged: 0, "SQLite, not noticed": 0, failed: 0 };
for (let n = 0; n < count; n++) {
  const { name, index } = blocks[(from - 1 + n) % blocks.length]!;
  const result = await corruptOne(name, index);
  counted[result] += 1;
}
rmSync(folder, { recursive: true, force: true });
console.log(`${count} of ${blocks.length} blocks: ${JSON.stringify(counted)}`);
process.exit(counted.failed === 0 ? 0 : 1);

async function makeSound(): Promise<void> {
  await using server = await ServerProcess.start();
  for (let round = 0; round < 4; round++) {
    const items = Array.from({ length: 500 }, (_, index) => ({
      event: `event ${index % 7}`,
      distinct_id: `person-${round}-${index}`,
      properties: { text: crypto.randomUUID().repeat(8), $set: { name: crypto.randomUUID() } },
    }));
    await server.batch(items);
  }
  for (let index = 0; index < 30; index++)
    await server.api("/api/projects/1/feature_flags/", { method: "POST", body: { key: `flag-${index}` } });
  await server.eventsWhenStored(2_000);
  await server.stop();
  cpSync(server.dataDir, sound, { recursive: true });
  // What it could be rebuilt from: a corrupt event store has to be noticed, not repaired.
  rmSync(join(sound, "journal", "archive"), { recursive: true, force: true });
}

async function corruptOne(name: string, index: number): Promise<keyof typeof counted> {
  const dataDir = join(folder, "damaged");
  rmSync(dataDir, { recursive: true, force: true });
  cpSync(sound, dataDir, { recursive: true });
  const bytes = readFileSync(join(dataDir, name));
  const start = Math.min(
    index * blockBytes + Math.floor(random() * (blockBytes - corruptBytes)),
    bytes.length - corruptBytes,
  );
  for (let at = start; at < start + corruptBytes; at++) bytes[at]! ^= 0xff;
  writeFileSync(join(dataDir, name), bytes);
  const where = `${name}, block ${index}`;
  const scrubbed = await flagkeep(["scrub", "--data-dir", dataDir, "--json"]);
  if (!isOrderly(scrubbed)) return failed(where, scrubbed.stderr);
  if (scrubbed.stdout === "") return "named";
  const { parts: found } = JSON.parse(scrubbed.stdout) as { parts: { part: string; damage: string[] }[] };
  if (found.some(({ part, damage: corruption }) => part === parts[name] && corruption.length > 0))
    return "named";
  if ((await content(dataDir, name)) === before[name]) return "unchanged";
  return name.endsWith(".sqlite")
    ? "SQLite, not noticed"
    : failed(where, "other events, and nothing was said");
}

/** Everything that can be read of a store. */
async function content(dataDir: string, name: string): Promise<string> {
  if (!name.endsWith(".sqlite")) {
    const command = ["export", "events", "-", "--format", "ndjson", "--data-dir", dataDir];
    const { code, stdout } = await flagkeep(command);
    return `${code} ${stdout}`;
  }
  using db = new Database(join(dataDir, name), { readonly: true });
  try {
    const tables = db.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").values();
    return JSON.stringify(tables.map(([table]) => db.query(`SELECT * FROM "${table}"`).values()));
  } catch (error) {
    return (error as Error).message;
  }
}

/** It ended by itself, with a sentence where it failed. */
function isOrderly({ code, stderr }: { code: number; stderr: string }): boolean {
  return [0, 1, 2].includes(code) && !/^\s+at /m.test(stderr);
}

function failed(where: string, why: string): "failed" {
  console.log(`FAILED: ${where}: ${why.slice(0, 500)}`);
  return "failed";
}
