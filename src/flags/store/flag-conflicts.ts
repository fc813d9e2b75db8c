/**
 * Two people edit one flag: what the later one may write (contract: management-api 3.6).
 *
 * Pure.
 */

import { EditConflict } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import { checkedFields, type Flag, type FlagFields, storedFields } from "../fields.ts";

/** What a client says about the flag it had before its eyes. */
export interface Edit {
  fields: Partial<FlagFields>;
  /** The version the client last read; absent or -1: no check. */
  version?: number;
  /** The flag as the client last read it, in the names of the API. */
  originalFlag?: JsonObject;
  /** The body as it came, in the names of the API. */
  sent: JsonObject;
  /** Why, for the activity log. */
  note?: string | undefined;
}

/**
 * The fields to write: when the client's copy is old, only those that the client really changed.
 *
 * @param editor who changed the flag last; asked only when there is a conflict.
 * @throws {EditConflict} the client and somebody else changed the same field to different values.
 */
export function withoutOverwriting(
  stored: Flag,
  edit: Edit,
  editor: () => string | undefined,
): Partial<FlagFields> {
  const { version, originalFlag: original, sent, fields } = edit;
  if (version === undefined || version === -1 || version === stored.version) return fields;
  if (original === undefined || Object.keys(original).length === 0) return fields;
  const present = storedFields(stored);
  const kept: Partial<FlagFields> = { ...fields };
  for (const [name, field] of checkedFields) {
    if (!Object.hasOwn(sent, name) || !Object.hasOwn(original, name)) continue;
    const [wanted, read, now] = [sent, original, present].map((from) => comparable(name, from[name] ?? null));
    if (Bun.deepEquals(wanted, read)) delete kept[field];
    else if (!Bun.deepEquals(now, read) && !Bun.deepEquals(now, wanted)) throw new EditConflict(editor());
  }
  return kept;
}

/** Names that the server adds to conditions when it shows them. */
const shownOnly = new Set(["cohort_name", "group_key_names"]);

function comparable(name: string, value: Json): Json {
  // Answers show false where nothing was set.
  if (name === "performed_rollback") return value ?? false;
  return name === "filters" ? withoutShown(value) : value;
}

/** Filters without the names that answers add to their conditions. */
export function withoutShown(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutShown);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !shownOnly.has(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutShown(inner)]));
}
