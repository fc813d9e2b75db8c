/** Distinct IDs and group keys may be longer than an index entry: the first half of their SHA-256 stands for them. */

import { sanitizeString } from "../../lib/json/canonical.ts";

const hashBytes = 16;

/** The hash of a string as capture stores it, in the form of a UUID without hyphens. */
export function toHash(text: string): string {
  return new Bun.CryptoHasher("sha256")
    .update(sanitizeString(text))
    .digest()
    .subarray(0, hashBytes)
    .toString("hex");
}

/** Before all hashes. */
export const firstHash = "00000000-0000-0000-0000-000000000000";

/** An array literal of hashes. */
export const hashList = (texts: Iterable<string>) => `{${[...texts].map(toHash).join(",")}}`;

/** An array literal of numbers. */
export const numberList = (numbers: Iterable<number>) => `{${[...numbers].join(",")}}`;
