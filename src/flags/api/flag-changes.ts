/** Changes of flags for later: scheduled ones, and those that somebody else has to agree to. */

import type { Static } from "@sinclair/typebox";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-shapes.ts";
import { requestStates } from "../../accounts/schema.ts";
import { findUser } from "../../accounts/users.ts";
import type { CohortDeps } from "../../cohorts/api/cohorts.ts";
import { findCohort } from "../../cohorts/cohorts.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { Reply, type Route } from "../../http/route.ts";
import {
  ApiFailure,
  choice,
  dictionary,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  onePage,
  optional,
  pageOf,
  text,
  withPage,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { toWire, toWireOrNull } from "../../lib/wire-time.ts";
import type { Flag } from "../fields.ts";
import { findFlag, flagKeysById } from "../store/flag.ts";
import type { FlagWriting } from "../store/flag-writes.ts";
import {
  type ChangeRequest,
  findRequest,
  findScheduled,
  flagIdsOf,
  flagTarget,
  listRequests,
  listScheduled,
  type RequestState,
  requestChange,
  reschedule,
  type ScheduledChange,
  unschedule,
} from "../store/pending-changes.ts";
import { approveCohortRequest, assertMayDecide, cohortTarget, isCohortRequest } from "./cohort-requests.ts";
import { checkMayEdit, flagAnswers } from "./feature-flags.ts";
import { noteLengthMax } from "./flag-shapes.ts";
import {
  approveRequest,
  type FlagRequest,
  rejectRequest,
  requirePossible,
  requireSchedulable,
  scheduleFlagChange,
} from "./later-changes.ts";

const tagName = "Feature flags";
const payloadWords =
  "`operation` and `value`. `update_status`: the switch; `add_release_condition`: `value.groups` come to the condition sets; `update`: what a PATCH of the flag sends.";

const ScheduledBody = named(
  "ScheduledChange",
  object({
    id: int(),
    record_id: int({ description: "Id of the flag." }),
    flag_key: text({ blank: true }),
    model_name: choice(["FeatureFlag"]),
    payload: dictionary(),
    scheduled_at: instant(),
    executed_at: nullable(instant(), { description: "When it was made, or tried." }),
    failure_reason: nullable(text(), { description: "Why it could not be made; it is not tried again." }),
    created_at: instant(),
    created_by: nullable(UserBody),
  }),
);
const RequestBody = named(
  "ChangeRequest",
  object({
    id: int(),
    flag_id: nullable(int(), { description: "Null for a change of a cohort." }),
    flag_key: text({ blank: true }),
    cohort_id: nullable(int(), { description: "Null for a change of a flag." }),
    cohort_name: text({ blank: true }),
    changes: dictionary({ description: "As a PATCH of the flag or the cohort sends them." }),
    original: dictionary({ description: "The flag or the cohort when the change was requested." }),
    version: int(),
    note: text({ blank: true }),
    state: choice(requestStates),
    created_by: nullable(UserBody),
    created_at: instant(),
    decided_by: nullable(UserBody),
    decided_at: nullable(instant()),
    warnings: optional(list(text(), { description: "Only after an approval that turned encryption on." })),
  }),
);
const exampleScheduled = {
  ...{ id: 3, record_id: 12, flag_key: "one-click-pay", model_name: "FeatureFlag" as const },
  payload: { operation: "update_status", value: true },
  scheduled_at: "2026-03-05T09:00:00.000000Z",
  ...{
    executed_at: null,
    failure_reason: null,
    created_at: "2026-03-04T16:00:01.007000Z",
    created_by: exampleUser,
  },
};
const exampleRequest = {
  ...{
    id: 5,
    flag_id: 12,
    flag_key: "one-click-pay",
    cohort_id: null,
    cohort_name: "",
    changes: { active: false },
    original: { active: true },
  },
  ...{ version: 3, note: "", state: "pending" as const, created_by: exampleUser },
  ...{ created_at: "2026-03-04T16:00:01.007000Z", decided_by: null, decided_at: null },
};
const oneScheduled = {
  200: { description: "The change.", schema: ScheduledBody, example: exampleScheduled },
};
const oneRequest = {
  200: { description: "The proposal.", schema: RequestBody, example: exampleRequest },
  400: {
    description: "It was decided on already, or cannot be made any more.",
    schema: ApiFailure,
    example: {
      type: "validation_error",
      code: "already_decided",
      detail: "This change was decided on already.",
      attr: null,
    },
  },
};

export function flagChangeRoutes(deps: FlagWriting & CohortDeps): Route[] {
  const { db } = deps.metadata;
  const userOf = (id: number | null) => {
    const user = id === null ? undefined : findUser(db, id);
    return user === undefined ? null : userBody(user);
  };
  const scheduledBody = (
    change: ScheduledChange,
    keys: Map<number, string>,
  ): Static<typeof ScheduledBody> => ({
    ...{
      id: change.id,
      record_id: change.flagId,
      flag_key: keys.get(change.flagId) ?? "",
      model_name: "FeatureFlag",
    },
    payload: change.payload,
    scheduled_at: toWire(change.scheduledAt),
    executed_at: toWireOrNull(change.executedAt),
    failure_reason: change.failureReason,
    created_at: toWire(change.createdAt),
    created_by: userOf(change.createdById),
  });
  const cohortName = ({ projectId, cohortId }: ChangeRequest) =>
    (cohortId === null ? undefined : findCohort(db, projectId, cohortId, { includeDeleted: true })?.name) ??
    "";
  const requestBody = (request: ChangeRequest, keys: Map<number, string>): Static<typeof RequestBody> => ({
    ...{ id: request.id, flag_id: request.flagId, flag_key: keys.get(request.flagId ?? -1) ?? "" },
    ...{ cohort_id: request.cohortId, cohort_name: cohortName(request) },
    ...{ changes: request.changes, original: request.original, version: request.version },
    ...{ note: request.note, state: request.state, created_by: userOf(request.createdById) },
    created_at: toWire(request.createdAt),
    decided_by: userOf(request.decidedById),
    decided_at: toWireOrNull(request.decidedAt),
  });
  const decided = (call: ProjectCall<unknown>) => findRequest(db, call.project.id, numberIn(call.params.id));
  return [
    projectRoute("GET", "/scheduled_changes", "feature_flag:read", {
      summary: "List scheduled changes",
      description: "Those to come first, then the latest.",
      tag: tagName,
      query: withPage(object({ record_id: optional(int({ description: "Only those of this flag." })) })),
      answers: {
        200: onePage("One page of changes.", pageOf("ScheduledChangePage", ScheduledBody), exampleScheduled),
      },
      handle: ({ project, query, url }) => {
        const page = readPage(query);
        const { changes, count } = listScheduled(db, project.id, optionalNumber(query, "record_id"), page);
        const keys = flagKeysById(db, project.id, flagIdsOf(changes));
        const shown = changes.map((change) => scheduledBody(change, keys));
        return pageAnswer(url, page, count, shown);
      },
    }),
    projectRoute("POST", "/scheduled_changes", "feature_flag:write", {
      summary: "Schedule a flag change",
      description: "Made within seconds of its time, if whoever scheduled it may still edit the flag then.",
      tag: tagName,
      body: object({
        record_id: int(),
        model_name: optional(choice(["FeatureFlag"])),
        payload: dictionary({ description: payloadWords }),
        scheduled_at: instant(),
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
        const made = scheduleFlagChange(deps, flag, change, { userId: call.user.id, now: call.now });
        return new Reply(201, scheduledBody(made, new Map([[flag.id, flag.key]])));
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
      description: "Whoever changes it is the one who may still have to edit the flag then.",
      tag: tagName,
      body: object({
        payload: optional(dictionary({ description: payloadWords })),
        scheduled_at: optional(instant()),
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
        requireSchedulable(deps, flag, { payload, scheduledAt }, call.now);
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
        return new Reply(204);
      },
    }),
    projectRoute("GET", "/change_requests", "feature_flag:read", {
      summary: "List change requests",
      description: "The newest first.",
      tag: tagName,
      query: withPage(
        object({
          state: optional(choice(requestStates)),
          flag_id: optional(int()),
          cohort_id: optional(int()),
        }),
      ),
      answers: {
        200: onePage("One page of proposals.", pageOf("ChangeRequestPage", RequestBody), exampleRequest),
      },
      handle: ({ project, query, url }) => {
        const state = query.get("state") || undefined;
        if (state !== undefined && !requestStates.includes(state as RequestState)) {
          throw new InvalidField("state", "invalid_choice", `"${state}" is not a valid choice.`);
        }
        const filter = {
          state: state as RequestState | undefined,
          flagId: optionalNumber(query, "flag_id"),
          cohortId: optionalNumber(query, "cohort_id"),
        };
        const page = readPage(query);
        const { requests, count } = listRequests(db, project.id, filter, page);
        const keys = flagKeysById(db, project.id, flagIdsOf(requests));
        const shown = requests.map((request) => requestBody(request, keys));
        return pageAnswer(url, page, count, shown);
      },
    }),
    projectRoute("POST", "/change_requests", "feature_flag:write", {
      summary: "Create a change request",
      description:
        "For a flag (`flag_id`), or for a cohort that a protected flag uses (`cohort_id`, which needs `cohort:write`). The change is made when another user who may edit the flag approves it.",
      tag: tagName,
      body: object({
        flag_id: optional(int()),
        cohort_id: optional(int()),
        changes: dictionary({ description: "As a PATCH of the flag or the cohort sends them." }),
        note: optional(text({ blank: true, max: noteLengthMax })),
      }),
      bodyExample: { flag_id: 12, changes: { active: false }, note: "Support asked for it." },
      answers: { 201: { description: "The change request.", schema: RequestBody, example: exampleRequest } },
      handle: async (call) => {
        const { flag_id: flagId, cohort_id: cohortId } = call.body;
        if ((flagId === undefined) === (cohortId === undefined))
          throw new InvalidField("flag_id", "invalid_input", "Send either `flag_id` or `cohort_id`.");
        const changes = call.body.changes as JsonObject;
        if (Object.keys(changes).length === 0)
          throw new InvalidField("changes", "required", "This field is required.");
        const { note = "" } = call.body;
        const input = { changes, note, createdById: call.user.id, createdAt: call.now };
        if (cohortId !== undefined) {
          const target = await cohortTarget(deps, call, cohortId, changes);
          return new Reply(201, requestBody(requestChange(deps, target, input), new Map()));
        }
        const flag = editableFlag(deps, call, flagId!, "flag_id");
        requirePossible(deps, flag, changes, "changes");
        const made = requestChange(deps, flagTarget(flag), input);
        return new Reply(201, requestBody(made, new Map([[flag.id, flag.key]])));
      },
    }),
    projectRoute("POST", "/change_requests/:id/approve", "feature_flag:write", {
      summary: "Approve a change request and apply the change",
      description:
        "Not by the user who created it. Needs the permission to edit every protected flag that the change alters. 409 if the same fields were changed since: create the request again.",
      tag: tagName,
      answers: {
        ...oneRequest,
        409: { description: "The same fields were changed since.", schema: ApiFailure },
      },
      handle: async (call) => {
        const request = decided(call);
        if (isCohortRequest(request))
          return requestBody(await approveCohortRequest(deps, call, request), new Map());
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
        const keys = flagKeysById(db, call.project.id, flagIdsOf([request]));
        return requestBody(rejectRequest(deps, request, deciding), keys);
      },
    }),
  ];
}

/** @throws {InvalidField} there is none. @throws {NotPermitted} */
function editableFlag(deps: FlagWriting, call: ProjectCall<unknown>, id: number, field: string): Flag {
  const flag = findFlag(deps.metadata.db, call.project.id, id);
  if (flag === undefined || flag.deleted) {
    throw new InvalidField(field, "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
  }
  checkMayEdit(flagAnswers(deps, call), flag);
  return flag;
}

/** For changes that will not be made: of a deleted flag too, with which nothing else can be done. @throws {NotPermitted} */
function checkMayUndo(
  deps: FlagWriting,
  call: ProjectCall<unknown>,
  { flagId }: ScheduledChange | FlagRequest,
): void {
  checkMayEdit(flagAnswers(deps, call), findFlag(deps.metadata.db, call.project.id, flagId)!);
}

function numberIn(text: string | undefined): number {
  return /^\d{1,15}$/.test(text ?? "") ? Number(text) : -1;
}

/** @throws {InvalidField} */
function optionalNumber(query: URLSearchParams, name: string): number | undefined {
  const written = query.get(name) ?? "";
  if (written === "") return undefined;
  if (!/^\d{1,15}$/.test(written))
    throw new InvalidField(name, "invalid_input", "A valid integer is required.");
  return Number(written);
}
