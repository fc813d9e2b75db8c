/**
 * Formats of keys and what is stored of them: hashes only, except the two keys of a project, which their owner may read
 * again.
 *
 * Source: contract, management-api 2.1.
 */

import { InvalidFieldError } from "../lib/errors.ts";

const base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Random bytes as a base-62 number, most significant digit first. */
export function base62(bytes: Uint8Array): string {
  let rest = 0n;
  for (const byte of bytes) rest = rest * 256n + BigInt(byte);
  let digits = "";
  for (; rest > 0n; rest /= 62n) digits = base62Digits[Number(rest % 62n)] + digits;
  return digits || "0";
}

function randomKey(prefix: string, byteCount: number): string {
  return prefix + base62(crypto.getRandomValues(new Uint8Array(byteCount)));
}

/** A new public key of a project (`phc_`). */
export const newProjectKey = (): string => randomKey("phc_", 32);
/** A new secret key of a project (`phs_`). */
export const newSecretKey = (): string => randomKey("phs_", 35);
/** A new personal key (`phx_`). */
export const newPersonalKey = (): string => randomKey("phx_", 35);
/** A new secret that signs the requests of a webhook. */
export const newWebhookSecret = (): string => randomKey("whsec_", 32);

/** A new token of a share link. */
export const newShareToken = (): string => randomKey("phl_", 32);

/** Stored hash of a personal key. Unsalted: the key itself has 280 random bits. */
export function hashOfKey(key: string): string {
  return `sha256$${new Bun.CryptoHasher("sha256").update(key).digest("hex")}`;
}

/** A key as displayed after its creation: `phx_...abcd`. */
export function maskOfKey(key: string): string {
  return `${key.slice(0, 4)}...${key.slice(-4)}`;
}

/**
 * Checks a project key that another server created, so that clients can keep theirs.
 *
 * @throws {InvalidFieldError} not `phc_` and then 1 to 60 letters, digits, `_` or `-`.
 */
export function checkAdoptedProjectKey(key: string): string {
  if (!/^phc_[A-Za-z0-9_-]{1,60}$/.test(key)) {
    throw new InvalidFieldError(
      "api_token",
      "invalid_input",
      "A project key starts with phc_, followed by 1 to 60 letters, digits, hyphens or underscores.",
    );
  }
  return key;
}
