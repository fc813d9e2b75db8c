/** What a distinct id may be, and the person uuid that follows from it. */

/** Persons get their uuid from here. Source: contract, ingestion 11. */
const personNamespace = "932979b4-65c3-4424-8467-0b66ec27bc22";

/**
 * The uuid of the person that begins with this distinct id, and of the id while it has no person.
 *
 * Personless events are shown under the same uuid, so an anonymous history joins the profile that is made later.
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
 * Whether an id is a placeholder that a faulty client sends for everybody: merging by it would join strangers.
 *
 * Source: contract, ingestion 13.2.
 */
export function isIllegalForMerge(id: string): boolean {
  const word = unquoted(id.trim());
  return word === "" || illegalAsWritten.has(word) || illegalWhateverCase.has(word.toLowerCase());
}

/** A word without the single or double quotes around it. */
export function unquoted(word: string): string {
  const quote = word[0];
  const isQuoted = word.length >= 2 && (quote === '"' || quote === "'") && word.endsWith(quote);
  return isQuoted ? word.slice(1, -1) : word;
}
