import { afterEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { formatGaps, gapsBetween, neededUpTo } from "../../../src/backup/recovery/range.ts";
import type { ArchivedSegment } from "../../../src/journal/archive.ts";
import type { Lane } from "../../../src/journal/segment.ts";
import { entryLines, writeSegment } from "../../support/segments.ts";
import { temporaryFolder } from "../../support/server.ts";

const file = (lane: Lane, first: number, last: number): ArchivedSegment => ({
  lane,
  first,
  last,
  bytes: 1,
  path: "",
});

describe("ranges missing between the cursors and the required entries", () => {
  const cases: {
    name: string;
    from: number;
    to: number;
    files: [number, number][];
    gaps: [number, number][];
  }[] = [
    { name: "nothing is needed", from: 10, to: 10, files: [], gaps: [] },
    { name: "no files", from: 0, to: 10, files: [], gaps: [[1, 10]] },
    {
      name: "all of it",
      from: 0,
      to: 10,
      files: [
        [1, 4],
        [5, 10],
      ],
      gaps: [],
    },
    {
      name: "in any order, overlapping, and more",
      from: 2,
      to: 8,
      files: [
        [5, 12],
        [1, 6],
      ],
      gaps: [],
    },
    { name: "the beginning", from: 0, to: 10, files: [[4, 10]], gaps: [[1, 3]] },
    {
      name: "the middle and the end",
      from: 0,
      to: 20,
      files: [
        [1, 5],
        [8, 9],
      ],
      gaps: [
        [6, 7],
        [10, 20],
      ],
    },
    {
      name: "what is behind the needed is of no interest",
      from: 0,
      to: 5,
      files: [
        [1, 5],
        [9, 12],
      ],
      gaps: [],
    },
    { name: "up to the needed only", from: 0, to: 5, files: [[9, 12]], gaps: [[1, 5]] },
  ];
  for (const { name, from, to, files, gaps } of cases) {
    test(name, () => {
      const found = gapsBetween(
        { realtime: from, historical: 7 },
        { realtime: to, historical: 7 },
        files.map(([first, last]) => file("realtime", first, last)),
      );
      expect(found).toEqual(gaps.map(([first, last]) => ({ lane: "realtime", first, last })));
    });
  }

  test("lanes are apart, and the text names both", () => {
    const gaps = gapsBetween({ realtime: 0, historical: 0 }, { realtime: 5, historical: 9 }, [
      file("historical", 1, 5),
      file("realtime", 2, 5),
    ]);
    expect(formatGaps(gaps)).toBe("realtime 1 to 1 and historical 6 to 9 (about 5 events)");
  });
});

describe("entries that the event store must have", () => {
  const folder = temporaryFolder();
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("all that was applied, as far as the journal does not have it", () => {
    const applied = { realtime: 30, historical: 5 };
    expect(neededUpTo(folder, applied)).toEqual(applied);
    writeSegment(folder, "realtime", 21, [entryLines(21, 10)]);
    writeSegment(folder, "realtime", 31, [entryLines(31, 10)]);
    writeSegment(folder, "historical", 6, [entryLines(6, 10)]);
    expect(neededUpTo(folder, applied)).toEqual({ realtime: 20, historical: 5 });
  });
});
