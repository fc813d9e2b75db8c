/** An archive in a folder of its own, with segments to be kept and a disk whose free space is given. */

import { afterEach, beforeEach, expect } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type DiscardedRange, listArchive, readArchived } from "../../src/journal/archive.ts";
import { type ArchiveOptions, SegmentArchive } from "../../src/journal/archive-writer.ts";
import { systemDisk } from "../../src/journal/disk.ts";
import type { Lane, SealedSegment } from "../../src/journal/segment.ts";
import { entryLines, writeSegment } from "../support/segments.ts";
import { temporaryFolder } from "../support/server.ts";

/** Where the archive of the test at hand is: a new one for each. */
export const at = { folder: "", archiveFolder: "", space: { freeBytes: 0, totalBytes: 0 } };

/** Call it once in a file of tests. */
export function useArchiveFolder(): void {
  beforeEach(() => {
    at.folder = temporaryFolder();
    at.archiveFolder = join(at.folder, "archive");
    at.space = { freeBytes: 1e12, totalBytes: 1e12 };
  });
  afterEach(() => rmSync(at.folder, { recursive: true, force: true }));
}

export function openArchive(settings: Partial<ArchiveOptions> = {}) {
  const seen = { released: [] as [Lane, number][], warned: [] as DiscardedRange[], errors: [] as unknown[] };
  const archive = new SegmentArchive(
    {
      folder: at.archiveFolder,
      quarantineFolder: join(at.folder, "quarantine"),
      bytesMax: 1e9,
      reserveBytes: 1e8,
      ...settings,
    },
    {
      onReleased: (lane, last) => seen.released.push([lane, last]),
      onGivenUp: (range) => seen.warned.push(range),
      onError: (error) => seen.errors.push(error),
    },
    { ...systemDisk, space: async () => at.space },
  );
  return { archive, seen };
}

/** Segments of a lane, one after the other, each with two blocks. */
export function segments(
  lane: Lane,
  first: number,
  count: number,
  entries = 10,
  bytes = 100,
): SealedSegment[] {
  const all: SealedSegment[] = [];
  for (let next = first; all.length < count; next += entries) {
    const half = entries / 2;
    all.push(
      writeSegment(at.folder, lane, next, [
        entryLines(next, half, bytes),
        entryLines(next + half, half, bytes),
      ]),
    );
  }
  return all;
}

export async function keep(archive: SegmentArchive, all: readonly SealedSegment[]): Promise<void> {
  archive.keep(all);
  await archive.idle();
}

export async function archivedText(lane: Lane): Promise<string> {
  let text = "";
  for (const file of listArchive(at.archiveFolder, lane)) {
    const read = await readArchived(file);
    expect(read.corruption).toBeUndefined();
    for (const segment of read.segments) text += segment.bytes.toString();
  }
  return text;
}

export const ranges = (lane: Lane) =>
  listArchive(at.archiveFolder, lane).map(({ first, last }) => [first, last]);
