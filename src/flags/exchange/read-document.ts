/** Reads a document of flags from YAML or JSON text, and says exactly what is wrong with it. Pure. */

import { parseDocument, stringify } from "yaml";
import { AppError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { flagDefaults } from "../fields.ts";
import { type CohortItem, documentVersion, type ExchangeDocument, type FlagItem } from "./document.ts";

/** A file cannot be imported; nothing was changed. */
export class DocumentUnusable extends AppError {
  readonly code = "document_unusable";
}

const documentMembers = new Set(["flagkeep_flags", "group_types", "cohorts", "flags"]);
const flagMembers = new Set(["key", "filters", ...Object.keys(flagDefaults)]);
const cohortMembers = new Set(["name", "description", "is_static", "filters"]);
/** YAML can make a small text large by repeating parts of it. */
const aliasesMax = 100;

/** The document as readable text. */
export function documentText(document: ExchangeDocument, format: "yaml" | "json"): string {
  if (format === "json") return `${JSON.stringify(document, null, 2)}\n`;
  // Long texts stay on their line, so that a change of one word is a change of one line.
  return stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
}

/**
 * Reads a document; JSON is read as the YAML it is.
 *
 * @throws {DocumentUnusable} neither YAML nor JSON, of another kind or a newer version, or an item of no use.
 */
export function readDocument(text: string): ExchangeDocument {
  return documentOf(parseFile(text));
}

/**
 * Reads a document that is parsed already.
 *
 * @param onUnreadable takes the sentence about an item that cannot be read; without it, the document is rejected.
 * @throws {DocumentUnusable} as `readDocument`.
 */
export function documentOf(root: Json, onUnreadable?: (message: string) => void): ExchangeDocument {
  if (!isJsonObject(root) || root.flagkeep_flags === undefined) {
    throw new DocumentUnusable(
      "The file is no export of flags: it has no member `flagkeep_flags`, and no other product's form is recognised.",
    );
  }
  if (root.flagkeep_flags !== documentVersion) {
    throw new DocumentUnusable(
      `The file has format ${JSON.stringify(root.flagkeep_flags)}; this version of Flagkeep reads format ${documentVersion}.`,
    );
  }
  checkMembers(root, documentMembers, "The file");
  const readable = readItems(onUnreadable);
  const cohorts = readable(listOf(root, "cohorts"), readCohort, uniqueBy("cohorts are called"));
  const flags = readable(listOf(root, "flags"), readFlag, uniqueBy("flags have the key"));
  return { flagkeep_flags: documentVersion, group_types: groupTypesOf(root), cohorts, flags };
}

/** A file of YAML or JSON. @throws {DocumentUnusable} */
export function parseFile(text: string): Json {
  const parsed = parseDocument(text, { merge: false, prettyErrors: true });
  const [error] = parsed.errors;
  if (error !== undefined)
    throw new DocumentUnusable(`The file is no YAML or JSON: ${firstLine(error.message)}`);
  try {
    return parsed.toJS({ maxAliasCount: aliasesMax }) as Json;
  } catch (failure) {
    throw new DocumentUnusable(`The file cannot be read: ${firstLine(String(failure))}`);
  }
}

function listOf(root: JsonObject, name: string): Json[] {
  const list = root[name] ?? [];
  if (Array.isArray(list)) return list;
  throw new DocumentUnusable(`\`${name}\` must be a list.`);
}

function readCohort(item: Json, index: number): CohortItem {
  const where = `Cohort ${index + 1}`;
  const cohort = objectOf(item, where);
  if (typeof cohort.name !== "string" || cohort.name === "")
    throw new DocumentUnusable(`${where} has no name.`);
  checkMembers(cohort, cohortMembers, `Cohort "${cohort.name}"`);
  return { ...cohort, name: cohort.name };
}

function readFlag(item: Json, index: number): FlagItem {
  const where = `Flag ${index + 1}`;
  const flag = objectOf(item, where);
  const key = typeof flag.key === "number" ? String(flag.key) : flag.key;
  if (typeof key !== "string" || key === "") throw new DocumentUnusable(`${where} has no key.`);
  checkMembers(flag, flagMembers, `Flag "${key}"`);
  const given = flag.filters ?? null;
  const filters = given === null ? null : objectOf(given, `\`filters\` of flag "${key}"`);
  return { ...flag, key, filters };
}

function objectOf(value: Json, where: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw new DocumentUnusable(`${where} must be a map of names to values.`);
}

/** A misspelt member would otherwise be a flag with its usual value. */
function checkMembers(item: JsonObject, known: ReadonlySet<string>, where: string): void {
  const unknown = Object.keys(item).find((name) => !known.has(name));
  if (unknown === undefined) return;
  throw new DocumentUnusable(
    `${where} has the unknown member \`${unknown}\`; known are ${[...known].join(", ")}.`,
  );
}

/** @throws {DocumentUnusable} a name comes a second time. */
function uniqueBy(what: string): (name: string) => void {
  const seen = new Set<string>();
  return (name) => {
    if (seen.has(name)) throw new DocumentUnusable(`Two ${what} "${name}".`);
    seen.add(name);
  };
}

const readItems =
  (onUnreadable: ((message: string) => void) | undefined) =>
  <Item extends CohortItem | FlagItem>(
    list: readonly Json[],
    read: (item: Json, index: number) => Item,
    checkUnique: (name: string) => void,
  ): Item[] =>
    list.flatMap((written, index) => {
      try {
        const item = read(written, index);
        checkUnique(String(item.name !== undefined && !("key" in item) ? item.name : item.key));
        return [item];
      } catch (error) {
        if (onUnreadable === undefined || !(error instanceof DocumentUnusable)) throw error;
        onUnreadable(error.message);
        return [];
      }
    });

function groupTypesOf(root: JsonObject): Record<string, string> {
  const given = root.group_types ?? {};
  if (!isJsonObject(given)) throw new DocumentUnusable("`group_types` must be a map of numbers to names.");
  return Object.fromEntries(
    Object.entries(given).map(([index, name]) => {
      if (/^(?:0|[1-9]\d{0,8})$/.test(index) && typeof name === "string") return [index, name];
      throw new DocumentUnusable("`group_types` must be a map of numbers (0, 1, 2, …) to names.");
    }),
  );
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}
