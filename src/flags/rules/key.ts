/**
 * Rules for a flag's key. Source: contract, management-api 3.5 and 5.2, README (decisions).
 *
 * The order matters to clients: form (the schema of the request), then uniqueness (checked by the caller), then
 * characters.
 */

import { typeName } from "../../lib/json/value.ts";
import { flagInvalid, InvalidFlagError } from "./errors.ts";
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

export interface Tags {
  tags: string[];
  evaluationTags: string[];
}

/** The tags of a write, with the names of the API. */
export interface SentTags {
  tags?: unknown;
  evaluation_tags?: unknown;
  /** The newer name of evaluation tags, whose list need not be among the tags. */
  evaluation_contexts?: unknown;
}

/**
 * Tags after a write: sent ones replace the stored ones, null or absent changes nothing.
 *
 * Tags are trimmed, lower-cased, deduplicated and sorted. Evaluation tags that are tags of the flag are removed with
 * them.
 *
 * @throws {InvalidFlagError} `not_a_list`, `null` or `invalid_input` for wrong types; `invalid_input` with attr null when an
 * evaluation tag is neither among the tags nor stored without being one.
 */
export function changedTags(sent: SentTags, stored: Tags): Tags {
  const tags = normalizeTags(sent.tags, "tags") ?? stored.tags;
  const wanted = normalizeTags(sent.evaluation_tags, "evaluation_tags");
  const contexts = normalizeTags(sent.evaluation_contexts, "evaluation_contexts");
  // A client that sends the whole flag back sends both names, one of them unchanged.
  const isRepeated = wanted !== undefined && Bun.deepEquals(contexts, stored.evaluationTags);
  if (contexts !== undefined && !isRepeated) return { tags, evaluationTags: contexts };
  const untagged = stored.evaluationTags.filter((tag) => !stored.tags.includes(tag));
  const isAllowed = (tag: string) => tags.includes(tag) || untagged.includes(tag);
  const evaluationTags = wanted ?? stored.evaluationTags.filter(isAllowed);
  const unknown = evaluationTags.filter((tag) => !isAllowed(tag));
  if (unknown.length > 0) {
    const detail = `Evaluation tags must be a subset of tags. Invalid evaluation tags: ${unknown.join(", ")}`;
    throw flagInvalid(detail);
  }
  return { tags, evaluationTags };
}

/** A sent list of tags in stored form; undefined when it changes nothing. */
export function normalizeTags(sent: unknown, attr: string): string[] | undefined {
  if (sent === undefined || sent === null) return undefined;
  if (!Array.isArray(sent)) {
    throw new InvalidFlagError(
      "not_a_list",
      `Expected a list of items but got type "${typeName(sent)}".`,
      attr,
    );
  }
  const tags = new Set<string>();
  for (const [index, tag] of sent.entries()) {
    if (tag === null) throw new InvalidFlagError("null", "This field may not be null.", `${attr}__${index}`);
    if (typeof tag !== "string")
      throw new InvalidFlagError("invalid_input", "Not a valid string.", `${attr}__${index}`);
    const normal = tag.trim().toLowerCase();
    if (normal !== "") tags.add(normal);
  }
  return [...tags].sort();
}
