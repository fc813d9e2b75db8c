/**
 * Incremental backups: an index, and beside it the pieces of the stores, each under the hash of its content.
 *
 *   flagkeep-2026-11-21T03-00-00.000Z.index.json      one backup: its manifest, and which pieces it is made of
 *   pieces/0b5c….zst                                  a piece, which any number of backups share
 *
 * A piece that is there is not sent again, but read (trusted-pieces.ts). An index is written last, so what is listed is whole; a
 * piece goes only when no index names it any more.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { dayMs } from "../lib/time.ts";
import { type Destination, isIndexName, pieceKey } from "./destination.ts";
import { BackupDamaged, DestinationFailed, SnapshotFailed } from "./errors.ts";
import type { BackupKeys } from "./keys.ts";
import type { Manifest } from "./manifest.ts";
import {
  type Index,
  type IndexContent,
  type IndexPiece,
  indexesOf,
  indexFormat,
  openContent,
  readIndex,
} from "./piece-index.ts";
import type { BackupSource } from "./source.ts";
import { TrustedPieces, writtenPiece } from "./trusted-pieces.ts";
import { readPart } from "./write-file.ts";

/**
 * Pieces begin at multiples of this: the event store changes blocks where they are, so what did not change is the same
 * piece again. Smaller ones would share more, and cost more requests.
 */
const pieceBytes = 4 * 1024 * 1024;

/** A backup of pieces, for `unpackBackup`: the bytes of each part, checked piece by piece. */
export async function openPieces(source: BackupSource, keys: BackupKeys) {
  const read = await readIndex(source);
  const { manifest, parts } = await openContent(read, keys, source.name);
  return {
    manifest,
    async *part(name: string): AsyncGenerator<Uint8Array> {
      const pieces = parts.find((one) => one.name === name)?.pieces;
      if (pieces === undefined) throw new BackupDamaged(name, "the index does not name it");
      for (const number of pieces) {
        const piece = read.pieces[number];
        if (piece === undefined)
          throw new BackupDamaged(name, "the index names a piece that it does not have");
        yield await readPiece(source, piece, name, keys);
      }
    },
  };
}

async function readPiece(
  source: BackupSource,
  { name, bytes }: IndexPiece,
  part: string,
  keys: BackupKeys,
): Promise<Uint8Array> {
  const key = pieceKey(name);
  const found = await source.beside(key).catch((error: unknown) => {
    if ((error as { code?: string }).code !== "backup_not_found") throw error;
    throw new BackupDamaged(part, `its piece ${key} is missing`);
  });
  if (found.bytes !== bytes) {
    throw new BackupDamaged(part, `its piece ${key} has ${found.bytes} bytes and should have ${bytes}`);
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of found.stream()) chunks.push(chunk);
  let packed: Uint8Array = Buffer.concat(chunks);
  if (name.endsWith(".age")) packed = await keys.decrypt(packed, source.name);
  try {
    return zstdDecompressSync(packed, { maxOutputLength: pieceBytes });
  } catch (error) {
    throw new BackupDamaged(part, `its piece ${key} cannot be read (${(error as Error).message})`);
  }
}

export interface WrittenIndex {
  index: Index;
  /** Bytes of pieces that were not there yet. */
  sentBytes: number;
  /** Pieces that were there, but were not what they should be: they were sent again. */
  mendedPieces: number;
}

/**
 * Brings the pieces of a snapshot to a destination, those that it has left out.
 *
 * @param folder    holds the parts.
 * @param onBytes   called with the bytes of parts that were looked at.
 * @throws {SnapshotFailed} a part is not what the manifest says. @throws {DestinationFailed}
 */
export async function sendPieces(
  destination: Destination,
  folder: string,
  manifest: Manifest,
  keys: BackupKeys,
  onBytes: (bytes: number) => void,
): Promise<WrittenIndex> {
  const there = await TrustedPieces.of(destination, keys);
  const pieces: IndexPiece[] = [];
  const numbers = new Map<string, number>();
  const parts: IndexContent["parts"] = [];
  let sentBytes = 0;
  for (const part of manifest.parts) {
    const own: number[] = [];
    const whole = createHash("sha256");
    for await (const chunk of part.bytes === 0 ? [] : piecesOf(join(folder, part.name), part.bytes)) {
      whole.update(chunk);
      const name = nameOf(chunk, keys);
      let number = numbers.get(name);
      if (number === undefined) {
        let piece = await there.sound(name, chunk);
        if (piece === undefined) {
          const packed = zstdCompressSync(chunk);
          const sealed = keys.encrypts ? await (await keys.encrypter()).encrypt(packed) : packed;
          await destination.putPiece(pieceKey(name), sealed);
          piece = writtenPiece(name, sealed);
          sentBytes += piece.bytes;
        }
        number = pieces.push(piece) - 1;
        numbers.set(name, number);
      }
      own.push(number);
      onBytes(chunk.length);
    }
    if (whole.digest("hex") !== part.sha256) {
      throw new SnapshotFailed(`The copy of ${part.name} changed while the backup was made.`);
    }
    parts.push({ name: part.name, pieces: own });
  }
  const open: IndexContent = { manifest, parts };
  const index: Index = {
    format: indexFormat,
    flagkeep: manifest.versions.flagkeep,
    created_at: manifest.created_at,
    pieces,
    content: keys.encrypts
      ? {
          encrypted: Buffer.from(await (await keys.encrypter()).encrypt(JSON.stringify(open))).toString(
            "base64",
          ),
        }
      : open,
  };
  return { index, sentBytes, mendedPieces: there.damaged };
}

/** Parts are cut where multiples of `pieceBytes` are. */
async function* piecesOf(path: string, bytes: number): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of readPart(path, bytes)) {
    for (let from = 0; from < chunk.length; ) {
      const taken = chunk.subarray(from, from + pieceBytes - size);
      held.push(taken);
      size += taken.length;
      from += taken.length;
      if (size < pieceBytes) continue;
      yield Buffer.concat(held);
      [held, size] = [[], 0];
    }
  }
  if (size > 0) yield Buffer.concat(held);
}

/** An encrypted piece is another one for other keys: who has the new key only could not read the old one. */
function nameOf(chunk: Uint8Array, keys: BackupKeys): string {
  const hash = createHash("sha256");
  if (keys.encrypts) hash.update(`${keys.recipients.join(",")}\n`);
  return `${hash.update(chunk).digest("hex")}.zst${keys.encrypts ? ".age" : ""}`;
}

/** @throws {DestinationFailed} a piece has gone since it was found there, as by a removal from another machine. */
export async function requirePieces(destination: Destination, { pieces }: Index): Promise<void> {
  const there = await destination.pieces();
  const missing = pieces.find(({ name, bytes }) => there.get(name)?.bytes !== bytes);
  if (missing === undefined) return;
  throw new DestinationFailed(
    `The piece ${pieceKey(missing.name)} of the backup has gone from ${destination.name}.`,
    "Make the backup again.",
  );
}

/** What is left of a backup that was interrupted goes when nobody can be making it any more. */
const orphanMs = dayMs;

/**
 * Removes backups, and the pieces that only they needed.
 *
 * An index goes before its pieces, and while one backup cannot be read no piece goes at all.
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
    for (const piece of index?.pieces ?? []) freed.add(piece.name);
  }
  const there = await destination.pieces();
  if (there.size === 0) return;
  const left = await indexesOf(destination);
  if (left.includes(undefined)) return;
  const needed = new Set(left.flatMap((index) => index!.pieces.map(({ name }) => name)));
  for (const [name, { modifiedAt }] of there) {
    if (needed.has(name)) continue;
    if (freed.has(name) || now - modifiedAt > orphanMs) await destination.remove(pieceKey(name));
  }
}
