/** Reads the filters of a list of flags (contract: management-api 5.1; decision 23). */

import { Type } from "@sinclair/typebox";
import { readBoolean } from "../../http/query.ts";
import { bool, choice, int, object, optional, text } from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { evaluationRuntimes } from "../fields.ts";
import type { FlagFilter } from "../store/flag-list.ts";

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
  excluded_properties: optional(text({ description: "Flag keys to leave out: a JSON list, or one key." })),
  tags: optional(text({ description: "A JSON list, or one tag; flags with any of these tags." })),
  excluded_tags: optional(text({ description: "A JSON list, or one tag; flags with none of these tags." })),
  has_evaluation_tags: optional(bool()),
  has_evaluation_contexts: optional(bool({ description: "Same as `has_evaluation_tags`." })),
  key: optional(text({ description: "Exactly this key, whatever its letter case." })),
  deleted: optional(bool({ description: "Deleted flags, which `deleted: false` restores, instead." })),
  order: optional(text({ description: "A field, `-` before it for descending. Default `-created_at`." })),
});

/** @throws {InvalidField} the first filter whose value cannot be read (contract, management-api 5.1). */
export function readFlagQuery(query: URLSearchParams): FlagFilter {
  const search = query.get("search")?.trim();
  if (search !== undefined && search.length > searchLengthMax) {
    throw new InvalidField("search", "invalid_input", "Search term cannot exceed 200 characters");
  }
  const tags = readTexts(query, "tags");
  return {
    search: search || undefined,
    active: query.get("active")?.trim() === "STALE" ? "STALE" : readBoolean(query, "active"),
    createdByIds: readUserIds(query, "created_by_id") ?? readUserIds(query, "created_by"),
    type: readChoice(query, "type", flagTypes),
    evaluationRuntime: readChoice(query, "evaluation_runtime", evaluationRuntimes),
    excludedKeys: readTexts(query, "excluded_properties"),
    tags: tags?.length ? tags : undefined,
    excludedTags: readTexts(query, "excluded_tags"),
    hasEvaluationTags:
      readBoolean(query, "has_evaluation_tags") ?? readBoolean(query, "has_evaluation_contexts"),
    key: query.get("key") || undefined,
    isDeleted: readBoolean(query, "deleted") ?? false,
    order: query.get("order") || undefined,
  };
}

function readChoice<Choice extends string>(
  query: URLSearchParams,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const given = query.get(name)?.trim();
  if (!given) return undefined;
  const found = choices.find((choice) => choice === given);
  if (found !== undefined) return found;
  const detail = `"${given}" is not a valid choice. Use one of ${choices.join(", ")}.`;
  throw new InvalidField(name, "invalid_choice", detail);
}

/** A number, numbers with commas between, or a JSON list of numbers. */
function readUserIds(query: URLSearchParams, name: string): number[] | undefined {
  const list = (query.get(name) ?? "").trim().replace(/^\[(.*)\]$/s, "$1");
  if (list.trim() === "") return undefined;
  return list.split(",").map((part) => {
    const id = part.trim().replace(/^"(.*)"$/, "$1");
    if (!/^-?\d+$/.test(id)) {
      throw new InvalidField(name, "invalid_input", "Send a user id, or several with commas between.");
    }
    // A number that no user can have: nothing is listed for it.
    return Number.isSafeInteger(Number(id)) ? Number(id) : -1;
  });
}

/** A JSON list of texts, or one text. */
function readTexts(query: URLSearchParams, name: string): string[] | undefined {
  const given = query.get(name)?.trim();
  if (!given) return undefined;
  // A name may begin like JSON; only what looks like a list, an object or a quoted text has to be JSON.
  if (!/^[[{"]/.test(given)) return [given];
  const parsed = jsonOf(given);
  const list = typeof parsed === "string" ? [parsed] : parsed;
  if (Array.isArray(list) && list.every((item) => typeof item === "string")) return list;
  throw new InvalidField(name, "invalid_input", "Send a JSON list of texts, or one text.");
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
