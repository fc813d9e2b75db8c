/** A corrupt backup is rejected, by the name of its part, and nothing is restored of it. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Manifest } from "../../src/backup/manifest.ts";
import { unpackBackup } from "../../src/backup/read-file.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";
import { create, type Entry, getContent, getEntries, pack, withManifest } from "./support.ts";

const folder = temporaryFolder();
let dataDir: string;
let file: string;
let entries: Entry[];

beforeAll(async () => {
  // Sealed late: the newest events are in the backup's journal, the first ones in its event store.
  const directory = await initializedDirectory();
  ({ dataDir } = directory);
  const first = await ServerProcess.start({ directory });
  await first.batch([{ event: "seen", distinct_id: "a", properties: { $set: { plan: "free" } } }]);
  await first.eventsWhenStored(1);
  expect(await first.stop()).toBe(0);
  const second = await ServerProcess.start({ directory, args: ["--journal-seal-interval", "60s"] });
  await second.batch([{ event: "seen", distinct_id: "b" }]);
  await second.batch([{ event: "old", distinct_id: "b" }], { historical_migration: true });
  file = (await create(dataDir, folder)).file;
  await second.kill();
  entries = await getEntries(file);
}, 30_000);
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(dataDir, { recursive: true });
});

const parts = [
  "manifest.json",
  "flagkeep.sqlite",
  "people.sqlite",
  "payload.key",
  "events.duckdb",
  "journal/realtime/0000000000000002.ndjson",
  "journal/historical/0000000000000001.ndjson",
];

test("all kinds of parts are in it, the manifest first", () => {
  expect(entries.map(({ name }) => name)).toEqual(parts);
});

/** Unpacks bytes in this process; returns the part that is blamed. */
async function blamed(bytes: Buffer): Promise<string | undefined> {
  const target = join(folder, "unpacked");
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target);
  const chunks = async function* () {
    yield bytes;
  };
  try {
    await unpackBackup(chunks(), target, () => undefined, { isTemporary: true });
    return undefined;
  } catch (error) {
    return (error as { part?: string }).part ?? String(error);
  }
}

describe("the file", () => {
  test("cut off anywhere", async () => {
    const bytes = readFileSync(file);
    expect(await blamed(bytes)).toBeUndefined();
    const names = [...entries.map(({ name }) => name), "end of file"];
    for (let length = 0; length < bytes.length; length += Math.ceil(bytes.length / 60)) {
      expect(names).toContain((await blamed(bytes.subarray(0, length))) ?? `whole at ${length}`);
    }
    expect(await blamed(bytes.subarray(0, bytes.length - 1))).toBe("end of file");
  });

  test("with one other bit, anywhere", async () => {
    const bytes = readFileSync(file);
    const accepted: number[] = [];
    const places = Array.from({ length: 120 }, (_, n) => Math.floor((n * (bytes.length - 1)) / 119));
    for (const place of [...Array(24).keys(), ...places]) {
      const changed = Buffer.from(bytes);
      changed[place]! ^= 1 << (place % 8);
      if ((await blamed(changed)) === undefined) accepted.push(place);
    }
    expect(accepted).toEqual([]);
  }, 30_000);
});

describe("a part with one other bit, in a file that is whole otherwise", () => {
  for (const name of parts) {
    test(`${name} is named by verify and by restore`, async () => {
      const changed = entries.map(({ name: other, data }) => {
        const copy = Buffer.from(data);
        if (other === name) copy[copy.length >> 1]! ^= 0x04;
        return { name: other, data: copy };
      });
      const corrupt = await pack(join(folder, "damaged.tar.zst"), changed);
      // Of the manifest a bit may change what it says of another part.
      const expected = name === "manifest.json" ? "corrupt in " : `corrupt in ${name}:`;
      const target = join(folder, "target");
      mkdirSync(target, { recursive: true });
      writeFileSync(join(target, "mine"), "kept");
      const before = getContent(target);
      for (const args of [
        ["verify", corrupt],
        ["restore", corrupt, "--force"],
      ]) {
        const { code, stdout, stderr } = await flagkeep(["backup", ...args, "--data-dir", target]);
        expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
        expect(stderr).toContain(expected);
      }
      expect(getContent(target)).toBe(before);
      expect(readdirSync(folder).filter((other) => other.startsWith("target."))).toEqual([]);
    });
  }
});

describe("a file that is put together wrongly", () => {
  const repacked = (name: string, change: (all: Entry[]) => Entry[]) => ({ name, change });
  for (const { name, change } of [
    repacked("a part is missing", (all) => all.filter((entry) => entry.name !== "people.sqlite")),
    repacked("the last part is missing", (all) => all.slice(0, -1)),
    repacked("a part too many", (all) => [...all, { name: "more", data: Buffer.from("x") }]),
    repacked("two parts changed places", (all) => [all[0]!, all[2]!, all[1]!, ...all.slice(3)]),
    repacked("a part that leads out of the folder", (all) =>
      all.map((entry) => (entry.name === "payload.key" ? { ...entry, name: "../payload.key" } : entry)),
    ),
  ]) {
    test(name, async () => {
      const path = await pack(join(folder, "wrong.tar.zst"), change(entries));
      const target = join(folder, "new");
      const { code, stderr } = await flagkeep(["backup", "restore", path, "--data-dir", target]);
      expect(code).toBe(1);
      expect(stderr).toContain("The backup is corrupt in");
      expect(existsSync(target)).toBe(false);
      expect(existsSync(join(folder, "payload.key"))).toBe(false);
    });
  }

  test("hashes are right, but entries of the journal are missing", async () => {
    const name = "journal/realtime/0000000000000002.ndjson";
    const manifest = JSON.parse(entries[0]!.data.toString()) as Manifest;
    manifest.parts = manifest.parts.filter((part) => part.name !== name);
    const path = await pack(join(folder, "gap.tar.zst"), [
      { name: "manifest.json", data: Buffer.from(JSON.stringify(manifest)) },
      ...entries.slice(1).filter((entry) => entry.name !== name),
    ]);
    const { code, stderr } = await flagkeep(["backup", "verify", path, "--data-dir", join(folder, "none")]);
    expect(code).toBe(1);
    expect(stderr).toContain("journal/realtime: it ends at entry 1 instead of 2");
  });

  test("valid hashes, but stores that differ from the manifest", async () => {
    const path = await withManifest(file, join(folder, "lies.tar.zst"), (manifest) => ({
      ...manifest,
      projects: manifest.projects.map((project) => ({ ...project, events: project.events + 1 })),
    }));
    const { code, stderr } = await flagkeep(["backup", "verify", path, "--data-dir", join(folder, "none")]);
    expect(code).toBe(1);
    expect(stderr).toContain("1 events instead of 2 in project 1");
  });
});
