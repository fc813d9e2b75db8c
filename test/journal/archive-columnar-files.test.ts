/** Files of the archive by columns: when that is done, that nothing is lost by it, and what is noticed. */

import { describe, expect, test } from "bun:test";
import { copyFileSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isColumnar, listArchive, pruneArchive, readArchived } from "../../src/journal/archive.ts";
import type { SegmentArchive } from "../../src/journal/archive-writer.ts";
import { ColumnarThread } from "../../src/journal/columnar-converter.ts";
import { writeSegment } from "../support/segments.ts";
import {
  archivedText,
  at,
  keep,
  openArchive,
  ranges,
  segments,
  useArchiveFolder,
} from "./archive-support.ts";

useArchiveFolder();

describe.each([
  ["", false],
  [", on a thread", true],
])("files are rewritten in columnar form when idle%s", (_, hasThread) => {
  const eventLines = (first: number) =>
    Array.from({ length: 10_000 }, (_, n) =>
      JSON.stringify({
        seq: first + n,
        project_id: 1,
        uuid: crypto.randomUUID(),
        event: `event-${n % 7}`,
        distinct_id: `user-${(n * 7919) % 5_000}`,
        noise: Buffer.from(crypto.randomUUID()).toString("base64"),
        properties: { price: (n * 31) % 997, city: ["Köln", "Łódź", "東京"][n % 3], page: (n * 17) % 211 },
      }),
    );
  /** Three files, each so large that the next one does not join it. */
  const threeFiles = async (archive: SegmentArchive) => {
    const all = [1, 10_001, 20_001].map((first) =>
      writeSegment(at.folder, "realtime", first, [eventLines(first)]),
    );
    const text = all.map(({ path }) => readFileSync(path, "utf8")).join("");
    for (const one of all) await keep(archive, [one]);
    return text;
  };
  const files = () => listArchive(at.archiveFolder, "realtime");
  const areColumnar = () => files().map(({ path }) => isColumnar(path));

  test("with the same text, smaller, in order of age; later segments have a file of their own", async () => {
    const { archive, seen } = openArchive({ hasThread });
    const text = await threeFiles(archive);
    const [before] = files();
    utimesSync(before!.path, 1_000, 1_000);
    const sizes = files().map(({ bytes }) => bytes);
    expect(areColumnar()).toEqual([false, false, false]);
    await archive.tidy();
    expect(areColumnar()).toEqual([true, true, true]);
    expect(files().every(({ bytes }, n) => bytes < sizes[n]!)).toBe(true);
    expect(await archivedText("realtime")).toBe(text);
    expect(statSync(files()[0]!.path).mtimeMs).toBe(1_000_000);
    // Who listed them before reads them all the same.
    expect((await readArchived(before!)).corruption).toBeUndefined();
    await keep(archive, segments("realtime", 30_001, 1));
    expect(ranges("realtime").at(-1)).toEqual([30_001, 30_010]);
    expect(areColumnar()).toEqual([true, true, true, false]);
    await archive.tidy();
    // The newest one is short: what follows joins it.
    expect(areColumnar()).toEqual([true, true, true, false]);
    expect(seen.errors).toEqual([]);
    pruneArchive(at.archiveFolder, { realtime: 20_000, historical: 0 });
    expect(ranges("realtime")).toEqual([
      [20_001, 30_000],
      [30_001, 30_010],
    ]);
  });

  test("with pauses while events arrive; without a thread only while no events wait", async () => {
    let waiting = 1;
    let loadedAt = Number.POSITIVE_INFINITY;
    const settings = { waitingBytes: () => waiting, lastLoadedAt: () => loadedAt, hasThread };
    const { archive } = openArchive(settings);
    await threeFiles(archive);
    await archive.tidy();
    expect(areColumnar()).toEqual([hasThread, false, false]);
    waiting = 0;
    if (!hasThread) await archive.tidy();
    expect(areColumnar()).toEqual([true, false, false]);
    await archive.tidy();
    expect(areColumnar()).toEqual([true, false, false]);
    loadedAt = Number.NEGATIVE_INFINITY;
    await archive.tidy();
    expect(areColumnar()).toEqual([true, true, true]);
  });

  test("a crash between the new file and the end of the old one leaves both, of which one counts", async () => {
    const { archive } = openArchive({ hasThread });
    const text = await threeFiles(archive);
    const rows = files()[0]!.path;
    copyFileSync(rows, join(at.folder, "rows"));
    await archive.tidy();
    copyFileSync(join(at.folder, "rows"), rows);
    expect(ranges("realtime")).toHaveLength(3);
    expect(await archivedText("realtime")).toBe(text);
    const again = openArchive({ hasThread }).archive;
    expect(readdirSync(join(at.archiveFolder, "realtime"))).toHaveLength(3);
    await again.tidy();
    expect(areColumnar()).toEqual([true, true, true]);
    expect(await archivedText("realtime")).toBe(text);
  });

  test("corruption is noticed as in rows; a file that cannot be read stays, and is not tried again and again", async () => {
    const { archive, seen } = openArchive({ hasThread });
    await threeFiles(archive);
    const [first] = files();
    const good = readFileSync(first!.path);
    writeFileSync(first!.path, "nothing that can be read");
    await archive.tidy();
    await archive.tidy();
    expect(areColumnar()).toEqual([false, true, true]);
    expect(seen.errors).toEqual([]);
    writeFileSync(first!.path, good);
    const second = files()[1]!;
    const columnar = readFileSync(second.path);
    const expectCorruption = async (at: number) => {
      const { corruption } = await readArchived(second);
      expect({ at, corruption }).toMatchObject({
        at,
        corruption: { code: "segment_damaged", last: 20_000 },
      });
    };
    const step = Math.floor(columnar.length / 40);
    for (let at = 0; at < columnar.length; at += step) {
      const bad = Buffer.from(columnar);
      bad[at]! ^= 0x10;
      writeFileSync(second.path, bad);
      await expectCorruption(at);
    }
    const lengths = Array.from({ length: 80 }, (_, n) => (n < 40 ? n * step : columnar.length - 80 + n));
    for (const at of lengths) {
      writeFileSync(second.path, columnar.subarray(0, at));
      await expectCorruption(at);
    }
  });

  test("a file that was cut stays in rows: the columnar form would hide the cut", async () => {
    for (const cut of [1, 4, 5, 1_000]) {
      at.archiveFolder = join(at.folder, `archive-${cut}`);
      const { archive } = openArchive({ hasThread });
      await threeFiles(archive);
      const [first] = files();
      const corrupt = readFileSync(first!.path).subarray(0, -cut);
      writeFileSync(first!.path, corrupt);
      await archive.tidy();
      expect(areColumnar()).toEqual([false, true, true]);
      expect(readFileSync(first!.path).equals(corrupt)).toBe(true);
      expect((await readArchived(first!)).corruption).toMatchObject({
        code: "segment_damaged",
        last: 10_000,
      });
    }
  });
});

test("a thread that takes too long is replaced", async () => {
  const path = join(at.folder, "text.ndjson.zst");
  writeFileSync(path, Bun.zstdCompressSync("a line\n"));
  const thread = new ColumnarThread(0);
  await expect(thread.pack(path)).rejects.toThrow("It took too long.");
  const next = new ColumnarThread();
  expect(await next.pack(path)).toBeDefined();
  expect(await next.pack(join(at.folder, "missing"))).toBeUndefined();
  next.rest();
});
