/** Which backups go: by table, and through the command. */

import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { getDestination } from "../../src/backup/destination.ts";
import { backupsToRemove, type ListedBackup, type Rules } from "../../src/backup/list.ts";
import { flagkeep, initializedDirectory, temporaryFolder } from "../support/server.ts";
import { create, json, withManifest } from "./support.ts";

const good = (createdAt: string) => ({ createdAt, isGood: true });
const none: Rules = { last: 0, daily: 0, weekly: 0 };
const now = new Date("2026-03-10T12:00:00Z");

describe("selection", () => {
  const cases: { name: string; times: string[]; rules: Partial<Rules>; expectedRemoved: string[] }[] = [
    { name: "nothing when there is nothing", times: [], rules: { last: 1 }, expectedRemoved: [] },
    {
      name: "all but the newest n",
      times: ["2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z", "2026-03-02T00:00:00Z"],
      rules: { last: 2 },
      expectedRemoved: ["2026-03-01T00:00:00Z"],
    },
    {
      name: "the newest stays, even without a rule",
      times: ["2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z"],
      rules: {},
      expectedRemoved: ["2026-03-01T00:00:00Z"],
    },
    {
      name: "of each day its newest; days without one do not count",
      times: [
        "2026-03-01T01:00:00Z",
        "2026-03-01T23:59:59Z",
        "2026-03-05T00:00:00Z",
        "2026-03-09T08:00:00Z",
        "2026-03-09T09:00:00Z",
      ],
      rules: { daily: 2 },
      expectedRemoved: ["2026-03-01T01:00:00Z", "2026-03-01T23:59:59Z", "2026-03-09T08:00:00Z"],
    },
    {
      name: "weeks begin on Monday",
      // The 1st is a Sunday, the 2nd a Monday.
      times: ["2026-02-28T00:00:00Z", "2026-03-01T23:00:00Z", "2026-03-02T01:00:00Z", "2026-03-08T01:00:00Z"],
      rules: { weekly: 2 },
      expectedRemoved: ["2026-02-28T00:00:00Z", "2026-03-02T01:00:00Z"],
    },
    {
      name: "what one rule keeps, stays",
      times: ["2026-01-10T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "2026-03-02T06:00:00Z"],
      rules: { last: 2, weekly: 3 },
      expectedRemoved: [],
    },
  ];
  for (const { name, times, rules, expectedRemoved } of cases) {
    test(name, () => {
      const removed = backupsToRemove(times.map(good), { ...none, ...rules }, now);
      expect(removed.map(({ createdAt }) => createdAt)).toEqual(expectedRemoved);
    });
  }

  test("a corrupt one is neither counted nor removed", () => {
    const corrupt = { createdAt: "2026-03-09T00:00:00Z", isGood: false };
    const old = good("2026-03-01T00:00:00Z");
    expect(backupsToRemove([old, corrupt], { ...none, last: 1 }, now)).toEqual([]);
  });

  test("backups dated in the future by a wrong clock are neither counted nor deleted", () => {
    const [ahead, newer, older] = [
      "2036-01-01T00:00:00Z",
      "2026-03-10T11:00:00Z",
      "2026-03-09T00:00:00Z",
    ].map(good);
    const getRemoved = (rules: Partial<Rules>) =>
      backupsToRemove([ahead!, newer!, older!], { ...none, ...rules }, now);
    for (const rules of [{ last: 1 }, { daily: 1 }, { weekly: 1 }])
      expect(getRemoved(rules)).toEqual([older!]);
    expect(getRemoved({ last: 2 })).toEqual([]);
  });

  test("the one that was created last stays, though a wrong clock has dated it long ago", () => {
    const last = { ...good("1970-01-01T00:00:05Z"), isPinned: true };
    const others = ["2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"].map(good);
    expect(backupsToRemove([last, ...others], { ...none, last: 1 }, now)).toEqual([others[0]!]);
  });

  test("under any rules, the newest good one and the newest n stay", () => {
    const time = fc
      .integer({ min: 1_700_000_000, max: 1_710_000_000 })
      .map((at) => new Date(at * 1000).toISOString());
    const backup = fc.record({ createdAt: time, isGood: fc.boolean() });
    const number = fc.integer({ min: 0, max: 5 });
    const rules = fc.record({ last: number, daily: number, weekly: number });
    fc.assert(
      fc.property(fc.array(backup), rules, (backups, chosen) => {
        const removed = new Set(backupsToRemove(backups, chosen, now));
        const left = backups.filter((one) => !removed.has(one));
        const goodOnes = backups.filter(({ isGood }) => isGood);
        expect(left.filter(({ isGood }) => isGood).length).toBeGreaterThanOrEqual(
          Math.min(goodOnes.length, Math.max(1, chosen.last)),
        );
        for (const one of removed) expect(one.isGood).toBe(true);
      }),
    );
  });
});

test("the command deletes, or only lists with --dry-run, and shows corrupt backups", async () => {
  const { dataDir } = await initializedDirectory();
  const folder = join(dataDir, "backups");
  const created = await create(dataDir);
  const bytes = readFileSync(created.file).length;
  const at = (name: string) => join(folder, `flagkeep-${name}.tar.zst`);
  // The times are those in the manifests; so these are the same time, under other names.
  copyFileSync(created.file, at("2026-01-01T00-00-00.000Z"));
  copyFileSync(created.file, at("2026-01-02T00-00-00.000Z"));
  truncateSync(at("2026-01-02T00-00-00.000Z"), bytes - 10);
  copyFileSync(created.file, join(folder, "mine.tar.zst"));

  const listed = await json<ListedBackup[]>("list", "--data-dir", dataDir);
  expect(listed.map(({ verified, problem }) => [verified, problem])).toEqual([
    [true, null],
    [false, "it is truncated"],
    [true, null],
  ]);
  expect(listed[0]).toMatchObject({ file: created.file, bytes, events: 0, created_at: created.created_at });
  const shown = await flagkeep(["backup", "list", "--data-dir", dataDir]);
  expect(shown.stdout).toMatch(/^CREATED +SIZE +KIND +EVENTS +VERIFIED +FILE\n/);
  expect(shown.stdout).toMatch(/ NO +\S+2026-01-02/);

  const dry = await json<{ removed: unknown[] }>(
    "prune",
    "--keep-last",
    "1",
    "--dry-run",
    "--data-dir",
    dataDir,
  );
  expect(dry.removed).toHaveLength(1);
  expect(await json<ListedBackup[]>("list", "--data-dir", dataDir)).toEqual(listed);
  await json("prune", "--keep-last", "1", "--data-dir", dataDir);
  const left = await json<ListedBackup[]>("list", "--data-dir", dataDir);
  expect(left.filter(({ verified }) => verified)).toHaveLength(1);
  expect(existsSync(at("2026-01-02T00-00-00.000Z"))).toBe(true);
  expect(existsSync(join(folder, "mine.tar.zst"))).toBe(true);

  // The newest by its date, but not the one that was created last.
  const younger = await withManifest(created.file, at("2026-01-03T00-00-00.000Z"), (manifest) => ({
    ...manifest,
    created_at: new Date(Date.parse(created.created_at) + 1).toISOString(),
  }));
  await json("prune", "--keep-last", "1", "--data-dir", dataDir);
  expect([created.file, younger].map((path) => existsSync(path))).toEqual([true, true]);

  const without = await flagkeep(["backup", "prune", "--data-dir", dataDir]);
  expect(without).toMatchObject({ code: 2, stdout: "" });
  rmSync(dataDir, { recursive: true });
}, 30_000);

test("a backup that is removed while it is read is read to its end", async () => {
  const place = temporaryFolder();
  const name = "flagkeep-2026-03-10T12-00-00.000Z.tar.zst";
  const content = crypto.getRandomValues(new Uint8Array(64 * 1024));
  const bytes = Buffer.alloc(16 * 1024 * 1024, content);
  writeFileSync(join(place, name), bytes);
  const destination = getDestination(place, { endpoint: "", region: "", credentialsFile: "" });
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await destination.open(name)).stream()) {
    if (chunks.length === 0) await destination.remove(name);
    chunks.push(chunk);
  }
  expect(await destination.list()).toEqual([]);
  expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
});
