/**
 * Incremental backups: an index, and next to it the chunks of the stores, each named by the hash of its content.
 *
 *   flagkeep-2026-11-21T03-00-00.000Z.index.json      one backup: its manifest and its chunks
 *   pieces/0b5c….zst                                  a chunk, shared by any number of backups
 *
 * An existing chunk is verified instead of sent again (verified-chunks.ts). The index is written last, so a listed
 * backup is complete; a chunk is deleted once no index refers to it.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { dayMs } from "../lib/time.ts";
import {
  type BackupIndex,
  getIndexes,
  type IndexContent,
  type IndexedChunk,
  indexFormat,
  openContent,
  readIndex,
} from "./chunk-index.ts";
import { chunkKey, type Destination, isIndexName } from "./destination.ts";
import { BackupCorruptError, DestinationError, SnapshotError } from "./errors.ts";
import type { BackupKeys } from "./keys.ts";
import type { Manifest } from "./manifest.ts";
import type { BackupSource } from "./source.ts";
import { readPart } from "./write-file.ts";

/*
 * Chunks of earlier incremental backups at a destination, verified before reuse.
 *
 * A backup is only as good as its oldest chunk, so a chunk is read again before it is reused: in a folder every time,
 * in a bucket at most once a week, since reads there cost money and the store checks itself.
 */

/** How long a verified chunk in a bucket is trusted. */
const trustMs = 7 * dayMs;
/** Maximum overhead of compression and encryption; longer chunks are invalid and not read. */
const overheadMax = 256 * 1024;

/** Index entry of a chunk that was just written. */
export function writtenChunk(name: string, bytes: Uint8Array): IndexedChunk {
  return { name, bytes: bytes.length, sha256: getSha256(bytes), checked_at: new Date().toISOString() };
}

export class VerifiedChunks {
  /** Number of corrupt chunks. */
  corrupt = 0;

  private constructor(
    private readonly destination: Destination,
    private readonly keys: BackupKeys,
    private readonly chunks: ReadonlyMap<string, IndexedChunk>,
  ) {}

  /** Chunks that an index names and that have the right length; leftovers of an interrupted backup are sent again. */
  static async open(destination: Destination, keys: BackupKeys): Promise<VerifiedChunks> {
    const there = await destination.chunks();
    const found = new Map<string, IndexedChunk>();
    for (const index of await getIndexes(destination)) {
      for (const chunk of index?.pieces ?? []) {
        if (there.get(chunk.name)?.bytes !== chunk.bytes) continue;
        // The latest check wins: a chunk encrypted again after corruption has another hash.
        const before = found.get(chunk.name)?.checked_at ?? "";
        if (!found.has(chunk.name) || (chunk.checked_at ?? "") > before) found.set(chunk.name, chunk);
      }
    }
    return new VerifiedChunks(destination, keys, found);
  }

  /**
   * @param chunk the expected content.
   * @returns the chunk's index entry; undefined when it is missing or corrupt and must be sent.
   * @throws {DestinationError} it cannot be read now.
   */
  async sound(name: string, chunk: Uint8Array): Promise<IndexedChunk | undefined> {
    const part = this.chunks.get(name);
    if (part === undefined) return undefined;
    const age = Date.now() - Date.parse(part.checked_at ?? "");
    if (!this.destination.isLocal && age >= 0 && age < trustMs) return part;
    const bytes = part.bytes > chunk.length + overheadMax ? undefined : await this.read(part);
    if (bytes !== undefined && (await this.holds(part, bytes, chunk))) return writtenChunk(name, bytes);
    this.corrupt += 1;
    return undefined;
  }

  private async read(part: IndexedChunk): Promise<Uint8Array | undefined> {
    try {
      const source = await this.destination.open(chunkKey(part.name));
      if (source.bytes !== part.bytes) return undefined;
      const chunks: Uint8Array[] = [];
      for await (const chunk of source.stream()) chunks.push(chunk);
      return Buffer.concat(chunks);
    } catch (error) {
      if (error instanceof DestinationError) throw error;
      return undefined;
    }
  }

  private async holds(part: IndexedChunk, bytes: Uint8Array, chunk: Uint8Array): Promise<boolean> {
    if (part.sha256 !== undefined) return part.sha256 === getSha256(bytes);
    try {
      const packed = part.name.endsWith(".age") ? await this.keys.decrypt(bytes, part.name) : bytes;
      return zstdDecompressSync(packed, { maxOutputLength: chunk.length }).equals(chunk);
    } catch {
      // Not verifiable without the key: upload it again.
      return false;
    }
  }
}

function getSha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * Chunks start at multiples of this: the event store updates blocks in place, so unchanged data yields the same chunks.
 * Smaller chunks would share more, but cost more requests.
 */
const chunkBytes = 4 * 1024 * 1024;

/** Opens an incremental backup for `unpackBackup`: the bytes of each part, verified chunk by chunk. */
export async function openChunks(source: BackupSource, keys: BackupKeys) {
  const read = await readIndex(source);
  const { manifest, parts } = await openContent(read, keys, source.name);
  return {
    manifest,
    async *part(name: string): AsyncGenerator<Uint8Array> {
      const numbers = parts.find((part) => part.name === name)?.pieces;
      if (numbers === undefined) throw new BackupCorruptError(name, "it is missing in the index");
      for (const number of numbers) {
        const chunk = read.pieces[number];
        if (chunk === undefined) throw new BackupCorruptError(name, "the index references a missing chunk");
        yield await readChunk(source, chunk, name, keys);
      }
    },
  };
}

async function readChunk(
  source: BackupSource,
  { name, bytes }: IndexedChunk,
  part: string,
  keys: BackupKeys,
): Promise<Uint8Array> {
  const key = chunkKey(name);
  const found = await source.sibling(key).catch((error: unknown) => {
    if ((error as { code?: string }).code !== "backup_not_found") throw error;
    throw new BackupCorruptError(part, `its chunk ${key} is missing`);
  });
  if (found.bytes !== bytes) {
    throw new BackupCorruptError(part, `its chunk ${key} has ${found.bytes} bytes instead of ${bytes}`);
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of found.stream()) chunks.push(chunk);
  let packed: Uint8Array = Buffer.concat(chunks);
  if (name.endsWith(".age")) packed = await keys.decrypt(packed, source.name);
  try {
    return zstdDecompressSync(packed, { maxOutputLength: chunkBytes });
  } catch (error) {
    throw new BackupCorruptError(part, `its chunk ${key} cannot be read (${(error as Error).message})`);
  }
}

export interface WrittenIndex {
  index: BackupIndex;
  /** Bytes of chunks that were not at the destination yet. */
  sentBytes: number;
  /** Existing chunks that were corrupt and were sent again. */
  repairedChunks: number;
}

/**
 * Uploads the chunks of a snapshot that the destination does not have.
 *
 * @param folder    contains the parts.
 * @param onBytes   called with the number of part bytes processed.
 * @throws {SnapshotError} a part does not match the manifest. @throws {DestinationError}
 */
export async function uploadChunks(
  destination: Destination,
  folder: string,
  manifest: Manifest,
  keys: BackupKeys,
  onBytes: (bytes: number) => void,
): Promise<WrittenIndex> {
  const there = await VerifiedChunks.open(destination, keys);
  const chunks: IndexedChunk[] = [];
  const numbers = new Map<string, number>();
  const parts: IndexContent["parts"] = [];
  let sentBytes = 0;
  for (const part of manifest.parts) {
    const own: number[] = [];
    const whole = createHash("sha256");
    for await (const chunk of part.bytes === 0 ? [] : getChunks(join(folder, part.name), part.bytes)) {
      whole.update(chunk);
      const name = getName(chunk, keys);
      let number = numbers.get(name);
      if (number === undefined) {
        let found = await there.sound(name, chunk);
        if (found === undefined) {
          const packed = zstdCompressSync(chunk);
          const sealed = keys.encrypts ? await (await keys.encrypter()).encrypt(packed) : packed;
          await destination.putChunk(chunkKey(name), sealed);
          found = writtenChunk(name, sealed);
          sentBytes += found.bytes;
        }
        number = chunks.push(found) - 1;
        numbers.set(name, number);
      }
      own.push(number);
      onBytes(chunk.length);
    }
    if (whole.digest("hex") !== part.sha256) {
      throw new SnapshotError(`The copy of ${part.name} changed during the backup.`);
    }
    parts.push({ name: part.name, pieces: own });
  }
  const open: IndexContent = { manifest, parts };
  const index: BackupIndex = {
    format: indexFormat,
    flagkeep: manifest.versions.flagkeep,
    created_at: manifest.created_at,
    pieces: chunks,
    content: keys.encrypts
      ? {
          encrypted: Buffer.from(await (await keys.encrypter()).encrypt(JSON.stringify(open))).toString(
            "base64",
          ),
        }
      : open,
  };
  return { index, sentBytes, repairedChunks: there.corrupt };
}

/** Cuts a part at multiples of `pieceBytes`. */
async function* getChunks(path: string, bytes: number): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of readPart(path, bytes)) {
    for (let from = 0; from < chunk.length; ) {
      const acquired = chunk.subarray(from, from + chunkBytes - size);
      held.push(acquired);
      size += acquired.length;
      from += acquired.length;
      if (size < chunkBytes) continue;
      yield Buffer.concat(held);
      [held, size] = [[], 0];
    }
  }
  if (size > 0) yield Buffer.concat(held);
}

/**
 * Encrypted chunks have different names for different keys: the new key alone could not read a chunk of the old one.
 */
function getName(chunk: Uint8Array, keys: BackupKeys): string {
  const hash = createHash("sha256");
  if (keys.encrypts) hash.update(`${keys.recipients.join(",")}\n`);
  return `${hash.update(chunk).digest("hex")}.zst${keys.encrypts ? ".age" : ""}`;
}

/** @throws {DestinationError} a chunk was deleted since it was found there, for example by another machine. */
export async function assertChunks(destination: Destination, { pieces: chunks }: BackupIndex): Promise<void> {
  const there = await destination.chunks();
  const missing = chunks.find(({ name, bytes }) => there.get(name)?.bytes !== bytes);
  if (missing === undefined) return;
  throw new DestinationError(
    `Chunk ${chunkKey(missing.name)} of the backup was deleted from ${destination.name}.`,
    "Create the backup again.",
  );
}

/** Age after which files of an interrupted backup are deleted. */
const orphanMs = dayMs;

/**
 * Deletes backups, and the chunks that only they needed.
 *
 * An index is deleted before its chunks; while any backup is unreadable, no chunk is deleted.
 */
export async function removeBackups(
  destination: Destination,
  names: readonly string[],
  now = Date.now(),
): Promise<void> {
  const freed = new Set<string>();
  for (const name of names) {
    const index = isIndexName(name)
      ? await readIndex(await destination.open(name)).catch(() => undefined)
      : undefined;
    await destination.remove(name);
    for (const chunk of index?.pieces ?? []) freed.add(chunk.name);
  }
  const there = await destination.chunks();
  if (there.size === 0) return;
  const left = await getIndexes(destination);
  if (left.includes(undefined)) return;
  const needed = new Set(left.flatMap((index) => index!.pieces.map(({ name }) => name)));
  for (const [name, { modifiedAt }] of there) {
    if (needed.has(name)) continue;
    if (freed.has(name) || now - modifiedAt > orphanMs) await destination.remove(chunkKey(name));
  }
}
