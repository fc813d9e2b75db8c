/** Takes changes of a flag back: one more change, under the same rules and in the same log. */

import { activitiesSince } from "../../accounts/activity.ts";
import { projectRoute } from "../../accounts/api/routes.ts";
import type { Route } from "../../http/route.ts";
import { ApiFailure, object, uuid } from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { type Flag, storedFields } from "../fields.ts";
import type { FlagWriting } from "../store/flag-writes.ts";
import { editByCaller, getFlag, oneFlag } from "./feature-flags.ts";

/** Entries that one revert goes back over. */
const entriesMax = 1_000;

/** `POST /feature_flags/:id/revert`. */
export function flagRevertRoutes(deps: FlagWriting): Route[] {
  return [
    projectRoute("POST", "/feature_flags/:id/revert", "feature_flag:write", {
      summary: "Revert a flag",
      description:
        "`activity_id` names an entry of the flag's activity; what that change and those after it changed is put back, in one change. A revert across a change of `has_encrypted_payloads` is 400: the payload from before is not kept.",
      tag: "Feature flags",
      body: object({ activity_id: uuid() }),
      bodyExample: { activity_id: "0193d1a2-7b1c-7c3e-9f60-ad1e2f3a4b5c" },
      answers: { ...oneFlag, 409: { description: "Somebody changed it meanwhile.", schema: ApiFailure } },
      handle: (call) => {
        const flag = getFlag(deps, call);
        const of = { projectId: call.project.id, scope: "FeatureFlag", itemId: flag.id };
        const entries = activitiesSince(deps.metadata.db, of, call.body.activity_id, entriesMax);
        if (entries === undefined) {
          throw new InvalidField(
            "activity_id",
            "does_not_exist",
            "This flag has no such change, or too many after it.",
          );
        }
        if (entries.at(-1)!.activity === "created") {
          throw new InvalidField(
            "activity_id",
            "invalid_input",
            "Before this change there was no flag; delete it instead.",
          );
        }
        const changes = entries.flatMap(({ detail }) => detail.changes);
        if (changes.some(({ field }) => field === "has_encrypted_payloads")) {
          throw new InvalidField(
            "activity_id",
            "invalid_input",
            "A revert cannot go back across a change of encryption: change the fields with PATCH.",
          );
        }
        return editByCaller(deps, call, { ...fieldsBefore(flag, changes), version: flag.version });
      },
    }),
  ];
}

/** @param changes the newest first: the oldest one of a field knows what was before all of them. */
function fieldsBefore(flag: Flag, changes: readonly { field: string; before: Json }[]): JsonObject {
  const present = storedFields(flag) as JsonObject;
  const fields: JsonObject = {};
  for (const { field, before } of changes) {
    if (field === "version" || !Object.hasOwn(present, field)) continue;
    // The log tells evaluation tags by their older name, which takes only those that are tags.
    const name = field === "evaluation_tags" ? "evaluation_contexts" : field;
    fields[name] = before ?? emptyOf(present[field] ?? null);
  }
  // A member that is not sent stays, so what was added since is cleared.
  if (isJsonObject(fields.filters) && isJsonObject(present.filters)) {
    const added = Object.keys(present.filters).filter(
      (name) => !Object.hasOwn(fields.filters as JsonObject, name),
    );
    fields.filters = { ...fields.filters, ...Object.fromEntries(added.map((name) => [name, null])) };
  }
  return fields;
}

/** The log writes null for whatever was empty. */
function emptyOf(value: Json): Json {
  if (typeof value === "string") return "";
  if (Array.isArray(value)) return [];
  return isJsonObject(value) ? {} : null;
}
