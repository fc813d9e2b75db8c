/** What the doctor checks about the data: both SQLite files, the event store, the journal, the quarantine. */

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
import { sqliteVersion } from "../../lib/sqlite/migrate.ts";
import { readonlyClient } from "../../lib/sqlite/open.ts";
import { paths } from "../../paths.ts";
import { openPeople } from "../../people/open.ts";
import { laneCursors } from "../../people/reader.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";

const restore = "Stop Flagkeep, keep a copy of the data directory, and restore the last good backup.";

const mend =
  "Stop Flagkeep and put back a copy of the file if there is one; otherwise the next start loads what can be read of it, " +
  "says what cannot, and keeps the file in the quarantine.";

/** SQLite finds nothing wrong in its files, and this version knows them. */
export function checkSqliteFiles(dataDir: string): Finding[] {
  const place = paths(dataDir);
  const versions = knownVersions();
  return [place.metadata, place.people].flatMap((path): Finding[] => {
    if (!existsSync(path)) return [ok("files", `${basename(path)} is not made yet.`)];
    const complaint = quickCheck(path);
    if (complaint !== undefined) {
      return [failure("files", `${basename(path)} is damaged: ${complaint}`, restore)];
    }
    const [found, known] = [
      sqliteVersion(path) ?? 0,
      path === place.people ? versions.people : versions.metadata,
    ];
    if (found <= known) return [ok("files", `${basename(path)} is whole.`)];
    const message = `${basename(path)} has schema version ${found}, this version knows ${known}.`;
    return [failure("files", message, "Use the newer Flagkeep that wrote it.")];
  });
}

/** The key of encrypted payloads is there, and is the one that the data directory was used with. */
export function checkPayloadKey(dataDir: string): Finding[] {
  const place = paths(dataDir);
  try {
    const isKnown = checkPayloadKeyFile(place.payloadKey, place.metadata);
    return isKnown ? [ok("files", "payload.key is the key of this data directory.")] : [];
  } catch (error) {
    if (!(error instanceof PayloadKeyError)) throw error;
    return [failure("files", error.message, error.hint)];
  }
}

function quickCheck(path: string): string | undefined {
  try {
    const db = readonlyClient(path);
    try {
      const [first] = db.query("PRAGMA quick_check(1)").values() as [[string]];
      return first[0] === "ok" ? undefined : first[0];
    } finally {
      db.close();
    }
  } catch (error) {
    return (error as Error).message;
  }
}

/** What was torn off or could not be read was put aside for a person to look at. */
export function checkQuarantine(dataDir: string): Finding[] {
  const folder = paths(dataDir).quarantine;
  const names = existsSync(folder) ? readdirSync(folder) : [];
  if (names.length === 0) return [ok("quarantine", "The quarantine is empty.")];
  const damaged = names.flatMap((name) => damagedFinding(folder, name));
  const bytes = names.reduce((sum, name) => sum + (statSync(join(folder, name)).size ?? 0), 0);
  return [
    ...damaged,
    warning(
      "quarantine",
      `${names.length} files with ${bytes} bytes are in ${folder}.`,
      "Names that end in .torn were never acknowledged, those in .broken were made again: they may be deleted; look at " +
        "the others first.",
    ),
  ];
}

function damagedFinding(folder: string, name: string): Finding[] {
  const match = /^(\w+)-\d+\.ndjson\.lost-(\d+)-(\d+)\.damaged$/.exec(name);
  if (match === null) return [];
  const [, lane, first, last] = match;
  const message = `Of the ${lane} entries ${first} to ${last} some are lost: their file was damaged before it was loaded.`;
  const hint = `Send those events again from their source if you can; what is left of the file is ${join(folder, name)}.`;
  return [warning("quarantine", message, hint)];
}

/**
 * Every acknowledged entry that was not loaded yet is there and whole.
 *
 * @param isRunning the newest segment of a lane is being written then, and the oldest may go at any time.
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
    return [ok("journal", `The ${lane} journal is whole: ${walk.entries} entries in ${walk.files} files.`)];
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
    const bytes = readIfThere(join(folder, name));
    // Loaded and removed meanwhile.
    if (bytes === undefined) continue;
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
  of: { name: string; lane: Lane; mayBeTorn: boolean; before: SegmentScan | undefined },
): Finding | undefined {
  const name = `${of.lane}/${of.name}`;
  if (of.mayBeTorn && (scan === undefined || scan.torn)) {
    const hint = "Nothing to do: the next start puts the unacknowledged rest into the quarantine.";
    return warning("journal", `The end of ${name} was torn off by a crash.`, hint);
  }
  if (scan === undefined) return failure("journal", `${name} cannot be read.`, mend);
  if (scan.lane !== of.lane || scan.first !== firstOfFileName(of.name)) {
    return failure("journal", `${name} is not what its name says.`, restore);
  }
  if (scan.torn) return failure("journal", `${name} is damaged behind entry ${scan.last}.`, mend);
  if (of.before !== undefined && of.before.last + 1 !== scan.first) {
    const gap = `${of.before.last + 1} to ${scan.first - 1}`;
    return failure("journal", `Entries ${gap} before ${name} are missing.`, restore);
  }
  return undefined;
}

function appliedSeq(dataDir: string, lane: Lane): number {
  const path = paths(dataDir).people;
  if (!existsSync(path)) return 0;
  try {
    const people = openPeople(path, { readonly: true });
    try {
      return laneCursors(people)[lane];
    } finally {
      people.$client.close();
    }
  } catch {
    // The check of the file tells; without it nothing can be said about what was loaded.
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
