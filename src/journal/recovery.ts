/** Recovers the journal's lanes at startup: lists segments and quarantines torn writes. */

import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import {
  firstOfFileName,
  type Lane,
  readableAfterCorruption,
  type SealedSegment,
  scanSegment,
} from "./segment.ts";
import { withoutAllocated } from "./segment-file.ts";

export interface TornWrite {
  lane: Lane;
  /** File name of the truncated segment. */
  segment: string;
  /** Path of the quarantined bytes. */
  path: string;
  bytes: number;
}

export interface Recovered {
  segments: SealedSegment[];
  /** The next sequence number to assign. */
  nextSeq: number;
  quarantined: TornWrite[];
}

/**
 * Recovers the segments of a lane's folder. Bytes after the last intact block were never acknowledged and are
 * quarantined; corruption before it is reported by the reader. Older segments were intact when the next one was
 * started, and loading verifies them.
 * @param seenSeq the highest sequence number applied to the stores: new ones are higher, even if all segments are
 * deleted
 */
export function recoverLane(
  folder: string,
  lane: Lane,
  quarantineFolder: string,
  seenSeq: number,
): Recovered {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = readdirSync(folder)
    .filter((name) => firstOfFileName(name) !== undefined)
    .sort();
  const recovered: Recovered = { segments: [], nextSeq: seenSeq + 1, quarantined: [] };
  names.forEach((name, index) => {
    const path = join(folder, name);
    const first = firstOfFileName(name)!;
    const nextName = names[index + 1];
    if (nextName !== undefined) {
      recovered.segments.push({
        lane,
        first,
        last: firstOfFileName(nextName)! - 1,
        path,
        bytes: statSync(path).size,
      });
      return;
    }
    const newest = recoverNewest(path, lane, quarantineFolder);
    if (newest.quarantined !== undefined) recovered.quarantined.push(newest.quarantined);
    if (newest.segment !== undefined) recovered.segments.push(newest.segment);
    recovered.nextSeq = Math.max(
      recovered.nextSeq,
      newest.segment === undefined ? first : newest.segment.last + 1,
    );
  });
  return recovered;
}

function recoverNewest(path: string, lane: Lane, quarantineFolder: string) {
  const file = readFileSync(path);
  const bytes = withoutAllocated(file);
  if (bytes.length < file.length) truncateSync(path, bytes.length);
  // A crash between creation and the first write.
  if (bytes.length === 0) {
    unlinkSync(path);
    return {};
  }
  const scan = scanSegment(bytes);
  const first = scan?.first ?? firstOfFileName(basename(path))!;
  const isOfLane = scan === undefined || scan.lane === lane;
  const lastSeq = isOfLane ? readableAfterCorruption(bytes, scan, { lane, first }) : undefined;
  // The reader skips corrupt blocks and reports them.
  if (lastSeq !== undefined) return { segment: { lane, first, last: lastSeq, path, bytes: bytes.length } };
  if (scan === undefined || scan.lane !== lane) {
    // No intact header and no intact block: nothing in this file was acknowledged.
    const target = quarantinePath(quarantineFolder, lane, path);
    renameSync(path, target);
    return { quarantined: { lane, segment: basename(path), path: target, bytes: bytes.length } };
  }
  let quarantined: TornWrite | undefined;
  if (scan.torn) {
    const target = quarantinePath(quarantineFolder, lane, path);
    writeFileSync(target, bytes.subarray(scan.goodBytes), { mode: 0o600, flush: true });
    truncateSync(path, scan.goodBytes);
    quarantined = { lane, segment: basename(path), path: target, bytes: bytes.length - scan.goodBytes };
  }
  if (scan.last < scan.first) {
    renameSync(path, quarantinePath(quarantineFolder, lane, `${path}.empty`));
    return { quarantined };
  }
  return { segment: { lane, first: scan.first, last: scan.last, path, bytes: scan.goodBytes }, quarantined };
}

function quarantinePath(folder: string, lane: Lane, path: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return join(folder, `${lane}-${basename(path)}.${Date.now()}.torn`);
}
