/** Parses a document of flags from YAML or JSON, with precise error messages. Pure. */

import { parseDocument, stringify } from "yaml";
import { AppError } from "../../lib/errors.ts";
import { exactNumber, formatNumber, parseExactJson } from "../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { flagDefaults } from "../fields.ts";
import {
  type CohortItem,
  documentVersion,
  type FlagDocument,
  type FlagItem,
  nestingIssue,
} from "./document.ts";

/** A file cannot be imported; nothing was changed. */
export class InvalidDocumentError extends AppError {
  readonly code = "document_unusable";
}

const documentMembers = new Set([
  "flagkeep_flags",
  "group_types",
  "cohorts",
  "flags",
  // Read by `flag-objects`.
  "holdouts",
  "saved_metrics",
  "experiments",
  "early_access_features",
  "surveys",
]);
const flagMembers = new Set(["key", "filters", ...Object.keys(flagDefaults)]);
const cohortMembers = new Set(["name", "description", "is_static", "filters"]);
/** YAML aliases can expand a small text to a large one. */
const aliasesMax = 100;
/** A flag has about a kilobyte. */
const fileLengthMax = 64 * 1024 * 1024;

/** Serializes the document. */
export function serializeDocument(document: FlagDocument, format: "yaml" | "json"): string {
  if (format === "json") return `${JSON.stringify(document, null, 2)}\n`;
  // Long strings stay on their line, so that a change of one word is a change of one line.
  return stringify(document, withBigInt, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** YAML's library writes integers that JavaScript numbers cannot represent from a bigint, and reads them as one. */
function withBigInt(_: unknown, value: unknown): unknown {
  const digits = formatNumber(value);
  return digits === undefined ? value : BigInt(digits);
}

function withoutBigInt(_: unknown, value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : exactNumber(String(value));
}

/**
 * Parses a document; JSON is parsed as YAML.
 *
 * @throws {InvalidDocumentError} neither YAML nor JSON, of another kind or a newer version, or with an invalid item.
 */
export function readDocument(text: string): FlagDocument {
  return toDocument(parseFile(text));
}

/**
 * Reads a parsed document.
 *
 * @param onUnreadable receives the message about an invalid item; without it, the document is rejected.
 * @throws {InvalidDocumentError} as `readDocument`.
 */
export function toDocument(root: Json, onUnreadable?: (message: string) => void): FlagDocument {
  if (!isJsonObject(root) || root.flagkeep_flags === undefined) {
    throw new InvalidDocumentError(
      "The file is not a flag export: it has no member `flagkeep_flags`, and no other product's format is detected.",
    );
  }
  if (root.flagkeep_flags !== documentVersion) {
    throw new InvalidDocumentError(
      `The file has format ${JSON.stringify(root.flagkeep_flags)}; this version of Flagkeep reads format ${documentVersion}.`,
    );
  }
  checkMembers(root, documentMembers, "The file");
  const readable = readItems(onUnreadable);
  const cohorts = readable(toList(root, "cohorts"), readCohort, uniqueBy("cohorts are called"));
  const flags = readable(toList(root, "flags"), readFlag, uniqueBy("flags have the key"));
  return { flagkeep_flags: documentVersion, group_types: getGroupTypes(root), cohorts, flags };
}

/** A file of YAML or JSON. @throws {InvalidDocumentError} */
export function parseFile(text: string): Json {
  if (text.length > fileLengthMax)
    throw new InvalidDocumentError(
      `The file has ${text.length} characters; the limit is ${fileLengthMax}. Split it.`,
    );
  return parseJson(text) ?? parseYaml(text);
}

/** The YAML parser needs seconds per megabyte. @returns undefined unless the text is JSON without repeated names. */
function parseJson(text: string): Json | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    const value = parseExactJson(text) as Json;
    let names = 0;
    for (const [, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)) if (colon !== undefined) names += 1;
    return names === countNames(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function countNames(value: Json): number {
  let count = 0;
  const open: Json[] = [value];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== "object" || node === null || formatNumber(node) !== undefined) continue;
    if (!Array.isArray(node)) count += Object.keys(node).length;
    for (const member of Object.values(node)) open.push(member as Json);
  }
  return count;
}

function parseYaml(text: string): Json {
  const parsed = parseDocument(text, { merge: false, prettyErrors: true, intAsBigInt: true });
  const [error] = parsed.errors;
  if (error !== undefined)
    throw new InvalidDocumentError(`The file is not valid YAML or JSON: ${firstLine(error.message)}`);
  try {
    return parsed.toJS({ maxAliasCount: aliasesMax, reviver: withoutBigInt }) as Json;
  } catch (failure) {
    throw new InvalidDocumentError(`The file cannot be read: ${firstLine(String(failure))}`);
  }
}

function toList(root: JsonObject, name: string): Json[] {
  const list = root[name] ?? [];
  if (Array.isArray(list)) return list;
  throw new InvalidDocumentError(`\`${name}\` must be a list.`);
}

function readCohort(item: Json, index: number): CohortItem {
  const where = `Cohort ${index + 1}`;
  const cohort = toObject(item, where);
  if (typeof cohort.name !== "string" || cohort.name === "")
    throw new InvalidDocumentError(`${where} has no name.`);
  checkMembers(cohort, cohortMembers, `Cohort "${cohort.name}"`);
  checkNesting(cohort, `Cohort "${cohort.name}"`);
  return { ...cohort, name: cohort.name };
}

function readFlag(item: Json, index: number): FlagItem {
  const where = `Flag ${index + 1}`;
  const flag = toObject(item, where);
  const key = typeof flag.key === "number" ? String(flag.key) : flag.key;
  if (typeof key !== "string" || key === "") throw new InvalidDocumentError(`${where} has no key.`);
  checkMembers(flag, flagMembers, `Flag "${key}"`);
  checkNesting(flag, `Flag "${key}"`);
  const sent = flag.filters ?? null;
  const filters = sent === null ? null : toObject(sent, `\`filters\` of flag "${key}"`);
  return { ...flag, key, filters };
}

function toObject(value: Json, where: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw new InvalidDocumentError(`${where} must be a map of names to values.`);
}

/** A misspelled member would otherwise silently result in the default value. */
function checkMembers(item: JsonObject, known: ReadonlySet<string>, where: string): void {
  const unknown = Object.keys(item).find((name) => !known.has(name));
  if (unknown === undefined) return;
  throw new InvalidDocumentError(
    `${where} has the unknown member \`${unknown}\`. Use ${[...known].join(", ")}.`,
  );
}

function checkNesting(item: JsonObject, where: string): void {
  const issue = nestingIssue(item);
  if (issue !== undefined) throw new InvalidDocumentError(`${where} ${issue}.`);
}

/** @throws {InvalidDocumentError} a name is repeated. */
function uniqueBy(what: string): (name: string) => void {
  const seen = new Set<string>();
  return (name) => {
    if (seen.has(name)) throw new InvalidDocumentError(`Two ${what} "${name}".`);
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
        if (onUnreadable === undefined || !(error instanceof InvalidDocumentError)) throw error;
        onUnreadable(error.message);
        return [];
      }
    });

function getGroupTypes(root: JsonObject): Record<string, string> {
  const sent = root.group_types ?? {};
  if (!isJsonObject(sent)) throw new InvalidDocumentError("`group_types` must be a map of numbers to names.");
  return Object.fromEntries(
    Object.entries(sent).map(([index, name]) => {
      if (/^(?:0|[1-9]\d{0,8})$/.test(index) && typeof name === "string") return [index, name];
      throw new InvalidDocumentError("`group_types` must be a map of numbers (0, 1, 2, …) to names.");
    }),
  );
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}
