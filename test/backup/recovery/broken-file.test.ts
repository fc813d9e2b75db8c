/** The event store's file or its log is broken: the next start makes it again by itself, from the archive alone. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";
import { withEventStore } from "./event-file.ts";
import {
  archiveFiles,
  type Filled,
  filledDirectory,
  getAnswers,
  messages,
  overwrite,
  quarantined,
  remove,
  restarted,
  stop,
  toCopy,
} from "./support.ts";

let filled: Filled;
beforeAll(async () => {
  filled = await filledDirectory();
  expect(archiveFiles(filled.dataDir, "realtime")).toHaveLength(1);
  expect(archiveFiles(filled.dataDir, "historical")).toHaveLength(1);
}, 60_000);
afterAll(() => remove(filled));

const garbage = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));

const cases: {
  name: string;
  harm: (events: string) => void;
  /** What is in the quarantine afterwards. */
  putAside: RegExp[];
}[] = [
  {
    name: "the header is zeros",
    harm: (events) => overwrite(events, 0, new Uint8Array(12_288)),
    putAside: [/^events\.duckdb\.\d+\.broken$/, /^events\.duckdb\.wal\.\d+\.broken$/],
  },
  {
    name: "the file is cut",
    harm: (events) => truncateSync(events, 20_000),
    putAside: [/^events\.duckdb\.\d+\.broken$/, /^events\.duckdb\.wal\.\d+\.broken$/],
  },
  {
    name: "the file is gone, its log is there",
    harm: (events) => rmSync(events),
    putAside: [/^events\.duckdb\.wal\.\d+\.broken$/],
  },
  { name: "the log is gone", harm: (events) => rmSync(`${events}.wal`), putAside: [] },
  {
    name: "the log is garbage",
    harm: (events) => writeFileSync(`${events}.wal`, garbage(5_000)),
    putAside: [],
  },
  {
    name: "a part of the log is garbage",
    harm: (events) => overwrite(`${events}.wal`, 2_000, garbage(64)),
    putAside: [/^events\.duckdb\.wal\.\d+\.broken$/],
  },
];

describe("the next start rebuilds the event store, with equal results", () => {
  for (const { name, harm, putAside } of cases) {
    test(name, async () => {
      const copy = toCopy(filled);
      harm(join(copy.dataDir, "events.duckdb"));
      await using server = await restarted(copy);
      await server.eventsWhenStored(copy.answers.events.length);
      expect(await getAnswers(server)).toEqual(copy.answers);
      const names = quarantined(copy.dataDir);
      expect(names).toEqual(putAside.map((pattern) => expect.stringMatching(pattern)) as never);
      expect(await getUsage(server)).toMatchObject({
        identified: 602,
        historical: 400,
        duplicates: 2,
        dropped: 2,
      });
      remove(copy);
    }, 60_000);
  }
});

test("meanwhile events are captured and flags evaluated, and a kill only delays it", async () => {
  const copy = toCopy(filled);
  const { dataDir } = copy;
  overwrite(join(dataDir, "events.duckdb"), 0, new Uint8Array(4_096));
  for (let kill = 0; kill < 2; kill++) {
    await using server = await ServerProcess.start({ directory: copy.directory });
    const reply = await server.capture({ event: "meanwhile", distinct_id: "user-0-1" });
    expect(reply.status).toBe(200);
    expect((await server.post("/flags/?v=2", { token: server.token, distinct_id: "a" })).status).toBe(200);
    const [pid] = await until(async () => {
      const pids = await server.enginePids();
      return pids.length === 1 && pids;
    }, "the engine runs");
    process.kill(pid!, "SIGKILL");
    await server.kill();
    await until(() => !existsSync(`/proc/${pid}`), "the engine is gone");
  }
  await using server = await restarted(copy);
  const events = await server.eventsWhenStored(copy.answers.events.length + 2);
  expect(new Set(events.map(({ uuid }) => uuid)).size).toBe(events.length);
  // It continues as ever, and all is well at the start after it.
  const names = quarantined(dataDir);
  await stop(server);
  await using again = await restarted(copy);
  expect(await again.events()).toHaveLength(events.length);
  expect(quarantined(dataDir)).toEqual(names);
  remove(copy);
}, 60_000);

test("a corrupt part that is noticed only when it is read is repaired, too", async () => {
  const copy = toCopy(filled);
  const first = await restarted(copy);
  await first.eventsWhenStored(copy.answers.events.length);
  await stop(first);
  const events = join(copy.dataDir, "events.duckdb");
  // Behind the three headers: blocks of the tables.
  overwrite(events, 12_288 + 100, garbage(100_000));
  await using server = await ServerProcess.start({ directory: copy.directory });
  await until(
    async () => {
      const found = await server.api("/api/projects/1/events/?limit=10000&order=seq");
      return (
        found.status === 200 && messages(server).some((msg) => msg.includes("rebuilding the event store"))
      );
    },
    "rebuilding the event store",
    30_000,
  );
  await server.eventsWhenStored(copy.answers.events.length);
  expect(await getAnswers(server)).toEqual(copy.answers);
  expect(readdirSync(copy.dataDir)).not.toContain("events.duckdb.damaged");
  remove(copy);
}, 60_000);

test("a file of a newer DuckDB is not touched, and the versions are named", async () => {
  const copy = toCopy(filled);
  const events = join(copy.dataDir, "events.duckdb");
  rmSync(`${events}.wal`);
  // The version, behind the sum of its header and the name of the format.
  const header = readFileSync(events).subarray(0, 4_096);
  header.writeBigUInt64LE(99n, 12);
  header.writeBigUInt64LE(getSum(header.subarray(8)), 0);
  overwrite(events, 0, header);
  const result = await flagkeep(["serve", "--data-dir", copy.dataDir, "--port", "0", "--log-format", "json"]);
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(/file format of the event store has .*version 99, .* up to \d+/);
  expect(quarantined(copy.dataDir)).toEqual([]);
  remove(copy);
}, 30_000);

test("a file of a newer schema is not touched, and the versions are named", async () => {
  const copy = toCopy(filled);
  const first = await restarted(copy);
  await stop(first);

  await withEventStore(copy.dataDir, (run) => run("INSERT INTO schema_migration VALUES (99, 'future')"));
  const result = await flagkeep(["serve", "--data-dir", copy.dataDir, "--port", "0", "--log-format", "json"]);
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(/event store has schema version 99, .* up to \d+/);
  expect(quarantined(copy.dataDir)).toEqual([]);
  remove(copy);
}, 30_000);

/** The sum that DuckDB keeps of a block whose length is a multiple of eight. */
function getSum(block: Buffer): bigint {
  let sum = 5381n;
  for (let at = 0; at < block.length; at += 8) {
    sum ^= BigInt.asUintN(64, block.readBigUInt64LE(at) * 0xbf58476d1ce4e5b9n);
  }
  return sum;
}

async function getUsage(server: ServerProcess): Promise<Record<string, number>> {
  const response = await server.api("/api/projects/1/usage/");
  return ((await response.json()) as { totals: Record<string, number> }).totals;
}
