/** Future changes of flags: scheduled changes and change requests. */

import type { Static } from "@sinclair/typebox";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { exampleUser, UserBody } from "../../accounts/api/user-schemas.ts";
import { requestStates } from "../../accounts/schema.ts";
import type { CohortDeps } from "../../cohorts/api/cohorts.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import {
  ApiFailure,
  dateTime,
  enumeration,
  int,
  named,
  nullable,
  object,
  optional,
  pageExample,
  pageOf,
  record,
  string,
  uuid,
  withPage,
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/api-time.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Flag } from "../fields.ts";
import { findFlag, flagKeysById } from "../store/flag.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import {
  type ChangeRequest,
  findRequest,
  findScheduled,
  flagTarget,
  getFlagIds,
  listRequests,
  listScheduled,
  type RequestState,
  requestChange,
  reschedule,
  type ScheduledChange,
  unschedule,
} from "../store/pending-changes.ts";
import { affectedKeysFinder } from "../store/protected-flags.ts";
import { changeRequestBody, exampleRequest, RequestBody, userOrNull } from "./change-request-body.ts";
import { approveForCall, assertMayDecide, cohortTarget, isCohortRequest } from "./cohort-requests.ts";
import { checkMayEdit, flagAnswers } from "./feature-flags.ts";
import { revertedFields } from "./flag-revert.ts";
import { noteLengthMax } from "./flag-schemas.ts";
import {
  approveRequest,
  assertPossible,
  assertSchedulable,
  type FlagRequest,
  rejectRequest,
  scheduleFlagChange,
} from "./pending-changes.ts";

const tagName = "Feature flags";
const payloadWords =
  "`operation` and `value`. `update_status`: the flag's state; `add_release_condition`: `value.groups` are added to the condition sets; `update`: the body of a PATCH of the flag; `update_rollout`: `value.rollout_percentage` of the condition set `value.condition_index` (from 0). A rollback of the flag ends pending `update_rollout` changes.";

const ScheduledBody = named(
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
const exampleScheduled = {
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
const oneScheduled = {
  200: { description: "The change.", schema: ScheduledBody, example: exampleScheduled },
};
const oneRequest = {
  200: { description: "The change request.", schema: RequestBody, example: exampleRequest },
  400: {
    description: "It is already decided or can no longer be applied.",
    schema: ApiFailure,
    example: {
      type: "validation_error",
      code: "already_decided",
      detail: "This change request is already decided.",
      attr: null,
    },
  },
};

export function flagChangeRoutes(deps: FlagWriteDeps & CohortDeps): Route[] {
  const { db } = deps.metadata;
  const scheduledBody = (
    change: ScheduledChange,
    keys: Map<number, string>,
  ): Static<typeof ScheduledBody> => ({
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
  });
  const requestBody = (
    request: ChangeRequest,
    keys: Map<number, string>,
    getAffected = affectedKeysFinder(deps, request.projectId),
  ) => changeRequestBody(db, request, keys, getAffected);
  const decided = (call: ProjectCall<unknown>) => findRequest(db, call.project.id, numberIn(call.params.id));
  return [
    projectRoute("GET", "/scheduled_changes", "feature_flag:read", {
      summary: "List scheduled changes",
      description: "Pending changes first, then the latest.",
      tag: tagName,
      query: withPage(object({ record_id: optional(int({ description: "Only changes of this flag." })) })),
      answers: {
        200: pageExample(
          "One page of changes.",
          pageOf("ScheduledChangePage", ScheduledBody),
          exampleScheduled,
        ),
      },
      handle: ({ project, query, url }) => {
        const page = readPage(query);
        const { changes, count } = listScheduled(db, project.id, optionalNumber(query, "record_id"), page);
        const keys = flagKeysById(db, project.id, getFlagIds(changes));
        const shown = changes.map((change) => scheduledBody(change, keys));
        return pageAnswer(url, page, count, shown);
      },
    }),
    projectRoute("POST", "/scheduled_changes", "feature_flag:write", {
      summary: "Schedule a flag change",
      description: "Applied within seconds of its time if its author still has permission to edit the flag.",
      tag: tagName,
      body: object({
        record_id: int(),
        model_name: optional(enumeration(["FeatureFlag"])),
        payload: record({ description: payloadWords }),
        scheduled_at: dateTime(),
      }),
      bodyExample: {
        record_id: 12,
        payload: { operation: "update_status", value: true },
        scheduled_at: "2026-03-05T09:00:00.000000Z",
      },
      answers: { 201: { description: "The change.", schema: ScheduledBody, example: exampleScheduled } },
      handle: (call) => {
        const flag = editableFlag(deps, call, call.body.record_id, "record_id");
        const change = {
          payload: call.body.payload as JsonObject,
          scheduledAt: new Date(call.body.scheduled_at),
        };
        const created = scheduleFlagChange(deps, flag, change, { userId: call.user.id, now: call.now });
        return new RouteResponse(201, scheduledBody(created, new Map([[flag.id, flag.key]])));
      },
    }),
    projectRoute("GET", "/scheduled_changes/:id", "feature_flag:read", {
      summary: "Get a scheduled change",
      tag: tagName,
      answers: oneScheduled,
      handle: ({ project, params }) => {
        const change = findScheduled(db, project.id, numberIn(params.id));
        return scheduledBody(change, flagKeysById(db, project.id, [change.flagId]));
      },
    }),
    projectRoute("PATCH", "/scheduled_changes/:id", "feature_flag:write", {
      summary: "Update a scheduled change",
      description:
        "The updating user becomes the author, whose permission is checked when the change is applied.",
      tag: tagName,
      body: object({
        payload: optional(record({ description: payloadWords })),
        scheduled_at: optional(dateTime()),
      }),
      isPartial: true,
      bodyExample: { scheduled_at: "2026-03-06T09:00:00.000000Z" },
      answers: oneScheduled,
      handle: (call) => {
        const change = findScheduled(db, call.project.id, numberIn(call.params.id));
        const flag = editableFlag(deps, call, change.flagId, "id");
        const payload = (call.body.payload as JsonObject | undefined) ?? change.payload;
        const scheduledAt =
          call.body.scheduled_at === undefined ? change.scheduledAt : new Date(call.body.scheduled_at);
        assertSchedulable(deps, flag, { payload, scheduledAt }, call.now);
        const changed = reschedule(deps, change, { payload, scheduledAt, createdById: call.user.id });
        return scheduledBody(changed, new Map([[flag.id, flag.key]]));
      },
    }),
    projectRoute("DELETE", "/scheduled_changes/:id", "feature_flag:write", {
      summary: "Cancel a scheduled change",
      tag: tagName,
      answers: { 204: { description: "Gone." } },
      handle: (call) => {
        const id = numberIn(call.params.id);
        checkMayUndo(deps, call, findScheduled(db, call.project.id, id));
        unschedule(deps, call.project.id, id);
        return new RouteResponse(204);
      },
    }),
    projectRoute("GET", "/change_requests", "feature_flag:read", {
      summary: "List change requests",
      description: "Newest first.",
      tag: tagName,
      query: withPage(
        object({
          state: optional(enumeration(requestStates)),
          flag_id: optional(int()),
          cohort_id: optional(int()),
        }),
      ),
      answers: {
        200: pageExample(
          "One page of change requests.",
          pageOf("ChangeRequestPage", RequestBody),
          exampleRequest,
        ),
      },
      handle: ({ project, query, url }) => {
        const state = query.get("state") || undefined;
        if (state !== undefined && !requestStates.includes(state as RequestState)) {
          throw new InvalidFieldError("state", "invalid_choice", `"${state}" is not a valid choice.`);
        }
        const filter = {
          state: state as RequestState | undefined,
          flagId: optionalNumber(query, "flag_id"),
          cohortId: optionalNumber(query, "cohort_id"),
        };
        const page = readPage(query);
        const { requests, count } = listRequests(db, project.id, filter, page);
        const keys = flagKeysById(db, project.id, getFlagIds(requests));
        const getAffected = affectedKeysFinder(deps, project.id);
        const shown = requests.map((request) => requestBody(request, keys, getAffected));
        return pageAnswer(url, page, count, shown);
      },
    }),
    projectRoute("POST", "/change_requests", "feature_flag:write", {
      summary: "Create a change request",
      description:
        "For a flag (`flag_id`), or for a cohort that a protected flag uses (`cohort_id`, which needs `cohort:write`). It is applied when another user with edit permission approves it.",
      tag: tagName,
      body: object({
        flag_id: optional(int()),
        cohort_id: optional(int()),
        changes: optional(record({ description: "Body of a PATCH of the flag or cohort." })),
        activity_id: optional(
          uuid({
            description:
              "Instead of `changes`: undo this change of the flag's activity and all later ones, as `revert` does.",
          }),
        ),
        note: optional(string({ blank: true, max: noteLengthMax })),
      }),
      bodyExample: { flag_id: 12, changes: { active: false }, note: "Requested by support." },
      answers: { 201: { description: "The change request.", schema: RequestBody, example: exampleRequest } },
      handle: async (call) => {
        const { flag_id: flagId, cohort_id: cohortId } = call.body;
        if ((flagId === undefined) === (cohortId === undefined))
          throw new InvalidFieldError("flag_id", "invalid_input", "Send either `flag_id` or `cohort_id`.");
        const { note = "", activity_id: activityId } = call.body;
        const changes = (call.body.changes ?? {}) as JsonObject;
        if (activityId === undefined && Object.keys(changes).length === 0)
          throw new InvalidFieldError("changes", "required", "This field is required.");
        if (activityId !== undefined && (call.body.changes !== undefined || cohortId !== undefined)) {
          throw new InvalidFieldError(
            "activity_id",
            "invalid_input",
            "Send `activity_id` with `flag_id`, and without `changes` and `cohort_id`.",
          );
        }
        const input = { changes, note, createdById: call.user.id, createdAt: call.now };
        if (cohortId !== undefined) {
          const target = await cohortTarget(deps, call, cohortId, changes);
          return new RouteResponse(201, requestBody(requestChange(deps, target, input), new Map()));
        }
        const flag = editableFlag(deps, call, flagId!, "flag_id");
        if (activityId !== undefined) input.changes = revertedFields(deps, flag, activityId);
        assertPossible(deps, flag, input.changes, activityId === undefined ? "changes" : "activity_id");
        const created = requestChange(deps, flagTarget(flag), input);
        return new RouteResponse(201, requestBody(created, new Map([[flag.id, flag.key]])));
      },
    }),
    projectRoute("POST", "/change_requests/:id/approve", "feature_flag:write", {
      summary: "Approve and apply a change request",
      description:
        "Not allowed for its author. Requires permission to edit every protected flag that the change affects. 409 if the same fields changed since: create a new request.",
      tag: tagName,
      answers: {
        ...oneRequest,
        409: { description: "The same fields changed since the request.", schema: ApiFailure },
      },
      handle: async (call) => {
        const request = decided(call);
        if (isCohortRequest(request))
          return requestBody(await approveForCall(deps, call, request), new Map());
        const answers = flagAnswers(deps, call);
        const deciding = { userId: call.user.id, now: call.now };
        const {
          decided: done,
          flag,
          warnings,
        } = approveRequest(deps, request as FlagRequest, deciding, (before) => checkMayEdit(answers, before));
        const answer = requestBody(done, new Map([[flag.id, flag.key]]));
        return warnings.length === 0 ? answer : { ...answer, warnings };
      },
    }),
    projectRoute("POST", "/change_requests/:id/reject", "feature_flag:write", {
      summary: "Reject or withdraw a change request",
      tag: tagName,
      answers: oneRequest,
      handle: (call) => {
        const request = decided(call);
        if (isCohortRequest(request)) assertMayDecide(deps, call, request);
        else checkMayUndo(deps, call, request as FlagRequest);
        const deciding = { userId: call.user.id, now: call.now };
        const keys = flagKeysById(db, call.project.id, getFlagIds([request]));
        return requestBody(rejectRequest(deps, request, deciding), keys);
      },
    }),
  ];
}

/** @throws {InvalidFieldError} the flag does not exist. @throws {PermissionDeniedError} */
function editableFlag(deps: FlagWriteDeps, call: ProjectCall<unknown>, id: number, field: string): Flag {
  const flag = findFlag(deps.metadata.db, call.project.id, id);
  if (flag === undefined || flag.deleted) {
    throw new InvalidFieldError(field, "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
  }
  checkMayEdit(flagAnswers(deps, call), flag);
  return flag;
}

/** For cancelling changes, also of a deleted flag, which allows nothing else. @throws {PermissionDeniedError} */
function checkMayUndo(
  deps: FlagWriteDeps,
  call: ProjectCall<unknown>,
  { flagId }: ScheduledChange | FlagRequest,
): void {
  checkMayEdit(flagAnswers(deps, call), findFlag(deps.metadata.db, call.project.id, flagId)!);
}

function numberIn(text: string | undefined): number {
  return /^\d{1,15}$/.test(text ?? "") ? Number(text) : -1;
}

/** @throws {InvalidFieldError} */
function optionalNumber(query: URLSearchParams, name: string): number | undefined {
  const written = query.get(name) ?? "";
  if (written === "") return undefined;
  if (!/^\d{1,15}$/.test(written))
    throw new InvalidFieldError(name, "invalid_input", "A valid integer is required.");
  return Number(written);
}
