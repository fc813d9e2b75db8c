/**
 * Rules for a flag's key. Source: contract, management-api 3.5 and 5.2, README (decisions).
 *
 * The order matters to clients: form (the schema of the request), then uniqueness (checked by the caller), then
 * characters.
 */

import { InvalidFlagError } from "./errors.ts";
import { keyCharacters } from "./shared-rules.ts";

/** Maximum number of characters. */
export const keyLengthMax = 400;

/** @throws {InvalidFlagError} `invalid_key`. Call it after the uniqueness check. */
export function checkKeyCharacters(key: string): void {
  if (keyCharacters.test(key)) return;
  throw invalid("invalid_key", "Only letters, numbers, hyphens (-) & underscores (_) are allowed.");
}

/** A key for a flag that is created for an object with a name; `flag` if the name has no usable character. */
export function keyFromName(name: string): string {
  const plain = name
    .normalize("NFKD")
    .replace(/\p{Mark}/gu, "")
    .toLowerCase();
  const key = plain.replace(/[^a-z0-9]+/g, "-").slice(0, keyLengthMax);
  return key.replace(/^-+|-+$/g, "") || "flag";
}

/** The new key of a soft-deleted flag when a new flag needs its key. */
export function keyOfReplaced(key: string, id: number): string {
  return `${key}:deleted:${id}`;
}

/** The key of a flag before it was replaced; the current one if it was not. */
export function keyBeforeReplaced(key: string, id: number): string {
  const suffix = `:deleted:${id}`;
  return key.endsWith(suffix) ? key.slice(0, -suffix.length) : key;
}

/**
 * The key of a restored flag: without its suffix, and with `-2`, `-3`, … when another flag has it now.
 *
 * @param isUsed whether a flag that is not deleted has this key.
 */
export function keyOfRestored(key: string, id: number, isUsed: (key: string) => boolean): string {
  return unusedKey(keyBeforeReplaced(key, id), isUsed);
}

/** The key, with `-2`, `-3`, … when another flag has it. */
export function unusedKey(original: string, isUsed: (key: string) => boolean): string {
  if (!isUsed(original)) return original;
  for (let number = 2; ; number++) {
    const suffix = `-${number}`;
    const free = original.slice(0, keyLengthMax - suffix.length) + suffix;
    if (!isUsed(free)) return free;
  }
}

function invalid(code: string, detail: string): InvalidFlagError {
  return new InvalidFlagError(code, detail, "key");
}
