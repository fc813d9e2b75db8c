/**
 * Incremental backups: an index, and beside it the pieces of the stores, each under the hash of its content.
 *
 *   flagkeep-2026-11-21T03-00-00.000Z.index.json      one backup: its manifest, and which pieces it is made of
 *   pieces/0b5c….zst                                  a piece, which any number of backups share
 *
 * A piece that is there is not sent again. An index is written last, so what is listed is whole; a piece goes only when no
 * index names it any more.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Destination, isIndexName, pieceKey, piecePattern } from "./destination.ts";
import { BackupDamaged, BackupFromNewerVersion, DestinationFailed, SnapshotFailed } from "./errors.ts";
import type { BackupKeys } from "./keys.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import type { BackupSource } from "./source.ts";
import { readPart } from "./write-file.ts";

const indexFormat = 1;
/** An index of more than this is none: it would be that of a store of many terabytes. */
const indexBytesMax = 512 * 1024 * 1024;
/**
 * Pieces begin at multiples of this: the event store changes blocks where they are, so what did not change is the same
 * piece again. Smaller ones would share more, and cost more requests.
 */
const pieceBytes = 4 * 1024 * 1024;

const pieceName = Type.String({ pattern: piecePattern.source });
const content = Type.Object({
  manifest: Type.Unknown(),
  /** Per part of the manifest, the numbers of its pieces in their order. */
  parts: Type.Array(Type.Object({ name: Type.String(), pieces: Type.Array(Type.Integer({ minimum: 0 })) })),
});
const index = Type.Object({
  format: Type.Integer({ minimum: 1 }),
  flagkeep: Type.String(),
  created_at: Type.String(),
  /** What is there when the backup is whole; readable without a key, so that old ones can be removed without one. */
  pieces: Type.Array(Type.Object({ name: pieceName, bytes: Type.Integer({ minimum: 0 }) })),
  content: Type.Union([content, Type.Object({ encrypted: Type.String() })]),
});
export type Index = Static<typeof index>;

/** @throws {BackupDamaged} @throws {BackupFromNewerVersion} */
export async function readIndex(source: BackupSource): Promise<Index> {
  if (source.bytes > indexBytesMax) throw new BackupDamaged("index", "it is far too long");
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.stream()) chunks.push(chunk);
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new BackupDamaged("index", "it is cut off or no JSON");
  }
  const { format, flagkeep } = (value ?? {}) as { format?: unknown; flagkeep?: unknown };
  if (typeof format === "number" && format > indexFormat) {
    throw new BackupFromNewerVersion("index", format, indexFormat, String(flagkeep));
  }
  if (!Value.Check(index, value)) {
    const first = Value.Errors(index, value).First();
    throw new BackupDamaged("index", `${first?.path ?? "it"} is not as it should be`);
  }
  return value;
}

/** @throws {BackupEncrypted} @throws {WrongBackupKey} @throws {BackupDamaged} @throws {BackupFromNewerVersion} */
async function openContent({ content: found }: Index, keys: BackupKeys, name: string) {
  let open: unknown = found;
  if ("encrypted" in found) {
    const bytes = await keys.decrypt(Buffer.from(found.encrypted, "base64"), name);
    open = JSON.parse(Buffer.from(bytes).toString("utf8"));
  }
  if (!Value.Check(content, open)) throw new BackupDamaged("index", "its content is not as it should be");
  return { manifest: parseManifest(JSON.stringify(open.manifest)), parts: open.parts };
}

/** @throws as `openContent` does. */
export async function manifestOfIndex(source: BackupSource, keys: BackupKeys): Promise<Manifest> {
  return (await openContent(await readIndex(source), keys, source.name)).manifest;
}

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
  { name, bytes }: Index["pieces"][number],
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
  const there = await trustedPieces(destination);
  const pieces: Index["pieces"] = [];
  const numbers = new Map<string, number>();
  const parts: Static<typeof content>["parts"] = [];
  let sentBytes = 0;
  for (const part of manifest.parts) {
    const own: number[] = [];
    const whole = createHash("sha256");
    for await (const chunk of part.bytes === 0 ? [] : piecesOf(join(folder, part.name), part.bytes)) {
      whole.update(chunk);
      const name = nameOf(chunk, keys);
      let number = numbers.get(name);
      if (number === undefined) {
        let bytes = there.get(name);
        if (bytes === undefined) {
          const packed = zstdCompressSync(chunk);
          const sealed = keys.encrypts ? await (await keys.encrypter()).encrypt(packed) : packed;
          await destination.putPiece(pieceKey(name), sealed);
          bytes = sealed.length;
          sentBytes += bytes;
        }
        number = pieces.push({ name, bytes }) - 1;
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
  const open: Static<typeof content> = { manifest, parts };
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
  return { index, sentBytes };
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

/** Pieces of backups that are there with the length they should have: what is left of an interrupted one is sent again. */
async function trustedPieces(destination: Destination): Promise<Map<string, number>> {
  const there = await destination.pieces();
  const trusted = new Map<string, number>();
  for (const index of await indexesOf(destination)) {
    for (const { name, bytes } of index?.pieces ?? []) {
      if (there.get(name)?.bytes === bytes) trusted.set(name, bytes);
    }
  }
  return trusted;
}

/** Of every backup of pieces; undefined for one that cannot be read. */
async function indexesOf(destination: Destination): Promise<(Index | undefined)[]> {
  const found: (Index | undefined)[] = [];
  for (const name of await destination.list()) {
    if (!isIndexName(name)) continue;
    try {
      found.push(await readIndex(await destination.open(name)));
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "backup_not_found") continue;
      if (code !== "backup_damaged" && code !== "backup_from_newer_version") throw error;
      found.push(undefined);
    }
  }
  return found;
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
const orphanMs = 86_400_000;

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
