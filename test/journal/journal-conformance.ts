/** What the journal promises to those who write and read it, as tests that run over every implementation. */

import { afterEach, describe, expect, test } from "bun:test";
import type { JournalSink } from "../../src/ingestion/ports.ts";
import type { JournalBatch } from "../../src/journal/reader.ts";
import { type Lane, lanes } from "../../src/journal/segment.ts";
import { linesIn } from "../support/segments.ts";

export interface JournalUnderTest {
  journal: JournalSink;
  /** Closes what is being written, and gives all batches of a lane, oldest first. */
  batches(lane: Lane): Promise<JournalBatch[]>;
  /** Opens what is stored once more, as after a crash. */
  reopen(): Promise<JournalUnderTest>;
  close(): Promise<void>;
}

const entry = (text: string) => `"text":${JSON.stringify(text)}}`;

async function read(one: JournalUnderTest, lane: Lane): Promise<{ seq: number; text: string }[]> {
  const batches = await one.batches(lane);
  for (const [index, { first, last, lane: of }] of batches.entries()) {
    expect([of, first]).toEqual([lane, (batches[index - 1]?.last ?? 0) + 1]);
    expect(last).toBeGreaterThanOrEqual(first);
  }
  const texts = await Promise.all(batches.map((batch) => batch.text()));
  return texts.flatMap(({ bytes, damage }) => {
    expect(damage).toBeUndefined();
    return linesIn(bytes).map((line) => JSON.parse(line));
  });
}

export function journalConformance(name: string, open: () => Promise<JournalUnderTest>): void {
  describe(`${name} is a journal`, () => {
    let one: JournalUnderTest;
    afterEach(async () => await one.close());

    test("numbers of a lane follow in order of the calls, and what was acknowledged is read back", async () => {
      one = await open();
      const requests = Array.from({ length: 40 }, (_, n) => ({
        lane: lanes[n % 3 === 0 ? 1 : 0]!,
        texts: Array.from({ length: (n % 4) + 1 }, (_, k) => `${n}.${k} ü\u2028"\\`),
      }));
      const firsts = await Promise.all(
        requests.map(({ lane, texts }) => one.journal.append(lane, texts.map(entry))),
      );
      for (const lane of lanes) {
        const expected = requests.flatMap(({ lane: of, texts }) => (of === lane ? texts : []));
        expect(await read(one, lane)).toEqual(expected.map((text, index) => ({ seq: index + 1, text })));
      }
      const next: Record<Lane, number> = { realtime: 1, historical: 1 };
      for (const [index, { lane, texts }] of requests.entries()) {
        expect(firsts[index]).toBe(next[lane]);
        next[lane] += texts.length;
      }
    });

    test("goes on behind the last number after it was opened again, and keeps what was acknowledged", async () => {
      one = await open();
      await one.journal.append("realtime", ["a", "b"].map(entry));
      one = await one.reopen();
      expect(await one.journal.append("realtime", [entry("c")])).toBe(3);
      expect(await one.journal.append("historical", [entry("h")])).toBe(1);
      expect((await read(one, "realtime")).map(({ text }) => text)).toEqual(["a", "b", "c"]);
    });

    test("long entries and many of them stay whole and together", async () => {
      one = await open();
      const texts = ["x".repeat(3_000_000), ...Array.from({ length: 5_000 }, (_, n) => `${n}`)];
      await Promise.all([
        one.journal.append("realtime", texts.map(entry)),
        one.journal.append("realtime", [entry("other")]),
      ]);
      expect((await read(one, "realtime")).map(({ text }) => text)).toEqual([...texts, "other"]);
    });

    test("takes entries as text and as UTF-8, mixed", async () => {
      one = await open();
      const texts = ["a ü", "b \u{1f600}", "c", "y".repeat(1_500_000), "é".repeat(1_000_000), "end"];
      const entries = texts.map((text, n) => (n % 2 === 0 ? entry(text) : Buffer.from(entry(text))));
      const first = one.journal.append("realtime", [entry("before")]);
      const mixed = one.journal.append("realtime", entries);
      const bytes = one.journal.append("realtime", [Buffer.from(entry("after"))]);
      expect(await Promise.all([first, mixed, bytes])).toEqual([1, 2, 8]);
      expect((await read(one, "realtime")).map(({ text }) => text)).toEqual(["before", ...texts, "after"]);
    });

    test("a batch can be read again", async () => {
      one = await open();
      await one.journal.append("realtime", [entry("a")]);
      const [batch] = await one.batches("realtime");
      expect((await batch!.text()).bytes).toEqual((await batch!.text()).bytes);
    });
  });
}
