/**
 * Brings a restored backup up to the last acknowledged event of an older data directory.
 *
 * Whatever the old archive and journal hold behind the backup goes into the restored journal, as whole segments; the next
 * start applies it as at first. Nothing in the old directory changes.
 */

import { appendFileSync, mkdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { ArchivedSegment } from "../../journal/archive.ts";
import { syncFolder } from "../../journal/disk.ts";
import { entryStart } from "../../journal/entry.ts";
import {
  blockLine,
  hashBlock,
  hashSeed,
  type Lane,
  lanes,
  segmentFileName,
  segmentHeader,
} from "../../journal/segment.ts";
import { AppError } from "../../lib/errors.ts";
import { paths } from "../../paths.ts";
import { openPeople } from "../../people/open.ts";
import { laneCursors } from "../../people/reader.ts";
import type { Manifest } from "../manifest.ts";
import { isOfThisHistory } from "../restore-note.ts";
import { reachOf } from "./backup-copies.ts";
import { projectIds, takeMetadataAlong } from "./old-metadata.ts";
import { archivedAfter, type Cursors, type Gap, gapsBetween, gapsText, segmentsIn } from "./range.ts";
import { readFile } from "./replay.ts";

/** The old directory does not go on where the backup ends. */
class ReplayIncomplete extends AppError {
  readonly code = "replay_incomplete";
  override readonly hint =
    "Restore a later backup, which has them, or go on without them: --accept-loss. Nothing was changed.";
  constructor(gaps: readonly Gap[]) {
    super(`The entries ${gapsText(gaps)} are neither in the backup nor in the old archive and journal.`);
  }
}

/** The old directory belongs to other data than the backup. */
class ReplayForeign extends AppError {
  readonly code = "replay_foreign";
  override readonly hint = "Name the directory from which the backup was taken. Nothing was changed.";
}

export interface CarriedOver {
  /** Entries that the next start applies: events, and notes about odd ones. */
  entries: number;
  /** Whether flags, keys and projects are those of the old directory; else they are the backup's. */
  metadata: "old" | "backup";
  /** Why they are the backup's. */
  reason: "missing" | "damaged" | "newer" | null;
  /** Entries of projects that the backup does not know. */
  put_aside: number;
  lost: readonly Gap[];
}

/**
 * @param restored the folder of the unpacked backup.
 * @throws {ReplayIncomplete} unless losses are accepted. @throws {ReplayForeign}
 */
export async function carryOver(
  oldDir: string,
  restored: string,
  manifest: Manifest,
  acceptLoss: boolean,
): Promise<CarriedOver> {
  if (!isOfThisHistory(oldDir, manifest.created_at)) {
    throw new ReplayForeign(`${oldDir} was restored to an earlier time since the backup was taken.`);
  }
  const reached = reachOf(manifest.positions);
  const old = paths(oldDir);
  const files = [
    ...archivedAfter(old.archive, reached),
    ...segmentsIn(old.journal).filter(({ lane, last }) => last > reached[lane]),
  ];
  const lost = gapsBetween(reached, lastOf(oldDir, files), files);
  if (lost.length > 0 && !acceptLoss) throw new ReplayIncomplete(lost);

  const metadata = takeMetadataAlong(oldDir, restored);
  if (metadata === "foreign") {
    throw new ReplayForeign(`${oldDir} and the backup belong to different organisations.`);
  }
  const known = projectIds(restored);
  const carried: CarriedOver = {
    ...{ entries: 0, put_aside: 0, lost },
    ...(metadata === "ok"
      ? { metadata: "old" as const, reason: null }
      : { metadata: "backup" as const, reason: metadata }),
  };
  for (const lane of lanes) {
    const ofLane = files.filter((file) => file.lane === lane).sort((a, b) => a.first - b.first);
    const writer = new LaneCopy(restored, lane, reached[lane], known);
    for (const file of ofLane) {
      const { segments, damage } = await readFile(file);
      for (const { first, bytes } of segments) await writer.add(first, bytes);
      if (damage === undefined) continue;
      const gap = { lane, first: damage.lastGood + 1, last: file.last };
      if (!acceptLoss) throw new ReplayIncomplete([gap]);
      carried.lost = [...carried.lost, gap];
    }
    await syncFolder(join(paths(restored).journal, lane));
    carried.entries += writer.entries;
    carried.put_aside += writer.putAside;
  }
  return carried;
}

/** Per lane, the last entry that the old directory acknowledged, as far as it can be known. */
function lastOf(oldDir: string, files: readonly ArchivedSegment[]): Cursors {
  let applied: Cursors = { realtime: 0, historical: 0 };
  try {
    const people = openPeople(paths(oldDir).people, { readonly: true });
    applied = laneCursors(people);
    people.$client.close();
  } catch {
    // Then the files alone tell.
  }
  const last = (lane: Lane) =>
    files.reduce((max, file) => (file.lane === lane ? Math.max(max, file.last) : max), applied[lane]);
  return { realtime: last("realtime"), historical: last("historical") };
}

/** Writes segments of one lane into the restored journal. */
class LaneCopy {
  entries = 0;
  putAside = 0;
  private readonly folder: string;
  /** A crash may have left a segment in both the archive and the journal. */
  private seenTo: number;

  /** @param reached the last entry that the backup has. */
  constructor(
    private readonly restored: string,
    private readonly lane: Lane,
    reached: number,
    private readonly known: ReadonlySet<number>,
  ) {
    this.folder = join(paths(restored).journal, lane);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    this.seenTo = reached;
  }

  /** A segment that the backup has the beginning of replaces that. */
  async add(first: number, bytes: Buffer): Promise<void> {
    const lines = bytes
      .toString("utf8")
      .split("\n")
      .filter((line) => line.startsWith(entryStart));
    const kept: string[] = [];
    let last = first - 1;
    for (const line of lines) {
      const { seq, project_id } = JSON.parse(line) as { seq: number; project_id: number };
      last = seq;
      const isKnown = this.known.has(project_id);
      if (isKnown) kept.push(line);
      if (seq <= this.seenTo) continue;
      if (isKnown) this.entries += 1;
      else this.keepAside(line);
    }
    if (last <= this.seenTo) return;
    this.seenTo = last;
    await this.write(first, kept.length === lines.length ? bytes : segmentOf(this.lane, first, kept, last));
  }

  private async write(first: number, bytes: Buffer): Promise<void> {
    const file = await open(join(this.folder, segmentFileName(first)), "w", 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  private keepAside(line: string): void {
    const { quarantine } = paths(this.restored);
    mkdirSync(quarantine, { recursive: true, mode: 0o700 });
    appendFileSync(join(quarantine, `unknown-projects-${this.lane}.ndjson`), `${line}\n`, { mode: 0o600 });
    this.putAside += 1;
  }
}

/** A segment of these lines that covers the numbers up to `last`. */
function segmentOf(lane: Lane, first: number, lines: readonly string[], last: number): Buffer {
  const header = segmentHeader(lane, first);
  if (lines.length === 0) return Buffer.from(header);
  const entries = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const hash = hashBlock(entries, last, hashSeed(first));
  return Buffer.concat([Buffer.from(header), entries, Buffer.from(blockLine(last, entries.length, hash))]);
}
