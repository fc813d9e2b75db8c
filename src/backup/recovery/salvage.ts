/**
 * Brings a restored backup up to the last acknowledged event of an older data directory.
 *
 * Entries after the backup are copied from the old archive and journal into the restored journal, as whole segments;
 * the next start applies them. Nothing in the old directory changes.
 */

import { appendFileSync, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { metadataSchemaVersion } from "../../accounts/db.ts";
import { openMetadata } from "../../accounts/metadata.ts";
import { listOrganizations } from "../../accounts/organizations.ts";
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
import { patientClient } from "../../lib/sqlite.ts";
import { paths } from "../../paths.ts";
import { openPersons } from "../../persons/open.ts";
import { laneCursors } from "../../persons/reader.ts";
import { isOfThisHistory } from "../last-backup.ts";
import type { Manifest } from "../manifest.ts";
import { getExtent } from "./backup-copies.ts";
import { archivedAfter, type Cursors, formatGaps, type Gap, gapsBetween, segmentsIn } from "./range.ts";
import { readFile } from "./replay.ts";

/** The old directory does not continue where the backup ends. */
class ReplayIncompleteError extends AppError {
  readonly code = "replay_incomplete";
  override readonly hint =
    "Restore a later backup that contains them, or continue without them: --accept-loss. Nothing was changed.";
  constructor(gaps: readonly Gap[]) {
    super(`Entries ${formatGaps(gaps)} are neither in the backup nor in the old archive and journal.`);
  }
}

/** The old directory and the backup belong to different data. */
class ReplaySourceError extends AppError {
  readonly code = "replay_foreign";
  override readonly hint = "Pass the directory that the backup was created from. Nothing was changed.";
}

export interface SalvageResult {
  /** Entries that the next start applies: events, and ingestion warnings. */
  entries: number;
  /** Whether flags, keys and projects are those of the old directory or of the backup. */
  metadata: "old" | "backup";
  /** Why they are the backup's. */
  reason: "missing" | "damaged" | "newer" | null;
  /** Entries of projects that the backup does not contain. */
  put_aside: number;
  lost: readonly Gap[];
}

/**
 * @param restored the folder of the unpacked backup.
 * @throws {ReplayIncompleteError} unless losses are accepted. @throws {ReplaySourceError}
 */
export async function salvageEntries(
  oldDir: string,
  restored: string,
  manifest: Manifest,
  acceptLoss: boolean,
): Promise<SalvageResult> {
  if (!isOfThisHistory(oldDir, manifest.created_at)) {
    throw new ReplaySourceError(`${oldDir} was restored to an earlier time after the backup was created.`);
  }
  const lastSeq = getExtent(manifest.positions);
  const old = paths(oldDir);
  const files = [
    ...archivedAfter(old.archive, lastSeq),
    ...segmentsIn(old.journal).filter(({ lane, last }) => last > lastSeq[lane]),
  ];
  const lost = gapsBetween(lastSeq, getLast(oldDir, files), files);
  if (lost.length > 0 && !acceptLoss) throw new ReplayIncompleteError(lost);

  const metadata = salvageMetadata(oldDir, restored);
  if (metadata === "foreign") {
    throw new ReplaySourceError(`${oldDir} and the backup belong to different organizations.`);
  }
  const known = projectIds(restored);
  const carried: SalvageResult = {
    entries: 0,
    put_aside: 0,
    lost,
    ...(metadata === "ok"
      ? { metadata: "old" as const, reason: null }
      : { metadata: "backup" as const, reason: metadata }),
  };
  for (const lane of lanes) {
    const ofLane = files.filter((file) => file.lane === lane).sort((a, b) => a.first - b.first);
    const writer = new LaneCopy(restored, lane, lastSeq[lane], known);
    for (const file of ofLane) {
      const { segments, corruption } = await readFile(file);
      for (const { first, bytes } of segments) await writer.add(first, bytes);
      if (corruption === undefined) continue;
      const gap = { lane, first: corruption.lastGood + 1, last: file.last };
      if (!acceptLoss) throw new ReplayIncompleteError([gap]);
      carried.lost = [...carried.lost, gap];
    }
    await syncFolder(join(paths(restored).journal, lane));
    carried.entries += writer.entries;
    carried.put_aside += writer.quarantined;
  }
  return carried;
}

/** Per lane, the last entry that the old directory acknowledged, as far as known. */
function getLast(oldDir: string, files: readonly ArchivedSegment[]): Cursors {
  let applied: Cursors = { realtime: 0, historical: 0 };
  try {
    const people = openPersons(paths(oldDir).people, { readonly: true });
    applied = laneCursors(people);
    people.$client.close();
  } catch {
    // The files alone decide then.
  }
  const last = (lane: Lane) =>
    files.reduce((max, file) => (file.lane === lane ? Math.max(max, file.last) : max), applied[lane]);
  return { realtime: last("realtime"), historical: last("historical") };
}

/** Writes segments of one lane into the restored journal. */
class LaneCopy {
  entries = 0;
  quarantined = 0;
  private readonly folder: string;
  /** A crash may have left a segment in both the archive and the journal. */
  private seenTo: number;

  /** @param lastSeq the last entry in the backup. */
  constructor(
    private readonly restored: string,
    private readonly lane: Lane,
    lastSeq: number,
    private readonly known: ReadonlySet<number>,
  ) {
    this.folder = join(paths(restored).journal, lane);
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    this.seenTo = lastSeq;
  }

  /** A segment replaces the part of it that is in the backup. */
  async add(first: number, bytes: Buffer): Promise<void> {
    const lines = bytes
      .toString("utf8")
      .split("\n")
      .filter((line) => line.startsWith(entryStart));
    const preserved: string[] = [];
    let last = first - 1;
    for (const line of lines) {
      const { seq, project_id } = JSON.parse(line) as { seq: number; project_id: number };
      last = seq;
      const isKnown = this.known.has(project_id);
      if (isKnown) preserved.push(line);
      if (seq <= this.seenTo) continue;
      if (isKnown) this.entries += 1;
      else this.quarantine(line);
    }
    if (last <= this.seenTo) return;
    this.seenTo = last;
    await this.write(
      first,
      preserved.length === lines.length ? bytes : getSegment(this.lane, first, preserved, last),
    );
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

  private quarantine(line: string): void {
    const { quarantine } = paths(this.restored);
    mkdirSync(quarantine, { recursive: true, mode: 0o700 });
    appendFileSync(join(quarantine, `unknown-projects-${this.lane}.ndjson`), `${line}\n`, { mode: 0o600 });
    this.quarantined += 1;
  }
}

/** A segment of these lines that covers the numbers up to `last`. */
function getSegment(lane: Lane, first: number, lines: readonly string[], last: number): Buffer {
  const header = segmentHeader(lane, first);
  if (lines.length === 0) return Buffer.from(header);
  const entries = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const hash = hashBlock(entries, last, hashSeed(first));
  return Buffer.concat([Buffer.from(header), entries, Buffer.from(blockLine(last, entries.length, hash))]);
}

/** `ok`: it has replaced the restored one. Otherwise the reason; `foreign`: it contains none of the organizations. */
export type MetadataSalvage = "ok" | "missing" | "damaged" | "newer" | "foreign";

/** Replaces the restored metadata store and payload key with copies of the old ones. */
function salvageMetadata(oldDir: string, restoredDir: string): MetadataSalvage {
  const from = paths(oldDir);
  const to = paths(restoredDir);
  if (!existsSync(from.metadata)) return "missing";
  const copy = `${to.metadata}.old`;
  const result = copyIfUsable(from.metadata, copy, organizationIds(to.metadata));
  if (result === "ok") {
    removeStore(to.metadata);
    renameSync(copy, to.metadata);
    if (existsSync(from.payloadKey)) copyFileSync(from.payloadKey, to.payloadKey);
  }
  removeStore(copy);
  return result;
}

function copyIfUsable(path: string, copy: string, known: readonly string[]): MetadataSalvage {
  try {
    const db = patientClient(path, { readwrite: true, create: false });
    try {
      const [first] = db.query("PRAGMA quick_check(1)").values() as [[string]];
      if (first[0] !== "ok") return "damaged";
      const { version } = db.query("SELECT max(version) AS version FROM schema_migration").get() as {
        version: number;
      };
      if (version > metadataSchemaVersion) return "newer";
      db.run("VACUUM INTO ?", [copy]);
    } finally {
      db.close();
    }
    // Opening migrates the schema: only that of the copy.
    return organizationIds(copy).some((id) => known.includes(id)) ? "ok" : "foreign";
  } catch {
    return "damaged";
  }
}

function removeStore(path: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
}

/** IDs of all projects, including archived ones. */
export function projectIds(dataDir: string): Set<number> {
  const metadata = openMetadata(paths(dataDir).metadata);
  try {
    return new Set(metadata.projects.list({ includeArchived: true }).map(({ id }) => id));
  } finally {
    metadata.close();
  }
}

function organizationIds(path: string): string[] {
  const metadata = openMetadata(path);
  try {
    return listOrganizations(metadata.db).map(({ id }) => id);
  } finally {
    metadata.close();
  }
}
