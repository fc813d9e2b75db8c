/** Requests to change protected flags, and cohorts that they use (contract: management-api 5.19). */

import { type Static, Type } from "@sinclair/typebox";
import { requestStates } from "../accounts/schema.ts";
import { type CohortDeps, readDefinition } from "../cohorts/api/cohorts.ts";
import {
  approveWithMembers,
  type CohortRequest,
  checkProtected,
  cohortTarget,
  isCohortRequest,
} from "../flags/api/cohort-requests.ts";
import { flagTag as tag } from "../flags/api/feature-flags.ts";
import { revertedFields } from "../flags/api/flag-revert.ts";
import {
  changeRequestBody,
  exampleRequest as example,
  noteLengthMax,
  RequestBody,
} from "../flags/api/flag-schemas.ts";
import {
  approveRequest,
  assertPossible,
  type FlagRequest,
  rejectRequest,
} from "../flags/api/pending-changes.ts";
import { findFlag, flagKeysById } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import {
  type ChangeRequest,
  findRequest,
  flagTarget,
  getFlagIds,
  listRequests,
  requestChange,
} from "../flags/store/pending-changes.ts";
import { affectedKeysFinder } from "../flags/store/protected-flags.ts";
import { readChoice, readIdFilter } from "../http/params.ts";
import {
  ApiFailure,
  enumeration,
  int,
  object,
  optional,
  pageOf,
  record,
  string,
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError, PermissionDeniedError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { jsonOptions } from "./experiment-list.ts";
import { type ActingUser, getDecider } from "./flag-actor.ts";
import { flagArgument } from "./flag-argument.ts";
import {
  type CommandArgument,
  listOperation,
  type Operation,
  operation,
  type ProjectContext,
} from "./operation.ts";
import { editableFlag } from "./scheduled-changes.ts";

type Context = ProjectContext<FlagWriteDeps & CohortDeps>;
type RequestRecord = Static<typeof RequestBody>;

/** Members under their former names; `original` had the changed members only. */
const formerJson = {
  properties: {
    flag: Type.String({ description: "Empty for a change of a cohort." }),
    cohort: Type.String({ description: "Name of the cohort; empty for a change of a flag." }),
    original: Type.Record(Type.String(), Type.Unknown()),
  },
  build: (request: RequestRecord) => ({
    flag: request.flag_key,
    cohort: request.cohort_name,
    original: replacedMembers(request),
  }),
};

/** What the changed members were at the time of the request. */
const replacedMembers = ({ changes, original }: RequestRecord) =>
  Object.fromEntries(Object.keys(changes).map((name) => [name, original[name] ?? null]));

/** Such as `flag new-checkout`. */
const formatTarget = ({ flag_key: key, cohort_name: cohort, cohort_id: id }: RequestRecord) =>
  id === null ? `flag ${key}` : `cohort ${cohort}`;

const stateSentence = (request: RequestRecord) =>
  `Change request ${request.id} for ${formatTarget(request)} is ${request.state}.`;

const idArgument: CommandArgument = {
  name: "id",
  description: "id shown by `flagkeep flags change-requests`",
  member: "id",
  isNumber: true,
};
const decidedErrors = {
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

/** Renders requests of the project. */
function getBodies({ stores, project }: Context, requests: readonly ChangeRequest[]): RequestRecord[] {
  const { db } = stores.metadata;
  const keys = flagKeysById(db, project.id, getFlagIds(requests));
  const getAffected = affectedKeysFinder(stores, project.id);
  return requests.map((request) => changeRequestBody(db, request, keys, getAffected));
}

const listAllRequests = listOperation({
  id: "change_requests.list",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List change requests",
  description: "Newest first.",
  http: { method: "GET", path: "/change_requests", answer: "One page of change requests." },
  mcp: { name: "list_change_requests" },
  cli: {
    name: "flags change-requests",
    description: "List change requests for flags and cohorts, newest first.",
    examples: ["flags change-requests --state pending"],
    options: {
      state: { flags: "--state <state>", description: "only requests in this state", choices: requestStates },
      flag_id: { flags: "--flag-id <id>", description: "only requests for the flag with this id" },
      cohort_id: { flags: "--cohort-id <id>", description: "only requests for the cohort with this id" },
    },
    formerJson,
    table: {
      headings: ["id", "of", "affects", "from", "to", "note", "state", "since"],
      row: (request: RequestRecord) => [
        String(request.id),
        formatTarget(request),
        request.affected_flags.join(", ") || "-",
        JSON.stringify(replacedMembers(request)),
        JSON.stringify(request.changes),
        request.note,
        request.state,
        request.created_at,
      ],
    },
  },
  input: object({
    state: optional(enumeration(requestStates)),
    flag_id: optional(int()),
    cohort_id: optional(int()),
  }),
  output: pageOf("ChangeRequestPage", RequestBody),
  example,
  readQuery: (query) => ({
    state: readChoice(query, "state", requestStates),
    flagId: readIdFilter(query, "flag_id"),
    cohortId: readIdFilter(query, "cohort_id"),
  }),
  run: (context: Context, { limit, offset, ...filter }) => {
    const { stores, project } = context;
    const { requests, count } = listRequests(stores.metadata.db, project.id, filter, { limit, offset });
    return { count, results: getBodies(context, requests) };
  },
});

const requestInput = {
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
};

const createNewRequest = operation({
  id: "change_requests.create",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Create a change request",
  description:
    "For a flag (`flag_id`), or for a cohort that a protected flag uses (`cohort_id`, which needs `cohort:write`). It is applied when another user with edit permission approves it.",
  http: { method: "POST", path: "/change_requests", status: 201, answer: "The change request." },
  mcp: {
    name: "request_change",
    description:
      "Request a change of a protected flag (flag_id) or cohort (cohort_id); another user approves it in the console.",
  },
  input: object(requestInput),
  inputExample: { flag_id: 12, changes: { active: false }, note: "Requested by support." },
  output: RequestBody,
  example,
  run: async (context: Context, input) => {
    const { stores, project, now } = context;
    const { flag_id: flagId, cohort_id: cohortId, note = "", activity_id: activityId } = input;
    assertOneTarget(input);
    const by = getDecider(context);
    const request = {
      changes: (input.changes ?? {}) as JsonObject,
      note,
      createdById: by.user.id,
      createdAt: now,
    };
    if (cohortId !== undefined) {
      by.assertMayEditCohorts();
      const scope = { projectId: project.id, userId: by.user.id, now };
      const target = await cohortTarget(stores, scope, cohortId, request.changes);
      return getBodies(context, [requestChange(stores, target, request)])[0]!;
    }
    const flag = editableFlag(context, by, flagId!, "flag_id");
    if (activityId !== undefined) request.changes = revertedFields(stores, flag, activityId);
    assertPossible(stores, flag, request.changes, activityId === undefined ? "changes" : "activity_id");
    return getBodies(context, [requestChange(stores, flagTarget(flag), request)])[0]!;
  },
});

interface RequestInput {
  flag_id?: number;
  cohort_id?: number;
  changes?: object;
  activity_id?: string;
}

/** A command of its own, for a flag; the route is the operation's. */
const requestCommand = {
  ...createNewRequest,
  input: object({ flag_id: int(), changes: record(), note: requestInput.note }),
  cli: {
    name: "flags request-change",
    description: "Request a change of a protected flag, which another user approves.",
    examples: [
      `flags request-change new-checkout --changes '{"active":false}' --note "Requested by support."`,
    ],
    arguments: [flagArgument("flag_id")],
    options: {
      ...jsonOptions(["changes"]),
      note: { flags: "--note <text>", description: "reason for the change" },
    },
    hasActingUser: true,
    formerJson,
    done: stateSentence,
  },
} satisfies Operation;

/** @throws {InvalidFieldError} not one flag or cohort, or not one way to say what changes. */
function assertOneTarget({ flag_id, cohort_id, changes, activity_id }: RequestInput): void {
  if ((flag_id === undefined) === (cohort_id === undefined))
    throw new InvalidFieldError("flag_id", "invalid_input", "Send either `flag_id` or `cohort_id`.");
  if (activity_id === undefined && Object.keys(changes ?? {}).length === 0)
    throw new InvalidFieldError("changes", "required", "This field is required.");
  if (activity_id !== undefined && (changes !== undefined || cohort_id !== undefined)) {
    throw new InvalidFieldError(
      "activity_id",
      "invalid_input",
      "Send `activity_id` with `flag_id`, and without `changes` and `cohort_id`.",
    );
  }
}

const approveOne = operation({
  id: "change_requests.approve",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Approve and apply a change request",
  description:
    "Not allowed for its author. Requires permission to edit every protected flag that the change affects. 409 if the same fields changed since: create a new request.",
  http: {
    method: "POST",
    path: "/change_requests/:id/approve",
    answer: "The change request.",
    errors: {
      ...decidedErrors,
      409: { description: "The same fields changed since the request.", schema: ApiFailure },
    },
  },
  cli: {
    name: "flags approve",
    description: "Approve a change request and apply it; its author cannot approve it.",
    examples: ["flags approve 5 --user ann@example.com"],
    arguments: [idArgument],
    hasActingUser: true,
    formerJson,
    done: stateSentence,
  },
  input: object({ id: int() }),
  output: RequestBody,
  example,
  run: async (context: Context, { id }) => {
    const { stores, project, actor, now } = context;
    const request = findRequest(stores.metadata.db, project.id, id);
    const by = getDecider(context);
    const deciding = { userId: by.user.id, now };
    if (isCohortRequest(request)) {
      by.assertMayEditCohorts();
      if (actor.kind === "operator") assertAddsNoMembers(request);
      const decided = await approveWithMembers(stores, request, deciding, by.assertMayEdit);
      return getBodies(context, [decided])[0]!;
    }
    const { decided, warnings } = approveRequest(stores, request as FlagRequest, deciding, by.assertMayEdit);
    const body = getBodies(context, [decided])[0]!;
    return warnings.length === 0 ? body : { ...body, warnings };
  },
});

/** The persons belong to the server. @throws {PermissionDeniedError} */
function assertAddsNoMembers({ id, changes }: CohortRequest): void {
  if (readDefinition(changes, { isPartial: true }).csv === undefined) return;
  throw new PermissionDeniedError(
    `Change request ${id} adds members to a static cohort: approve it in the console or over the API.`,
  );
}

const rejectOne = operation({
  id: "change_requests.reject",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Reject or withdraw a change request",
  http: {
    method: "POST",
    path: "/change_requests/:id/reject",
    answer: "The change request.",
    errors: decidedErrors,
  },
  cli: {
    name: "flags reject",
    description: "Reject a change request; its author withdraws it.",
    examples: ["flags reject 5 --user ann@example.com"],
    arguments: [idArgument],
    hasActingUser: true,
    formerJson,
    done: stateSentence,
  },
  input: object({ id: int() }),
  output: RequestBody,
  example,
  run: (context: Context, { id }) => {
    const { stores, project, now } = context;
    const request = findRequest(stores.metadata.db, project.id, id);
    const by = getDecider(context);
    assertMayDecide(context, request, by);
    return getBodies(context, [rejectRequest(stores, request, { userId: by.user.id, now })])[0]!;
  },
});

/** @throws {HttpError} @throws {PermissionDeniedError} the user may not edit the flag, or not each protected flag that uses the cohort. */
function assertMayDecide({ stores, project }: Context, request: ChangeRequest, by: ActingUser): void {
  if (isCohortRequest(request)) {
    by.assertMayEditCohorts();
    checkProtected(stores, request, by.assertMayEdit);
  } else by.assertMayEdit(findFlag(stores.metadata.db, project.id, request.flagId!)!);
}

export const changeRequestCommands: readonly Operation[] = [requestCommand];

/** In the order of the documentation. */
export const changeRequestOperations = [listAllRequests, createNewRequest, approveOne, rejectOne];
