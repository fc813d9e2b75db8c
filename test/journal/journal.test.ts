import { describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { getLine, getLines, getSeq } from "../../src/journal/entry.ts";
import { recoverLane } from "../../src/journal/recovery.ts";
import { FakeDisk } from "../support/fake-disk.ts";
import { temporaryFolder, until } from "../support/server.ts";
import { entry, openJournal, toStrings } from "./support.ts";

describe("the journal", () => {
  test("assigns numbers without gaps in order of the calls, and reads back the appended entries", async () => {
    const { journal, sealed } = await openJournal(temporaryFolder());
    const firsts = await Promise.all([
      journal.append("realtime", [entry("a"), entry("b")]),
      journal.append("realtime", [entry("c")]),
      journal.append("historical", [entry("old")]),
    ]);
    expect(journal.state()).toEqual([
      { lane: "realtime", lastSeq: 3, durable: 3, queuedBytes: 0 },
      { lane: "historical", lastSeq: 1, durable: 1, queuedBytes: 0 },
    ]);
    await journal.close();
    expect(firsts).toEqual([1, 3, 1]);
    expect(await toStrings(sealed.filter(({ lane }) => lane === "realtime"))).toEqual([
      { seq: 1, text: "a" },
      { seq: 2, text: "b" },
      { seq: 3, text: "c" },
    ]);
    expect(await toStrings(sealed.filter(({ lane }) => lane === "historical"))).toEqual([
      { seq: 1, text: "old" },
    ]);
  });

  test("continues after the last number when it is reopened", async () => {
    const folder = temporaryFolder();
    const before = await openJournal(folder);
    await before.journal.append("realtime", [entry("a"), entry("b")]);
    await before.journal.close();
    const after = await openJournal(folder);
    expect(after.segments.map(({ first, last }) => [first, last])).toEqual([[1, 2]]);
    expect(await after.journal.append("realtime", [entry("c")])).toBe(3);
    await after.journal.close();
  });

  test("never reuses a number that the stores have seen, even without segments", async () => {
    const { nextSeq } = recoverLane(join(temporaryFolder(), "realtime"), "realtime", temporaryFolder(), 41);
    expect(nextSeq).toBe(42);
  });

  test("hands realtime entries over before history that was acknowledged later", async () => {
    // Every segment of history is full immediately; no segment of the realtime lane is.
    const { journal, sealed } = await openJournal(temporaryFolder(), { segmentEntriesMax: 100 });
    for (let round = 0; round < 20; round++) {
      const waiting = Array.from({ length: 1 + (round % 3) }, () => journal.append("realtime", [entry("a")]));
      await Promise.all(waiting);
      // One that is not acknowledged may come before or after.
      const later = journal.append("realtime", [entry("b")]);
      const acknowledged = (await Promise.all(waiting)).at(-1)!;
      const before = sealed.length;
      const history = Array<string>(100).fill(entry("old"));
      await journal.append("historical", history);
      await until(() => sealed.slice(before).some(({ lane }) => lane === "historical"), "a sealed segment");
      const at = sealed.findIndex(({ lane }, index) => index >= before && lane === "historical");
      const handedOver = sealed.slice(0, at).filter(({ lane }) => lane === "realtime");
      expect(handedOver.at(-1)!.last).toBeGreaterThanOrEqual(acknowledged);
      await later;
    }
    await journal.close();
    const last = sealed.filter(({ lane }) => lane === "realtime").at(-1)!.last;
    expect(last).toBe(journal.state()[0]!.lastSeq);
  });

  test("seals by size and by age, and seals nothing without entries", async () => {
    const bySize = await openJournal(temporaryFolder(), { segmentBytesMax: 65_536 });
    for (let i = 0; i < 3; i++) await bySize.journal.append("realtime", [entry("x".repeat(70_000))]);
    await bySize.journal.close();
    expect(bySize.sealed.map(({ first, last }) => [first, last])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
    const byAge = await openJournal(temporaryFolder(), { sealIntervalMs: 50 });
    await byAge.journal.append("realtime", [entry("x")]);
    while (byAge.sealed.length === 0) await Bun.sleep(5);
    await byAge.journal.close();
    expect(byAge.sealed).toHaveLength(1);
  });

  test("the first entry after idle time is passed on immediately, later ones at the interval", async () => {
    const clock = spyOn(performance, "now");
    const started = performance.now();
    let now = started;
    clock.mockImplementation(() => now);
    try {
      const { journal, sealed } = await openJournal(temporaryFolder(), { sealIntervalMs: 60_000 });
      now += 60_000;
      await journal.append("realtime", [entry("after a minute")]);
      now += 1_000;
      await until(() => sealed.length === 1, "it is sealed");
      await journal.append("realtime", [entry("soon after")]);
      now += 1_000;
      await journal.append("realtime", [entry("once more")]);
      expect(sealed).toHaveLength(1);
      now += 60_000;
      await journal.append("realtime", [entry("at the interval")]);
      await until(() => sealed.length === 2, "the next one is sealed");
      expect(sealed.map(({ first, last }) => [first, last])).toEqual([
        [1, 1],
        [2, 4],
      ]);
      await journal.close();
    } finally {
      clock.mockRestore();
    }
  });

  test("does not seal a segment that is being written; it is sealed by its age afterwards", async () => {
    const disk = new FakeDisk();
    const { journal, sealed } = await openJournal(temporaryFolder(), { sealIntervalMs: 50 }, disk);
    await journal.append("realtime", [entry("a")]);
    disk.syncMs = 200;
    expect(await journal.append("realtime", [entry("b")])).toBe(2);
    await until(() => sealed.at(-1)?.last === 2, "what was written meanwhile is sealed");
    await journal.close();
  });

  test("spreads a long request over segments, in order, and resolves once all of it is durable", async () => {
    const { journal, sealed } = await openJournal(temporaryFolder(), { segmentEntriesMax: 10 });
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
    expect((await toStrings(sealed)).map(({ text }) => text)).toEqual([...texts, "next"]);
  });

  test("after a failed part nothing more of a request is written", async () => {
    const disk = new FakeDisk();
    const { journal, sealed } = await openJournal(temporaryFolder(), { segmentEntriesMax: 10 }, disk);
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

  test("keeps entries that are UTF-8 already as they are, next to others", async () => {
    const { journal, sealed } = await openJournal(temporaryFolder());
    const texts = Array.from({ length: 12 }, (_, index) => `${index} Köln 🧭`);
    // Longer than the memory that is kept for a group.
    texts.push("é".repeat(800_000));
    const entries = texts.map((text, index) =>
      index % 3 === 0 ? entry(text) : new Uint8Array(Buffer.from(entry(text))),
    );
    await journal.append("realtime", entries);
    await journal.close();
    expect((await toStrings(sealed)).map(({ text }) => text)).toEqual(texts);
    expect(getLines(5, entries).toString()).toBe(
      texts.map((text, index) => getLine(5 + index, entry(text))).join(""),
    );
    expect([1, 10, 987_654].map((seq) => getSeq(Buffer.from(getLine(seq, entry("x")))))).toEqual([
      1, 10, 987_654,
    ]);
  });

  test("writes at most 16 MiB together", async () => {
    const disk = new FakeDisk();
    const { journal } = await openJournal(temporaryFolder(), {}, disk);
    const half = 8 * 1024 * 1024;
    const ofBytes = (bytes: number) => entry("x".repeat(bytes - getLine(1, entry("")).length));
    const getSyncs = async (sizes: number[]) => {
      const before = disk.syncCount;
      await Promise.all(sizes.map((bytes) => journal.append("realtime", [ofBytes(bytes)])));
      return disk.syncCount - before;
    };
    expect(await getSyncs([half, half])).toBe(1);
    expect(await getSyncs([half, half + 1])).toBe(2);
    expect(await getSyncs([2 * half + 1, 1_000, 1_000])).toBe(2);
    await journal.close();
  });

  test("entries appended while a segment is sealed are written afterwards", async () => {
    const { journal, sealed } = await openJournal(temporaryFolder());
    await journal.append("realtime", [entry("a")]);
    const sealing = journal.seal();
    expect(await journal.append("realtime", [entry("b")])).toBe(2);
    await sealing;
    await journal.close();
    expect(sealed.map(({ first, last }) => [first, last])).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  test("shares one sync among requests that wait at the same time", async () => {
    const disk = new FakeDisk();
    disk.syncMs = 20;
    const { journal } = await openJournal(temporaryFolder(), {}, disk);
    const started = performance.now();
    await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => journal.append("realtime", [entry(String(i))])),
    );
    expect(disk.syncCount).toBeLessThanOrEqual(3);
    // One by one they would take 20 s.
    expect(performance.now() - started).toBeLessThan(15_000);
    await journal.close();
  });

  test("rejects more than its queue holds, and accepts entries again afterwards", async () => {
    const disk = new FakeDisk();
    disk.syncMs = 30;
    const { journal } = await openJournal(temporaryFolder(), { queueBytesMax: 1_000 }, disk);
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, () => journal.append("realtime", [entry("x".repeat(300))])),
    );
    expect(results.some(({ status }) => status === "rejected")).toBe(true);
    expect(await journal.append("realtime", [entry("later")])).toBeGreaterThan(0);
    await journal.close();
  });
});
