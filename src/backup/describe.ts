/** Describes and verifies backups. */

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { readEventsVersion, withEventFile } from "../events/duckdb/database.ts";
import {
  firstOfFileName,
  type Lane,
  lanes,
  readableAfterCorruption,
  scanSegment,
} from "../journal/segment.ts";
import { deleteIncrementally } from "../lib/remove-files.ts";
import { paths } from "../paths.ts";
import { loadedExternally } from "../persons/external-events.ts";
import { openPersons } from "../persons/open.ts";
import { laneCursors } from "../persons/reader.ts";
import { versions } from "../version.ts";
import { countEvents, countStores } from "./counts.ts";
import { SnapshotError } from "./errors.ts";
import { BackupKeys } from "./keys.ts";
import { backupFormat, type Manifest, type Part, unpackedBytes } from "./manifest.ts";
import { unpackFrom } from "./read-file.ts";
import { assertKnownSchemas, schemaVersions } from "./schema-versions.ts";
import type { BackupSource } from "./source.ts";
import { openRestored } from "./verify-restored.ts";
import { assertDiskSpace, type FreeSpace, readPart } from "./write-file.ts";

/**
 * @param folder a snapshot. @param createdAt a time before the snapshot: it contains everything acknowledged by then.
 */
export async function describeSnapshot(folder: string, createdAt: Date): Promise<Manifest> {
  const dataPaths = paths(folder);
  const { duckdb, sqlite, version } = versions();
  // DuckDB first: its library is in the data directory, and the copies have none.
  const eventsSchema = existsSync(dataPaths.events) ? await readEventsVersion(dataPaths.events) : null;
  const schemas = await schemaVersions(folder);
  const foundIn = (name: string) => schemas.find(({ store }) => store === name)!.found;
  const { applied, outside } = existsSync(dataPaths.people)
    ? cursorsIn(dataPaths.people)
    : { applied: noPositions(), outside: noPositions() };
  const [loaded, events] = eventsSchema
    ? await withEventFile(dataPaths.events, async (connection) => {
        const rows = await connection.runAndReadAll("SELECT lane, seq FROM load_cursor");
        const cursors = noPositions();
        for (const [lane, seq] of rows.getRows()) cursors[lane as Lane] = Number(seq);
        return [cursors, await countEvents(connection)] as const;
      })
    : [outside, new Map<number, number>()];
  const segments = lanes.map((lane) => neededSegments(folder, lane, loaded[lane]));
  const stores = ["flagkeep.sqlite", "people.sqlite", "payload.key", "events.duckdb", "events.duckdb.wal"]
    .filter((name) => existsSync(join(folder, name)))
    .map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
  const parts: Part[] = [];
  for (const { name, bytes } of [...stores, ...segments.flatMap(({ parts }) => parts)]) {
    parts.push({ name, bytes, sha256: await getHash(join(folder, name), bytes) });
  }
  return {
    format: backupFormat,
    created_at: createdAt.toISOString(),
    versions: { flagkeep: version, duckdb, sqlite },
    schemas: { metadata: foundIn("metadata"), people: foundIn("people"), events: eventsSchema },
    positions: segments.map(({ lane, last }) => ({
      lane,
      loaded_seq: loaded[lane],
      applied_seq: applied[lane],
      last_seq: Math.max(last, loaded[lane], applied[lane]),
    })),
    ...countStores(folder, events),
    parts,
  };
}

const noPositions = (): Record<Lane, number> => ({ realtime: 0, historical: 0 });

/** Cursors of applied persons, and of loaded events in an external event store. */
function cursorsIn(path: string): Record<"applied" | "outside", Record<Lane, number>> {
  const people = openPersons(path, { readonly: true });
  try {
    return { applied: laneCursors(people), outside: loadedExternally(people) };
  } finally {
    people.$client.close();
  }
}

/** The segments with entries after a position, each up to its last complete block: the newest may be growing. */
function neededSegments(folder: string, lane: Lane, after: number) {
  const names = readdirSync(join(folder, "journal", lane)).sort();
  const parts: { name: string; bytes: number }[] = [];
  let last = 0;
  names.forEach((name, index) => {
    const next = names[index + 1];
    if (next !== undefined && firstOfFileName(next)! <= after + 1) return;
    const bytes = readFileSync(join(folder, "journal", lane, name));
    const scan = scanSegment(bytes);
    if (readableAfterCorruption(bytes, scan, { lane, first: firstOfFileName(name)! }) !== undefined) {
      // A cut-off segment would pass as complete, without the acknowledged entries after the corruption.
      throw new SnapshotError(`Journal segment ${lane}/${name} is corrupt. Run \`flagkeep doctor\`.`);
    }
    if (scan === undefined || scan.last < scan.first || scan.last <= after) return;
    parts.push({ name: `journal/${lane}/${name}`, bytes: scan.goodBytes });
    last = scan.last;
  });
  return { lane, parts, last };
}

async function getHash(path: string, bytes: number): Promise<string> {
  const hash = createHash("sha256");
  if (bytes > 0) for await (const chunk of readPart(path, bytes)) hash.update(chunk);
  return hash.digest("hex");
}

export interface VerifyOptions {
  /** Parent of the temporary folder; DuckDB's library must be set up. */
  workFolder: string;
  /** Decrypt the backup; absent: it is not encrypted. */
  keys?: BackupKeys;
  onProgress?: (done: number, total: number) => void;
  getFreeSpace?: FreeSpace;
}

/**
 * @returns the manifest of a restorable backup.
 * @throws {BackupCorruptError} @throws {BackupFromNewerVersionError} @throws {DiskSpaceError}
 */
export async function verifyBackup(source: BackupSource, options: VerifyOptions): Promise<Manifest> {
  const { workFolder, onProgress, getFreeSpace: getSpace } = options;
  const folder = join(workFolder, `verify-${crypto.randomUUID()}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    let done = 0;
    let total = 0;
    const manifest = await unpackFrom(
      source,
      options.keys ?? BackupKeys.none,
      folder,
      async (manifest) => {
        assertKnownSchemas(manifest);
        total = unpackedBytes(manifest);
        await assertDiskSpace(workFolder, total * 1.1, getSpace);
      },
      {
        isTemporary: true,
        onBytes: (bytes) => {
          done += bytes;
          onProgress?.(done, total);
        },
      },
    );
    await openRestored(folder, manifest, true);
    return manifest;
  } finally {
    await deleteIncrementally(folder);
  }
}
