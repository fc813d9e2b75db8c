/** Scheduled changes of flags in responses. */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody } from "../../accounts/api/user-schemas.ts";
import type { Reading } from "../../accounts/db.ts";
import { dateTime, enumeration, int, named, nullable, object, record, string } from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/api-time.ts";
import type { ScheduledChange } from "../store/pending-changes.ts";
import { userOrNull } from "./change-request-body.ts";

export const ScheduledBody = named(
  "ScheduledChange",
  object({
    id: int(),
    record_id: int({ description: "Id of the flag." }),
    flag_key: string({ blank: true }),
    model_name: enumeration(["FeatureFlag"]),
    payload: record(),
    scheduled_at: dateTime(),
    executed_at: nullable(dateTime(), { description: "Time of the change or of the failed attempt." }),
    failure_reason: nullable(string(), { description: "Reason of the failure; the change is not retried." }),
    created_at: dateTime(),
    created_by: nullable(UserBody),
  }),
);

export const exampleScheduled = {
  id: 3,
  record_id: 12,
  flag_key: "one-click-pay",
  model_name: "FeatureFlag" as const,
  payload: { operation: "update_status", value: true },
  scheduled_at: "2026-03-05T09:00:00.000000Z",
  executed_at: null,
  failure_reason: null,
  created_at: "2026-03-04T16:00:01.007000Z",
  created_by: exampleUser,
};

/** @param keys of flags, by id */
export function scheduledBody(
  db: Reading,
  change: ScheduledChange,
  keys: ReadonlyMap<number, string>,
): Static<typeof ScheduledBody> {
  return {
    id: change.id,
    record_id: change.flagId,
    flag_key: keys.get(change.flagId) ?? "",
    model_name: "FeatureFlag",
    payload: change.payload,
    scheduled_at: toApiTime(change.scheduledAt),
    executed_at: toApiTimeOrNull(change.executedAt),
    failure_reason: change.failureReason,
    created_at: toApiTime(change.createdAt),
    created_by: userOrNull(db, change.createdById),
  };
}
