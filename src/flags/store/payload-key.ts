/**
 * The file with the payload encryption key. Only a new data directory gets a new key: a missing or different key is an
 * error, because a new one could not decrypt stored payloads (contract: management-api 4.5).
 */

import { Database } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { eq } from "drizzle-orm";
import type { Metadata } from "../../accounts/metadata.ts";
import { flag, payloadKey } from "../../accounts/schema.ts";
import { isReplica } from "../../cluster/replica-marker.ts";
import { AppError } from "../../lib/errors.ts";
import { isJsonObject } from "../../lib/json/value.ts";
import { keyBytes } from "../../lib/sealed-text.ts";
import { readonlyClient } from "../../lib/sqlite.ts";
import { shellWord } from "../../lib/terminal-text.ts";
import type { Flag } from "../fields.ts";
import { isSealed, unseal } from "./payload-cipher.ts";

/** The key file is missing, is not a key, or is not the key of this data directory. */
export class PayloadKeyError extends AppError {
  readonly code = "payload_key_wrong";
  override readonly hint: string;
  constructor(path: string, what: string) {
    super(`${path} ${what}. It is the key of the encrypted payloads in this data directory.`);
    const folder = shellWord(dirname(path));
    this.hint =
      "Restore payload.key from a copy of this data directory, or restore a backup that contains it: " +
      `\`flagkeep backup restore BACKUP --force --replay --data-dir ${folder}\`.`;
  }
}

/**
 * The key of a data directory. The first call in a directory records the key's fingerprint, and creates the key if no payload
 * is encrypted yet.
 *
 * @param path file of 32 bytes, readable by its owner only.
 * @throws {PayloadKeyError} the key is missing or different, or has another size; nothing was changed.
 */
export function openPayloadKey(path: string, metadata: Metadata): Buffer {
  const known = knownFingerprint(metadata);
  const sealed = known === undefined ? sealedSample(metadata) : undefined;
  if (!existsSync(path)) {
    if (known !== undefined || sealed !== undefined) throw new PayloadKeyError(path, "is missing");
    writePayloadKey(path, randomBytes(keyBytes));
  }
  const key = readPayloadKey(path);
  const isRight =
    known === undefined ? sealed === undefined || canUnseal(key, sealed) : known === fingerprint(key);
  if (!isRight) throw new PayloadKeyError(path, "contains another key");
  // The nodes of a cluster share the key like the metadata.
  if (known === undefined && !isReplica(metadata.db.$client.filename)) {
    metadata.change((t) =>
      t
        .insert(payloadKey)
        .values({ id: 1, fingerprint: fingerprint(key) })
        .onConflictDoNothing()
        .run(),
    );
  }
  return key;
}

/** Checks the key of a data directory without creating one. @throws {PayloadKeyError} as `openPayloadKey`. */
export function assertPayloadKey(path: string, metadata: Metadata): void {
  if (knownFingerprint(metadata) !== undefined) openPayloadKey(path, metadata);
}

function knownFingerprint({ db }: Metadata): string | undefined {
  return db.select().from(payloadKey).where(eq(payloadKey.id, 1)).get()?.fingerprint;
}

/** Whether a key belongs to this metadata file: a copy without the key could not be started. */
export function hasPayloadKey(metadataPath: string): boolean {
  const client = new Database(metadataPath, { readonly: true });
  try {
    return (
      client.query("SELECT 1 FROM sqlite_schema WHERE name = 'payload_key'").get() !== null &&
      client.query("SELECT 1 FROM payload_key").get() !== null
    );
  } finally {
    client.close();
  }
}

/**
 * Checks the key file against the recorded fingerprint, and writes nothing.
 *
 * @returns whether a fingerprint is recorded. @throws {PayloadKeyError} the key is missing or different.
 */
export function checkPayloadKeyFile(path: string, metadataPath: string): boolean {
  if (!existsSync(metadataPath) || !hasPayloadKey(metadataPath)) return false;
  const client = readonlyClient(metadataPath);
  try {
    const known = client.query("SELECT fingerprint FROM payload_key").get() as { fingerprint: string };
    if (fingerprint(readPayloadKey(path)) !== known.fingerprint)
      throw new PayloadKeyError(path, "contains another key");
    return true;
  } finally {
    client.close();
  }
}

/** The key in a file. @throws {PayloadKeyError} it is missing, cannot be read or has another size. */
export function readPayloadKey(path: string): Buffer {
  if (!existsSync(path)) throw new PayloadKeyError(path, "is missing");
  const key = readKeyFile(path);
  if (key.length !== keyBytes) throw new PayloadKeyError(path, `does not contain a key of ${keyBytes} bytes`);
  return key;
}

function readKeyFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new PayloadKeyError(path, `cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** A new key in base64, for storage with other secrets. */
export const newPayloadKey = () => randomBytes(keyBytes).toString("base64");

/** Replaces the key file; it is on disk when this returns. */
export function writePayloadKey(path: string, key: Uint8Array): void {
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, key, { mode: 0o600, flush: true });
  renameSync(fresh, path);
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}

/** Identifies a key without containing it. */
function fingerprint(key: Uint8Array): string {
  return new Bun.CryptoHasher("sha256")
    .update("flagkeep payload key\n")
    .update(key)
    .digest("hex")
    .slice(0, 32);
}

interface SealedPayload {
  owner: Pick<Flag, "projectId" | "id">;
  name: string;
  stored: string;
}

const canUnseal = (key: Buffer, { owner, name, stored }: SealedPayload) =>
  unseal(key, owner, name, stored) !== undefined;

/** An encrypted payload, for checking the key of an older data directory. */
function sealedSample({ db }: Metadata): SealedPayload | undefined {
  const flags = db
    .select({ id: flag.id, projectId: flag.projectId, filters: flag.filters })
    .from(flag)
    .where(eq(flag.hasEncryptedPayloads, true))
    .all();
  for (const { filters, ...owner } of flags) {
    const payloads = isJsonObject(filters.payloads) ? Object.entries(filters.payloads) : [];
    for (const [name, stored] of payloads) if (isSealed(stored)) return { owner, name, stored };
  }
  return undefined;
}
