/** Reads experiments, surveys and the like from a parsed document. */

import { nestingIssue } from "../flags/import-export/document.ts";
import { InvalidDocumentError } from "../flags/import-export/read-document.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import {
  getIdentity,
  type ObjectDocument,
  type ObjectKind,
  type ObjectMember,
  objectDefaults,
  objectKinds,
} from "../operations/flag-document.ts";

/** Members without a default value. */
const requiredMembers: Record<ObjectMember, readonly string[]> = {
  holdouts: ["name", "filters"],
  saved_metrics: ["name", "query"],
  experiments: ["name", "feature_flag_key"],
  early_access_features: ["name", "feature_flag_key", "stage"],
  surveys: ["name", "type", "questions"],
};
const withIds: readonly string[] = ["holdouts", "surveys"];

/**
 * @param onUnreadable receives the message about an invalid item, which is omitted
 * @throws {InvalidDocumentError} a member is not a list
 */
export function toObjects(root: Json, onUnreadable: (message: string) => void): ObjectDocument {
  const file = isJsonObject(root) ? root : {};
  const read = objectKinds.map(({ member, kind }) => {
    const sent = file[member] ?? [];
    if (!Array.isArray(sent)) throw new InvalidDocumentError(`\`${member}\` must be a list.`);
    const seen = new Set<string>();
    const items = sent.flatMap((item, index): JsonObject[] => {
      const problem = isJsonObject(item)
        ? getProblem(item, { member, kind, index, seen })
        : `The ${kind} ${index + 1} must be a map of names to values.`;
      if (problem === undefined) return [item as JsonObject];
      onUnreadable(problem);
      return [];
    });
    return [member, items];
  });
  return Object.fromEntries(read) as ObjectDocument;
}

function getProblem(
  item: JsonObject,
  { member, kind, index, seen }: { member: ObjectMember; kind: ObjectKind; index: number; seen: Set<string> },
): string | undefined {
  if (typeof item.name !== "string" || item.name === "") return `The ${kind} ${index + 1} has no name.`;
  const title = getTitle(kind, item.name);
  const missing = requiredMembers[member].find((name) => item[name] === undefined);
  if (missing !== undefined) return `${title} requires \`${missing}\`.`;
  const known = [
    ...requiredMembers[member],
    ...Object.keys(objectDefaults[member]),
    ...(withIds.includes(member) ? ["id"] : []),
  ];
  const unknown = Object.keys(item).find((name) => !known.includes(name));
  if (unknown !== undefined)
    return `${title} has the unknown member \`${unknown}\`. Use ${known.join(", ")}.`;
  const nesting = nestingIssue(item);
  if (nesting !== undefined) return `${title} ${nesting}.`;
  if (seen.has(getIdentity(item))) return `${title} is in the file twice; the first is imported.`;
  seen.add(getIdentity(item));
  return undefined;
}

/** An item in messages. */
export const getTitle = (kind: ObjectKind, name: string): string =>
  `${kind[0]!.toUpperCase()}${kind.slice(1)} "${name}"`;
