/**
 * Reads every block of every store and segment, so that damage is found while a backup can still help.
 *
 * The journal, its archive and the event store have checksums of their own, which are compared. SQLite has none: of its files
 * every page is read, and tables are compared with their indexes. Beside a running appliance the engine reads the event
 * store; what it has in memory already is not read from the disk again.
 */

import { existsSync, statSync } from "node:fs";
import { basename } from "node:path";
import { EngineClient } from "../../engine/client.ts";
import { withEventFile } from "../../events/duckdb/database.ts";
import { readAllRows } from "../../events/duckdb/every-block.ts";
import { setNativeFolder } from "../../events/duckdb/native-folder.ts";
import { isDamage } from "../../events/duckdb/open-failure.ts";
import { listArchive, readArchived } from "../../journal/archive.ts";
import { lanes } from "../../journal/segment.ts";
import { AppError, firstLine } from "../../lib/errors.ts";
import { patientClient } from "../../lib/sqlite/open.ts";
import { tryLock } from "../../lock.ts";
import { paths } from "../../paths.ts";
import { storeUse } from "../disk-use.ts";
import { checkJournal } from "../doctor/stores.ts";
import { noteScrub, partNames, type Scrub, type ScrubbedPart } from "./last-scrub.ts";

/** How long an engine that does not answer is waited for. */
const engineWaitMs = 60_000;
/** More sentences about one store tell nothing new. */
const sentencesMax = 20;

/**
 * Reads everything in a data directory, changes nothing, and remembers what it found. The working directory becomes the data directory: the name of the
 * engine's socket is relative.
 *
 * @param onPart is told which part comes next.
 */
export async function scrub(dataDir: string, onPart: (part: string) => void): Promise<Scrub> {
  process.chdir(dataDir);
  const at = new Date();
  const lock = tryLock(paths(dataDir).lock, dataDir);
  const place = paths(dataDir);
  const use = storeUse(dataDir);
  const work: Record<ScrubbedPart["part"], { bytes: number; read: () => string[] | Promise<string[]> }> = {
    metadata: { bytes: use.metadata_bytes, read: () => sqliteDamage(place.metadata) },
    people: { bytes: use.people_bytes, read: () => sqliteDamage(place.people) },
    journal: { bytes: use.journal_bytes, read: () => journalDamage(dataDir, lock === undefined) },
    archive: { bytes: use.archive_bytes, read: () => archiveDamage(place.archive) },
    events: { bytes: use.events_bytes, read: () => eventsDamage(dataDir, lock === undefined) },
  };
  const parts: ScrubbedPart[] = [];
  try {
    for (const part of partNames) {
      onPart(part);
      const { bytes, read } = work[part];
      parts.push({ part, bytes, damage: (await read()).slice(0, sentencesMax) });
    }
  } finally {
    lock?.release();
  }
  const found: Scrub = {
    ok: parts.every(({ damage }) => damage.length === 0),
    at: at.toISOString(),
    ms: Date.now() - at.getTime(),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    parts,
  };
  await noteScrub(dataDir, found);
  return found;
}

function sqliteDamage(path: string): string[] {
  if (!existsSync(path)) return [];
  try {
    const db = patientClient(path, { readonly: true });
    try {
      const found = db.query(`PRAGMA integrity_check(${sentencesMax})`).values() as [string][];
      return found[0]?.[0] === "ok" ? [] : found.map(([text]) => `${basename(path)}: ${firstLine(text)}`);
    } finally {
      db.close();
    }
  } catch (error) {
    return [`${basename(path)}: ${firstLine(error)}`];
  }
}

function journalDamage(dataDir: string, isRunning: boolean): string[] {
  // An end that a crash tore off was never acknowledged: that is a warning.
  return checkJournal(dataDir, isRunning)
    .filter(({ level }) => level === "error")
    .map(({ message }) => message);
}

async function archiveDamage(folder: string): Promise<string[]> {
  const damage: string[] = [];
  for (const lane of lanes) {
    for (const file of listArchive(folder, lane)) {
      const { damage: found } = await readArchived(file);
      // What a backup covers may go while it is looked at.
      if (found !== undefined && existsSync(file.path)) damage.push(found.message);
    }
  }
  return damage;
}

async function eventsDamage(dataDir: string, isRunning: boolean): Promise<string[]> {
  const { events, native } = paths(dataDir);
  if (!existsSync(events) || statSync(events).size === 0) return [];
  try {
    if (isRunning) await new EngineClient().askPatiently("readEverything", {}, engineWaitMs);
    else {
      setNativeFolder(native);
      await withEventFile(events, (connection) => readAllRows(connection));
    }
    return [];
  } catch (error) {
    // Nothing is known of the file then: the engine was away, busy, of another version, or had no memory left.
    if (error instanceof AppError || !isDamage(error)) throw error;
    return [`${basename(events)}: ${firstLine(error)}`];
  }
}
