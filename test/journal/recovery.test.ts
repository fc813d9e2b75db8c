/** What the journal finds at a start, and what it does with what a crash or a disk has spoilt. */

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readSegment } from "../../src/journal/reader.ts";
import { recoverLane } from "../../src/journal/recovery.ts";
import type { SealedSegment } from "../../src/journal/segment.ts";
import { linesIn, writeSegment } from "../support/segments.ts";
import { temporaryFolder } from "../support/server.ts";

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const numbered = (first: number, ...texts: string[]) =>
  texts.map((text, index) => JSON.stringify({ seq: first + index, text }));

async function toStrings(segments: readonly SealedSegment[]): Promise<string[]> {
  const read = await Promise.all(segments.map((segment) => readSegment(segment)));
  return read.flatMap(({ bytes }) =>
    linesIn(bytes).map((line) => (JSON.parse(line) as { text: string }).text),
  );
}

const recover = () => recoverLane(join(folder, "realtime"), "realtime", join(folder, "quarantine"), 0);

describe("a torn tail", () => {
  test("cut at every byte of the last three blocks: whole blocks stay, the rest is quarantined", async () => {
    const { bytes, ends } = threeBlocks();
    for (let length = ends[0]!; length < bytes.length; length++) {
      const { segments, quarantined } = recoverBytes(bytes.subarray(0, length));
      const whole = ends.filter((end) => end <= length).length;
      expect(await toStrings(segments)).toEqual(["one", "two", "three"].slice(0, whole));
      expect(quarantined.length).toBe(ends.includes(length) ? 0 : 1);
    }
  });

  test("any flipped byte in the last blocks: no changed entry is read, blocks before it stay", async () => {
    const { bytes, ends } = threeBlocks();
    for (let at = ends[0]!; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 0x01;
      const { segments } = recoverBytes(changed);
      const texts = await toStrings(segments);
      const before = ends.filter((end) => end <= at).length;
      expect(texts.slice(0, before)).toEqual(["one", "two", "three"].slice(0, before));
      // A whole block behind the changed one was acknowledged as well.
      const behind = ["one", "two", "three"].slice(before + 1);
      expect(behind.slice(behind.length - (texts.length - before))).toEqual(texts.slice(before));
    }
  });

  function threeBlocks() {
    const texts = ["one", "two", "three"];
    const { path } = writeSegment(
      folder,
      "realtime",
      1,
      texts.map((text, index) => numbered(index + 1, text)),
    );
    const bytes = readFileSync(path);
    let from = 0;
    const ends = texts.map(() => {
      from = bytes.indexOf("\n", bytes.indexOf('{"block":', from)) + 1;
      return from;
    });
    return { bytes, ends };
  }

  function recoverBytes(bytes: Buffer) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, "realtime"), { recursive: true });
    writeFileSync(join(folder, "realtime", "0000000000000001.ndjson"), bytes);
    return recover();
  }

  test("the truncated part is quarantined byte by byte, and the next start finds a complete file", () => {
    const { bytes, ends } = threeBlocks();
    const { segments, quarantined, nextSeq } = recoverBytes(bytes.subarray(0, ends[1]! + 20));
    expect(segments).toMatchObject([{ first: 1, last: 2, bytes: ends[1]! }]);
    expect(readFileSync(segments[0]!.path).equals(bytes.subarray(0, ends[1]!))).toBeTrue();
    expect(quarantined).toMatchObject([{ segment: "0000000000000001.ndjson", bytes: 20 }]);
    expect(readFileSync(quarantined[0]!.path).equals(bytes.subarray(ends[1]!, ends[1]! + 20))).toBeTrue();
    expect(recover()).toEqual({ segments, nextSeq, quarantined: [] });
  });

  test("of a segment that is not the newest nothing is removed: the reader reports what is missing", async () => {
    const older = writeSegment(folder, "realtime", 1, [numbered(1, "one"), numbered(2, "two")]);
    writeSegment(folder, "realtime", 3, [numbered(3, "three")]);
    const bytes = readFileSync(older.path);
    writeFileSync(older.path, bytes.subarray(0, -20));
    const { segments, quarantined, nextSeq } = recover();
    expect(quarantined).toEqual([]);
    expect(readFileSync(older.path)).toHaveLength(bytes.length - 20);
    expect(segments.map(({ first, last }) => [first, last])).toEqual([
      [1, 2],
      [3, 3],
    ]);
    expect(nextSeq).toBe(4);
    expect((await readSegment(segments[0]!)).corruption).toMatchObject({ lost: [{ first: 2, last: 2 }] });
  });

  test("a file without even a header is quarantined, and its number is not used again", async () => {
    const { segments, quarantined, nextSeq } = recoverBytes(Buffer.from('{"segm'));
    expect(segments).toEqual([]);
    expect(quarantined).toHaveLength(1);
    expect(nextSeq).toBe(1);
    expect(readdirSync(dirname(quarantined[0]!.path))).toHaveLength(1);
  });
});

test("a corrupt block in an older segment is reported with the missing entries", async () => {
  const segment = writeSegment(folder, "realtime", 1, [numbered(1, "one"), numbered(2, "two")]);
  const bytes = readFileSync(segment.path);
  bytes[bytes.indexOf("two")] = 0x20;
  writeFileSync(segment.path, bytes);
  expect(await toStrings([segment])).toEqual(["one"]);
  const { corruption } = await readSegment(segment);
  expect(corruption).toMatchObject({ code: "segment_damaged", lastGood: 1, last: 2 });
});
