/**
 * Makes a backup: snapshot, file, verification, destination, in this order.
 *
 * A file gets the name of a backup only when it was verified, and the local one goes only when the destination's was
 * compared with it. So at every moment there are at least as many good backups as before.
 */

import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { setNativeFolder } from "../events/duckdb/native-folder.ts";
import { pruneArchive } from "../journal/archive.ts";
import { syncFolder } from "../journal/disk.ts";
import { lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { putProcessBehind } from "../lib/priority.ts";
import { removeSparingly } from "../lib/remove-files.ts";
import { paths } from "../paths.ts";
import { describeSnapshot } from "./describe.ts";
import { backupName, type Destination, type WrittenFile } from "./destination.ts";
import { BackupDamaged, BackupRunning, DestinationFailed, SnapshotFailed } from "./errors.ts";
import { HashedFile } from "./hashed-file.ts";
import { type BackupKeys, BackupKeyUnusable } from "./keys.ts";
import { noteBackup, noteFailure } from "./last-backup.ts";
import { type Manifest, unpackedBytes } from "./manifest.ts";
import { openRestored } from "./open-restored.ts";
import { requirePieces, sendPieces } from "./pieces.ts";
import { takeSnapshot } from "./snapshot.ts";
import { fileSource } from "./source.ts";
import { requireSpace, type SpaceOf } from "./space.ts";
import { withStoppedOrHeld } from "./stores-access.ts";
import { verifyBackup } from "./verify.ts";
import { withWorkFolder } from "./work-folder.ts";
import { writeBackupFile } from "./write-file.ts";

export type BackupStep = "snapshot" | "pack" | "verify" | "send";

export interface CreateOptions {
  dataDir: string;
  /** Called within the attempt: a destination that cannot be opened is a failed backup. */
  openDestination: () => Destination;
  /** What the journal keeps free for itself. */
  reserveBytes: number;
  /** What it is encrypted for. */
  keys: BackupKeys;
  /** Only what is not in the destination yet is brought there. */
  isIncremental: boolean;
  /** So long another backup of the directory, or a verification, is waited for; 0 when left out. */
  waitMs?: number;
  onProgress?: (step: BackupStep, done: number, total: number) => void;
  spaceOf?: SpaceOf;
}

export interface CreatedBackup {
  file: string;
  /** Of the destination. */
  destination: string;
  bytes: number;
  /** Of the file that has its name. */
  sha256: string;
  /** What had to be brought to the destination; less than `bytes` when pieces of it were there. */
  sentBytes: number;
  /** Pieces of earlier incremental backups that were damaged at the destination, and were sent again. */
  mendedPieces: number;
  verifiedAt: string;
  manifest: Manifest;
}

/**
 * @throws {BackupRunning} @throws {NotEnoughSpace} @throws {DirectoryInUse} @throws {EngineUnavailable}
 * @throws {DestinationFailed} the verified file is kept in the data directory then.
 */
export async function createBackup(options: CreateOptions): Promise<CreatedBackup> {
  const { dataDir } = options;
  const startedAt = new Date();
  // Whoever waits for an answer of the appliance goes first.
  putProcessBehind();
  setNativeFolder(paths(dataDir).native);
  try {
    return await withWorkFolder(dataDir, (folder) => createIn(folder, new Date(), options), options.waitMs);
  } catch (error) {
    // The other one tells what becomes of it.
    if (error instanceof BackupRunning) throw error;
    const hint = error instanceof AppError && error.hint !== undefined ? ` ${error.hint}` : "";
    await noteFailure(dataDir, startedAt, `${(error as Error).message}${hint}`);
    throw error;
  }
}

async function createIn(folder: string, startedAt: Date, options: CreateOptions): Promise<CreatedBackup> {
  const { dataDir, onProgress = () => undefined } = options;
  const destination = options.openDestination();
  // The copies and the packed file; later the packed file and what is unpacked of it.
  await requireSpace(folder, 2 * storesBytes(dataDir), options.spaceOf, options.reserveBytes);
  onProgress("snapshot", 0, 1);
  const copies = join(folder, "copies");
  mkdirSync(copies, { mode: 0o700 });
  await withStoppedOrHeld(dataDir, (holder) => takeSnapshot(dataDir, copies, holder));
  const manifest = await describeSnapshot(copies, startedAt);
  const total = unpackedBytes(manifest);

  let packed = 0;
  if (options.isIncremental)
    return await createPieces(folder, copies, manifest, startedAt, destination, options);
  const path = join(folder, backupName(startedAt, "tar.zst"));
  const written = await writeBackupFile(
    path,
    manifest,
    (part) => join(copies, part),
    (bytes) => {
      packed += bytes;
      onProgress("pack", packed, total);
    },
  );
  await removeSparingly(copies);
  await verifyBackup(fileSource(path), {
    workFolder: folder,
    spaceOf: options.spaceOf,
    onProgress: (done) => onProgress("verify", done, total),
  }).catch((error: unknown) => {
    if (!(error instanceof BackupDamaged)) throw error;
    throw new SnapshotFailed(`The new backup did not pass its verification. ${error.message}`);
  });
  const verifiedAt = new Date().toISOString();
  const sealed = options.keys.encrypts
    ? await sealedFile({ path, ...written }, join(folder, backupName(startedAt, "tar.zst.age")), options.keys)
    : { path, ...written };
  const file = await send(sealed, dataDir, destination, (done) => onProgress("send", done, sealed.bytes));
  const { bytes, sha256 } = sealed;
  await noteDone(options, { file, destination: destination.name, bytes, verifiedAt, manifest });
  return {
    file,
    destination: destination.name,
    bytes,
    sha256,
    sentBytes: bytes,
    mendedPieces: 0,
    verifiedAt,
    manifest,
  };
}

/** Encrypts a verified file, and reads it back where the key is here. */
async function sealedFile(plain: WrittenFile, path: string, keys: BackupKeys): Promise<WrittenFile> {
  const handle = await open(path, "wx", 0o600);
  let sealed: { bytes: number; sha256: string };
  try {
    const sink = new HashedFile(handle, "paced");
    const bytes = Readable.toWeb(createReadStream(plain.path, { highWaterMark: 1024 * 1024 }));
    const encrypted = await (await keys.encrypter()).encrypt(bytes as unknown as ReadableStream<Uint8Array>);
    for await (const chunk of encrypted as unknown as AsyncIterable<Uint8Array>) await sink.write(chunk);
    await handle.sync();
    sealed = sink.result();
  } finally {
    await handle.close();
  }
  if (keys.canDecrypt) {
    const hash = createHash("sha256");
    for await (const chunk of keys.decrypted(fileSource(path).stream(), path)) hash.update(chunk);
    if (hash.digest("hex") !== plain.sha256) {
      throw new SnapshotFailed("The encrypted backup does not decrypt to what was encrypted.");
    }
  }
  await removeSparingly(plain.path);
  return { path, ...sealed };
}

/** An incremental backup: the pieces that are not there yet, then their index. */
async function createPieces(
  folder: string,
  copies: string,
  manifest: Manifest,
  startedAt: Date,
  destination: Destination,
  options: CreateOptions,
): Promise<CreatedBackup> {
  const { keys, onProgress = () => undefined } = options;
  if (keys.isPassphrase) {
    throw new BackupKeyUnusable("Incremental backups are encrypted for age keys, not with a passphrase.");
  }
  const total = unpackedBytes(manifest);
  let looked = 0;
  const { index, sentBytes, mendedPieces } = await sendPieces(
    destination,
    copies,
    manifest,
    keys,
    (bytes) => {
      looked += bytes;
      onProgress("send", looked, total);
    },
  );
  // Opening may change the copies: what was sent is what the manifest says.
  onProgress("verify", 0, 1);
  await openRestored(copies, manifest, true).catch((error: unknown) => {
    if (!(error instanceof BackupDamaged)) throw error;
    throw new SnapshotFailed(`The new backup did not pass its verification. ${error.message}`);
  });
  const verifiedAt = new Date().toISOString();
  await requirePieces(destination, index);
  const path = join(folder, backupName(startedAt, "index.json"));
  const text = Buffer.from(`${JSON.stringify(index)}\n`);
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  const sha256 = createHash("sha256").update(text).digest("hex");
  const file = await destination.put({ path, bytes: text.length, sha256 }, () => undefined);
  const bytes = text.length + index.pieces.reduce((sum, piece) => sum + piece.bytes, 0);
  await noteDone(options, { file, destination: destination.name, bytes, verifiedAt, manifest });
  return {
    ...{ file, destination: destination.name, bytes, sha256 },
    ...{ sentBytes: text.length + sentBytes, mendedPieces, verifiedAt, manifest },
  };
}

async function noteDone(
  { dataDir, keys }: CreateOptions,
  {
    file,
    destination,
    bytes,
    verifiedAt,
    manifest,
  }: Omit<CreatedBackup, "sha256" | "sentBytes" | "mendedPieces">,
): Promise<void> {
  await noteBackup(dataDir, {
    ...{ file, destination, bytes, created_at: manifest.created_at },
    ...{ verified_at: verifiedAt, positions: manifest.positions },
  });
  // The event store is not made again from what only a key elsewhere opens: the archive stays for that.
  if (keys.encrypts && !keys.canDecrypt) return;
  const covered = Object.fromEntries(
    lanes.map((lane) => [lane, manifest.positions.find((one) => one.lane === lane)?.last_seq ?? 0]),
  ) as Record<(typeof lanes)[number], number>;
  pruneArchive(paths(dataDir).archive, covered);
}

/** Keeps the newest verified file in the data directory when it cannot be brought to its destination. */
async function send(
  file: WrittenFile,
  dataDir: string,
  destination: Destination,
  onProgress: (done: number) => void,
): Promise<string> {
  const { unsentBackups } = paths(dataDir);
  let sent = 0;
  try {
    const name = await destination.put(file, (bytes) => {
      sent += bytes;
      onProgress(sent);
    });
    await removeSparingly(unsentBackups).catch(() => undefined);
    return name;
  } catch (error) {
    // It has its name at the destination already; what failed was to make that durable.
    if (!existsSync(file.path)) throw error;
    await mkdir(unsentBackups, { recursive: true, mode: 0o700 });
    const kept = join(unsentBackups, basename(file.path));
    await rename(file.path, kept);
    await syncFolder(unsentBackups);
    for (const name of readdirSync(unsentBackups)) {
      if (name !== basename(kept)) await removeSparingly(join(unsentBackups, name));
    }
    const { message, hint } = error as AppError;
    throw new DestinationFailed(`${message} The backup was verified and is kept as ${kept}.`, hint);
  }
}

function storesBytes(dataDir: string): number {
  const place = paths(dataDir);
  const files = [place.metadata, place.people, place.events].flatMap((path) => [
    path,
    `${path}-wal`,
    `${path}.wal`,
  ]);
  for (const lane of lanes) {
    const folder = join(place.journal, lane);
    if (existsSync(folder)) files.push(...readdirSync(folder).map((name) => join(folder, name)));
  }
  return files.reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
}
