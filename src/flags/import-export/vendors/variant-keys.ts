/** Valid keys here for the variants of another product. Pure. */

import { UnsupportedRuleError } from "./expression.ts";

/** Maximum length of a variant's key, and of a flag's. */
export const keyLengthMax = 400;

/** Variant keys allow only some characters. */
export class VariantKeys {
  private readonly byOriginal = new Map<string, string>();

  constructor(originals: readonly string[]) {
    for (const original of originals) {
      const plain = original.replace(/[^a-zA-Z0-9_./-]+/g, "-").slice(0, keyLengthMax) || "variant";
      const unique = uniqueKey(plain, new Set(this.byOriginal.values()));
      this.byOriginal.set(original, unique);
    }
  }

  get isEmpty(): boolean {
    return this.byOriginal.size === 0;
  }

  all(): string[] {
    return [...this.byOriginal.values()];
  }

  has(original: string): boolean {
    return this.byOriginal.has(original);
  }

  /** @throws {UnsupportedRuleError} the flag has no such variant. */
  of(original: string): string {
    const key = this.byOriginal.get(original);
    if (key === undefined)
      throw new UnsupportedRuleError(`variant ${JSON.stringify(original)} does not exist`);
    return key;
  }

  changed(): [string, string][] {
    return [...this.byOriginal].filter(([before, now]) => before !== now);
  }
}

/** A key that is not taken: with a number if necessary. */
export function uniqueKey(key: string, taken: ReadonlySet<string>): string {
  let unique = key;
  for (let number = 2; taken.has(unique); number++) {
    const suffix = `-${number}`;
    unique = key.slice(0, keyLengthMax - suffix.length) + suffix;
  }
  return unique;
}
