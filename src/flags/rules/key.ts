/**
 * Rules for a flag's key. Source: contract, management-api 3.5 and 5.2, README (decisions).
 *
 * The order matters to clients: form (the schema of the request), then uniqueness (which the caller knows), then characters.
 */

import { FlagInvalid } from "./flag-invalid.ts";
import { keyCharacters } from "./key-characters.ts";

/** Characters of a key. */
export const keyLengthMax = 400;

/** @throws {FlagInvalid} `invalid_key`. Call it after the key was found to be unique. */
export function checkKeyCharacters(key: string): void {
  if (keyCharacters.test(key)) return;
  throw invalid("invalid_key", "Only letters, numbers, hyphens (-) & underscores (_) are allowed.");
}

/** The key a soft-deleted flag takes on when a new flag wants its key. */
export function keyOfReplaced(key: string, id: number): string {
  return `${key}:deleted:${id}`;
}

/** The key a flag had before a new one wanted it; its own where that did not happen. */
export function keyBeforeReplaced(key: string, id: number): string {
  const suffix = `:deleted:${id}`;
  return key.endsWith(suffix) ? key.slice(0, -suffix.length) : key;
}

/**
 * The key of a flag that is restored: without its suffix, and with `-2`, `-3`, … when another flag took it meanwhile.
 *
 * @param isTaken whether a flag that is not deleted has this key.
 */
export function keyOfRestored(key: string, id: number, isTaken: (key: string) => boolean): string {
  const original = keyBeforeReplaced(key, id);
  if (!isTaken(original)) return original;
  for (let number = 2; ; number++) {
    const suffix = `-${number}`;
    const free = original.slice(0, keyLengthMax - suffix.length) + suffix;
    if (!isTaken(free)) return free;
  }
}

function invalid(code: string, detail: string): FlagInvalid {
  return new FlagInvalid(code, detail, "key");
}
