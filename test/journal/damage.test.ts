/** A sealed segment is damaged: only the damaged blocks are lost, which are named, and everything else goes on. */

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSegment, type SegmentDamaged } from "../../src/journal/reader.ts";
import { recoverLane } from "../../src/journal/recovery.ts";
import { scanSegment } from "../../src/journal/segment.ts";
import { flagkeep, initialisedDirectory, TestAppliance, temporaryFolder } from "../support/appliance.ts";
import { entryLines, linesIn, writeSegment } from "../support/segments.ts";

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const seqs = (lines: readonly string[]) => lines.map((line) => (JSON.parse(line) as { seq: number }).seq);

describe("what can be read of a damaged segment", () => {
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
      const { bytes, damage } = await readSegment(segment);
      const isLost = (seq: number) => lost.some(([first, last]) => seq >= first && seq <= last);
      expect(damage?.lost.map(({ first, last }) => [first, last]) ?? []).toEqual(lost);
      expect(seqs(linesIn(bytes))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].filter((seq) => !isLost(seq)));
      if (damage !== undefined) {
        expect((damage as SegmentDamaged).message).toContain(
          `${segment.path} is damaged: its entries ${lost[0]![0]} to`,
        );
      }
      // What is given on is a whole segment.
      expect(scanSegment(bytes)).toMatchObject({ first: 1, torn: false });
    });
  }
});

test("the newest segment of a lane keeps the whole blocks behind a damaged one; a torn end is put aside", () => {
  const segment = writeSegment(folder, "realtime", 1, [entryLines(1, 2), entryLines(3, 2), entryLines(5, 2)]);
  const whole = readFileSync(segment.path, "utf8");
  const recover = () => recoverLane(join(folder, "realtime"), "realtime", join(folder, "quarantine"), 0);
  writeFileSync(segment.path, whole.replace('{"seq":3,', '{"seq":4,'));
  expect(recover()).toMatchObject({ segments: [{ first: 1, last: 6 }], nextSeq: 7, quarantined: [] });
  writeFileSync(segment.path, whole.replace('{"seq":5,', '{"seq":6,'));
  expect(recover()).toMatchObject({ segments: [{ first: 1, last: 4 }], nextSeq: 5, quarantined: [{}] });
});

test("the appliance starts, loads the rest, names file and range, and the doctor says what to do", async () => {
  const directory = await initialisedDirectory();
  const { dataDir } = directory;
  const lines = (first: number, projectId: number) =>
    Array.from({ length: 5 }, (_, n) =>
      JSON.stringify({
        ...{ seq: first + n, project_id: projectId, uuid: Bun.randomUUIDv7(), event: `e${first + n}` },
        ...{ distinct_id: "someone", time: 1.7e15, received: 1.7e15, historical: false, mode: "full" },
        ...{ made_uuid: false, elements_chain: null, properties: {} },
      }),
    );
  const journal = join(dataDir, "journal");
  mkdirSync(journal, { recursive: true, mode: 0o700 });
  writeSegment(journal, "realtime", 1, [lines(1, 1), lines(6, 1)]);
  const bad = writeSegment(journal, "realtime", 11, [lines(11, 1), lines(16, 1), lines(21, 1)]);
  writeSegment(journal, "realtime", 26, [lines(26, 1)]);
  writeFileSync(bad.path, readFileSync(bad.path, "utf8").replace('"event":"e18"', '"event":"e99"'));
  const before = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
  expect(before.code).toBe(1);
  expect(before.stdout).toContain("realtime/0000000000000011.ndjson is damaged behind entry 15");
  expect(before.stdout).toContain("put back a copy of the file");

  const appliance = await TestAppliance.start({ directory });
  const events = await appliance.eventsWhenStored(25);
  const lost = [16, 17, 18, 19, 20];
  expect(events.map(({ seq }) => seq)).toEqual(
    Array.from({ length: 30 }, (_, n) => n + 1).filter((seq) => !lost.includes(seq)),
  );
  expect((await appliance.capture({ event: "later", distinct_id: "a" })).status).toBe(200);
  await appliance.eventsWhenStored(26);
  const said = appliance.logs.filter(({ level }) => level === "error");
  expect(said).toMatchObject([{ code: "segment_damaged", msg: expect.stringContaining("16 to 20") }]);
  expect(await appliance.stop()).toBe(0);
  expect(readdirSync(join(journal, "quarantine"))).toEqual([
    "realtime-0000000000000011.ndjson.lost-16-20.damaged",
  ]);
  const after = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
  expect(after.code).toBe(0);
  expect(after.stdout).toContain("Of the realtime entries 16 to 20 some are lost");
  rmSync(join(dataDir, ".."), { recursive: true, force: true });
}, 30_000);
