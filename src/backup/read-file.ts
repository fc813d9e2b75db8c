/**
 * Reads a backup and verifies it on the way: length and SHA-256 of every part, their order, and the whole file.
 *
 * Nothing in the file is trusted before verification: names come from a fixed list, sizes are limits.
 */

import { createHash } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { createTarDecoder, type ParsedTarEntry } from "modern-tar";
import { syncFolder } from "../journal/disk.ts";
import { manifestOfIndex } from "./chunk-index.ts";
import { openChunks } from "./chunks.ts";
import { BackupCorruptError } from "./errors.ts";
import { ageMagic, type BackupKeys } from "./keys.ts";
import { type Manifest, manifestName, type Part, parseManifest } from "./manifest.ts";
import type { BackupSource } from "./source.ts";
import { endBytes, HashedFile, parseEndFrame } from "./write-file.ts";

type Bytes = AsyncIterable<Uint8Array>;

const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** Maximum size of a manifest. */
const manifestBytesMax = 64 * 1024 * 1024;

export interface UnpackOptions {
  /** The folder is deleted soon; otherwise everything is synced to disk once unpacked. */
  isTemporary?: boolean;
  onBytes?: (bytes: number) => void;
}

/**
 * Unpacks a backup into a folder.
 *
 * @param folder     exists and is empty.
 * @param onManifest called before anything is written; an error it throws aborts.
 * @throws {BackupCorruptError} naming the first corrupt part; parts unpacked so far stay in the folder.
 */
export async function unpackBackup(
  bytes: Bytes,
  folder: string,
  onManifest: (manifest: Manifest) => void | Promise<void>,
  options: UnpackOptions = {},
): Promise<Manifest> {
  const whole = new WholeFile(bytes);
  const entries = new Entries(whole.chunks());
  try {
    const manifest = await readManifestEntry(entries);
    await onManifest(manifest);
    for (const part of manifest.parts) {
      await unpackPart(entries.next(part.name, part.bytes), part, folder, options);
    }
    await entries.end();
    whole.check();
    return manifest;
  } finally {
    entries.stop();
  }
}

/**
 * Like `unpackBackup` for any kind of backup: one file, an encrypted file, or an index with chunks.
 *
 * @throws {BackupEncryptedError} @throws {BackupKeyMismatchError} @throws {BackupCorruptError}
 * @throws {BackupFromNewerVersionError}
 */
export async function unpackFrom(
  source: BackupSource,
  keys: BackupKeys,
  folder: string,
  onManifest: (manifest: Manifest) => void | Promise<void>,
  options: UnpackOptions = {},
): Promise<Manifest> {
  const kind = await getKind(source);
  if (kind === "file") return await unpackBackup(source.stream(), folder, onManifest, options);
  if (kind === "encrypted") {
    return await unpackBackup(keys.decrypted(source.stream(), source.name), folder, onManifest, options);
  }
  const { manifest, part: chunksOf } = await openChunks(source, keys);
  await onManifest(manifest);
  for (const part of manifest.parts) await unpackPart(chunksOf(part.name), part, folder, options);
  return manifest;
}

/** Like `readManifest` for any kind of backup. @throws the errors of `unpackFrom`. */
export async function manifestFrom(source: BackupSource, keys: BackupKeys): Promise<Manifest> {
  const kind = await getKind(source);
  if (kind === "pieces") return await manifestOfIndex(source, keys);
  return await readManifest(kind === "file" ? source.stream() : keys.decrypted(source.stream(), source.name));
}

/** Detected by the first bytes, not by the name: files are renamed. */
export async function getKind(source: BackupSource): Promise<"file" | "encrypted" | "pieces"> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.stream(0, ageMagic.length)) chunks.push(chunk);
  const start = Buffer.concat(chunks);
  if (start.equals(ageMagic)) return "encrypted";
  if (start[0] === "{".charCodeAt(0)) return "pieces";
  if (!start.subarray(0, zstdMagic.length).equals(zstdMagic)) {
    throw new BackupCorruptError("beginning", `${source.name} is not a Flagkeep backup`);
  }
  return "file";
}

/** Reads only the manifest; the bytes may end anywhere after it. */
export async function readManifest(bytes: Bytes): Promise<Manifest> {
  const entries = new Entries(bytes);
  try {
    return await readManifestEntry(entries);
  } finally {
    entries.stop();
  }
}

async function readManifestEntry(entries: Entries): Promise<Manifest> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of entries.next(manifestName)) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > manifestBytesMax) throw new BackupCorruptError(manifestName, "it is too long");
  }
  return parseManifest(Buffer.concat(chunks).toString("utf8"));
}

/** Writes one part and verifies it. @throws {BackupCorruptError} */
async function unpackPart(
  chunks: Bytes,
  part: Part,
  folder: string,
  { isTemporary = false, onBytes }: UnpackOptions,
): Promise<void> {
  const path = join(folder, part.name);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(path, "wx", 0o600);
  try {
    const sink = new HashedFile(file, isTemporary ? "temporary" : "fast");
    let left = part.bytes;
    for await (const chunk of chunks) {
      left -= chunk.length;
      if (left < 0) throw new BackupCorruptError(part.name, "it is longer than expected");
      await sink.write(chunk);
      onBytes?.(chunk.length);
    }
    if (sink.result().sha256 !== part.sha256) {
      throw new BackupCorruptError(part.name, "its content does not match its SHA-256");
    }
    if (!isTemporary) await file.sync();
  } finally {
    await file.close();
  }
  if (!isTemporary) await syncFolder(dirname(path));
}

/** The entries of the tar archive in order, each with the expected name. */
class Entries {
  private readonly decompress = createZstdDecompress();
  private readonly decoder = createTarDecoder({ strict: true });
  private readonly reader = this.decoder.readable.getReader();
  private readonly source: Readable;
  /** Number of reads, and whether one waits for more bytes. */
  private reads = 0;
  private isWaiting = false;
  private isStopped = false;

  constructor(bytes: Bytes) {
    this.source = Readable.from(bytes, { objectMode: false });
    this.source.on("error", (error) => this.decompress.destroy(error));
    this.source.pipe(this.decompress);
    void this.feed();
  }

  /** The content of the next entry. */
  async *next(name: string, size?: number): AsyncGenerator<Uint8Array> {
    const entry = await this.read(name);
    if (entry === undefined) throw new BackupCorruptError(name, "it is missing: the file is truncated");
    if (entry.header.name !== name) {
      throw new BackupCorruptError(name, "another part is in its position");
    }
    if (size !== undefined && entry.header.size !== size) {
      throw new BackupCorruptError(name, `it has ${entry.header.size} bytes instead of ${size}`);
    }
    const body = entry.body.getReader();
    for (;;) {
      const { done, value } = await this.waitFor(name, body.read());
      if (done) return;
      yield value;
    }
  }

  /** @throws {BackupCorruptError} further entries follow. */
  async end(): Promise<void> {
    if ((await this.read("end of file")) !== undefined) {
      throw new BackupCorruptError("end of file", "the file has more parts than the manifest");
    }
  }

  stop(): void {
    this.isStopped = true;
    this.source.destroy();
    this.decompress.destroy();
    this.reader.cancel().catch(() => undefined);
  }

  private async read(name: string): Promise<ParsedTarEntry | undefined> {
    const { done, value } = await this.waitFor(name, this.reader.read());
    return done ? undefined : value;
  }

  private async waitFor<Value>(name: string, read: Promise<Value>): Promise<Value> {
    this.reads += 1;
    this.isWaiting = true;
    try {
      return await read;
    } catch (error) {
      return this.fail(name, error);
    } finally {
      this.isWaiting = false;
    }
  }

  private fail(name: string, error: unknown): never {
    // An unreadable source says nothing about the backup.
    if (this.source.errored) throw this.source.errored;
    throw new BackupCorruptError(
      name,
      `it cannot be read (${error instanceof Error ? error.message : error})`,
    );
  }

  private async feed(): Promise<void> {
    const writer = this.decoder.writable.getWriter();
    writer.closed.catch(() => undefined);
    try {
      for await (const chunk of this.decompress) await writer.write(chunk as Buffer);
      await this.readRest();
      await writer.close();
    } catch (error) {
      await this.readRest();
      await writer.abort(error).catch(() => undefined);
    }
  }

  /** An error would overtake the bytes queued before it, and an intact part would be reported as corrupt. */
  private async readRest(): Promise<void> {
    for (let before = -1; !this.isStopped && !(this.isWaiting && before === this.reads); ) {
      before = this.reads;
      await new Promise((turn) => setTimeout(turn, 1));
    }
  }
}

/** Passes the bytes of a backup through, and verifies at the end that they are complete and unchanged. */
class WholeFile {
  private readonly hash = createHash("sha256");
  private bytes = 0;
  private last = Buffer.alloc(0);

  constructor(private readonly source: Bytes) {}

  async *chunks(): AsyncGenerator<Uint8Array> {
    for await (const chunk of this.source) {
      const seen = Buffer.concat([this.last, chunk]);
      const certain = seen.subarray(0, Math.max(0, seen.length - endBytes));
      this.hash.update(certain);
      this.bytes += certain.length;
      this.last = Buffer.from(seen.subarray(certain.length));
      yield chunk;
    }
  }

  /** @throws {BackupCorruptError} */
  check(): void {
    const end = parseEndFrame(this.last);
    if (end === undefined)
      throw new BackupCorruptError("end of file", "the file is truncated or its end was changed");
    if (end.bytes !== this.bytes || end.sha256 !== this.hash.digest("hex")) {
      throw new BackupCorruptError("end of file", "the file does not match the SHA-256 at its end");
    }
  }
}
