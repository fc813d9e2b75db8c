/** Opens what was unpacked as the appliance would, brings it up to date and compares it with the manifest. */

import type { Database } from "bun:sqlite";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openMetadata } from "../accounts/metadata.ts";
import { openEventDatabase } from "../events/duckdb/database.ts";
import { type Lane, scanSegment } from "../journal/segment.ts";
import { paths } from "../paths.ts";
import { openPeople } from "../people/open.ts";
import { countEvents, countStores, differenceOf } from "./counts.ts";
import { BackupDamaged } from "./errors.ts";
import { type Manifest, manifestName } from "./manifest.ts";

const memoryLimitBytes = 512 * 1024 * 1024;

/**
 * Opens and closes every store of an unpacked backup; older schemas are migrated.
 *
 * @param thorough reads every page and every value, which takes about as long as unpacking; the copy is not kept.
 * @throws {BackupDamaged} a store cannot be opened, or does not hold what the manifest says.
 */
export async function openRestored(folder: string, manifest: Manifest, thorough: boolean): Promise<void> {
  const place = paths(folder);
  // What is only looked at goes again: writing it to the disk would hold up the journal of an appliance beside it.
  const synchronous = thorough ? "off" : "full";
  const named = new Set(manifest.parts.map(({ name }) => name));
  if (!named.has("flagkeep.sqlite")) throw new BackupDamaged(manifestName, "it names no flagkeep.sqlite");
  await opening("flagkeep.sqlite", () => {
    const metadata = openMetadata(place.metadata, { synchronous });
    if (thorough) requireIntact("flagkeep.sqlite", metadata.db.$client);
    metadata.close();
  });
  if (named.has("people.sqlite")) {
    await opening("people.sqlite", () => {
      const people = openPeople(place.people, { synchronous });
      if (thorough) requireIntact("people.sqlite", people.$client);
      people.$client.close();
    });
  }
  const events = existsSync(place.events)
    ? await opening("events.duckdb", () => withEvents(folder, thorough))
    : new Map();
  requireSegments(folder, manifest);
  const difference = differenceOf(manifest, countStores(folder, events));
  if (difference !== undefined) throw new BackupDamaged(manifestName, `the stores hold ${difference}`);
}

async function withEvents(folder: string, thorough: boolean) {
  const place = paths(folder);
  const database = await openEventDatabase(place.events, {
    memoryLimitBytes,
    // A verification has time; an appliance may be at work beside it.
    threads: thorough ? 1 : 2,
    temporaryFolder: join(place.work, "duckdb"),
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
    rmSync(place.work, { recursive: true, force: true });
  }
}

/** Every segment is whole, and together they go on from the event store as far as the manifest says, without a gap. */
function requireSegments(folder: string, { parts, positions }: Manifest): void {
  const reached: Record<Lane, number> = { realtime: 0, historical: 0 };
  for (const { lane, loaded_seq } of positions) reached[lane] = loaded_seq;
  for (const { name, bytes } of parts) {
    if (!name.startsWith("journal/")) continue;
    // The newest segment of a copy is that of the running server, which goes on writing behind what the backup has.
    const scan = scanSegment(readFileSync(join(folder, name)).subarray(0, bytes));
    if (scan === undefined || scan.torn) throw new BackupDamaged(name, "it is no whole journal segment");
    const before = reached[scan.lane];
    if (scan.first > before + 1) {
      throw new BackupDamaged(name, `the entries ${before + 1} to ${scan.first - 1} are missing before it`);
    }
    reached[scan.lane] = Math.max(before, scan.last);
  }
  for (const { lane, last_seq } of positions) {
    if (reached[lane] < last_seq) {
      throw new BackupDamaged(`journal/${lane}`, `it ends at entry ${reached[lane]} instead of ${last_seq}`);
    }
  }
}

function requireIntact(part: string, db: Database): void {
  const found = db.query("PRAGMA quick_check(1)").values()[0]?.[0];
  if (found !== "ok") throw new BackupDamaged(part, String(found));
}

/** Whatever a store throws says that its part cannot be used. */
async function opening<Result>(part: string, open: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof BackupDamaged) throw error;
    throw new BackupDamaged(part, `it cannot be opened (${(error as Error).message})`);
  }
}
