/** Rules for distinct IDs, and the person UUIDs derived from them. */

/** Namespace of person UUIDs. Source: contract, ingestion 11. */
const personNamespace = "932979b4-65c3-4424-8467-0b66ec27bc22";

/**
 * UUID of the person created for a distinct ID, and of the ID while it has no person: anonymous events are shown under
 * it, so they belong to the profile if one is created later.
 */
export function personUuid(projectId: number, distinctId: string): string {
  return Bun.randomUUIDv5(`${projectId}:${distinctId}`, personNamespace);
}

const illegalWhateverCase: ReadonlySet<string> = new Set([
  "anonymous",
  "guest",
  "distinctid",
  "distinct_id",
  "id",
  "not_authenticated",
  "email",
  "undefined",
  "true",
  "false",
]);

const illegalAsWritten: ReadonlySet<string> = new Set([
  "[object Object]",
  "NaN",
  "None",
  "none",
  "null",
  "0",
  "undefined",
]);

/**
 * Whether an ID is a placeholder that a faulty client sends for everyone: merging by it would join strangers. Source:
 * contract, ingestion 13.2.
 */
export function isIllegalForMerge(id: string): boolean {
  const word = unquoted(id.trim());
  return word === "" || illegalAsWritten.has(word) || illegalWhateverCase.has(word.toLowerCase());
}

/** Strips surrounding single or double quotes. */
export function unquoted(word: string): string {
  const quote = word[0];
  const isQuoted = word.length >= 2 && (quote === '"' || quote === "'") && word.endsWith(quote);
  return isQuoted ? word.slice(1, -1) : word;
}
