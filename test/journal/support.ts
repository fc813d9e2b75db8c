/** Journals, and what can be read back from them. */

import { type Disk, systemDisk } from "../../src/journal/disk.ts";
import { Journal, type JournalOptions } from "../../src/journal/journal.ts";
import { readSegment } from "../../src/journal/reader.ts";
import type { SealedSegment } from "../../src/journal/segment.ts";
import { linesIn } from "../support/segments.ts";

export const options: JournalOptions = {
  segmentBytesMax: 1e9,
  segmentEntriesMax: 1e6,
  sealIntervalMs: 3_600_000,
  flushIntervalMs: 0,
  queueBytesMax: 64e6,
  reserveBytes: 0,
};

export async function openJournal(
  folder: string,
  more: Partial<JournalOptions> = {},
  disk: Disk = systemDisk,
) {
  const sealed: SealedSegment[] = [];
  const failures: unknown[] = [];
  const opened = await Journal.open(
    folder,
    { realtime: 0, historical: 0 },
    { ...options, ...more },
    { onSealed: (segment) => sealed.push(segment), onFailure: (error) => failures.push(error) },
    disk,
  );
  return { ...opened, sealed, failures };
}

export const entry = (text: string) => `"text":${JSON.stringify(text)}}`;
export const toStrings = async (segments: SealedSegment[]) => {
  const read = await Promise.all(segments.map((segment) => readSegment(segment)));
  return read.flatMap(({ bytes }) =>
    linesIn(bytes).map((line) => JSON.parse(line) as { seq: number; text: string }),
  );
};
