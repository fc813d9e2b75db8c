/** Opens an unpacked backup as the server would, migrates it and compares it with the manifest. */

import type { Database } from "bun:sqlite";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openMetadata } from "../accounts/metadata.ts";
import { openEventDatabase } from "../events/duckdb/database.ts";
import { type Lane, scanSegment } from "../journal/segment.ts";
import { problemLine } from "../lib/sqlite.ts";
import { paths } from "../paths.ts";
import { openPersons } from "../persons/open.ts";
import { countEvents, countStores, getDifference } from "./counts.ts";
import { BackupCorruptError } from "./errors.ts";
import { type Manifest, manifestName } from "./manifest.ts";

const memoryLimitBytes = 512 * 1024 * 1024;

/**
 * Opens and closes every store of an unpacked backup; older schemas are migrated.
 *
 * @param thorough reads every page and every value, which takes about as long as unpacking; the copy is deleted
 * afterwards.
 * @throws {BackupCorruptError} a store cannot be opened, or does not match the manifest.
 */
export async function openRestored(folder: string, manifest: Manifest, thorough: boolean): Promise<void> {
  const dataPaths = paths(folder);
  // A copy for verification is deleted: syncing it would delay the journal of a running server.
  const synchronous = thorough ? "off" : "full";
  const named = new Set(manifest.parts.map(({ name }) => name));
  if (!named.has("flagkeep.sqlite"))
    throw new BackupCorruptError(manifestName, "flagkeep.sqlite is missing in it");
  await opening("flagkeep.sqlite", () => {
    const metadata = openMetadata(dataPaths.metadata, { synchronous });
    if (thorough) assertIntact("flagkeep.sqlite", metadata.db.$client);
    metadata.close();
  });
  if (named.has("people.sqlite")) {
    await opening("people.sqlite", () => {
      const people = openPersons(dataPaths.people, { synchronous });
      if (thorough) assertIntact("people.sqlite", people.$client);
      people.$client.close();
    });
  }
  const events = existsSync(dataPaths.events)
    ? await opening("events.duckdb", () => withEvents(folder, thorough))
    : new Map();
  assertSegments(folder, manifest);
  const difference = getDifference(manifest, countStores(folder, events));
  if (difference !== undefined)
    throw new BackupCorruptError(manifestName, `the stores contain ${difference}`);
}

async function withEvents(folder: string, thorough: boolean) {
  const storePaths = paths(folder);
  const database = await openEventDatabase(storePaths.events, {
    memoryLimitBytes,
    // A verification is not urgent, and a server may be running.
    threads: thorough ? 1 : 2,
    temporaryFolder: join(storePaths.work, "duckdb"),
  });
  try {
    const connection = await database.connect();
    try {
      return await countEvents(connection, thorough);
    } finally {
      connection.closeSync();
    }
  } finally {
    database.close();
    rmSync(storePaths.work, { recursive: true, force: true });
  }
}

/**
 * Every segment is intact, and together they continue from the event store to the manifest's last entry without a gap.
 */
function assertSegments(folder: string, { parts, positions }: Manifest): void {
  const lastSeq: Record<Lane, number> = { realtime: 0, historical: 0 };
  for (const { lane, loaded_seq } of positions) lastSeq[lane] = loaded_seq;
  for (const { name, bytes } of parts) {
    if (!name.startsWith("journal/")) continue;
    // The copy's newest segment is a link to that of the running server, which appends beyond the backup.
    const scan = scanSegment(readFileSync(join(folder, name)).subarray(0, bytes));
    if (scan === undefined || scan.torn)
      throw new BackupCorruptError(name, "it is not a complete journal segment");
    const before = lastSeq[scan.lane];
    if (scan.first > before + 1) {
      throw new BackupCorruptError(
        name,
        `the entries ${before + 1} to ${scan.first - 1} are missing before it`,
      );
    }
    lastSeq[scan.lane] = Math.max(before, scan.last);
  }
  for (const { lane, last_seq } of positions) {
    if (lastSeq[lane] < last_seq) {
      throw new BackupCorruptError(
        `journal/${lane}`,
        `it ends at entry ${lastSeq[lane]} instead of ${last_seq}`,
      );
    }
  }
}

function assertIntact(part: string, db: Database): void {
  const found = db.query("PRAGMA quick_check(1)").values()[0]?.[0];
  if (found !== "ok") throw new BackupCorruptError(part, problemLine(String(found)));
}

/** Reports any error of a store as corruption of its part. */
async function opening<Result>(part: string, open: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof BackupCorruptError) throw error;
    throw new BackupCorruptError(part, `it cannot be opened (${(error as Error).message})`);
  }
}
