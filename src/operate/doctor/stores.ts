/** Doctor checks of the data: both SQLite files, the payload key, the journal, the quarantine. */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { knownVersions } from "../../backup/schema-versions.ts";
import { checkPayloadKeyFile, PayloadKeyError } from "../../flags/store/payload-key.ts";
import {
  firstOfFileName,
  type Lane,
  lanes,
  readableAfterCorruption,
  type SegmentScan,
  scanSegment,
} from "../../journal/segment.ts";
import { withoutAllocated } from "../../journal/segment-file.ts";
import { describeSkipped, skippedEntries } from "../../journal/skipped-entries.ts";
import { checkSqlite, sqliteVersion } from "../../lib/sqlite.ts";
import { paths } from "../../paths.ts";
import { arePersonsMissing } from "../../persons/missing.ts";
import { openPersons } from "../../persons/open.ts";
import { laneCursors } from "../../persons/reader.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";

const restore = "Stop Flagkeep, keep a copy of the data directory, and restore the last good backup.";

const repair =
  "Stop Flagkeep and restore a copy of the file if one exists. Otherwise the next start loads its readable entries, " +
  "reports the others, and moves the file to the quarantine.";

/** SQLite finds no corruption in its files, and this version supports their schema. */
export function checkSqliteFiles(dataDir: string): Finding[] {
  const dataPaths = paths(dataDir);
  const versions = knownVersions();
  return [dataPaths.metadata, dataPaths.people].flatMap((path): Finding[] => {
    if (path === dataPaths.people && arePersonsMissing(dataDir))
      return [failure("files", `${basename(path)} is missing, but the data directory was used.`, restore)];
    if (!existsSync(path)) return [ok("files", `${basename(path)} does not exist yet.`)];
    const complaint = checkSqlite(path);
    if (complaint !== null) {
      return [failure("files", `${basename(path)} is corrupt: ${complaint}`, restore)];
    }
    const found = sqliteVersion(path) ?? 0;
    const known = path === dataPaths.people ? versions.people : versions.metadata;
    if (found <= known) return [ok("files", `${basename(path)} is intact.`)];
    const message = `${basename(path)} has schema version ${found}, this version supports ${known}.`;
    return [failure("files", message, "Use the newer Flagkeep that wrote it.")];
  });
}

/** The payload encryption key exists, and is the one that the data directory was used with. */
export function checkPayloadKey(dataDir: string): Finding[] {
  const storePaths = paths(dataDir);
  try {
    const isKnown = checkPayloadKeyFile(storePaths.payloadKey, storePaths.metadata);
    return isKnown ? [ok("files", "payload.key is the key of this data directory.")] : [];
  } catch (error) {
    if (!(error instanceof PayloadKeyError)) throw error;
    return [failure("files", error.message, error.hint)];
  }
}

/** Torn or unreadable data was quarantined for an operator to examine. */
export function checkQuarantine(dataDir: string): Finding[] {
  const folder = paths(dataDir).quarantine;
  const names = existsSync(folder) ? readdirSync(folder) : [];
  if (names.length === 0) return [ok("quarantine", "The quarantine is empty.")];
  const corrupt = skippedEntries(folder).map((skipped) =>
    warning(
      "quarantine",
      describeSkipped(skipped),
      "Send those events again from their source if you can, then remove the file.",
    ),
  );
  const bytes = names.reduce((sum, name) => sum + (statSync(join(folder, name)).size ?? 0), 0);
  return [
    ...corrupt,
    warning(
      "quarantine",
      `${names.length} files with ${bytes} bytes are in ${folder}.`,
      "Files ending in .torn were never acknowledged, and .broken files were rebuilt: both can be deleted. Check " +
        "the other files first.",
    ),
  ];
}

/**
 * Every acknowledged entry that is not loaded exists and is intact.
 *
 * @param isRunning the newest segment of a lane is being written then, and the oldest may be deleted at any time.
 */
export function checkJournal(dataDir: string, isRunning: boolean): Finding[] {
  return lanes.flatMap((lane) => {
    const walk = walkLane(join(paths(dataDir).journal, lane), lane, isRunning);
    if (walk.findings.length > 0) return walk.findings;
    const applied = appliedSeq(dataDir, lane);
    if (walk.first !== undefined && walk.first > applied + 1 && !isRunning) {
      const message = `The ${lane} journal starts at entry ${walk.first}, but only ${applied} were loaded.`;
      return [failure("journal", message, restore)];
    }
    return [ok("journal", `The ${lane} journal is intact: ${walk.entries} entries in ${walk.files} files.`)];
  });
}

function walkLane(folder: string, lane: Lane, isRunning: boolean) {
  const names = existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => firstOfFileName(name) !== undefined)
        .sort()
    : [];
  const walk = {
    findings: [] as Finding[],
    first: undefined as number | undefined,
    entries: 0,
    files: names.length,
  };
  let before: SegmentScan | undefined;
  for (const name of names) {
    const file = readIfThere(join(folder, name));
    // Loaded and deleted meanwhile.
    if (file === undefined) continue;
    const bytes = withoutAllocated(file);
    const scan = scanSegment(bytes);
    const first = firstOfFileName(name)!;
    // Only the end of the newest one may be torn.
    const mayBeTorn =
      name === names.at(-1) && readableAfterCorruption(bytes, scan, { lane, first }) === undefined;
    if (mayBeTorn && isRunning && (scan === undefined || scan.torn)) continue;
    const complaint = complaintAbout(scan, { name, lane, mayBeTorn, before });
    if (complaint !== undefined) walk.findings.push(complaint);
    if (scan === undefined) continue;
    walk.first ??= scan.first;
    walk.entries += scan.last - scan.first + 1;
    before = scan;
  }
  return walk;
}

function complaintAbout(
  scan: SegmentScan | undefined,
  target: { name: string; lane: Lane; mayBeTorn: boolean; before: SegmentScan | undefined },
): Finding | undefined {
  const name = `${target.lane}/${target.name}`;
  if (target.mayBeTorn && (scan === undefined || scan.torn)) {
    const hint = "No action is required: the next start quarantines the unacknowledged rest.";
    return warning("journal", `The end of ${name} was truncated by a crash.`, hint);
  }
  if (scan === undefined) return failure("journal", `${name} cannot be read.`, repair);
  if (scan.lane !== target.lane || scan.first !== firstOfFileName(target.name)) {
    return failure("journal", `${name} does not match its name.`, restore);
  }
  if (scan.torn) return failure("journal", `${name} is corrupt after entry ${scan.last}.`, repair);
  if (target.before !== undefined && target.before.last + 1 !== scan.first) {
    const gap = `${target.before.last + 1} to ${scan.first - 1}`;
    return failure("journal", `Entries ${gap} before ${name} are missing.`, restore);
  }
  return undefined;
}

function appliedSeq(dataDir: string, lane: Lane): number {
  const path = paths(dataDir).people;
  if (!existsSync(path)) return 0;
  try {
    const people = openPersons(path, { readonly: true });
    try {
      return laneCursors(people)[lane];
    } finally {
      people.$client.close();
    }
  } catch {
    // The check of the file reports it; without the file nothing is known about loaded entries.
    return Number.MAX_SAFE_INTEGER;
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
