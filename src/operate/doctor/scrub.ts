/**
 * Reads every block of every store and segment, to find corruption while a backup can still help.
 *
 * The journal, its archive and the event store have checksums, which are compared. SQLite has none: every page is read,
 * and tables are compared with their indexes. A running engine reads the event store; data it has cached in memory is
 * not read from the disk again.
 */

import { existsSync, statSync } from "node:fs";
import { basename } from "node:path";
import { EngineClient } from "../../engine/client.ts";
import { withEventFile } from "../../events/duckdb/database.ts";
import { setNativeFolder } from "../../events/duckdb/native-folder.ts";
import { isCorruption } from "../../events/duckdb/open-error.ts";
import { readAllBlocks } from "../../events/duckdb/verify-blocks.ts";
import { listArchive, readArchived } from "../../journal/archive.ts";
import { lanes } from "../../journal/segment.ts";
import { AppError, firstLine } from "../../lib/errors.ts";
import { patientClient, problemLine } from "../../lib/sqlite.ts";
import { tryAcquireLock } from "../../lock.ts";
import { paths } from "../../paths.ts";
import { storeUsage } from "../disk-usage.ts";
import { partNames, recordScrub, type Scrub, type ScrubbedPart } from "../scrub-schedule.ts";
import { checkJournal } from "./stores.ts";

/** Timeout for an engine that does not respond. */
const engineWaitMs = 60_000;
/** More sentences about one store add nothing. */
const sentencesMax = 20;

/**
 * Reads everything in a data directory, changes no data, and records the result. The working directory becomes the data
 * directory: the engine's socket name is relative.
 *
 * @param onPart called with the name of the part that is read next.
 */
export async function scrub(dataDir: string, onPart: (part: string) => void): Promise<Scrub> {
  process.chdir(dataDir);
  const at = new Date();
  const lock = tryAcquireLock(paths(dataDir).lock, dataDir);
  const dataPaths = paths(dataDir);
  const use = storeUsage(dataDir);
  const work: Record<ScrubbedPart["part"], { bytes: number; read: () => string[] | Promise<string[]> }> = {
    metadata: { bytes: use.metadata_bytes, read: () => findSqliteCorruption(dataPaths.metadata) },
    people: { bytes: use.people_bytes, read: () => findSqliteCorruption(dataPaths.people) },
    journal: { bytes: use.journal_bytes, read: () => findJournalCorruption(dataDir, lock === undefined) },
    archive: { bytes: use.archive_bytes, read: () => findArchiveCorruption(dataPaths.archive) },
    events: { bytes: use.events_bytes, read: () => findEventsCorruption(dataDir, lock === undefined) },
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
  await recordScrub(dataDir, found);
  return found;
}

function findSqliteCorruption(path: string): string[] {
  if (!existsSync(path)) return [];
  try {
    const db = patientClient(path, { readonly: true });
    try {
      const found = db.query(`PRAGMA integrity_check(${sentencesMax})`).values() as [string][];
      return found[0]?.[0] === "ok" ? [] : found.map(([text]) => `${basename(path)}: ${problemLine(text)}`);
    } finally {
      db.close();
    }
  } catch (error) {
    return [`${basename(path)}: ${firstLine(error)}`];
  }
}

function findJournalCorruption(dataDir: string, isRunning: boolean): string[] {
  // An end that a crash tore off was never acknowledged: that is a warning.
  return checkJournal(dataDir, isRunning)
    .filter(({ level }) => level === "error")
    .map(({ message }) => message);
}

async function findArchiveCorruption(folder: string): Promise<string[]> {
  const corruption: string[] = [];
  for (const lane of lanes) {
    for (const file of listArchive(folder, lane)) {
      const { corruption: found } = await readArchived(file);
      // A backed-up file may be deleted while it is read.
      if (found !== undefined && existsSync(file.path)) corruption.push(found.message);
    }
  }
  return corruption;
}

async function findEventsCorruption(dataDir: string, isRunning: boolean): Promise<string[]> {
  const { events, native } = paths(dataDir);
  if (!existsSync(events) || statSync(events).size === 0) return [];
  try {
    if (isRunning) await new EngineClient().requestWithRetry("readEverything", {}, engineWaitMs);
    else {
      setNativeFolder(native);
      await withEventFile(events, (connection) => readAllBlocks(connection));
    }
    return [];
  } catch (error) {
    // Says nothing about the file: the engine was unavailable, busy, of another version, or out of memory.
    if (error instanceof AppError || !isCorruption(error)) throw error;
    return [`${basename(events)}: ${firstLine(error)}`];
  }
}
