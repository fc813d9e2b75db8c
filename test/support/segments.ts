/** Writes sealed journal segments as the journal does. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  blockLine,
  hashBlock,
  hashSeed,
  type Lane,
  type SealedSegment,
  segmentFileName,
  segmentHeader,
} from "../../src/journal/segment.ts";

/** @param blocks each the lines of what was created durable together, without their line breaks. */
export function writeSegment(
  folder: string,
  lane: Lane,
  first: number,
  blocks: readonly (readonly string[])[],
): SealedSegment {
  let hash = hashSeed(first);
  let last = first - 1;
  let text = segmentHeader(lane, first);
  for (const lines of blocks) {
    const entries = lines.map((line) => `${line}\n`).join("");
    // Numbers between blocks may be missing: they were given to entries that were rejected.
    ({ seq: last } = JSON.parse(lines.at(-1)!) as { seq: number });
    hash = hashBlock(Buffer.from(entries), last, hash);
    text += entries + blockLine(last, Buffer.byteLength(entries), hash);
  }
  mkdirSync(join(folder, lane), { recursive: true });
  const path = join(folder, lane, segmentFileName(first));
  writeFileSync(path, text);
  return { lane, first, last, path, bytes: Buffer.byteLength(text) };
}

/** Lines of entries that differ and do not compress well, from a sequence number on. */
export function entryLines(first: number, count: number, bytes = 100): string[] {
  return Array.from({ length: count }, (_, index) => {
    const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("base64");
    return JSON.stringify({ seq: first + index, project_id: 1, noise });
  });
}

/** The lines of the entries in a segment. */
export function linesIn(segment: Buffer): string[] {
  return segment
    .toString("utf8")
    .split("\n")
    .filter((line) => line.startsWith('{"seq":'));
}
