/** Reverts changes of a flag by another change, with the same rules and in the same log. */

import { activitiesSince } from "../../accounts/activity.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { type Flag, storedFields } from "../fields.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";

/** Activity entries that one revert can undo. */
const entriesMax = 1_000;

/** The fields that undo a change of a flag and all later ones. @throws {InvalidFieldError} they cannot be undone */
export function revertedFields(
  { metadata: { db } }: Pick<FlagWriteDeps, "metadata">,
  flag: Flag,
  activityId: string,
): JsonObject {
  const target = { projectId: flag.projectId, scope: "FeatureFlag", itemId: flag.id };
  const entries = activitiesSince(db, target, activityId, entriesMax);
  if (entries === undefined) {
    throw new InvalidFieldError(
      "activity_id",
      "does_not_exist",
      "The change does not exist or has too many later ones.",
    );
  }
  if (entries.at(-1)!.activity === "created") {
    throw new InvalidFieldError(
      "activity_id",
      "invalid_input",
      "This change created the flag. Delete the flag instead.",
    );
  }
  const changes = entries.flatMap(({ detail }) => detail.changes);
  if (changes.some(({ field }) => field === "has_encrypted_payloads")) {
    throw new InvalidFieldError(
      "activity_id",
      "invalid_input",
      "A revert across a change of encryption is not possible. Change the fields with PATCH.",
    );
  }
  return fieldsBefore(flag, changes);
}

/** @param changes newest first: the oldest one of a field has the value before all of them. */
function fieldsBefore(flag: Flag, changes: readonly { field: string; before: Json }[]): JsonObject {
  const present = storedFields(flag) as JsonObject;
  const fields: JsonObject = {};
  for (const { field, before } of changes) {
    if (field === "version" || !Object.hasOwn(present, field)) continue;
    // The log records evaluation tags under their older name, which accepts only tags of the flag.
    const name = field === "evaluation_tags" ? "evaluation_contexts" : field;
    fields[name] = before ?? createEmpty(present[field] ?? null);
  }
  // Unsent members stay, so members added since are cleared with null.
  if (isJsonObject(fields.filters) && isJsonObject(present.filters)) {
    const added = Object.keys(present.filters).filter(
      (name) => !Object.hasOwn(fields.filters as JsonObject, name),
    );
    fields.filters = { ...fields.filters, ...Object.fromEntries(added.map((name) => [name, null])) };
  }
  return fields;
}

/** The log records null for any empty value. */
function createEmpty(value: Json): Json {
  if (typeof value === "string") return "";
  if (Array.isArray(value)) return [];
  return isJsonObject(value) ? {} : null;
}
