/**
 * Keeps the payloads of some flags secret at rest (contract: management-api 4.5).
 *
 * AES-256-GCM with a random nonce each; stored as a JSON string `"sealed:<base64 of nonce, tag, text>"`.
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { AppError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { Flag } from "../fields.ts";
import type { PayloadCipher } from "./flag-writes.ts";

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const prefix = "sealed:";

/** The key file is not one, or not the one with which payloads were sealed. */
export class PayloadKeyWrong extends AppError {
  readonly code = "payload_key_wrong";
  override readonly hint = "Restore the key file that belongs to this data directory from its backup.";
}

/**
 * Reads the key, and makes it first when there is none.
 *
 * @param path file of 32 bytes, readable by its owner only.
 * @throws {PayloadKeyWrong} the file has another size.
 */
export function readPayloadKey(path: string): Buffer {
  if (!existsSync(path)) writePayloadKey(path, randomBytes(keyBytes));
  const key = readFileSync(path);
  if (key.length !== keyBytes) throw new PayloadKeyWrong(`${path} does not hold a key of ${keyBytes} bytes.`);
  return key;
}

/** A new key, as it is kept beside other secrets: base64. */
export const newPayloadKey = () => randomBytes(keyBytes).toString("base64");

/** Puts a key in place of the one that is there; it is on the disk when this returns. */
export function writePayloadKey(path: string, key: Uint8Array): void {
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, key, { mode: 0o600, flush: true });
  renameSync(fresh, path);
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}

/** Seals and opens payloads with a key of 32 bytes. */
export function payloadCipher(key: Buffer): PayloadCipher {
  return {
    open: (flag) =>
      flag.hasEncryptedPayloads
        ? withPayloads(flag.filters, (text) => (isSealed(text) ? unseal(key, text) : text))
        : flag.filters,
    seal: (filters, isSecret, before) => {
      if (!isSecret) return filters;
      const known = knownPayloads(key, before);
      return withPayloads(filters, (text, name) => {
        const kept = known.get(name);
        // An unchanged payload keeps its bytes, so that an edit elsewhere does not rewrite it.
        return kept?.clear === text ? kept.sealed : seal(key, text);
      });
    },
  };
}

/** What is stored for the payloads of a flag so far, by name. */
function knownPayloads(key: Buffer, flag: Flag | undefined) {
  const known = new Map<string, { clear: string; sealed: string }>();
  if (!flag?.hasEncryptedPayloads || !isJsonObject(flag.filters.payloads)) return known;
  for (const [name, sealed] of Object.entries(flag.filters.payloads)) {
    if (typeof sealed === "string" && isSealed(sealed)) {
      known.set(name, { sealed, clear: unseal(key, sealed) });
    }
  }
  return known;
}

function withPayloads(filters: JsonObject, change: (text: string, name: string) => string): JsonObject {
  if (!isJsonObject(filters.payloads)) return filters;
  const payloads = Object.entries(filters.payloads).map(([name, value]): [string, Json] => [
    name,
    typeof value === "string" ? change(value, name) : value,
  ]);
  return { ...filters, payloads: Object.fromEntries(payloads) };
}

function isSealed(text: string): boolean {
  return text.startsWith(`"${prefix}`);
}

function seal(key: Buffer, clear: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const text = Buffer.concat([cipher.update(clear, "utf8"), cipher.final()]);
  return JSON.stringify(prefix + Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64"));
}

function unseal(key: Buffer, sealed: string): string {
  const bytes = Buffer.from((JSON.parse(sealed) as string).slice(prefix.length), "base64");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes));
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
  try {
    const text = bytes.subarray(nonceBytes + tagBytes);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString("utf8");
  } catch {
    throw new PayloadKeyWrong("The payloads of a flag were sealed with another key.");
  }
}
