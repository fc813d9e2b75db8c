/**
 * Creates a backup: snapshot, file, verification, destination, in this order.
 *
 * A file gets its backup name only after it is verified, and the local one is deleted only after it was compared with
 * the destination's. So the number of good backups never decreases.
 */

import { createHash } from "node:crypto";
import { createReadStream, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { mkdir, open, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { EngineClient, EngineUnavailableError } from "../engine/client.ts";
import { setNativeFolder } from "../events/duckdb/native-folder.ts";
import { pruneArchive } from "../journal/archive.ts";
import { syncFolder } from "../journal/disk.ts";
import { lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { lowerProcessPriority } from "../lib/operating-system.ts";
import { deleteIncrementally } from "../lib/remove-files.ts";
import { acquireStoresLock, DirectoryInUseError, type Lock } from "../lock.ts";
import { paths } from "../paths.ts";
import { controlSocketName } from "../rpc/control.ts";
import { assertChunks, uploadChunks } from "./chunks.ts";
import { describeSnapshot, verifyBackup } from "./describe.ts";
import { backupName, type Destination, type WrittenFile } from "./destination.ts";
import { BackupCorruptError, BackupRunningError, DestinationError, SnapshotError } from "./errors.ts";
import { type BackupKeys, InvalidBackupKeyError } from "./keys.ts";
import { recordBackup, recordFailure } from "./last-backup.ts";
import { type Manifest, unpackedBytes } from "./manifest.ts";
import { type CheckpointHolder, createSnapshot } from "./snapshot.ts";
import { fileSource } from "./source.ts";
import { openRestored } from "./verify-restored.ts";
import { withWorkFolder } from "./work-folder.ts";
import { assertDiskSpace, type FreeSpace, HashedFile, writeBackupFile } from "./write-file.ts";

/** How long to wait for a starting engine. */
const engineStartMs = 20_000;

/**
 * The working directory becomes the data directory: the engine's socket name is relative.
 *
 * @throws {DirectoryInUseError}    another command uses the stores.
 * @throws {EngineUnavailableError} a server is running, but its engine does not respond.
 */
async function withQuiescedStores<Result>(
  dataDir: string,
  work: (holder: CheckpointHolder | undefined) => Promise<Result>,
): Promise<Result> {
  process.chdir(dataDir);
  let lock: Lock;
  try {
    lock = await acquireStoresLock(paths(dataDir), dataDir);
  } catch (error) {
    if (!(error instanceof DirectoryInUseError)) throw error;
    return await work(engineHolder(error));
  }
  try {
    return await work(undefined);
  } finally {
    lock.release();
  }
}

function engineHolder(inUse: DirectoryInUseError): CheckpointHolder {
  const engine = new EngineClient();
  return {
    async start(ms) {
      try {
        await engine.requestWithRetry("holdCheckpoints", { ms, checkpointFirst: true }, engineStartMs);
      } catch (error) {
        const isOther = error instanceof EngineUnavailableError && !existsSync(controlSocketName);
        throw isOther ? inUse : error;
      }
    },
    hold: (ms) => engine.ask("holdCheckpoints", { ms }).then(nothing, unlessDeleted),
    release: () => engine.ask("holdCheckpoints", { ms: 0 }).then(nothing, unlessDeleted),
  };
}

function nothing(): void {}

/** The hold ends with its engine: if the next engine writes the file, the headers show it. */
function unlessDeleted(error: unknown): void {
  if (!(error instanceof EngineUnavailableError)) throw error;
}

export type BackupStep = "snapshot" | "pack" | "verify" | "send";

export interface CreateOptions {
  dataDir: string;
  /** Called within the attempt: a destination that cannot be opened is a failed backup. */
  openDestination: () => Destination;
  /** Disk space reserved for the journal. */
  reserveBytes: number;
  /** Encryption keys. */
  keys: BackupKeys;
  /** Sends only chunks that the destination does not have. */
  isIncremental: boolean;
  /** How long to wait for another backup of the directory, or a verification; default 0. */
  waitMs?: number;
  onProgress?: (step: BackupStep, done: number, total: number) => void;
  getFreeSpace?: FreeSpace;
}

export interface CreatedBackup {
  file: string;
  /** Name of the destination. */
  destination: string;
  bytes: number;
  /** Hash of the backup file or index. */
  sha256: string;
  /** Bytes sent to the destination; less than `bytes` when it already had some of the chunks. */
  sentBytes: number;
  /** Chunks of earlier incremental backups that were corrupt at the destination and were sent again. */
  repairedChunks: number;
  verifiedAt: string;
  manifest: Manifest;
}

/**
 * @throws {BackupRunningError} @throws {DiskSpaceError} @throws {DirectoryInUseError} @throws {EngineUnavailableError}
 * @throws {DestinationError} the verified file stays in the data directory.
 */
export async function createBackup(options: CreateOptions): Promise<CreatedBackup> {
  const { dataDir } = options;
  const startedAt = new Date();
  // Clients of the server have priority.
  lowerProcessPriority();
  setNativeFolder(paths(dataDir).native);
  try {
    return await withWorkFolder(dataDir, (folder) => createIn(folder, new Date(), options), options.waitMs);
  } catch (error) {
    // The running backup records its own result.
    if (error instanceof BackupRunningError) throw error;
    const hint = error instanceof AppError && error.hint !== undefined ? ` ${error.hint}` : "";
    await recordFailure(dataDir, startedAt, `${(error as Error).message}${hint}`);
    throw error;
  }
}

async function createIn(folder: string, startedAt: Date, options: CreateOptions): Promise<CreatedBackup> {
  const { dataDir, onProgress = () => undefined } = options;
  const destination = options.openDestination();
  // First the copies and the compressed file, later the compressed file and its unpacked contents.
  await assertDiskSpace(folder, 2 * storesBytes(dataDir), options.getFreeSpace, options.reserveBytes);
  onProgress("snapshot", 0, 1);
  const copies = join(folder, "copies");
  mkdirSync(copies, { mode: 0o700 });
  await withQuiescedStores(dataDir, (holder) => createSnapshot(dataDir, copies, holder));
  const manifest = await describeSnapshot(copies, startedAt);
  const total = unpackedBytes(manifest);

  let packed = 0;
  if (options.isIncremental)
    return await createChunks(folder, copies, manifest, startedAt, destination, options);
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
  await deleteIncrementally(copies);
  await verifyBackup(fileSource(path), {
    workFolder: folder,
    getFreeSpace: options.getFreeSpace,
    onProgress: (done) => onProgress("verify", done, total),
  }).catch((error: unknown) => {
    if (!(error instanceof BackupCorruptError)) throw error;
    throw new SnapshotError(`The new backup did not pass its verification. ${error.message}`);
  });
  const verifiedAt = new Date().toISOString();
  const sealed = options.keys.encrypts
    ? await sealedFile({ path, ...written }, join(folder, backupName(startedAt, "tar.zst.age")), options.keys)
    : { path, ...written };
  const file = await send(sealed, dataDir, destination, (done) => onProgress("send", done, sealed.bytes));
  const { bytes, sha256 } = sealed;
  await recordDone(options, { file, destination: destination.name, bytes, verifiedAt, manifest });
  return {
    file,
    destination: destination.name,
    bytes,
    sha256,
    sentBytes: bytes,
    repairedChunks: 0,
    verifiedAt,
    manifest,
  };
}

/** Encrypts a verified file, and reads it back if the key is available. */
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
      throw new SnapshotError("The encrypted backup does not decrypt to what was encrypted.");
    }
  }
  await deleteIncrementally(plain.path);
  return { path, ...sealed };
}

/** An incremental backup: the missing chunks, then their index. */
async function createChunks(
  folder: string,
  copies: string,
  manifest: Manifest,
  startedAt: Date,
  destination: Destination,
  options: CreateOptions,
): Promise<CreatedBackup> {
  const { keys, onProgress = () => undefined } = options;
  if (keys.isPassphrase) {
    throw new InvalidBackupKeyError("Incremental backups are encrypted for age keys, not with a passphrase.");
  }
  const total = unpackedBytes(manifest);
  let looked = 0;
  const { index, sentBytes, repairedChunks } = await uploadChunks(
    destination,
    copies,
    manifest,
    keys,
    (bytes) => {
      looked += bytes;
      onProgress("send", looked, total);
    },
  );
  // Opening may change the copies, so the upload comes first: it is checked against the manifest.
  onProgress("verify", 0, 1);
  await openRestored(copies, manifest, true).catch((error: unknown) => {
    if (!(error instanceof BackupCorruptError)) throw error;
    throw new SnapshotError(`The new backup did not pass its verification. ${error.message}`);
  });
  const verifiedAt = new Date().toISOString();
  await assertChunks(destination, index);
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
  const bytes = text.length + index.pieces.reduce((sum, chunk) => sum + chunk.bytes, 0);
  await recordDone(options, { file, destination: destination.name, bytes, verifiedAt, manifest });
  return {
    file,
    destination: destination.name,
    bytes,
    sha256,
    sentBytes: text.length + sentBytes,
    repairedChunks,
    verifiedAt,
    manifest,
  };
}

async function recordDone(
  { dataDir, keys }: CreateOptions,
  {
    file,
    destination,
    bytes,
    verifiedAt,
    manifest,
  }: Omit<CreatedBackup, "sha256" | "sentBytes" | "repairedChunks">,
): Promise<void> {
  await recordBackup(dataDir, {
    file,
    destination,
    bytes,
    created_at: manifest.created_at,
    verified_at: verifiedAt,
    positions: manifest.positions,
  });
  // The archive stays: rebuilding the event store must not depend on a key that is stored elsewhere.
  if (keys.encrypts && !keys.canDecrypt) return;
  const covered = Object.fromEntries(
    lanes.map((lane) => [lane, manifest.positions.find((position) => position.lane === lane)?.last_seq ?? 0]),
  ) as Record<(typeof lanes)[number], number>;
  pruneArchive(paths(dataDir).archive, covered);
}

/** Keeps the newest verified file in the data directory when it cannot be sent to its destination. */
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
    await deleteIncrementally(unsentBackups).catch(() => undefined);
    return name;
  } catch (error) {
    // The file has its name at the destination already; only the sync failed.
    if (!existsSync(file.path)) throw error;
    await mkdir(unsentBackups, { recursive: true, mode: 0o700 });
    const retained = join(unsentBackups, basename(file.path));
    await rename(file.path, retained);
    await syncFolder(unsentBackups);
    for (const name of readdirSync(unsentBackups)) {
      if (name !== basename(retained)) await deleteIncrementally(join(unsentBackups, name));
    }
    const { message, hint } = error as AppError;
    throw new DestinationError(`${message} The backup was verified and is kept as ${retained}.`, hint);
  }
}

function storesBytes(dataDir: string): number {
  const dataPaths = paths(dataDir);
  const files = [dataPaths.metadata, dataPaths.people, dataPaths.events].flatMap((path) => [
    path,
    `${path}-wal`,
    `${path}.wal`,
  ]);
  for (const lane of lanes) {
    const folder = join(dataPaths.journal, lane);
    if (existsSync(folder)) files.push(...readdirSync(folder).map((name) => join(folder, name)));
  }
  return files.reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
}
