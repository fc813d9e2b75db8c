/**
 * Concurrent edits of a flag: what the later one may write (contract: management-api 3.6).
 *
 * Pure.
 */

import { EditConflictError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { checkedFields, type Flag, type FlagFields, storedFields } from "../fields.ts";

/** The client's copy of the flag, and its edit. */
export interface Edit {
  fields: Partial<FlagFields>;
  /** The version the client last read; absent or -1: no check. */
  version?: number;
  /** The flag as the client last read it, with the names of the API. */
  originalFlag?: JsonObject;
  /** The body as sent, with the names of the API. */
  sent: JsonObject;
  /** Reason, for the activity log. */
  note?: string | undefined;
  /** Disables the flag even if active flags depend on it. */
  ignoresDependents?: boolean | undefined;
}

/**
 * The fields to write: when the client's copy is outdated, only those that the client really changed.
 *
 * @param editor who changed the flag last; called only for a conflict.
 * @throws {EditConflictError} the client and another user changed the same field to different values.
 */
export function mergeConcurrentEdit(
  stored: Flag,
  edit: Edit,
  editor: () => string | undefined,
): Partial<FlagFields> {
  const { version, originalFlag: original, sent, fields } = edit;
  if (version === undefined || version === -1 || version === stored.version) return fields;
  if (original === undefined || Object.keys(original).length === 0) return fields;
  const present = storedFields(stored);
  const preserved: Partial<FlagFields> = { ...fields };
  for (const [name, field] of checkedFields) {
    if (!Object.hasOwn(sent, name) || !Object.hasOwn(original, name)) continue;
    const [wanted, read, now] = [sent, original, present].map((from) => comparable(name, from[name] ?? null));
    if (Bun.deepEquals(wanted, read)) delete preserved[field];
    else if (!Bun.deepEquals(now, read) && !Bun.deepEquals(now, wanted))
      throw new EditConflictError(editor());
  }
  return preserved;
}

/** Names that the server adds to conditions in responses. */
const displayNames = new Set(["cohort_name", "group_key_names"]);

function comparable(name: string, value: Json): Json {
  // Responses show false for an unset value.
  if (name === "performed_rollback") return value ?? false;
  return name === "filters" ? withoutDisplayNames(value) : value;
}

/** Filters without the names that responses add to their conditions. */
export function withoutDisplayNames(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutDisplayNames);
  if (!isJsonObject(value)) return value;
  const preserved = Object.entries(value).filter(([name]) => !displayNames.has(name));
  return Object.fromEntries(preserved.map(([name, inner]) => [name, withoutDisplayNames(inner)]));
}
