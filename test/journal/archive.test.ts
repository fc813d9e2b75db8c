/** Applied segments are kept, compressed, until a backup covers them, and no crash or full disk breaks that. */

import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import {
  discardedRanges,
  listArchive,
  pruneArchive,
  readArchived,
  recordDiscarded,
} from "../../src/journal/archive.ts";
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

describe("every applied segment is kept until it is released", () => {
  test("both lanes, in order, as they were; the journal's files go", async () => {
    const { archive, seen } = openArchive();
    const realtime = segments("realtime", 1, 20);
    const historical = segments("historical", 1, 3);
    const before = realtime.map(({ path }) => readFileSync(path, "utf8")).join("");
    const historicalBefore = historical.map(({ path }) => readFileSync(path, "utf8")).join("");
    await keep(archive, realtime.slice(0, 7));
    await keep(archive, [...historical, ...realtime.slice(7)]);
    expect(await archivedText("realtime")).toBe(before);
    expect(await archivedText("historical")).toBe(historicalBefore);
    expect(realtime.filter(({ path }) => existsSync(path))).toEqual([]);
    expect(seen).toEqual({
      released: [
        ["realtime", 70],
        ["historical", 30],
        ["realtime", 200],
      ],
      warned: [],
      errors: [],
    });
    // Few small files: what follows a small one joins it.
    expect(ranges("realtime")).toEqual([[1, 200]]);
  });

  test("a segment whose last numbers belong to failed entries is complete and not quarantined", async () => {
    const { archive, seen } = openArchive();
    const [segment] = segments("realtime", 1, 1);
    const before = readFileSync(segment!.path, "utf8");
    await keep(archive, [{ ...segment!, last: 12 }]);
    expect(await archivedText("realtime")).toBe(before);
    expect(ranges("realtime")).toEqual([[1, 12]]);
    expect(existsSync(join(at.folder, "quarantine"))).toBeFalse();
    expect(seen.errors).toEqual([]);
  });

  test("a large file is not written again", async () => {
    const { archive } = openArchive();
    await keep(archive, segments("realtime", 1, 1, 100, 8_000));
    await keep(archive, segments("realtime", 101, 1));
    await keep(archive, segments("realtime", 111, 1));
    expect(ranges("realtime")).toEqual([
      [1, 100],
      [101, 120],
    ]);
  });

  test("a release deletes what is covered, and nothing else", async () => {
    const { archive } = openArchive();
    for (let n = 0; n < 3; n++) await keep(archive, segments("realtime", 1 + n * 100, 1, 100, 8_000));
    await keep(archive, segments("historical", 1, 1));
    pruneArchive(at.archiveFolder, { realtime: 199, historical: 0 });
    expect(ranges("realtime")).toEqual([
      [101, 200],
      [201, 300],
    ]);
    pruneArchive(at.archiveFolder, { realtime: 200, historical: 10 });
    expect(ranges("realtime")).toEqual([[201, 300]]);
    expect(ranges("historical")).toEqual([]);
    // It continues behind a release of everything.
    pruneArchive(at.archiveFolder, { realtime: 300, historical: 10 });
    await keep(archive, segments("realtime", 301, 1));
    expect(ranges("realtime")).toEqual([[301, 310]]);
  });
});

describe("a crash at any moment", () => {
  test("before the name is given: the unfinished file is removed, the segment is archived again", async () => {
    const [segment] = segments("realtime", 1, 1);
    openArchive();
    writeFileSync(
      join(at.archiveFolder, "realtime", "0000000000000001-0000000000000010.ndjson.zst.tmp"),
      "ab",
    );
    const { archive } = openArchive();
    expect(readdirSync(join(at.archiveFolder, "realtime"))).toEqual([]);
    await keep(archive, [segment!]);
    expect(ranges("realtime")).toEqual([[1, 10]]);
  });

  test("between the archive's name and the end of the segment's: it is in the archive once", async () => {
    const all = segments("realtime", 1, 2);
    const text = all.map(({ path }) => readFileSync(path, "utf8")).join("");
    for (const { path } of all) copyFileSync(path, `${path}.copy`);
    await keep(openArchive().archive, [all[0]!]);
    copyFileSync(`${all[0]!.path}.copy`, all[0]!.path);
    const { archive, seen } = openArchive();
    await keep(archive, all);
    expect(await archivedText("realtime")).toBe(text);
    expect(all.filter(({ path }) => existsSync(path))).toEqual([]);
    expect(seen.released).toEqual([["realtime", 20]]);
  });

  test("between a joined file and the end of the shorter one it replaces", async () => {
    const all = segments("realtime", 1, 3);
    const text = all.map(({ path }) => readFileSync(path, "utf8")).join("");
    const first = openArchive().archive;
    await keep(first, all.slice(0, 1));
    const shorter = listArchive(at.archiveFolder, "realtime")[0]!.path;
    copyFileSync(shorter, join(at.folder, "shorter"));
    await keep(first, all.slice(1, 2));
    copyFileSync(join(at.folder, "shorter"), shorter);
    expect(ranges("realtime")).toEqual([[1, 20]]);
    const { archive } = openArchive();
    expect(existsSync(shorter)).toBe(false);
    await keep(archive, all.slice(2));
    expect(await archivedText("realtime")).toBe(text);
  });

  test("a segment whose file was deleted without being archived leaves a gap in the names", async () => {
    const { archive } = openArchive();
    const all = segments("realtime", 1, 4);
    rmSync(all[1]!.path);
    await keep(archive, all);
    expect(ranges("realtime")).toEqual([[21, 40]]);
  });
});

describe("the archive is bounded", () => {
  test("by its size: the oldest go, with one warning and a note until a backup covers them", async () => {
    const { archive, seen } = openArchive({ bytesMax: 2_000_000 });
    for (let n = 0; n < 4; n++) await keep(archive, segments("realtime", 1 + n * 100, 1, 100, 8_000));
    expect(ranges("realtime")).toEqual([
      [201, 300],
      [301, 400],
    ]);
    expect(seen.warned).toMatchObject([{ lane: "realtime", first: 1, last: 100, reason: "size" }]);
    expect(discardedRanges(at.archiveFolder)).toMatchObject([{ lane: "realtime", first: 1, last: 200 }]);
    pruneArchive(at.archiveFolder, { realtime: 199, historical: 0 });
    expect(discardedRanges(at.archiveFolder)).toHaveLength(1);
    pruneArchive(at.archiveFolder, { realtime: 200, historical: 0 });
    expect(discardedRanges(at.archiveFolder)).toEqual([]);
  });

  test("0 keeps none and logs nothing", async () => {
    const { archive, seen } = openArchive({ bytesMax: 0 });
    const all = segments("realtime", 1, 3);
    await keep(archive, all);
    expect(ranges("realtime")).toEqual([]);
    expect(all.filter(({ path }) => existsSync(path))).toEqual([]);
    expect(seen).toEqual({ released: [["realtime", 30]], warned: [], errors: [] });
    expect(discardedRanges(at.archiveFolder)).toEqual([]);
  });

  test("by the disk: archived ones go first, then nothing is archived, and segments are released", async () => {
    const { archive, seen } = openArchive();
    await keep(archive, segments("historical", 1, 1, 100, 8_000));
    await keep(archive, segments("realtime", 1, 1, 100, 8_000));
    at.space.freeBytes = 2e8 - 1;
    await archive.tidy();
    expect([ranges("realtime"), ranges("historical")]).toEqual([[], []]);
    const later = segments("realtime", 101, 2);
    await keep(archive, later);
    expect(later.filter(({ path }) => existsSync(path))).toEqual([]);
    expect(ranges("realtime")).toEqual([]);
    expect(seen.released.at(-1)).toEqual(["realtime", 120]);
    expect(seen.warned.map(({ lane, reason }) => [lane, reason])).toEqual([
      ["historical", "disk"],
      ["realtime", "disk"],
    ]);
    expect(discardedRanges(at.archiveFolder).map(({ lane, first, last }) => [lane, first, last])).toEqual([
      ["historical", 1, 100],
      ["realtime", 1, 120],
    ]);
    at.space.freeBytes = 1e12;
    await keep(archive, segments("realtime", 121, 1));
    expect(ranges("realtime")).toEqual([[121, 130]]);
  });
});

describe("corruption", () => {
  const archivedFile = async () => {
    const { archive } = openArchive();
    await keep(archive, segments("realtime", 1, 3));
    return listArchive(at.archiveFolder, "realtime")[0]!;
  };

  test("a changed byte anywhere in an archived file is noticed, if it changes anything", async () => {
    const file = await archivedFile();
    const good = readFileSync(file.path);
    const whole = await readArchived(file);
    let noticed = 0;
    for (let at = 0; at < good.length; at += 97) {
      const bad = Buffer.from(good);
      bad[at]! ^= 0x10;
      writeFileSync(file.path, bad);
      const { corruption, segments } = await readArchived(file);
      // A frame ends in a sum of what the blocks' hashes prove already: that may be wrong if all entries are right.
      if (corruption === undefined) expect({ at, segments }).toEqual({ at, segments: whole.segments });
      else
        expect({ at, corruption }).toMatchObject({
          at,
          corruption: { code: "segment_damaged", last: 30 },
        });
      if (corruption !== undefined) noticed += 1;
    }
    expect(noticed).toBeGreaterThan(good.length / 97 - 3);
  });

  test("a file that was cut is noticed, wherever that was", async () => {
    const file = await archivedFile();
    const whole = readFileSync(file.path);
    const lengths = Array.from({ length: file.bytes }, (_, bytes) => bytes).filter(
      (bytes) => bytes % 61 === 0 || bytes >= file.bytes - 40,
    );
    for (const bytes of lengths) {
      writeFileSync(file.path, whole.subarray(0, bytes));
      const { corruption } = await readArchived(file);
      expect({ bytes, corruption }).toMatchObject({ bytes, corruption: { code: "segment_damaged" } });
    }
  });

  test("a file with bytes after its last frame is read up to them, and reported", async () => {
    const file = await archivedFile();
    appendFileSync(file.path, "what a broken disk left");
    const { corruption, segments: read } = await readArchived(file);
    expect(corruption).toMatchObject({ code: "segment_damaged" });
    expect(read.map(({ last }) => last)).toEqual([10, 20, 30]);
  });

  test("a corrupt segment of the journal is quarantined, its readable part archived", async () => {
    const { archive, seen } = openArchive();
    const all = segments("realtime", 1, 3);
    const bytes = readFileSync(all[1]!.path);
    bytes[bytes.length - 200]! ^= 1;
    writeFileSync(all[1]!.path, bytes);
    writeFileSync(all[2]!.path, "not a segment at all");
    await keep(archive, all);
    const [file] = listArchive(at.archiveFolder, "realtime");
    expect(file).toMatchObject({ first: 1, last: 30 });
    const read = await readArchived(file!);
    expect(read.corruption).toBeUndefined();
    expect(read.segments.map(({ first, last }) => [first, last])).toEqual([
      [1, 10],
      [11, 15],
      [21, 20],
    ]);
    expect(readdirSync(join(at.folder, "quarantine")).sort()).toEqual(
      all
        .slice(1)
        .map(
          ({ path, last }, index) =>
            `realtime-${basename(path)}.lost-${index === 0 ? 16 : 21}-${last}.damaged`,
        ),
    );
    expect(seen.released).toEqual([["realtime", 30]]);
  });

  test("a segment that the disk rejects stays in the journal and is retried", async () => {
    const { archive, seen } = openArchive();
    const all = segments("realtime", 1, 2);
    rmSync(join(at.archiveFolder, "realtime"), { recursive: true });
    writeFileSync(join(at.archiveFolder, "realtime"), "in the way");
    await keep(archive, all);
    expect(seen.errors).toHaveLength(1);
    expect(seen.released).toEqual([]);
    expect(all.every(({ path }) => existsSync(path))).toBe(true);
    rmSync(join(at.archiveFolder, "realtime"));
    openArchive();
    await archive.tidy();
    expect(ranges("realtime")).toEqual([[1, 20]]);
    expect(seen.released).toEqual([["realtime", 20]]);
  });

  test("a note that cannot be read counts as none", () => {
    recordDiscarded(at.archiveFolder, { lane: "realtime", first: 1, last: 2, reason: "disk", at: "" });
    writeFileSync(join(at.archiveFolder, "given-up.json"), "{");
    expect(discardedRanges(at.archiveFolder)).toEqual([]);
  });
});
