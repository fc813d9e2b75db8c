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

/** How the numbers of requests follow each other. */
interface Numbering {
  /** Numbers between two requests may be left out. */
  hasGaps?: boolean;
}

const entry = (text: string) => `"text":${JSON.stringify(text)}}`;

/** Fails unless a number follows another one. */
function expectNext(seq: number, before: number, { hasGaps }: Numbering): void {
  if (hasGaps) expect(seq).toBeGreaterThan(before);
  else expect(seq).toBe(before + 1);
}

async function read(
  one: JournalUnderTest,
  lane: Lane,
  numbering: Numbering,
): Promise<{ seq: number; text: string }[]> {
  const batches = await one.batches(lane);
  for (const [index, { first, last, lane: of }] of batches.entries()) {
    expect(of).toBe(lane);
    expectNext(first, batches[index - 1]?.last ?? 0, numbering);
    expect(last).toBeGreaterThanOrEqual(first);
  }
  const texts = await Promise.all(batches.map((batch) => batch.text()));
  return texts.flatMap(({ bytes, corruption }) => {
    expect(corruption).toBeUndefined();
    return linesIn(bytes).map((line) => JSON.parse(line));
  });
}

export function journalConformance(
  name: string,
  open: () => Promise<JournalUnderTest>,
  numbering: Numbering = {},
): void {
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
        const expected = requests.flatMap(({ lane: of, texts }, index) =>
          of === lane ? texts.map((text, place) => ({ seq: firsts[index]! + place, text })) : [],
        );
        expect(await read(one, lane, numbering)).toEqual(expected);
      }
      const last: Record<Lane, number> = { realtime: 0, historical: 0 };
      for (const [index, { lane, texts }] of requests.entries()) {
        expectNext(firsts[index]!, last[lane], numbering);
        last[lane] = firsts[index]! + texts.length - 1;
      }
    });

    test("continues after the last number when it is reopened, and keeps acknowledged entries", async () => {
      one = await open();
      const last = (await one.journal.append("realtime", ["a", "b"].map(entry))) + 1;
      one = await one.reopen();
      expectNext(await one.journal.append("realtime", [entry("c")]), last, numbering);
      expectNext(await one.journal.append("historical", [entry("h")]), 0, numbering);
      expect((await read(one, "realtime", numbering)).map(({ text }) => text)).toEqual(["a", "b", "c"]);
    });

    test("long entries and many of them stay whole and together", async () => {
      one = await open();
      const texts = ["x".repeat(3_000_000), ...Array.from({ length: 5_000 }, (_, n) => `${n}`)];
      const [first, other] = await Promise.all([
        one.journal.append("realtime", texts.map(entry)),
        one.journal.append("realtime", [entry("other")]),
      ]);
      expectNext(other, first + texts.length - 1, numbering);
      const expected = texts.map((text, place) => ({ seq: first + place, text }));
      expect(await read(one, "realtime", numbering)).toEqual([...expected, { seq: other, text: "other" }]);
    });

    test("accepts entries as strings and as UTF-8, mixed", async () => {
      one = await open();
      const texts = ["a ü", "b \u{1f600}", "c", "y".repeat(1_500_000), "é".repeat(1_000_000), "end"];
      const entries = texts.map((text, n) => (n % 2 === 0 ? entry(text) : Buffer.from(entry(text))));
      const first = one.journal.append("realtime", [entry("before")]);
      const mixed = one.journal.append("realtime", entries);
      const bytes = one.journal.append("realtime", [Buffer.from(entry("after"))]);
      expectNext(await mixed, await first, numbering);
      expectNext(await bytes, (await mixed) + entries.length - 1, numbering);
      expect((await read(one, "realtime", numbering)).map(({ text }) => text)).toEqual([
        "before",
        ...texts,
        "after",
      ]);
    });

    test("a batch can be read again", async () => {
      one = await open();
      await one.journal.append("realtime", [entry("a")]);
      const [batch] = await one.batches("realtime");
      expect((await batch!.text()).bytes).toEqual((await batch!.text()).bytes);
    });
  });
}
