/**
 * The pieces that earlier incremental backups have left at a destination, and whether they are still what they were.
 *
 * Each new backup is only as good as the oldest piece in it, so a piece is read again before a backup counts on it: in a folder
 * every time, in a bucket when that was not done for a week, since reading there costs money and the store checks itself.
 */

import { createHash } from "node:crypto";
import { zstdDecompressSync } from "node:zlib";
import { dayMs } from "../lib/time.ts";
import { type Destination, pieceKey } from "./destination.ts";
import { DestinationFailed } from "./errors.ts";
import type { BackupKeys } from "./keys.ts";
import { type IndexPiece, indexesOf } from "./piece-index.ts";

/** So long what was read in a bucket is trusted. */
const trustMs = 7 * dayMs;
/** What packing and encrypting add at the most; a piece that is longer is none, and is not read. */
const overheadMax = 256 * 1024;

/** What an index says of a piece whose bytes were written just now. */
export function writtenPiece(name: string, bytes: Uint8Array): IndexPiece {
  return { name, bytes: bytes.length, sha256: sha256Of(bytes), checked_at: new Date().toISOString() };
}

export class TrustedPieces {
  /** Pieces that were not what they should be. */
  damaged = 0;

  private constructor(
    private readonly destination: Destination,
    private readonly keys: BackupKeys,
    private readonly pieces: ReadonlyMap<string, IndexPiece>,
  ) {}

  /** Those that an index names and that have the length they should have: what an interrupted backup left is sent again. */
  static async of(destination: Destination, keys: BackupKeys): Promise<TrustedPieces> {
    const there = await destination.pieces();
    const found = new Map<string, IndexPiece>();
    for (const index of await indexesOf(destination)) {
      for (const piece of index?.pieces ?? []) {
        if (there.get(piece.name)?.bytes !== piece.bytes) continue;
        // Who read it last knows best: encrypted again after damage it has another hash.
        const before = found.get(piece.name)?.checked_at ?? "";
        if (!found.has(piece.name) || (piece.checked_at ?? "") > before) found.set(piece.name, piece);
      }
    }
    return new TrustedPieces(destination, keys, found);
  }

  /**
   * @param chunk what the piece should hold.
   * @returns the piece for the new index; undefined when it is not there or not what it should be, and has to be sent.
   * @throws {DestinationFailed} it cannot be read now.
   */
  async sound(name: string, chunk: Uint8Array): Promise<IndexPiece | undefined> {
    const piece = this.pieces.get(name);
    if (piece === undefined) return undefined;
    const age = Date.now() - Date.parse(piece.checked_at ?? "");
    if (!this.destination.isLocal && age >= 0 && age < trustMs) return piece;
    const bytes = piece.bytes > chunk.length + overheadMax ? undefined : await this.read(piece);
    if (bytes !== undefined && (await this.holds(piece, bytes, chunk))) return writtenPiece(name, bytes);
    this.damaged += 1;
    return undefined;
  }

  private async read(piece: IndexPiece): Promise<Uint8Array | undefined> {
    try {
      const source = await this.destination.open(pieceKey(piece.name));
      if (source.bytes !== piece.bytes) return undefined;
      const chunks: Uint8Array[] = [];
      for await (const chunk of source.stream()) chunks.push(chunk);
      return Buffer.concat(chunks);
    } catch (error) {
      if (error instanceof DestinationFailed) throw error;
      return undefined;
    }
  }

  private async holds(piece: IndexPiece, bytes: Uint8Array, chunk: Uint8Array): Promise<boolean> {
    if (piece.sha256 !== undefined) return piece.sha256 === sha256Of(bytes);
    try {
      const packed = piece.name.endsWith(".age") ? await this.keys.decrypt(bytes, piece.name) : bytes;
      return zstdDecompressSync(packed, { maxOutputLength: chunk.length }).equals(chunk);
    } catch {
      // Without the key nobody can tell: it is sent again.
      return false;
    }
  }
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
