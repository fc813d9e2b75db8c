/**
 * Copies all stores of a data directory as they are at one point in time, while they are used.
 *
 * The event store: what DuckDB's file refers to is not overwritten before its next checkpoint, or a crash would destroy
 * it. So while checkpoints are held back the file can simply be copied, and the copy is the state at the last one. (A copy
 * by SQL decompresses and compresses everything: 100 times the processor time.) The file's headers tell afterwards
 * whether there was a checkpoint all the same.
 *
 * The journal: its files leave their folder only after a checkpoint. So what the copy of the event store lacks is there as
 * long as checkpoints are held, up to the last acknowledged event. The store of persons is copied later than the event
 * store and may be ahead of it, as after a crash.
 */

import { Database } from "bun:sqlite";
import { constants, existsSync, mkdirSync, readdirSync } from "node:fs";
import { copyFile, link, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { hasPayloadKey, PayloadKeyError } from "../flags/store/payload-key.ts";
import { firstOfFileName, lanes } from "../journal/segment.ts";
import { removeSparingly } from "../lib/remove-files.ts";
import { paths } from "../paths.ts";
import { SnapshotFailed } from "./errors.ts";
import { HashedFile } from "./hashed-file.ts";

/** Whoever has the event store open. */
export interface CheckpointHolder {
  /** Writes the file, if that is possible now, and then lets no checkpoint begin for so long. */
  begin(ms: number): Promise<void>;
  /** Makes it this long from now. */
  hold(ms: number): Promise<void>;
  release(): Promise<void>;
}

const attemptsMax = 3;
/** Where the headers of a DuckDB file end. */
const headerBytes = 3 * 4096;
const holdMs = 60_000;
/** Copying an SQLite store cannot be interrupted to hold again. */
const longHoldMs = 600_000;

/**
 * Copies the stores, under the names that they have in a data directory; journal segments are links.
 *
 * @param folder exists and is empty.
 * @param holder left out when the appliance is stopped and its lock taken.
 * @throws {SnapshotFailed} there was a checkpoint in between, every time.
 */
export async function takeSnapshot(
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
    for (const name of readdirSync(folder)) await removeSparingly(join(folder, name));
  }
  throw new SnapshotFailed("The event store wrote its file while it was copied, several times.");
}

/** @returns whether no checkpoint came in between. */
async function copyStores(
  dataDir: string,
  folder: string,
  holder: CheckpointHolder | undefined,
): Promise<boolean> {
  const from = paths(dataDir);
  const to = paths(folder);
  await holder?.begin(holdMs);
  const before = await headers(from.events);
  const holding = setInterval(() => void holder?.hold(holdMs).catch(() => undefined), holdMs / 4);
  try {
    if (before !== undefined) await copySparingly(from.events, to.events);
    // A stopped appliance may have left it; of a running one it holds what the journal holds too.
    const log = `${from.events}.wal`;
    if (holder === undefined && existsSync(log)) await copySparingly(log, `${to.events}.wal`);
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

/** Shares the blocks where the file system can; else copies without disturbing the journal. */
async function copySparingly(from: string, to: string): Promise<void> {
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
    // The copy goes again soon: writing it to the disk would hold up the journal.
    db.run("PRAGMA synchronous = OFF");
    db.run("VACUUM INTO ?", [to]);
  } finally {
    // Of a stopped appliance the last connection moves the log into the file, which has to be on the disk.
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
      const [path, target] = [join(from, lane, name), join(to, lane, name)];
      // On another disk, or where the file system knows no links.
      await link(path, target).catch(() => copyFile(path, target).catch(unlessGone));
    }
  }
}

/** What goes while checkpoints are held was in the event store's file before. */
function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
