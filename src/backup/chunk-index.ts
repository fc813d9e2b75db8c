/** The index of an incremental backup, and how it is read. */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { chunkPattern, type Destination, isIndexName } from "./destination.ts";
import { BackupCorruptError, BackupFromNewerVersionError } from "./errors.ts";
import type { BackupKeys } from "./keys.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import type { BackupSource } from "./source.ts";

export const indexFormat = 1;
/** Maximum size of an index; larger ones are invalid (a store of many terabytes). */
const indexBytesMax = 512 * 1024 * 1024;
const chunkName = Type.String({ pattern: chunkPattern.source });
const indexChunk = Type.Object({
  name: chunkName,
  bytes: Type.Integer({ minimum: 0 }),
  /** SHA-256 of the bytes at the destination; absent in indexes of earlier versions. */
  sha256: Type.Optional(Type.String()),
  /** ISO 8601: when these bytes were last written or verified there. */
  checked_at: Type.Optional(Type.String()),
});
export type IndexedChunk = Static<typeof indexChunk>;

const content = Type.Object({
  manifest: Type.Unknown(),
  /** Per part of the manifest, the numbers of its chunks in order. */
  parts: Type.Array(Type.Object({ name: Type.String(), pieces: Type.Array(Type.Integer({ minimum: 0 })) })),
});
const index = Type.Object({
  format: Type.Integer({ minimum: 1 }),
  flagkeep: Type.String(),
  created_at: Type.String(),
  /** Chunks of a complete backup; readable without a key, so that old backups can be deleted without one. */
  pieces: Type.Array(indexChunk),
  content: Type.Union([content, Type.Object({ encrypted: Type.String() })]),
});
export type BackupIndex = Static<typeof index>;
export type IndexContent = Static<typeof content>;

/** @throws {BackupCorruptError} @throws {BackupFromNewerVersionError} */
export async function readIndex(source: BackupSource): Promise<BackupIndex> {
  if (source.bytes > indexBytesMax) throw new BackupCorruptError("index", "it is too long");
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.stream()) chunks.push(chunk);
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new BackupCorruptError("index", "it is truncated or not valid JSON");
  }
  const { format, flagkeep } = (value ?? {}) as { format?: unknown; flagkeep?: unknown };
  if (typeof format === "number" && format > indexFormat) {
    throw new BackupFromNewerVersionError("index", format, indexFormat, String(flagkeep));
  }
  if (!Value.Check(index, value)) {
    const first = Value.Errors(index, value).First();
    throw new BackupCorruptError("index", `${first?.path ?? "it"} is invalid`);
  }
  return value;
}

/** @throws {BackupEncryptedError} @throws {BackupKeyMismatchError} @throws {BackupCorruptError} @throws {BackupFromNewerVersionError} */
export async function openContent({ content: found }: BackupIndex, keys: BackupKeys, name: string) {
  let open: unknown = found;
  if ("encrypted" in found) {
    const bytes = await keys.decrypt(Buffer.from(found.encrypted, "base64"), name);
    open = JSON.parse(Buffer.from(bytes).toString("utf8"));
  }
  if (!Value.Check(content, open)) throw new BackupCorruptError("index", "its content is invalid");
  return { manifest: parseManifest(JSON.stringify(open.manifest)), parts: open.parts };
}

/** @throws the errors of `openContent`. */
export async function manifestOfIndex(source: BackupSource, keys: BackupKeys): Promise<Manifest> {
  return (await openContent(await readIndex(source), keys, source.name)).manifest;
}

/** Indexes of all incremental backups; undefined for an unreadable one. */
export async function getIndexes(destination: Destination): Promise<(BackupIndex | undefined)[]> {
  const found: (BackupIndex | undefined)[] = [];
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
