/**
 * Keeps the payloads of some flags secret at rest (contract: management-api 4.5).
 *
 * AES-256-GCM with a random nonce each; stored as a JSON string `"sealed:<base64 of nonce, tag, text>"`.
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { Flag } from "../fields.ts";
import { redactedPayload } from "../rules/types.ts";
import type { PayloadCipher } from "./flag-writes.ts";

export const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const prefix = "sealed:";

/** Seals and opens payloads with a key of 32 bytes. */
export function payloadCipher(key: Buffer): PayloadCipher {
  return {
    open: (flag) =>
      flag.hasEncryptedPayloads
        ? // One that cannot be decrypted is shown like one that may not be seen.
          withPayloads(flag.filters, (text) =>
            isSealed(text) ? (unseal(key, text) ?? redactedPayload) : text,
          )
        : flag.filters,
    seal: (filters, isSecret, before) => {
      if (!isSecret) return filters;
      const known = knownPayloads(key, before);
      return withPayloads(filters, (text, name) => {
        const kept = known.get(name);
        // An unchanged payload keeps its bytes, so that an edit elsewhere does not rewrite it; so does one that is unreadable.
        return kept !== undefined && (kept.clear ?? redactedPayload) === text ? kept.sealed : seal(key, text);
      });
    },
  };
}

/** What is stored for the payloads of a flag so far, by name. */
function knownPayloads(key: Buffer, flag: Flag | undefined) {
  const known = new Map<string, { clear: string | undefined; sealed: string }>();
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

/** Whether a stored payload is encrypted. */
export function isSealed(text: string): boolean {
  return text.startsWith(`"${prefix}`);
}

function seal(key: Buffer, clear: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const text = Buffer.concat([cipher.update(clear, "utf8"), cipher.final()]);
  return JSON.stringify(prefix + Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64"));
}

/** Whether this is the key of an encrypted payload. */
export const canUnseal = (key: Buffer, sealed: string) => unseal(key, sealed) !== undefined;

/** A payload in plain text; undefined if it was encrypted with another key, or is corrupt. */
function unseal(key: Buffer, sealed: string): string | undefined {
  try {
    const bytes = Buffer.from((JSON.parse(sealed) as string).slice(prefix.length), "base64");
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes));
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    const text = bytes.subarray(nonceBytes + tagBytes);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}
