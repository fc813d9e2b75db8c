/**
 * Chunks of earlier incremental backups at a destination, verified before reuse.
 *
 * A backup is only as good as its oldest chunk, so a chunk is read again before it is reused: in a folder every time,
 * in a bucket at most once a week, since reads there cost money and the store checks itself.
 */

import { createHash } from "node:crypto";
import { zstdDecompressSync } from "node:zlib";
import { dayMs } from "../lib/time.ts";
import { getIndexes, type IndexedChunk } from "./chunk-index.ts";
import { chunkKey, type Destination } from "./destination.ts";
import { DestinationError } from "./errors.ts";
import type { BackupKeys } from "./keys.ts";

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
  static async of(destination: Destination, keys: BackupKeys): Promise<VerifiedChunks> {
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
