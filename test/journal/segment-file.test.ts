/** Space that small writes allocate: it contains no entry, neither in a sealed segment nor after a crash. */

import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemDisk } from "../../src/journal/disk.ts";
import { recoverLane } from "../../src/journal/recovery.ts";
import { withoutAllocated } from "../../src/journal/segment-file.ts";
import { temporaryFolder } from "../support/server.ts";
import { entry, openJournal, toStrings } from "./support.ts";

const KiB = 1024;
let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes one after the other at the end of a file. @returns the sizes of the file after each */
async function sizesAfter(writes: readonly number[]): Promise<number[]> {
  const path = join(folder, "file");
  const file = await systemDisk.create(path);
  const sizes: number[] = [];
  let end = 0;
  for (const size of writes) {
    await file.write(Buffer.alloc(size, "x"), end);
    end += size;
    sizes.push(statSync(path).size);
  }
  await file.close();
  sizes.push(statSync(path).size);
  expect(readFileSync(path).equals(Buffer.alloc(end, "x"))).toBeTrue();
  return sizes;
}

test("a small write allocates as much as the file contains, up to 256 KiB; closing removes the rest", async () => {
  // The second write allocates 1,000 bytes, which the third one uses.
  expect(await sizesAfter([1_000, 1_000, 1_000, 10, 1])).toEqual([1_000, 3_000, 3_000, 6_010, 6_010, 3_011]);
  rmSync(join(folder, "file"));
  const large = 1_000 * KiB;
  expect(await sizesAfter([large, 1, 1])).toEqual([
    large,
    large + 1 + 256 * KiB,
    large + 1 + 256 * KiB,
    large + 2,
  ]);
});

test("large writes allocate nothing", async () => {
  const size = 64 * KiB + 1;
  expect(await sizesAfter([size, size, 2 * size])).toEqual([size, 2 * size, 4 * size, 4 * size]);
});

test("after a truncation the next write allocates from there", async () => {
  const path = join(folder, "file");
  const file = await systemDisk.create(path);
  await file.write(Buffer.alloc(100, "x"), 0);
  await file.write(Buffer.alloc(100, "x"), 100);
  await file.truncate(100);
  expect(statSync(path).size).toBe(100);
  await file.write(Buffer.alloc(50, "y"), 100);
  expect(statSync(path).size).toBe(250);
  await file.close();
  expect(readFileSync(path, "latin1")).toBe("x".repeat(100) + "y".repeat(50));
});

test("a killed process leaves allocated space: the recovery removes it and quarantines nothing", async () => {
  const { journal } = await openJournal(folder);
  for (let seq = 1; seq <= 5; seq++) await journal.append("realtime", [entry(`text ${seq}`)]);
  const lane = join(folder, "realtime");
  const [name] = readdirSync(lane);
  const crashed = temporaryFolder();
  mkdirSync(join(crashed, "realtime"));
  const copy = join(crashed, "realtime", name!);
  const bytes = readFileSync(join(lane, name!));
  appendFileSync(copy, bytes);
  const entries = withoutAllocated(bytes);
  expect(bytes.length).toBeGreaterThan(entries.length);

  const { segments, quarantined, nextSeq } = recoverLane(
    join(crashed, "realtime"),
    "realtime",
    join(crashed, "quarantine"),
    0,
  );
  expect({ segments, quarantined, nextSeq }).toEqual({
    segments: [{ lane: "realtime", first: 1, last: 5, path: copy, bytes: entries.length }],
    quarantined: [],
    nextSeq: 6,
  });
  expect(readFileSync(copy).equals(entries)).toBeTrue();
  expect((await toStrings(segments)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
  await journal.close();
});

test("a torn write into allocated space is quarantined without the zeros after it", async () => {
  const { journal } = await openJournal(folder);
  for (let seq = 1; seq <= 3; seq++) await journal.append("realtime", [entry(`text ${seq}`)]);
  await journal.close();
  const lane = join(folder, "realtime");
  const [name] = readdirSync(lane);
  appendFileSync(join(lane, name!), '{"seq":4,"te');
  appendFileSync(join(lane, name!), Buffer.alloc(10_000));
  const { segments, quarantined } = recoverLane(lane, "realtime", join(folder, "quarantine"), 0);
  expect(segments).toMatchObject([{ first: 1, last: 3 }]);
  expect(quarantined).toMatchObject([{ bytes: 12 }]);
  expect(readFileSync(quarantined[0]!.path, "latin1")).toBe('{"seq":4,"te');
});
