import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Disk } from "../../src/journal/disk.ts";
import { realDisk } from "../../src/journal/disk.ts";
import { Journal, type JournalSettings } from "../../src/journal/journal.ts";
import { readSegment } from "../../src/journal/reader.ts";
import { recoverLane } from "../../src/journal/recovery.ts";
import type { SealedSegment } from "../../src/journal/segment.ts";
import { temporaryFolder } from "../support/appliance.ts";
import { FakeDisk } from "../support/fake-disk.ts";
import { linesIn } from "../support/segments.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const settings: JournalSettings = {
  segmentBytesMax: 1e9,
  segmentEntriesMax: 1e6,
  sealIntervalMs: 3_600_000,
  flushIntervalMs: 0,
  queueBytesMax: 64e6,
  reserveBytes: 0,
};

function newFolder(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return folder;
}

async function openJournal(folder: string, more: Partial<JournalSettings> = {}, disk: Disk = realDisk) {
  const sealed: SealedSegment[] = [];
  const failures: unknown[] = [];
  const opened = await Journal.open(
    folder,
    { realtime: 0, historical: 0 },
    { ...settings, ...more },
    { onSealed: (segment) => sealed.push(segment), onFailure: (error) => failures.push(error) },
    disk,
  );
  return { ...opened, sealed, failures };
}

const entry = (text: string) => `"text":${JSON.stringify(text)}}`;
const textsOf = async (segments: SealedSegment[]) => {
  const read = await Promise.all(segments.map(readSegment));
  return read.flatMap(({ bytes }) =>
    linesIn(bytes).map((line) => JSON.parse(line) as { seq: number; text: string }),
  );
};

describe("the journal", () => {
  test("gives numbers without gaps in order of the calls, and reads back what was appended", async () => {
    const { journal, sealed } = await openJournal(newFolder());
    const firsts = await Promise.all([
      journal.append("realtime", [entry("a"), entry("b")]),
      journal.append("realtime", [entry("c")]),
      journal.append("historical", [entry("old")]),
    ]);
    await journal.close();
    expect(firsts).toEqual([1, 3, 1]);
    expect(await textsOf(sealed.filter(({ lane }) => lane === "realtime"))).toEqual([
      { seq: 1, text: "a" },
      { seq: 2, text: "b" },
      { seq: 3, text: "c" },
    ]);
    expect(await textsOf(sealed.filter(({ lane }) => lane === "historical"))).toEqual([
      { seq: 1, text: "old" },
    ]);
  });

  test("goes on behind the last number after it was opened again", async () => {
    const folder = newFolder();
    const before = await openJournal(folder);
    await before.journal.append("realtime", [entry("a"), entry("b")]);
    await before.journal.close();
    const after = await openJournal(folder);
    expect(after.segments.map(({ first, last }) => [first, last])).toEqual([[1, 2]]);
    expect(await after.journal.append("realtime", [entry("c")])).toBe(3);
    await after.journal.close();
  });

  test("never gives a number again that the stores have seen, even without segments", async () => {
    const { nextSeq } = recoverLane(join(newFolder(), "realtime"), "realtime", newFolder(), 41);
    expect(nextSeq).toBe(42);
  });

  test("seals by size and by age, and seals nothing without entries", async () => {
    const bySize = await openJournal(newFolder(), { segmentBytesMax: 65_536 });
    for (let i = 0; i < 3; i++) await bySize.journal.append("realtime", [entry("x".repeat(70_000))]);
    await bySize.journal.close();
    expect(bySize.sealed.map(({ first, last }) => [first, last])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
    const byAge = await openJournal(newFolder(), { sealIntervalMs: 50 });
    await byAge.journal.append("realtime", [entry("x")]);
    while (byAge.sealed.length === 0) await Bun.sleep(5);
    await byAge.journal.close();
    expect(byAge.sealed).toHaveLength(1);
  });

  test("spreads a long request over segments, in order, and resolves once all of it is durable", async () => {
    const { journal, sealed } = await openJournal(newFolder(), { segmentEntriesMax: 10 });
    const texts = Array.from({ length: 35 }, (_, index) => String(index));
    expect(await journal.append("historical", texts.map(entry))).toBe(1);
    expect(await journal.append("historical", [entry("next")])).toBe(36);
    await journal.close();
    expect(sealed.map(({ first, last }) => [first, last])).toEqual([
      [1, 10],
      [11, 20],
      [21, 30],
      [31, 36],
    ]);
    expect((await textsOf(sealed)).map(({ text }) => text)).toEqual([...texts, "next"]);
  });

  test("after a failed part nothing more of a request is written", async () => {
    const disk = new FakeDisk();
    const { journal, sealed } = await openJournal(newFolder(), { segmentEntriesMax: 10 }, disk);
    disk.failing = { sync: true };
    const answer = journal.append(
      "historical",
      Array.from({ length: 35 }, () => entry("lost")),
    );
    await expect(answer).rejects.toMatchObject({ code: "journal_unavailable" });
    disk.failing = {};
    await journal.close();
    expect(sealed).toEqual([]);
    expect(disk.files.size).toBe(0);
  });

  test("shares one sync among requests that wait at the same time", async () => {
    const disk = new FakeDisk();
    disk.syncMs = 20;
    const { journal } = await openJournal(newFolder(), {}, disk);
    const started = performance.now();
    await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => journal.append("realtime", [entry(String(i))])),
    );
    expect(disk.syncCount).toBeLessThanOrEqual(3);
    // One by one they would take 20 s.
    expect(performance.now() - started).toBeLessThan(15_000);
    await journal.close();
  });

  test("refuses more than its queue holds, and takes entries again afterwards", async () => {
    const disk = new FakeDisk();
    disk.syncMs = 30;
    const { journal } = await openJournal(newFolder(), { queueBytesMax: 1_000 }, disk);
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, () => journal.append("realtime", [entry("x".repeat(300))])),
    );
    expect(results.some(({ status }) => status === "rejected")).toBe(true);
    expect(await journal.append("realtime", [entry("later")])).toBeGreaterThan(0);
    await journal.close();
  });
});

describe("a disk that fails", () => {
  for (const kind of ["write", "sync", "create"] as const) {
    test(`${kind}: nothing is acknowledged, what was acknowledged stays, and it goes on afterwards`, async () => {
      const disk = new FakeDisk();
      const { journal, sealed } = await openJournal(newFolder(), {}, disk);
      if (kind !== "create") await journal.append("realtime", [entry("before")]);
      disk.failing = { [kind]: true };
      await expect(journal.append("realtime", [entry("lost")])).rejects.toMatchObject({
        code: "journal_unavailable",
      });
      disk.failing = {};
      let acknowledged = false;
      while (!acknowledged) {
        acknowledged = await journal.append("realtime", [entry("after")]).then(
          () => true,
          () => Bun.sleep(20).then(() => false),
        );
      }
      await journal.close();
      const texts = await textsFrom(disk, sealed);
      expect(texts).toEqual(kind === "create" ? ["after"] : ["before", "after"]);
    });
  }

  test("after a failure it is left alone for a moment: refused without a call", async () => {
    const disk = new FakeDisk();
    const { journal } = await openJournal(newFolder(), {}, disk);
    await journal.append("realtime", [entry("before")]);
    disk.failing = { sync: true };
    const refusal = { code: "journal_unavailable", reason: "write_failed" };
    await expect(journal.append("realtime", [entry("lost")])).rejects.toMatchObject(refusal);
    disk.failing = {};
    const { syncCount } = disk;
    await expect(journal.append("realtime", [entry("too early")])).rejects.toMatchObject(refusal);
    expect(disk.syncCount).toBe(syncCount);
    await journal.close();
  });

  // Independent of the machine's speed: so many entries for so many syncs, each of which takes so long.
  for (const syncMs of [1, 5, 20, 200]) {
    test(`slow, ${syncMs} ms for a sync: whoever waits together is written together, and the queue is bounded`, async () => {
      const disk = new FakeDisk();
      const queueBytesMax = 10_000;
      const { journal, sealed } = await openJournal(newFolder(), { queueBytesMax }, disk);
      await journal.append("realtime", [entry("opens the segment")]);
      disk.syncMs = syncMs;
      const before = disk.syncCount;
      const writers = Array.from({ length: 100 }, async (_, writer) => {
        for (let n = 0; n < 10; n++) await journal.append("realtime", [entry(`${writer} ${n}`)]);
      });
      await Promise.all(writers);
      // 1,000 acknowledged in at most 20 syncs: 2,500 a second with 20 ms each.
      expect(disk.syncCount - before).toBeLessThanOrEqual(20);
      const large = entry("x".repeat(1_000));
      const answers = await Promise.all(
        Array.from({ length: 50 }, () =>
          journal.append("realtime", [large]).then(
            () => "taken",
            ({ reason }: { reason: string }) => reason,
          ),
        ),
      );
      expect([...new Set(answers)].sort()).toEqual(["overloaded", "taken"]);
      expect(answers.filter((answer) => answer === "taken").length).toBeLessThanOrEqual(
        Math.ceil(queueBytesMax / 1_000) + 1,
      );
      await journal.close();
      expect(await textsFrom(disk, sealed)).toHaveLength(
        1_001 + answers.filter((answer) => answer === "taken").length,
      );
    });
  }

  test("full: the answer is a refusal before the write when the reserve is reached, and it recovers", async () => {
    const disk = new FakeDisk();
    disk.freeBytes = 1_000;
    const { journal } = await openJournal(newFolder(), { reserveBytes: 2_000 }, disk);
    await expect(journal.append("realtime", [entry("x")])).rejects.toMatchObject({ reason: "disk_full" });
    expect(disk.files.size).toBe(0);
    disk.freeBytes = 1e9;
    let first: number | undefined;
    while (first === undefined)
      first = await journal.append("realtime", [entry("x")]).catch(() => Bun.sleep(20).then(() => undefined));
    await journal.close();
  });

  test("full: what waits to be loaded counts as well, and what is accepted between two looks", async () => {
    const disk = new FakeDisk();
    const MiB = 1024 * 1024;
    let debt = { unloaded: 0, unwritten: 0 };
    disk.freeBytes = 100 * MiB;
    const refused: string[] = [];
    const { journal } = await Journal.open(
      newFolder(),
      { realtime: 0, historical: 0 },
      settings,
      {
        onSealed: () => undefined,
        onFailure: () => undefined,
        onRefused: (reason, lane) => refused.push(`${lane} ${reason}`),
        debt: () => debt,
      },
      disk,
    );
    const attempt = (bytes: number) =>
      journal.append("realtime", [entry("x".repeat(bytes))]).then(
        () => "taken",
        (error: { reason: string }) => error.reason,
      );
    // Free are 100 MiB: for each byte that is accepted so much is kept that it can be loaded.
    expect(await Promise.all([attempt(10 * MiB), attempt(10 * MiB), attempt(10 * MiB)])).toEqual([
      "taken",
      "taken",
      "disk_full",
    ]);
    expect(refused).toEqual(["realtime disk_full"]);
    disk.freeBytes = 100 * MiB;
    debt = { unloaded: 40 * MiB, unwritten: 0 };
    while (journal.admission().isOpen) await Bun.sleep(20);
    expect(await attempt(1)).toBe("disk_full");
    expect(journal.admission()).toMatchObject({ freeBytes: 100 * MiB, isOpen: false });
    debt = { unloaded: 0, unwritten: 10 * MiB };
    while (!journal.admission().isOpen) await Bun.sleep(20);
    await journal.close();
  });

  const losses = Number(process.env.FLAGKEEP_TEST_POWER_LOSSES ?? 300);
  const firstLoss = Number(process.env.FLAGKEEP_TEST_POWER_FROM ?? 1);

  test(`power loss: no acknowledged entry is lost and no torn entry appears (${losses} seeds)`, async () => {
    for (let seed = firstLoss; seed < firstLoss + losses; seed++) {
      const random = seeded(seed);
      const disk = new FakeDisk();
      const { journal } = await openJournal(newFolder(), { segmentBytesMax: 2_000 }, disk);
      const acknowledged: string[] = [];
      const sent: string[] = [];
      const count = 1 + Math.floor(random() * 20);
      for (let i = 0; i < count; i++) {
        const text = `${seed}-${i}-${"x".repeat(Math.floor(random() * 300))}`;
        sent.push(text);
        // The last writes are under way when the power goes.
        if (i >= count - 3) disk.failing.sync = true;
        await journal.append("realtime", [entry(text)]).then(
          () => acknowledged.push(text),
          () => undefined,
        );
        if (random() < 0.2) await journal.seal();
      }
      const folder = join(newFolder(), "realtime");
      mkdirSync(folder, { recursive: true });
      for (const path of disk.files.keys())
        writeFileSync(join(folder, basename(path)), disk.afterPowerLoss(path, random));
      const { segments, nextSeq } = recoverLane(folder, "realtime", newFolder(), 0);
      const numbered = await textsOf(segments);
      const texts = numbered.map(({ text }) => text);
      // What the pipeline goes by: each segment says which numbers it holds, and the next number is behind them all.
      const told = await Promise.all(
        segments.map(async (segment) => {
          const seqs = (await textsOf([segment])).map(({ seq }) => seq);
          // Numbers of entries that were refused are in no file, but in the range of one.
          return [segment.first <= (seqs[0] ?? segment.first), segment.last >= (seqs.at(-1) ?? segment.last)];
        }),
      );
      expect({ seed, told: told.flat().filter((isTrue) => !isTrue) }).toEqual({ seed, told: [] });
      const newest = segments.at(-1);
      if (newest !== undefined)
        expect([seed, newest.last, nextSeq]).toEqual([seed, numbered.at(-1)!.seq, newest.last + 1]);
      for (const [index, { first }] of segments.entries())
        if (index > 0) expect([seed, first]).toEqual([seed, segments[index - 1]!.last + 1]);
      expect({ seed, lost: acknowledged.filter((text) => !texts.includes(text)) }).toEqual({
        seed,
        lost: [],
      });
      expect({ seed, torn: texts.filter((text) => !sent.includes(text)) }).toEqual({ seed, torn: [] });
    }
  });

  async function textsFrom(disk: FakeDisk, sealed: SealedSegment[]): Promise<string[]> {
    const folder = newFolder();
    const moved = sealed.map((segment) => {
      const path = join(folder, basename(segment.path));
      writeFileSync(path, disk.files.get(segment.path)!);
      return { ...segment, path };
    });
    return (await textsOf(moved)).map(({ text }) => text);
  }
});

describe("a torn tail", () => {
  test("cut at every byte of the last three blocks: whole blocks stay, the rest is put aside", async () => {
    const { bytes, ends } = await threeBlocks();
    for (let length = ends[0]!; length < bytes.length; length++) {
      const { segments, quarantined } = recoverBytes(bytes.subarray(0, length));
      const whole = ends.filter((end) => end <= length).length;
      expect((await textsOf(segments)).map(({ text }) => text)).toEqual(
        ["one", "two", "three"].slice(0, whole),
      );
      expect(quarantined.length).toBe(ends.includes(length) ? 0 : 1);
    }
  });

  test("any flipped byte in the last blocks: no changed entry is read, blocks before it stay", async () => {
    const { bytes, ends } = await threeBlocks();
    for (let at = ends[0]!; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 0x01;
      const { segments } = recoverBytes(changed);
      const texts = (await textsOf(segments)).map(({ text }) => text);
      const before = ends.filter((end) => end <= at).length;
      expect(texts.slice(0, before)).toEqual(["one", "two", "three"].slice(0, before));
      // A whole block behind the changed one was acknowledged as well.
      const behind = ["one", "two", "three"].slice(before + 1);
      expect(behind.slice(behind.length - (texts.length - before))).toEqual(texts.slice(before));
    }
  });

  async function threeBlocks() {
    const { journal, sealed } = await openJournal(newFolder());
    const ends: number[] = [];
    for (const text of ["one", "two", "three"]) {
      await journal.append("realtime", [entry(text)]);
      ends.push(0);
    }
    await journal.close();
    const bytes = readFileSync(sealed[0]!.path);
    let from = 0;
    for (let i = 0; i < ends.length; i++) {
      from = bytes.indexOf('{"block":', from);
      from = bytes.indexOf("\n", from) + 1;
      ends[i] = from;
    }
    return { bytes, ends };
  }

  function recoverBytes(bytes: Buffer) {
    const folder = join(newFolder(), "realtime");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "0000000000000001.ndjson"), bytes);
    return recoverLane(folder, "realtime", join(dirname(folder), "quarantine"), 0);
  }

  test("a file without even a header is put aside, and its number is not used again", async () => {
    const { segments, quarantined, nextSeq } = recoverBytes(Buffer.from('{"segm'));
    expect(segments).toEqual([]);
    expect(quarantined).toHaveLength(1);
    expect(nextSeq).toBe(1);
    expect(readdirSync(dirname(quarantined[0]!.path))).toHaveLength(1);
  });
});

test("a damaged block in an older segment is reported with the entries that are gone", async () => {
  const folder = newFolder();
  const { journal, sealed } = await openJournal(folder);
  for (const text of ["one", "two"]) await journal.append("realtime", [entry(text)]);
  await journal.close();
  const bytes = readFileSync(sealed[0]!.path);
  bytes[bytes.indexOf("two")] = 0x20;
  writeFileSync(sealed[0]!.path, bytes);
  const read = await readSegment(sealed[0]!);
  expect(linesIn(read.bytes).map((line) => JSON.parse(line).text)).toEqual(["one"]);
  expect(read.damage).toMatchObject({ code: "segment_damaged", lastGood: 1, last: 2 });
});

function seeded(start: number): () => number {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}
