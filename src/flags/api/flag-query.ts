/** Parses the filters of a list of flags (contract: management-api 5.1; decision 23). */

import { Type } from "@sinclair/typebox";
import { readBoolean, readDate } from "../../http/params.ts";
import { bool, dateTime, enumeration, int, object, optional, string } from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { evaluationRuntimes } from "../fields.ts";
import type { FlagFilter } from "../store/flag-list.ts";

const searchLengthMax = 200;
const flagTypes = ["boolean", "multivariant", "experiment", "remote_config"] as const;

export const FlagQuery = object({
  search: optional(string({ max: searchLengthMax, description: "Part of the key or name." })),
  active: optional(enumeration(["true", "false", "STALE"], { description: "By state, or stale flags." })),
  created_by_id: optional(Type.Union([int(), string()], { description: "User ids, separated by commas." })),
  created_by: optional(Type.Union([int(), string()], { description: "Same as `created_by_id`." })),
  type: optional(enumeration(flagTypes)),
  evaluation_runtime: optional(enumeration(evaluationRuntimes)),
  excluded_properties: optional(string({ description: "Flag keys to exclude: a JSON list, or one key." })),
  tags: optional(string({ description: "A JSON list, or one tag; flags with any of these tags." })),
  excluded_tags: optional(string({ description: "A JSON list, or one tag; flags with none of these tags." })),
  has_evaluation_tags: optional(bool()),
  has_evaluation_contexts: optional(bool({ description: "Same as `has_evaluation_tags`." })),
  key: optional(string({ description: "Exactly this key, case-insensitive." })),
  deleted: optional(bool({ description: "List deleted flags, which `deleted: false` restores, instead." })),
  last_called_after: optional(dateTime({ description: "Evaluated at or after this time." })),
  last_called_before: optional(dateTime({ description: "Not evaluated since this time, or never." })),
  order: optional(
    string({ description: "Sort field, with `-` for descending order; default: `-created_at`." }),
  ),
});

/** @throws {InvalidFieldError} the first filter with an invalid value (contract, management-api 5.1). */
export function readFlagQuery(query: URLSearchParams): FlagFilter {
  const search = query.get("search")?.trim();
  if (search !== undefined && search.length > searchLengthMax) {
    throw new InvalidFieldError("search", "invalid_input", "Search term cannot exceed 200 characters");
  }
  const tags = readStrings(query, "tags");
  return {
    search: search || undefined,
    active: query.get("active")?.trim() === "STALE" ? "STALE" : readBoolean(query, "active"),
    createdByIds: readUserIds(query, "created_by_id") ?? readUserIds(query, "created_by"),
    type: readChoice(query, "type", flagTypes),
    evaluationRuntime: readChoice(query, "evaluation_runtime", evaluationRuntimes),
    excludedKeys: readStrings(query, "excluded_properties"),
    tags: tags?.length ? tags : undefined,
    excludedTags: readStrings(query, "excluded_tags"),
    hasEvaluationTags:
      readBoolean(query, "has_evaluation_tags") ?? readBoolean(query, "has_evaluation_contexts"),
    key: query.get("key") || undefined,
    isDeleted: readBoolean(query, "deleted") ?? false,
    lastCalledAfter: readDate(query, "last_called_after"),
    lastCalledBefore: readDate(query, "last_called_before"),
    order: query.get("order") || undefined,
  };
}

function readChoice<Choice extends string>(
  query: URLSearchParams,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const option = query.get(name)?.trim();
  if (!option) return undefined;
  const found = choices.find((choice) => choice === option);
  if (found !== undefined) return found;
  const detail = `"${option}" is not a valid choice. Use one of ${choices.join(", ")}.`;
  throw new InvalidFieldError(name, "invalid_choice", detail);
}

/** A number, comma-separated numbers, or a JSON list of numbers. */
function readUserIds(query: URLSearchParams, name: string): number[] | undefined {
  const list = (query.get(name) ?? "").trim().replace(/^\[(.*)\]$/s, "$1");
  if (list.trim() === "") return undefined;
  return list.split(",").map((part) => {
    const id = part.trim().replace(/^"(.*)"$/, "$1");
    if (!/^-?\d+$/.test(id)) {
      throw new InvalidFieldError(name, "invalid_input", "Send user ids, separated by commas.");
    }
    // No user can have this number: the list is empty.
    return Number.isSafeInteger(Number(id)) ? Number(id) : -1;
  });
}

/** A JSON list of strings, or one string. */
function readStrings(query: URLSearchParams, name: string): string[] | undefined {
  const option = query.get(name)?.trim();
  if (!option) return undefined;
  // A name may start like JSON; only text that looks like a list, an object or a quoted string must be JSON.
  if (!/^[[{"]/.test(option)) return [option];
  const parsed = toJson(option);
  const list = typeof parsed === "string" ? [parsed] : parsed;
  if (Array.isArray(list) && list.every((item) => typeof item === "string")) return list;
  throw new InvalidFieldError(name, "invalid_input", "Send a JSON list of strings, or one string.");
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
