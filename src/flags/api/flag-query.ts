/** Reads the filters of a list of flags (contract: management-api 5.1; decision 23). */

import { Type } from "@sinclair/typebox";
import { readBoolean } from "../../http/query.ts";
import { bool, choice, int, object, optional, text } from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { evaluationRuntimes } from "../fields.ts";
import type { FlagFilter, FlagType } from "../store/flag-list.ts";

const searchLengthMax = 200;
const flagTypes = ["boolean", "multivariant", "experiment", "remote_config"] as const;

export const FlagQuery = object({
  search: optional(text({ max: searchLengthMax, description: "Part of the key or name." })),
  active: optional(choice(["true", "false", "STALE"], { description: "By switch, or flags nobody needs." })),
  created_by_id: optional(
    Type.Union([int(), text()], { description: "One user id, or several with commas between." }),
  ),
  created_by: optional(Type.Union([int(), text()], { description: "Same as `created_by_id`." })),
  type: optional(choice(flagTypes)),
  evaluation_runtime: optional(choice(evaluationRuntimes)),
  excluded_properties: optional(text({ description: "JSON list of flag keys to leave out." })),
  tags: optional(text({ description: "JSON list; flags with any of these tags." })),
  excluded_tags: optional(text({ description: "JSON list; flags with none of these tags." })),
  has_evaluation_tags: optional(bool()),
  has_evaluation_contexts: optional(bool({ description: "Same as `has_evaluation_tags`." })),
  key: optional(text({ description: "Exactly this key, whatever its letter case." })),
  deleted: optional(bool({ description: "Deleted flags, which `deleted: false` restores, instead." })),
  order: optional(text({ description: "A field, `-` before it for descending. Default `-created_at`." })),
});

/** @throws {InvalidField} the search is too long, or a boolean is none. */
export function readFlagQuery(query: URLSearchParams): FlagFilter {
  const search = query.get("search")?.trim();
  if (search !== undefined && search.length > searchLengthMax) {
    throw new InvalidField("search", "invalid_input", "Search term cannot exceed 200 characters");
  }
  const type = query.get("type");
  const tags = jsonTexts(query.get("tags"));
  return {
    search: search || undefined,
    active: query.get("active")?.trim() === "STALE" ? "STALE" : readBoolean(query, "active"),
    createdByIds: userIds(query.get("created_by_id") || query.get("created_by")),
    type: flagTypes.includes(type as FlagType) ? (type as FlagType) : undefined,
    evaluationRuntime: query.get("evaluation_runtime") || undefined,
    excludedKeys: jsonTexts(query.get("excluded_properties")),
    tags: tags?.length ? tags : undefined,
    excludedTags: jsonTexts(query.get("excluded_tags")),
    hasEvaluationTags:
      readBoolean(query, "has_evaluation_tags") ?? readBoolean(query, "has_evaluation_contexts"),
    key: query.get("key") || undefined,
    isDeleted: readBoolean(query, "deleted") ?? false,
    order: query.get("order") || undefined,
  };
}

/** A number, numbers with commas between, or a JSON list of numbers; others are left out. */
function userIds(text: string | null): number[] | undefined {
  if (text === null || text.trim() === "") return undefined;
  const ids = text
    .replace(/^\s*\[|\]\s*$/g, "")
    .split(",")
    .map((part) => part.trim().replace(/^"(.*)"$/, "$1"))
    // Of a number that no user can have only that is known: nothing is listed for it.
    .filter((part) => /^-?\d+$/.test(part))
    .map((part) => (Number.isSafeInteger(Number(part)) ? Number(part) : -1));
  return ids.length === 0 ? undefined : ids;
}

function jsonTexts(text: string | null): string[] | undefined {
  if (text === null) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed.filter((item) => typeof item === "string") : undefined;
  } catch {
    return undefined;
  }
}
