/**
 * Encrypts the payloads of some flags at rest (contract: management-api 4.5).
 *
 * AES-256-GCM with a random nonce each; stored as a JSON string `"sealed:2:<base64 of nonce, tag, text>"`. The project, the
 * flag and the name of the payload are authenticated: in another row or under another name it cannot be decrypted.
 * Earlier versions stored `"sealed:<base64>"` without them, which stays readable and is replaced when the flag is written.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { decryptText, encryptText } from "../../lib/sealed-text.ts";
import type { Flag } from "../fields.ts";
import { redactedPayload } from "../rules/types.ts";
import type { PayloadCipher } from "./flag-writes.ts";

const prefix = "sealed:";
/** Base64 has no colon. */
const boundPrefix = `${prefix}2:`;

/** Encrypts and decrypts payloads with a key of 32 bytes. */
export function payloadCipher(key: Buffer): PayloadCipher {
  return {
    open: (flag) =>
      flag.hasEncryptedPayloads
        ? // An undecryptable payload is shown like one that may not be seen.
          withPayloads(flag.filters, (stored, name) => unseal(key, flag, name, stored) ?? redactedPayload)
        : flag.filters,
    seal: (filters, flag, before) => {
      const known = knownPayloads(key, before);
      return withPayloads(filters, (payload, name) => {
        const cached = known.get(name);
        // An unchanged or unreadable payload keeps its bytes, so that an edit elsewhere does not rewrite it.
        if (cached !== undefined && (cached.clear ?? redactedPayload) === payload) return cached.sealed;
        return seal(key, flag, name, typeof payload === "string" ? payload : JSON.stringify(payload));
      });
    },
  };
}

/** The current stored payloads of a flag, by name; without those that are not bound to it. */
function knownPayloads(key: Buffer, flag: Flag | undefined) {
  const known = new Map<string, { clear: string | undefined; sealed: Json }>();
  if (!flag?.hasEncryptedPayloads || !isJsonObject(flag.filters.payloads)) return known;
  for (const [name, sealed] of Object.entries(flag.filters.payloads)) {
    const clear = unseal(key, flag, name, sealed);
    if (clear === undefined || isBound(sealed)) known.set(name, { sealed, clear });
  }
  return known;
}

function withPayloads(filters: JsonObject, change: (payload: Json, name: string) => Json): JsonObject {
  if (!isJsonObject(filters.payloads)) return filters;
  const payloads = Object.entries(filters.payloads).map(([name, value]) => [name, change(value, name)]);
  return { ...filters, payloads: Object.fromEntries(payloads) };
}

/** Whether a stored payload is encrypted. */
export function isSealed(stored: Json): stored is string {
  return typeof stored === "string" && stored.startsWith(`"${prefix}`);
}

const isBound = (stored: Json) => typeof stored === "string" && stored.startsWith(`"${boundPrefix}`);

/** What a payload belongs to. */
type Owner = Pick<Flag, "projectId" | "id">;

const getIdentity = ({ projectId, id }: Owner, name: string) =>
  Buffer.from(JSON.stringify(["payload of a flag", projectId, id, name]));

function seal(key: Buffer, owner: Owner, name: string, clear: string): string {
  return JSON.stringify(boundPrefix + encryptText(key, getIdentity(owner, name), clear));
}

/**
 * A decrypted payload; undefined if it was encrypted with another key or for another flag or name, or is not an intact
 * encrypted payload.
 */
export function unseal(key: Buffer, owner: Owner, name: string, stored: Json): string | undefined {
  if (!isSealed(stored)) return undefined;
  try {
    const sealed = JSON.parse(stored) as string;
    const start = isBound(stored) ? boundPrefix : prefix;
    const identity = isBound(stored) ? getIdentity(owner, name) : undefined;
    return decryptText(key, identity, sealed.slice(start.length));
  } catch {
    return undefined;
  }
}
