/** Doctor checks of the event store: whether it can be opened, and whether it can be rebuilt. */

import { accessSync, constants, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isOfThisHistory, readLastBackup } from "../../backup/last-backup.ts";
import { getExtent, localCopies } from "../../backup/recovery/backup-copies.ts";
import { readCorruptMark } from "../../backup/recovery/quarantine.ts";
import { type Cursors, formatGaps, neededUpTo } from "../../backup/recovery/range.ts";
import { expectedGaps, planFrom } from "../../backup/recovery/recovery-source.ts";
import { eventsSchemaVersion, readEventsVersion, withEventFile } from "../../events/duckdb/database.ts";
import { areNativeFilesThere, setNativeFolder } from "../../events/duckdb/native-folder.ts";
import { toOpenError } from "../../events/duckdb/open-error.ts";
import { readAllBlocks } from "../../events/duckdb/verify-blocks.ts";
import { firstLine } from "../../lib/errors.ts";
import { shellWord } from "../../lib/terminal-text.ts";
import { paths } from "../../paths.ts";
import { openPersons } from "../../persons/open.ts";
import { laneCursors } from "../../persons/reader.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";
import { userOfFiles } from "./permissions.ts";

/** The event store can be opened. Requires a stopped server. */
export async function checkEventStore(dataDir: string): Promise<Finding[]> {
  const dataPaths = paths(dataDir);
  if (!existsSync(dataPaths.events)) return await checkMissing(dataDir);
  const own = mayUnpack(dataDir) ? undefined : mkdtempSync(join(tmpdir(), "flagkeep-doctor-"));
  setNativeFolder(own ?? dataPaths.native);
  try {
    return await checkFile(dataDir);
  } finally {
    if (own !== undefined) rmSync(own, { recursive: true, force: true });
  }
}

/** The owner of a directory cannot remove another user's files in it. */
function mayUnpack(dataDir: string): boolean {
  if (areNativeFilesThere(paths(dataDir).native)) return true;
  try {
    accessSync(dataDir, constants.W_OK);
  } catch {
    return false;
  }
  return process.geteuid?.() === userOfFiles(dataDir);
}

async function checkFile(dataDir: string): Promise<Finding[]> {
  const storePaths = paths(dataDir);
  try {
    const found = await readEventsVersion(storePaths.events);
    if (found <= eventsSchemaVersion) await withEventFile(storePaths.events, readAllBlocks);
    const mark = readCorruptMark(dataDir);
    if (mark !== undefined) return [await brokenFinding(dataDir, `Corruption found: ${mark}`)];
    if (found <= eventsSchemaVersion) return [ok("events", "The event store can be opened and read.")];
    const message = `The event store has schema version ${found}, this version supports ${eventsSchemaVersion}.`;
    return [failure("events", message, "Use the newer Flagkeep that wrote it.")];
  } catch (error) {
    const message = `The event store cannot be read: ${firstLine(error)}`;
    if (toOpenError(error, "opening") !== "other") return [await brokenFinding(dataDir, message)];
    return [failure("events", message, "See DuckDB's error; the file itself may be intact.")];
  }
}

async function checkMissing(dataDir: string): Promise<Finding[]> {
  const needed = neededEntries(dataDir);
  if (needed.realtime + needed.historical === 0) return [ok("events", "The event store does not exist yet.")];
  return [await brokenFinding(dataDir, "events.duckdb is missing.")];
}

/** Reports whether the next start repairs the store, or which command to run. */
async function brokenFinding(dataDir: string, message: string): Promise<Finding> {
  const gaps = await expectedGaps(dataDir, neededEntries(dataDir), await localCopies(dataDir));
  if (gaps.length === 0) {
    return failure("events", message, "The next start, or `flagkeep rebuild`, rebuilds it without loss.");
  }
  const backup = readLastBackup(dataDir)?.file ?? "FILE";
  return failure(
    "events",
    `${message} It can only be rebuilt without entries ${formatGaps(gaps)}.`,
    `Rebuild from a newer backup, \`flagkeep rebuild --from ${shellWord(backup)}\`, or without these entries, ` +
      "`flagkeep rebuild --accept-loss`.",
  );
}

/** Every entry pruned from the journal is in the archive or in a backup, so that the event store can be rebuilt. */
export async function checkArchive(dataDir: string): Promise<Finding[]> {
  // Order matters: a segment leaves the journal once it is in the archive.
  const needed = neededEntries(dataDir);
  const gaps = isCovered(dataDir, needed)
    ? []
    : await expectedGaps(dataDir, needed, await localCopies(dataDir));
  if (gaps.length === 0) {
    return [ok("archive", "All loaded events are in a backup or in the archive after it.")];
  }
  const message = `No backup covers the entries ${formatGaps(gaps)}, and they are not archived: a corrupt event store would lose them.`;
  return [
    warning("archive", message, "Run `flagkeep backup create`, and see the setting --archive-max-size."),
  ];
}

/** The last backup covers them, wherever it is stored, unless a restore has ended its history. */
function isCovered(dataDir: string, needed: Cursors): boolean {
  const last = readLastBackup(dataDir);
  const counts = last?.created_at && isOfThisHistory(dataDir, last.created_at);
  return planFrom(dataDir, getExtent(counts ? last.positions : []), needed).gaps.length === 0;
}

function neededEntries(dataDir: string): Cursors {
  const files = paths(dataDir);
  const none: Cursors = { realtime: 0, historical: 0 };
  if (!existsSync(files.people)) return none;
  try {
    const people = openPersons(files.people, { readonly: true });
    try {
      return neededUpTo(files.journal, laneCursors(people));
    } finally {
      people.$client.close();
    }
  } catch {
    // The check of that file reports it.
    return none;
  }
}
