import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Journal } from "../../src/journal/journal.ts";
import { recoverLane } from "../../src/journal/recovery.ts";
import type { SealedSegment } from "../../src/journal/segment.ts";
import { FakeDisk } from "../support/fake-disk.ts";
import { randomFrom } from "../support/seeded-random.ts";
import { temporaryFolder } from "../support/server.ts";
import { entry, openJournal, options, toStrings } from "./support.ts";

describe("a disk that fails", () => {
  for (const kind of ["write", "sync", "create"] as const) {
    test(`${kind}: nothing is acknowledged, what was acknowledged stays, and it continues afterwards`, async () => {
      const disk = new FakeDisk();
      const { journal, sealed } = await openJournal(temporaryFolder(), {}, disk);
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

  test("a foreign file under the next name is unchanged, and the following name is used", async () => {
    const disk = new FakeDisk();
    const folder = temporaryFolder();
    const imported = join(folder, "realtime", "0000000000000001.ndjson");
    disk.files.set(imported, Buffer.from("foreign"));
    const { journal, sealed } = await openJournal(folder, {}, disk);
    await expect(journal.append("realtime", [entry("refused")])).rejects.toMatchObject({
      reason: "write_failed",
    });
    let first: number | undefined;
    while (first === undefined)
      first = await journal.append("realtime", [entry("x")]).catch(() => Bun.sleep(20).then(() => undefined));
    await journal.close();
    expect(disk.files.get(imported)!.toString()).toBe("foreign");
    expect(sealed).toMatchObject([{ first, last: first }]);
    expect(await textsFrom(disk, sealed)).toEqual(["x"]);
  });

  test("after a failure it is left alone for a moment: rejected without a call", async () => {
    const disk = new FakeDisk();
    const { journal } = await openJournal(temporaryFolder(), {}, disk);
    await journal.append("realtime", [entry("before")]);
    disk.failing = { sync: true };
    const rejection = { code: "journal_unavailable", reason: "write_failed" };
    await expect(journal.append("realtime", [entry("lost")])).rejects.toMatchObject(rejection);
    disk.failing = {};
    const { syncCount } = disk;
    await expect(journal.append("realtime", [entry("too early")])).rejects.toMatchObject(rejection);
    expect(disk.syncCount).toBe(syncCount);
    await journal.close();
  });

  // Independent of the machine's speed: a number of entries for a number of syncs with a fixed duration.
  for (const syncMs of [1, 5, 20, 200]) {
    test(`slow, ${syncMs} ms for a sync: requests that wait together are written together, and the queue is bounded`, async () => {
      const disk = new FakeDisk();
      const queueBytesMax = 10_000;
      const { journal, sealed } = await openJournal(temporaryFolder(), { queueBytesMax }, disk);
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

  test("full: the answer is a rejection before the write when the reserve is reached, and it recovers", async () => {
    const disk = new FakeDisk();
    disk.freeBytes = 1_000;
    const { journal } = await openJournal(temporaryFolder(), { reserveBytes: 2_000 }, disk);
    await expect(journal.append("realtime", [entry("x")])).rejects.toMatchObject({ reason: "disk_full" });
    expect(disk.files.size).toBe(0);
    disk.freeBytes = 1e9;
    let first: number | undefined;
    while (first === undefined)
      first = await journal.append("realtime", [entry("x")]).catch(() => Bun.sleep(20).then(() => undefined));
    await journal.close();
  });

  test("full: pending entries count as well, and those accepted between two checks", async () => {
    const disk = new FakeDisk();
    const MiB = 1024 * 1024;
    let debt = { unloaded: 0, unwritten: 0 };
    disk.freeBytes = 100 * MiB;
    const rejected: string[] = [];
    const { journal } = await Journal.open(
      temporaryFolder(),
      { realtime: 0, historical: 0 },
      options,
      {
        onSealed: () => undefined,
        onFailure: () => undefined,
        onRejected: (reason, lane) => rejected.push(`${lane} ${reason}`),
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
    expect(rejected).toEqual(["realtime disk_full"]);
    disk.freeBytes = 100 * MiB;
    debt = { unloaded: 40 * MiB, unwritten: 0 };
    while (journal.admission().isOpen) await Bun.sleep(20);
    expect(await attempt(1)).toBe("disk_full");
    expect(journal.admission()).toMatchObject({ freeBytes: 100 * MiB, isOpen: false });
    debt = { unloaded: 0, unwritten: 10 * MiB };
    while (!journal.admission().isOpen) await Bun.sleep(20);
    await journal.close();
  });

  test("full: another process fills the volume while events are accepted", async () => {
    const disk = new FakeDisk();
    const MiB = 1024 * 1024;
    disk.freeBytes = 1_000 * MiB;
    const { journal } = await openJournal(temporaryFolder(), {}, disk);
    disk.freeBytes = 20 * MiB;
    const start = performance.now();
    let imported = 0;
    while ((await journal.append("realtime", [entry("x".repeat(MiB))]).catch(() => "refused")) !== "refused")
      imported++;
    // 285 of them would fit into what was free at the last look that the clock asked for.
    expect([imported < 10, performance.now() - start < 500]).toEqual([true, true]);
    await journal.close();
  });

  const losses = Number(process.env.FLAGKEEP_TEST_POWER_LOSSES ?? 300);
  const firstLoss = Number(process.env.FLAGKEEP_TEST_POWER_FROM ?? 1);

  test(`power loss: no acknowledged entry is lost and no torn entry appears (${losses} seeds)`, async () => {
    for (let seed = firstLoss; seed < firstLoss + losses; seed++) {
      const random = randomFrom(seed);
      const disk = new FakeDisk();
      const { journal } = await openJournal(temporaryFolder(), { segmentBytesMax: 2_000 }, disk);
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
      const folder = join(temporaryFolder(), "realtime");
      mkdirSync(folder, { recursive: true });
      for (const path of disk.files.keys())
        writeFileSync(join(folder, basename(path)), disk.afterPowerLoss(path, random));
      const { segments, nextSeq } = recoverLane(folder, "realtime", temporaryFolder(), 0);
      const numbered = await toStrings(segments);
      const texts = numbered.map(({ text }) => text);
      // What the pipeline goes by: each segment says which numbers it holds, and the next number is behind them all.
      const hold = await Promise.all(
        segments.map(async (segment) => {
          const seqs = (await toStrings([segment])).map(({ seq }) => seq);
          // Numbers of entries that were rejected are in no file, but in the range of one.
          return [segment.first <= (seqs[0] ?? segment.first), segment.last >= (seqs.at(-1) ?? segment.last)];
        }),
      );
      expect({ seed, hold: hold.flat().filter((isTrue) => !isTrue) }).toEqual({ seed, hold: [] });
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
    const folder = temporaryFolder();
    const moved = sealed.map((segment) => {
      const path = join(folder, basename(segment.path));
      writeFileSync(path, disk.files.get(segment.path)!);
      return { ...segment, path };
    });
    return (await toStrings(moved)).map(({ text }) => text);
  }
});
