/** A feature flag in requests and responses (requirement: Feature flag; contract: management-api 3). */

import { type Static, Type } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-schemas.ts";
import type { Reading } from "../../accounts/db.ts";
import { requestStates } from "../../accounts/schema.ts";
import { findUser } from "../../accounts/users.ts";
import { findCohort } from "../../cohorts/cohorts.ts";
import {
  anyJson,
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import { FlagInput, flagAnswer } from "../fields.ts";
import type { ChangeRequest, ScheduledChange } from "../store/pending-changes.ts";

export const RequestBody = named(
  "ChangeRequest",
  object({
    id: int(),
    flag_id: nullable(int(), { description: "Null for a change of a cohort." }),
    flag_key: string({ blank: true }),
    cohort_id: nullable(int(), { description: "Null for a change of a flag." }),
    cohort_name: string({ blank: true }),
    affected_flags: list(string(), {
      description: "Keys of the protected flags that a pending change affects.",
    }),
    changes: record({ description: "Body of a PATCH of the flag or cohort." }),
    original: record({ description: "The flag or cohort at the time of the request." }),
    version: int(),
    note: string({ blank: true }),
    state: enumeration(requestStates),
    created_by: nullable(UserBody),
    created_at: dateTime(),
    decided_by: nullable(UserBody),
    decided_at: nullable(dateTime()),
    warnings: optional(list(string(), { description: "Only if the approval enabled encryption." })),
  }),
);

export const exampleRequest = {
  id: 5,
  flag_id: 12,
  flag_key: "one-click-pay",
  cohort_id: null,
  cohort_name: "",
  affected_flags: ["one-click-pay"],
  changes: { active: false },
  original: { active: true },
  version: 3,
  note: "",
  state: "pending" as const,
  created_by: exampleUser,
  created_at: "2026-03-04T16:00:01.007000Z",
  decided_by: null,
  decided_at: null,
};

export function userOrNull(db: Reading, id: number | null): Static<typeof UserBody> | null {
  const user = id === null ? undefined : findUser(db, id);
  return user === undefined ? null : userBody(user);
}

/** @param keys of flags, by id. @param getAffected finds the keys of the protected flags that a pending change affects */
export function changeRequestBody(
  db: Reading,
  request: ChangeRequest,
  keys: ReadonlyMap<number, string>,
  getAffected: (request: ChangeRequest) => string[],
): Static<typeof RequestBody> {
  const { projectId, cohortId } = request;
  const cohort =
    cohortId === null ? undefined : findCohort(db, projectId, cohortId, { includeDeleted: true });
  return {
    id: request.id,
    flag_id: request.flagId,
    flag_key: keys.get(request.flagId ?? -1) ?? "",
    cohort_id: request.cohortId,
    cohort_name: cohort?.name ?? "",
    affected_flags: request.state === "pending" ? getAffected(request) : [],
    changes: request.changes,
    original: request.original,
    version: request.version,
    note: request.note,
    state: request.state,
    created_by: userOrNull(db, request.createdById),
    created_at: toApiTime(request.createdAt),
    decided_by: userOrNull(db, request.decidedById),
    decided_at: toApiTimeOrNull(request.decidedAt),
  };
}

/** Of the note about a change. */
export const noteLengthMax = 2_000;

export const NewFlagInput = Type.Composite([
  FlagInput,
  object({
    _create_in_folder: optional(anyJson({ description: "Accepted without effect." })),
    _should_create_usage_dashboard: optional(bool({ default: true })),
  }),
]);

export const FlagEditInput = Type.Composite([
  FlagInput,
  object({
    version: optional(nullable(int(), { description: "Version of the flag that the edit is based on." })),
    original_flag: optional(nullable(record(), { description: "The flag that the edit is based on." })),
    note: optional(
      string({ blank: true, max: noteLengthMax, description: "Reason, stored in the activity log." }),
    ),
  }),
]);

export const FlagBody = named("FeatureFlag", object(flagAnswer));

export const FlagPage = pageOf("FeatureFlagPage", FlagBody);

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
