/**
 * Copies all stores of a data directory in use, consistently at one point in time.
 *
 * Event store: DuckDB does not overwrite blocks that its file refers to before the next checkpoint, so a copy while
 * checkpoints are held is the state of the last one. (A copy by SQL takes 100 times the processor time, to decompress
 * and compress.) The file's headers show afterwards whether a checkpoint happened nevertheless.
 *
 * Journal: its files leave their folder only after a checkpoint, so while checkpoints are held every acknowledged entry
 * that the copied event store does not have is there. The persons store is copied later and may be ahead of the event
 * store, as after a crash.
 */

import { Database } from "bun:sqlite";
import { constants, existsSync, mkdirSync, readdirSync } from "node:fs";
import { copyFile, link, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { hasPayloadKey, PayloadKeyError } from "../flags/store/payload-key.ts";
import { firstOfFileName, lanes } from "../journal/segment.ts";
import { deleteIncrementally } from "../lib/remove-files.ts";
import { paths } from "../paths.ts";
import { SnapshotError } from "./errors.ts";
import { HashedFile } from "./write-file.ts";

/** The process that has the event store open. */
export interface CheckpointHolder {
  /** Writes a checkpoint, if that is possible now, and then holds checkpoints for this long. */
  start(ms: number): Promise<void>;
  /** Extends the hold to this long from now. */
  hold(ms: number): Promise<void>;
  release(): Promise<void>;
}

const attemptsMax = 3;
/** End of a DuckDB file's headers. */
const headerBytes = 3 * 4096;
const holdMs = 60_000;
/** Copying an SQLite store cannot be interrupted to extend the hold. */
const longHoldMs = 600_000;

/**
 * Copies the stores, under their names in a data directory; journal segments are links.
 *
 * @param folder exists and is empty.
 * @param holder absent when the server is stopped and its lock is held.
 * @throws {SnapshotError} a checkpoint interfered with every attempt.
 */
export async function createSnapshot(
  dataDir: string,
  folder: string,
  holder: CheckpointHolder | undefined,
): Promise<void> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    try {
      if (await copyStores(dataDir, folder, holder)) return;
    } finally {
      await holder?.release();
    }
    for (const name of readdirSync(folder)) await deleteIncrementally(join(folder, name));
  }
  throw new SnapshotError("The event store changed during every copy attempt.");
}

/** @returns whether no checkpoint interfered. */
async function copyStores(
  dataDir: string,
  folder: string,
  holder: CheckpointHolder | undefined,
): Promise<boolean> {
  const from = paths(dataDir);
  const to = paths(folder);
  await holder?.start(holdMs);
  const before = await headers(from.events);
  const holding = setInterval(() => void holder?.hold(holdMs).catch(() => undefined), holdMs / 4);
  try {
    if (before !== undefined) await copyIncrementally(from.events, to.events);
    // A stopped server may have left a log; that of a running one only repeats entries of the journal.
    const log = `${from.events}.wal`;
    if (holder === undefined && existsSync(log)) await copyIncrementally(log, `${to.events}.wal`);
  } finally {
    clearInterval(holding);
  }
  await holder?.hold(longHoldMs);
  if (existsSync(from.people)) copySqlite(from.people, to.people);
  await linkSegments(from.journal, to.journal);
  const after = await headers(from.events);
  copySqlite(from.metadata, to.metadata);
  if (existsSync(from.payloadKey)) await copyFile(from.payloadKey, to.payloadKey);
  else if (hasPayloadKey(to.metadata)) throw new PayloadKeyError(from.payloadKey, "is missing");
  return before === undefined ? after === undefined : after !== undefined && before.equals(after);
}

async function headers(path: string): Promise<Buffer | undefined> {
  if (!existsSync(path)) return undefined;
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headerBytes), 0, headerBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Clones the file if the file system can; otherwise copies without disturbing the journal. */
async function copyIncrementally(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
    return;
  } catch {
    await rm(to, { force: true });
  }
  const source = await open(from, "r");
  const target = await open(to, "wx", 0o600);
  try {
    const sink = new HashedFile(target, "temporary");
    const chunk = Buffer.alloc(1024 * 1024);
    for (;;) {
      const { bytesRead } = await source.read(chunk, 0, chunk.length);
      if (bytesRead === 0) break;
      await sink.write(chunk.subarray(0, bytesRead));
    }
  } finally {
    await source.close();
    await target.close();
  }
}

function copySqlite(from: string, to: string): void {
  const db = new Database(from, { readwrite: true, create: false });
  try {
    db.run("PRAGMA busy_timeout = 10000");
    // The copy is deleted soon: syncing it would delay the journal.
    db.run("PRAGMA synchronous = OFF");
    db.run("VACUUM INTO ?", [to]);
  } finally {
    // With a stopped server, closing the last connection checkpoints the log into the file, which must be durable.
    db.run("PRAGMA synchronous = FULL");
    db.close();
  }
}

async function linkSegments(from: string, to: string): Promise<void> {
  for (const lane of lanes) {
    mkdirSync(join(to, lane), { recursive: true, mode: 0o700 });
    const names = existsSync(join(from, lane)) ? readdirSync(join(from, lane)) : [];
    for (const name of names) {
      if (firstOfFileName(name) === undefined) continue;
      const path = join(from, lane, name);
      const target = join(to, lane, name);
      // Different disk, or a file system without links.
      await link(path, target).catch(() => copyFile(path, target).catch(unlessDeleted));
    }
  }
}

/** Files deleted while checkpoints are held were already loaded into the event store's file. */
function unlessDeleted(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
