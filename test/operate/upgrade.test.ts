/**
 * Data directories of released versions, opened by this one: one that was stopped, one that was killed with events in its
 * journal. `test/fixtures/upgrades/README.md` tells how they were created.
 */

import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { migrate } from "../../src/lib/sqlite.ts";
import { acquireLock } from "../../src/lock.ts";
import { flagkeep, type Initialized, ServerProcess, temporaryFolder } from "../support/server.ts";
import { openAndDie } from "./migrate-and-die.ts";

interface Expected {
  token: string;
  personal_api_key: string;
  /** By distinct id and flag. */
  flags: Record<string, Record<string, unknown>>;
}

const fixtures = join(import.meta.dir, "../fixtures/upgrades");
const names = readdirSync(fixtures).filter((name) => name.endsWith(".tar.zst"));
const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function unpacked(name: string): { dataDir: string; expected: Expected } {
  const place = join(folder, `${name}-${crypto.randomUUID()}`);
  mkdirSync(place);
  const tar = Bun.zstdDecompressSync(readFileSync(join(fixtures, name)));
  const { exitCode, stderr } = Bun.spawnSync(["tar", "-xf", "-", "-C", place], { stdin: tar });
  if (exitCode !== 0) throw new Error(stderr.toString());
  return {
    dataDir: join(place, "data"),
    expected: JSON.parse(readFileSync(join(place, "expected.json"), "utf8")),
  };
}

async function isWhole(dataDir: string, { token, personal_api_key, flags }: Expected): Promise<void> {
  const initialized = { project: { id: 1, api_key: token }, personal_api_key } as Initialized;
  await using server = await ServerProcess.start({ directory: { dataDir, initialized } });
  const stored = await server.eventsWhenStored(322);
  expect(new Set(stored.map(({ uuid }) => uuid)).size).toBe(322);
  expect(stored.filter(({ historical }) => historical)).toHaveLength(100);
  expect(await server.query("SELECT count(*) AS n, sum(prop('amount')::INT) AS total FROM events")).toEqual([
    { n: 322, total: (319 * 320) / 2 },
  ]);
  for (const [distinct_id, answers] of Object.entries(flags)) {
    const response = await fetch(`${server.url}/flags/?v=2`, {
      method: "POST",
      body: JSON.stringify({ api_key: token, distinct_id }),
    });
    const found = (await response.json()) as {
      flags: Record<string, { enabled: boolean; variant?: string }>;
    };
    const values = Object.entries(found.flags).map(([key, { enabled, variant }]) => [
      key,
      variant ?? enabled,
    ]);
    expect([distinct_id, Object.fromEntries(values)]).toEqual([distinct_id, answers]);
  }
  const read = async (path: string) => (await server.api(`/api/projects/1/${path}`)).json();
  expect((await read("persons/?limit=100")).results).toHaveLength(20);
  expect((await read("cohorts/")).results.map(({ name }: { name: string }) => name)).toEqual(["Pros"]);
  expect((await read("dashboards/")).results.map(({ name }: { name: string }) => name)).toContain("Sales");
  expect((await read("feature_flags/")).count).toBe(2);
  await server.stop();
  const doctor = await flagkeep(["doctor", "--data-dir", dataDir, "--port", "0", "--json"]);
  expect(JSON.parse(doctor.stdout).errors).toBe(0);
}

for (const name of names) {
  describe(`a data directory of ${name.replace(".tar.zst", "")}`, () => {
    test("is migrated completely, and again at the next start", async () => {
      const { dataDir, expected } = unpacked(name);
      await isWhole(dataDir, expected);
      await isWhole(dataDir, expected);
    }, 60_000);

    const stores: [store: string, file: string][] = [
      ["metadata", "flagkeep.sqlite"],
      ["people", "people.sqlite"],
      ["events", "events.duckdb"],
    ];
    for (const [store, file] of stores) {
      test(`${file}: killed at each statement of its migration, the next start continues`, async () => {
        const { dataDir } = unpacked(name);
        for (let statement = 1; ; statement++) {
          const place = join(folder, crypto.randomUUID());
          mkdirSync(place);
          for (const found of readdirSync(dataDir).filter((one) => one.startsWith(file)))
            cpSync(join(dataDir, found), join(place, found));
          const result = await openAndDie(store, join(place, file), statement);
          // Opened by no one who dies.
          expect(await openAndDie(store, join(place, file), Number.MAX_SAFE_INTEGER)).toBe("opened");
          if (result === "opened") break;
        }
      }, 120_000);
    }
  });
}

test("beneath a server of the older version no command brings anything up to date", async () => {
  const { dataDir } = unpacked(names.find((name) => name.includes("stopped"))!);
  const versions = async () =>
    JSON.parse((await flagkeep(["migrate", "--check", "--json", "--data-dir", dataDir])).stdout);
  const before = await versions();
  expect(before[0]).toMatchObject({ store: "metadata", state: "older" });
  const server = acquireLock(join(dataDir, "lock"), dataDir);
  try {
    for (const command of ["members", "top --count 1", "warnings", "flags list", "flags create a"]) {
      const { code, stdout, stderr } = await flagkeep([...command.split(" "), "--data-dir", dataDir]);
      expect([command, code, stdout]).toEqual([command, 1, ""]);
      expect(stderr).toMatch(/^flagkeep: A server of an older version runs on .*\n$/);
    }
    expect(await versions()).toEqual(before);
  } finally {
    server.release();
  }
  expect((await flagkeep(["flags", "list", "--data-dir", dataDir])).code).toBe(0);
  expect((await versions())[0]).toMatchObject({ state: "current" });
});

test("two processes that migrate a store concurrently: each step is done by one of them", () => {
  const path = join(folder, crypto.randomUUID());
  const migrations = ["a", "b"].map((name, index) => ({
    version: index + 1,
    name,
    sql: `CREATE TABLE ${name} (x INTEGER)`,
  }));
  const one = new Database(path);
  const other = new Database(path);
  try {
    // The other one comes between this one's look at what there is and its first step.
    const { query } = one;
    let created: number[] | undefined;
    one.query = ((sql: string) => {
      const statement = query.call(one, sql);
      if (created !== undefined) return statement;
      return {
        all: () => {
          const rows = statement.all();
          created = migrate(other, "store", migrations);
          return rows;
        },
      };
    }) as typeof query;
    expect(migrate(one, "store", migrations)).toEqual([]);
    expect(created).toEqual([1, 2]);
  } finally {
    one.close();
    other.close();
  }
});

test("a downgrade is rejected in one sentence, and changes nothing", async () => {
  const { dataDir } = unpacked(names[0]!);
  for (const file of ["flagkeep.sqlite", "people.sqlite"]) {
    const copy = join(folder, crypto.randomUUID());
    cpSync(dataDir, copy, { recursive: true });
    const db = new Database(join(copy, file));
    db.run("INSERT INTO schema_migration VALUES (999, 'of the future', '', '')");
    db.close();
    const { code, stderr } = await flagkeep(["serve", "--data-dir", copy, "--port", "0"]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^flagkeep: .*version 999.*\n$/)]);
    expect(existsSync(join(copy, file))).toBe(true);
  }
});
