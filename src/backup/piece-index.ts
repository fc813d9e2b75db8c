/** The index of an incremental backup: what it says, and how it is read. */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Destination, isIndexName, piecePattern } from "./destination.ts";
import { BackupDamaged, BackupFromNewerVersion } from "./errors.ts";
import type { BackupKeys } from "./keys.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import type { BackupSource } from "./source.ts";

export const indexFormat = 1;
/** An index of more than this is none: it would be that of a store of many terabytes. */
const indexBytesMax = 512 * 1024 * 1024;
const pieceName = Type.String({ pattern: piecePattern.source });
const indexPiece = Type.Object({
  name: pieceName,
  bytes: Type.Integer({ minimum: 0 }),
  /** Of the bytes at the destination; earlier versions did not write it. */
  sha256: Type.Optional(Type.String()),
  /** ISO 8601, when these bytes were last written or read there. */
  checked_at: Type.Optional(Type.String()),
});
export type IndexPiece = Static<typeof indexPiece>;

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
  pieces: Type.Array(indexPiece),
  content: Type.Union([content, Type.Object({ encrypted: Type.String() })]),
});
export type Index = Static<typeof index>;
export type IndexContent = Static<typeof content>;

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
export async function openContent({ content: found }: Index, keys: BackupKeys, name: string) {
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

/** Of every backup of pieces; undefined for one that cannot be read. */
export async function indexesOf(destination: Destination): Promise<(Index | undefined)[]> {
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
