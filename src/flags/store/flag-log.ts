/** What the activity log tells about flags (contract: management-api 5.10). */

import { type Author, type Change, changesBetween, recordActivity } from "../../accounts/activity.ts";
import type { MetadataTx } from "../../accounts/db.ts";
import { type Flag, storedFields, trackedFields } from "../fields.ts";
import { withHiddenPayloads } from "../rules/types.ts";

/** Writes the entry of a new flag. */
export function recordCreation(t: MetadataTx, flag: Flag, by: Author, now: Date): void {
  record(t, "created", flag, by, [], now);
}

/** Writes what a change changed. `version` is tracked, so every change has an entry. */
export function recordChange(t: MetadataTx, before: Flag, after: Flag, by: Author, now: Date): void {
  const shown = (flag: Flag) => ({ ...storedFields(flag), filters: withHiddenPayloads(flag) });
  const changes = changesBetween("FeatureFlag", shown(before), shown(after), trackedFields);
  const activity = before.deleted === after.deleted ? "updated" : after.deleted ? "deleted" : "restored";
  record(t, activity, after, by, changes, now);
}

function record(
  t: MetadataTx,
  activity: string,
  flag: Pick<Flag, "id" | "key" | "projectId">,
  by: Author,
  changes: Change[],
  now: Date,
): void {
  recordActivity(t, {
    by,
    projectId: flag.projectId,
    activity,
    scope: "FeatureFlag",
    itemId: flag.id,
    name: flag.key,
    changes,
    now,
  });
}
