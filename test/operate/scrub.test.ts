/** `flagkeep scrub`: everything on disk is read, corruption is named wherever it is, and the last result is shown. */

import { beforeAll, describe, expect, test } from "bun:test";
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { engineSocketName } from "../../src/engine/messages.ts";
import { lastArchived } from "../../src/journal/archive.ts";
import { acquireLock } from "../../src/lock.ts";
import type { Scrub } from "../../src/operate/scrub-schedule.ts";
import { paths } from "../../src/paths.ts";
import { RpcError } from "../../src/rpc/client.ts";
import { type RpcHandlers, RpcServer } from "../../src/rpc/server.ts";
import { entryLines, writeSegment } from "../support/segments.ts";
import { flagkeep, ServerProcess, temporaryFolder, until } from "../support/server.ts";

async function scrub(dataDir: string): Promise<{ code: number; found: Scrub; stderr: string }> {
  const { code, stdout, stderr } = await flagkeep(["scrub", "--data-dir", dataDir, "--json"]);
  return { code, stderr, found: stdout === "" ? (undefined as never) : JSON.parse(stdout) };
}

const corruptParts = (found: Scrub) =>
  found.parts.filter(({ damage: corruption }) => corruption.length > 0).map(({ part }) => part);

/** Files below a folder whose names end so; the largest first. */
function getFiles(folder: string, ending: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .sort((one, other) => statSync(other).size - statSync(one).size);
}

/** Turns a run of bytes over. */
function corrupt(path: string, at: (size: number) => number, count = 64): void {
  const bytes = readFileSync(path);
  const start = at(bytes.length);
  for (let index = start; index < start + count; index++) bytes[index]! ^= 0xff;
  writeFileSync(path, bytes);
}

/** Puts a segment into the journal that was not loaded yet, and harms it. */
function corruptSegment(dataDir: string, harm: (text: string) => string): void {
  const { archive, journal } = paths(dataDir);
  const first = lastArchived(archive).realtime + 1;
  const { path } = writeSegment(journal, "realtime", first, [entryLines(first, 2), entryLines(first + 2, 2)]);
  writeFileSync(path, harm(readFileSync(path, "utf8")));
}

let sound: string;
beforeAll(async () => {
  const server = await ServerProcess.start();
  for (let round = 0; round < 4; round++) {
    await server.batch(
      Array.from({ length: 500 }, (_, index) => ({
        event: `event ${index % 7}`,
        distinct_id: `person-${round}-${index}`,
        properties: { text: crypto.randomUUID().repeat(8), $set: { name: crypto.randomUUID() } },
      })),
    );
  }
  await server.eventsWhenStored(2_000);

  const running = await scrub(server.dataDir);
  expect([running.code, running.stderr, running.found.ok]).toEqual([0, "", true]);
  await server.stop();
  sound = join(temporaryFolder(), "data");
  cpSync(server.dataDir, sound, { recursive: true });
});

test("a sound data directory: every part was read, and status remembers it", async () => {
  const { code, found } = await scrub(sound);
  expect(code).toBe(0);
  expect(found.parts.map(({ part }) => part)).toEqual(["metadata", "people", "journal", "archive", "events"]);
  expect(found.bytes).toBe(found.parts.reduce((sum, { bytes }) => sum + bytes, 0));
  expect(found.bytes).toBeGreaterThan(1_000_000);
  const status = await flagkeep(["status", "--data-dir", sound, "--json"]);
  expect(JSON.parse(status.stdout).last_scrub).toEqual(found);
});

describe("corruption is named", () => {
  const cases: [part: Scrub["parts"][number]["part"], harm: (dataDir: string) => void][] = [
    ["metadata", (dir) => corrupt(join(dir, "flagkeep.sqlite"), () => 4_096 * 3, 4_096)],
    // A page that only continues with a long value has no structure to be checked: several in a row are not all such.
    ["people", (dir) => corrupt(join(dir, "people.sqlite"), () => 4_096 * 3, 4_096 * 12)],
    // Of the newest segment only the end may be torn off; what is before it was acknowledged.
    ["journal", (dir) => corruptSegment(dir, (text) => text.replace('"noise":"', '"noise":"x'))],
    ["journal", (dir) => corruptSegment(dir, (text) => `x${text.slice(1)}`)],
    ["archive", (dir) => corrupt(getFiles(join(dir, "journal", "archive"), ".zst")[0]!, (size) => size >> 1)],
    ["events", (dir) => corrupt(join(dir, "events.duckdb"), () => 12_288 + 100, 4_096)],
  ];
  for (const [index, [part, harm]] of cases.entries()) {
    test(`in ${part} (${index})`, async () => {
      const dataDir = join(temporaryFolder(), "data");
      cpSync(sound, dataDir, { recursive: true });
      harm(dataDir);
      const { code, found } = await scrub(dataDir);
      expect([code, found.ok, corruptParts(found)]).toEqual([1, false, [part]]);
      const reported = await flagkeep(["scrub", "--data-dir", dataDir]);
      expect([reported.code, reported.stdout]).toEqual([1, expect.stringContaining(`CORRUPT  ${part}`)]);
      const status = await flagkeep(["status", "--data-dir", dataDir]);
      expect(status.stdout).toContain(`CORRUPTION in ${part}`);
    });
  }
});

test("by schedule, and in the metrics", async () => {
  await using server = await ServerProcess.start({ args: ["--scrub-schedule", "* * * * * *"] });
  const metric = async (name: string) => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  };
  await until(async () => (await metric("flagkeep_scrub_last_timestamp_seconds")) > 0, "a scrub is done");
  expect(await metric("flagkeep_scrub_last_damaged")).toBe(0);
  // One that is under way ends with it.
  await server.stop();
});

test("an engine that does not respond at the moment is not corruption, and is awaited", async () => {
  await using server = await ServerProcess.start();
  await server.capture({ event: "before", distinct_id: "a" });
  await server.eventsWhenStored(1);
  const [pid] = await server.enginePids();
  process.kill(pid!, "SIGKILL");
  const { code, found } = await scrub(server.dataDir);
  expect([code, found.ok, corruptParts(found)]).toEqual([0, true, []]);
});

describe("an engine that has not read it is no corruption", () => {
  const busy = () => {
    throw new RpcError("query_busy", "Too many queries are queued.");
  };
  const noMemory = () => {
    throw new Error("Out of Memory Error: could not allocate block of size 256.0 KiB");
  };
  const cases: [name: string, handlers: RpcHandlers, said: string][] = [
    ["of another version", {}, "same version"],
    ["busy", { readEverything: busy }, "Too many queries"],
    ["without memory", { readEverything: noMemory }, "Out of Memory"],
  ];
  for (const [name, handlers, said] of cases) {
    test(name, async () => {
      const dataDir = join(temporaryFolder(), "data");
      cpSync(sound, dataDir, { recursive: true });
      const before = readFileSync(paths(dataDir).lastScrub, "utf8");
      const lock = acquireLock(paths(dataDir).lock, dataDir);
      const engine = new RpcServer(join(dataDir, engineSocketName));
      engine.listen(handlers);
      try {
        const { code, stdout, stderr } = await flagkeep(["scrub", "--data-dir", dataDir]);
        expect([code, stdout]).toEqual([1, ""]);
        expect(stderr).toContain(said);
        expect(readFileSync(paths(dataDir).lastScrub, "utf8")).toBe(before);
      } finally {
        await engine.stop();
        lock.release();
      }
    });
  }
});

test("an invalid schedule, and a folder without data", async () => {
  const wrong = await flagkeep(["serve", "--scrub-schedule", "on sundays", "--port", "0"]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("cron expression")]);
  const empty = await flagkeep(["scrub", "--data-dir", temporaryFolder()]);
  expect(empty.code).toBe(1);
});
