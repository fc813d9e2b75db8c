/**
 * Reads a backup and checks it on the way: every part's length and SHA-256, their order, and the whole file.
 *
 * Nothing in the file is believed before it is checked: names come from a fixed list, sizes are limits.
 */

import { createHash } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { createTarDecoder, type ParsedTarEntry } from "modern-tar";
import { syncFolder } from "../journal/disk.ts";
import { BackupDamaged } from "./errors.ts";
import { HashedFile } from "./hashed-file.ts";
import { ageMagic, type BackupKeys } from "./keys.ts";
import { type Manifest, manifestName, type Part, parseManifest } from "./manifest.ts";
import { manifestOfIndex } from "./piece-index.ts";
import { openPieces } from "./pieces.ts";
import type { BackupSource } from "./source.ts";
import { endBytes, parseEndFrame } from "./write-file.ts";

type Bytes = AsyncIterable<Uint8Array>;

const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
/** A manifest of more than this is none. */
const manifestBytesMax = 64 * 1024 * 1024;

export interface UnpackOptions {
  /** The folder goes again soon; else all of it is on the disk when it is unpacked. */
  isTemporary?: boolean;
  onBytes?: (bytes: number) => void;
}

/**
 * Unpacks a backup into a folder.
 *
 * @param folder     exists and is empty.
 * @param onManifest called before anything is written; what it throws ends it.
 * @throws {BackupDamaged} naming the first part that is wrong; what was unpacked so far stays in the folder.
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
 * As `unpackBackup`, whatever kind of backup it is: one file, that file encrypted, or an index with pieces.
 *
 * @throws {BackupEncrypted} @throws {WrongBackupKey} @throws {BackupDamaged} @throws {BackupFromNewerVersion}
 */
export async function unpackFrom(
  source: BackupSource,
  keys: BackupKeys,
  folder: string,
  onManifest: (manifest: Manifest) => void | Promise<void>,
  options: UnpackOptions = {},
): Promise<Manifest> {
  const kind = await kindOf(source);
  if (kind === "file") return await unpackBackup(source.stream(), folder, onManifest, options);
  if (kind === "encrypted") {
    return await unpackBackup(keys.decrypted(source.stream(), source.name), folder, onManifest, options);
  }
  const { manifest, part: chunksOf } = await openPieces(source, keys);
  await onManifest(manifest);
  for (const part of manifest.parts) await unpackPart(chunksOf(part.name), part, folder, options);
  return manifest;
}

/** As `readManifest`, whatever kind of backup it is. @throws as `unpackFrom` does. */
export async function manifestFrom(source: BackupSource, keys: BackupKeys): Promise<Manifest> {
  const kind = await kindOf(source);
  if (kind === "pieces") return await manifestOfIndex(source, keys);
  return await readManifest(kind === "file" ? source.stream() : keys.decrypted(source.stream(), source.name));
}

/** By its first bytes, not by its name: files are renamed. */
export async function kindOf(source: BackupSource): Promise<"file" | "encrypted" | "pieces"> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.stream(0, ageMagic.length)) chunks.push(chunk);
  const begin = Buffer.concat(chunks);
  if (begin.equals(ageMagic)) return "encrypted";
  if (begin[0] === "{".charCodeAt(0)) return "pieces";
  if (!begin.subarray(0, zstdMagic.length).equals(zstdMagic)) {
    throw new BackupDamaged("beginning", `${source.name} does not begin like a backup of Flagkeep`);
  }
  return "file";
}

/** Reads the manifest alone; the bytes may end anywhere behind it. */
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
    if (bytes > manifestBytesMax) throw new BackupDamaged(manifestName, "it is far too long");
  }
  return parseManifest(Buffer.concat(chunks).toString("utf8"));
}

/** Writes one part and checks it. @throws {BackupDamaged} */
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
      if (left < 0) throw new BackupDamaged(part.name, "it is longer than it should be");
      await sink.write(chunk);
      onBytes?.(chunk.length);
    }
    if (sink.result().sha256 !== part.sha256) {
      throw new BackupDamaged(part.name, "its content does not match its SHA-256");
    }
    if (!isTemporary) await file.sync();
  } finally {
    await file.close();
  }
  if (!isTemporary) await syncFolder(dirname(path));
}

/** The entries of the tar archive, one after another, each under the name that is expected. */
class Entries {
  private readonly decompress = createZstdDecompress();
  private readonly decoder = createTarDecoder({ strict: true });
  private readonly reader = this.decoder.readable.getReader();
  private readonly source: Readable;
  /** Reads so far, and whether one waits for more bytes. */
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
    if (entry === undefined) throw new BackupDamaged(name, "it is missing, the file ends before it");
    if (entry.header.name !== name) {
      throw new BackupDamaged(name, "something else is in its place");
    }
    if (size !== undefined && entry.header.size !== size) {
      throw new BackupDamaged(name, `it has ${entry.header.size} bytes and should have ${size}`);
    }
    const body = entry.body.getReader();
    for (;;) {
      const { done, value } = await this.waitFor(name, body.read());
      if (done) return;
      yield value;
    }
  }

  /** @throws {BackupDamaged} there is more. */
  async end(): Promise<void> {
    if ((await this.read("end of file")) !== undefined) {
      throw new BackupDamaged("end of file", "there are more parts than the manifest names");
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
    // A source that cannot be read says nothing about the backup.
    if (this.source.errored) throw this.source.errored;
    throw new BackupDamaged(name, `it cannot be read (${error instanceof Error ? error.message : error})`);
  }

  private async feed(): Promise<void> {
    const writer = this.decoder.writable.getWriter();
    writer.closed.catch(() => undefined);
    try {
      for await (const chunk of this.decompress) await writer.write(chunk as Buffer);
      await this.everythingRead();
      await writer.close();
    } catch (error) {
      await this.everythingRead();
      await writer.abort(error).catch(() => undefined);
    }
  }

  /** An error would overtake what is queued before it, and a part would be blamed that is whole. */
  private async everythingRead(): Promise<void> {
    for (let before = -1; !this.isStopped && !(this.isWaiting && before === this.reads); ) {
      before = this.reads;
      await new Promise((turn) => setTimeout(turn, 1));
    }
  }
}

/** Passes the bytes of a backup on, and knows at the end whether they are all there, unchanged. */
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

  /** @throws {BackupDamaged} */
  check(): void {
    const end = parseEndFrame(this.last);
    if (end === undefined)
      throw new BackupDamaged("end of file", "the file is cut off or its end is changed");
    if (end.bytes !== this.bytes || end.sha256 !== this.hash.digest("hex")) {
      throw new BackupDamaged("end of file", "the file does not match the SHA-256 at its end");
    }
  }
}
