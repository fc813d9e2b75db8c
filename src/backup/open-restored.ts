/** Opens what was unpacked as the appliance would, brings it up to date and compares it with the manifest. */

import type { Database } from "bun:sqlite";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openEventDatabase } from "../events/database.ts";
import { type Lane, lanes, scanSegment } from "../journal/segment.ts";
import { openMetadata } from "../metadata/metadata.ts";
import { paths } from "../paths.ts";
import { openPeople } from "../people/open.ts";
import { laneCursors } from "../people/reader.ts";
import { countEvents, countStores, differenceOf } from "./counts.ts";
import { BackupDamaged } from "./errors.ts";
import { type Manifest, manifestName } from "./manifest.ts";

const memoryLimitBytes = 256 * 1024 * 1024;

/**
 * Opens and closes every store of an unpacked backup; older schemas are migrated.
 *
 * @param thorough reads every page and every value, which takes about as long as unpacking.
 * @throws {BackupDamaged} a store can not be opened, or does not hold what the manifest says.
 */
export async function openRestored(folder: string, manifest: Manifest, thorough: boolean): Promise<void> {
  const place = paths(folder);
  const named = new Set(manifest.parts.map(({ name }) => name));
  if (!named.has("flagkeep.sqlite")) throw new BackupDamaged(manifestName, "it names no flagkeep.sqlite");
  await opening("flagkeep.sqlite", () => {
    const metadata = openMetadata(place.metadata);
    if (thorough) requireIntact("flagkeep.sqlite", metadata.db.$client);
    metadata.close();
  });
  let reached: Record<Lane, number> = { realtime: 0, historical: 0 };
  const people = named.has("people.sqlite")
    ? await opening("people.sqlite", () => {
        const db = openPeople(place.people);
        if (thorough) requireIntact("people.sqlite", db.$client);
        reached = laneCursors(db);
        return db;
      })
    : undefined;
  try {
    const events = existsSync(place.events)
      ? await opening("events.duckdb", () => withEvents(folder, thorough))
      : new Map();
    requireSegments(folder, manifest, reached);
    const difference = differenceOf(manifest, countStores(folder, events));
    if (difference !== undefined) throw new BackupDamaged(manifestName, `the stores hold ${difference}`);
  } finally {
    people?.$client.close();
  }
}

async function withEvents(folder: string, thorough: boolean) {
  const place = paths(folder);
  const database = await openEventDatabase(place.events, {
    memoryLimitBytes,
    threads: 2,
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

/** Every segment is whole, and together they reach as far as the manifest says. */
function requireSegments(folder: string, manifest: Manifest, reached: Record<Lane, number>): void {
  for (const { name } of manifest.parts) {
    if (!name.startsWith("journal/")) continue;
    const scan = scanSegment(readFileSync(join(folder, name)));
    if (scan === undefined || scan.torn) throw new BackupDamaged(name, "it is no whole journal segment");
    reached[scan.lane] = Math.max(reached[scan.lane], scan.last);
  }
  for (const lane of lanes) {
    const wanted = manifest.positions.find((position) => position.lane === lane)?.last_seq ?? 0;
    if (reached[lane] < wanted) {
      throw new BackupDamaged(`journal/${lane}`, `it ends at entry ${reached[lane]} instead of ${wanted}`);
    }
  }
}

function requireIntact(part: string, db: Database): void {
  const found = db.query("PRAGMA quick_check(1)").values()[0]?.[0];
  if (found !== "ok") throw new BackupDamaged(part, String(found));
}

/** Whatever a store throws says that its part can not be used. */
async function opening<Result>(part: string, open: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof BackupDamaged) throw error;
    throw new BackupDamaged(part, `it can not be opened (${(error as Error).message})`);
  }
}
