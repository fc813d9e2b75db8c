/** What the doctor checks about the event store: whether it can be opened, and whether it could be made again. */

import { accessSync, constants, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLastBackup } from "../../backup/last-backup.ts";
import { localCopies, reachOf } from "../../backup/recovery/backup-copies.ts";
import { expectedGaps, wayFrom } from "../../backup/recovery/base.ts";
import { readDamagedMark } from "../../backup/recovery/put-aside.ts";
import { type Cursors, gapsText, neededUpTo } from "../../backup/recovery/range.ts";
import { isOfThisHistory } from "../../backup/restore-note.ts";
import { eventsSchemaVersion, readEventsVersion, withEventFile } from "../../events/duckdb/database.ts";
import { readAllRows } from "../../events/duckdb/every-block.ts";
import { areNativeFilesThere, setNativeFolder } from "../../events/duckdb/native-folder.ts";
import { openFailureOf } from "../../events/duckdb/open-failure.ts";
import { firstLine } from "../../lib/errors.ts";
import { shellWord } from "../../lib/shell-text.ts";
import { paths } from "../../paths.ts";
import { openPeople } from "../../people/open.ts";
import { laneCursors } from "../../people/reader.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";
import { userOfFiles } from "./permissions.ts";

/** The event store can be opened. For an appliance that does not run. */
export async function checkEventStore(dataDir: string): Promise<Finding[]> {
  const place = paths(dataDir);
  if (!existsSync(place.events)) return await checkMissing(dataDir);
  const own = mayUnpack(dataDir) ? undefined : mkdtempSync(join(tmpdir(), "flagkeep-doctor-"));
  setNativeFolder(own ?? place.native);
  try {
    return await checkFile(dataDir);
  } finally {
    if (own !== undefined) rmSync(own, { recursive: true, force: true });
  }
}

/** What somebody else leaves in the directory, its user could not remove. */
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
  const place = paths(dataDir);
  try {
    const found = await readEventsVersion(place.events);
    if (found <= eventsSchemaVersion) await withEventFile(place.events, readAllRows);
    const mark = readDamagedMark(dataDir);
    if (mark !== undefined) return [await brokenFinding(dataDir, `Corruption found: ${mark}`)];
    if (found <= eventsSchemaVersion) return [ok("events", "The event store can be opened and read.")];
    const message = `The event store has schema version ${found}, this version knows ${eventsSchemaVersion}.`;
    return [failure("events", message, "Use the newer Flagkeep that wrote it.")];
  } catch (error) {
    const message = `The event store cannot be read: ${firstLine(error)}`;
    if (openFailureOf(error, "opening") !== "other") return [await brokenFinding(dataDir, message)];
    return [failure("events", message, "See DuckDB's error; the file itself may be intact.")];
  }
}

async function checkMissing(dataDir: string): Promise<Finding[]> {
  const needed = neededEntries(dataDir);
  if (needed.realtime + needed.historical === 0) return [ok("events", "The event store does not exist yet.")];
  return [await brokenFinding(dataDir, "The file of the event store is missing.")];
}

/** Says whether the next start mends it, or what to run. */
async function brokenFinding(dataDir: string, message: string): Promise<Finding> {
  const gaps = await expectedGaps(dataDir, neededEntries(dataDir), await localCopies(dataDir));
  if (gaps.length === 0) {
    return failure("events", message, "The next start, or `flagkeep rebuild`, rebuilds it without loss.");
  }
  const backup = readLastBackup(dataDir)?.file ?? "FILE";
  return failure(
    "events",
    `${message} It can be made again only without the entries ${gapsText(gaps)}.`,
    `Name a backup that reaches further, \`flagkeep rebuild --from ${shellWord(backup)}\`, or do without these entries, ` +
      "`flagkeep rebuild --accept-loss`.",
  );
}

/** Whatever the journal has forgotten is in the archive or in a backup, so that the event store could be made again. */
export async function checkArchive(dataDir: string): Promise<Finding[]> {
  // In this order: a segment goes from the journal when it is in the archive.
  const needed = neededEntries(dataDir);
  const gaps = isCovered(dataDir, needed)
    ? []
    : await expectedGaps(dataDir, needed, await localCopies(dataDir));
  if (gaps.length === 0) {
    return [ok("archive", "All loaded events are in a backup or in the archive after it.")];
  }
  const message = `No backup covers the entries ${gapsText(gaps)}, and they are not archived: a corrupt event store would lose them.`;
  return [
    warning("archive", message, "Run `flagkeep backup create`, and see the setting --archive-max-size."),
  ];
}

/** By the last backup wherever it is, unless a restore has ended its history. */
function isCovered(dataDir: string, needed: Cursors): boolean {
  const last = readLastBackup(dataDir);
  const counts = last?.created_at && isOfThisHistory(dataDir, last.created_at);
  return wayFrom(dataDir, reachOf(counts ? last.positions : []), needed).gaps.length === 0;
}

function neededEntries(dataDir: string): Cursors {
  const place = paths(dataDir);
  const none: Cursors = { realtime: 0, historical: 0 };
  if (!existsSync(place.people)) return none;
  try {
    const people = openPeople(place.people, { readonly: true });
    try {
      return neededUpTo(place.journal, laneCursors(people));
    } finally {
      people.$client.close();
    }
  } catch {
    // The check of that file tells.
    return none;
  }
}
