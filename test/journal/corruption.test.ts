/** A sealed segment is corrupt: only the corrupt blocks are lost, which are named, and everything else continues. */

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSegment, type SegmentCorruptError } from "../../src/journal/reader.ts";
import { recoverLane } from "../../src/journal/recovery.ts";
import { scanSegment } from "../../src/journal/segment.ts";
import { entryLines, linesIn, writeSegment } from "../support/segments.ts";
import { temporaryFolder } from "../support/server.ts";

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const seqs = (lines: readonly string[]) => lines.map((line) => (JSON.parse(line) as { seq: number }).seq);

describe("the readable parts of a corrupt segment", () => {
  const blocks = [entryLines(1, 2), entryLines(3, 3), entryLines(6, 1), entryLines(7, 4)];
  const cases: { name: string; harm: (text: string) => string; lost: [number, number][] }[] = [
    { name: "nothing is wrong", harm: (text) => text, lost: [] },
    { name: "an entry", harm: (text) => text.replace('{"seq":4,', '{"seq":5,'), lost: [[3, 5]] },
    { name: "the first entry", harm: (text) => text.replace('{"seq":1,', '{"seq":0,'), lost: [[1, 2]] },
    {
      name: "two blocks",
      harm: (text) => text.replace(/"seq":[38],/g, '"seq":0,'),
      lost: [
        [3, 5],
        [7, 10],
      ],
    },
    { name: "the header", harm: (text) => `x${text.slice(1)}`, lost: [] },
    // Without its hash the block behind it cannot be checked either; the one after that can.
    { name: "a block line", harm: (text) => text.replace(/"last":5,.*/, "xx"), lost: [[3, 6]] },
    { name: "the end is cut", harm: (text) => text.slice(0, text.indexOf('{"seq":9')), lost: [[7, 10]] },
    { name: "all of it", harm: () => "not a segment", lost: [[1, 10]] },
    { name: "a block is left out", harm: (text) => text.replace(/\{"seq":6,.*\n.*\n/, ""), lost: [[6, 10]] },
  ];
  for (const { name, harm, lost } of cases) {
    test(name, async () => {
      const segment = writeSegment(folder, "realtime", 1, blocks);
      writeFileSync(segment.path, harm(readFileSync(segment.path, "utf8")));
      const { bytes, corruption } = await readSegment(segment);
      const isLost = (seq: number) => lost.some(([first, last]) => seq >= first && seq <= last);
      expect(corruption?.lost.map(({ first, last }) => [first, last]) ?? []).toEqual(lost);
      expect(seqs(linesIn(bytes))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].filter((seq) => !isLost(seq)));
      if (corruption !== undefined) {
        expect((corruption as SegmentCorruptError).message).toContain(
          `${segment.path} is corrupt: entries ${lost[0]![0]} to`,
        );
      }
      // What is given on is a whole segment.
      expect(scanSegment(bytes)).toMatchObject({ first: 1, torn: false });
    });
  }
});

test("numbers of rejected entries are not missing, also after a corrupt block", async () => {
  const segment = writeSegment(folder, "realtime", 1, [
    entryLines(1, 2),
    entryLines(3, 2),
    entryLines(5, 2),
    entryLines(9, 2),
  ]);
  writeFileSync(segment.path, readFileSync(segment.path, "utf8").replace('{"seq":3,', '{"seq":4,'));
  const { bytes, corruption } = await readSegment(segment);
  expect(seqs(linesIn(bytes))).toEqual([1, 2, 5, 6, 9, 10]);
  expect((corruption as SegmentCorruptError).lost).toEqual([{ first: 3, last: 4 }]);
});

test("the newest segment of a lane preserves complete blocks after a corrupt one; a torn end is quarantined", () => {
  const segment = writeSegment(folder, "realtime", 1, [entryLines(1, 2), entryLines(3, 2), entryLines(5, 2)]);
  const whole = readFileSync(segment.path, "utf8");
  const recover = () => recoverLane(join(folder, "realtime"), "realtime", join(folder, "quarantine"), 0);
  writeFileSync(segment.path, whole.replace('{"seq":3,', '{"seq":4,'));
  expect(recover()).toMatchObject({ segments: [{ first: 1, last: 6 }], nextSeq: 7, quarantined: [] });
  writeFileSync(segment.path, `x${whole.slice(1)}`);
  expect(recover()).toMatchObject({ segments: [{ first: 1, last: 6 }], nextSeq: 7, quarantined: [] });
  writeFileSync(segment.path, whole.replace('{"seq":5,', '{"seq":6,'));
  expect(recover()).toMatchObject({ segments: [{ first: 1, last: 4 }], nextSeq: 5, quarantined: [{}] });
});
