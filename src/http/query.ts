/** The parameters of an address. */

import { InvalidField } from "../accounts/errors.ts";

/** Of a parameter that is repeated, the last one counts (contract: management-api 5.1). */
export class Query extends URLSearchParams {
  override get(name: string): string | null {
    return this.getAll(name).at(-1) ?? null;
  }
}

const trueWords = new Set(["true", "1", "yes", "on"]);
const falseWords = new Set(["false", "0", "no", "off"]);

/**
 * A filter that is true or false, in any case; undefined when it is absent or empty.
 *
 * @throws {InvalidField} any other word. Source: decision 23.
 */
export function readBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const word = query.get(name)?.trim().toLowerCase() ?? "";
  if (word === "") return undefined;
  if (trueWords.has(word)) return true;
  if (falseWords.has(word)) return false;
  throw new InvalidField(name, "invalid_input", "Must be a valid boolean: true or false.");
}
