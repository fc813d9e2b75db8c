/** Pending flag changes: scheduled changes and change requests. */

import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import { requestStates } from "../../src/accounts/schema.ts";
import { findUserByEmail, listUsers, type User } from "../../src/accounts/users.ts";
import { readDefinition } from "../../src/cohorts/api/cohorts.ts";
import { findCohort } from "../../src/cohorts/cohorts.ts";
import {
  approveCohortRequest,
  type CohortRequest,
  checkProtected,
  isCohortRequest,
} from "../../src/flags/api/cohort-requests.ts";
import {
  approveRequest,
  assertEditor,
  assertMember,
  type FlagRequest,
  rejectRequest,
  scheduleFlagChange,
} from "../../src/flags/api/pending-changes.ts";
import type { Flag } from "../../src/flags/fields.ts";
import { findFlag, flagKeysById } from "../../src/flags/store/flag.ts";
import {
  type ChangeRequest,
  findRequest,
  getFlagIds,
  listRequests,
  listScheduled,
  type RequestState,
  type ScheduledChange,
  unschedule,
} from "../../src/flags/store/pending-changes.ts";
import { affectedKeysFinder } from "../../src/flags/store/protected-flags.ts";
import { InvalidFieldError, NotFoundError, PermissionDeniedError } from "../../src/lib/errors.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { DateTime, nullable, strictObject } from "../../src/lib/schema.ts";
import { parseInstant } from "../../src/lib/timestamp.ts";
import { changeTime } from "../cluster-stores.ts";
import { positiveInteger, print, printJson, printTable, run } from "../output.ts";
import {
  AmbiguousSelectorError,
  creatorWords,
  getCreator,
  type ProjectStores,
  withProject,
} from "../stores.ts";
import {
  type CommonOptions,
  getFlag,
  percentage,
  rolloutFields,
  withProjectAndJson,
} from "./flags-common.ts";

const FreeObject = Type.Record(Type.String(), Type.Unknown());
export const ScheduledRecord = strictObject({
  id: Type.Integer(),
  flag: Type.String(),
  payload: FreeObject,
  scheduled_at: DateTime,
  executed_at: nullable(DateTime),
  failure_reason: nullable(Type.String()),
});
const ChangeRequestRecord = strictObject({
  id: Type.Integer(),
  flag: Type.String({ description: "Empty for a change of a cohort." }),
  cohort: Type.String({ description: "Name of the cohort; empty for a change of a flag." }),
  cohort_id: nullable(Type.Integer()),
  affected_flags: Type.Array(Type.String(), {
    description: "Keys of the protected flags that a pending change affects.",
  }),
  changes: FreeObject,
  original: FreeObject,
  note: Type.String(),
  state: Type.Union(requestStates.map((state) => Type.Literal(state))),
  created_at: DateTime,
  decided_at: nullable(DateTime),
});
const Unscheduled = strictObject({ id: Type.Integer(), unscheduled: Type.Literal(true) });

export const scheduledRecord = (
  change: ScheduledChange,
  keys: Map<number, string>,
): Static<typeof ScheduledRecord> => ({
  id: change.id,
  flag: keys.get(change.flagId) ?? "",
  payload: change.payload,
  scheduled_at: change.scheduledAt.toISOString(),
  executed_at: change.executedAt?.toISOString() ?? null,
  failure_reason: change.failureReason,
});
/** Makes records of the requests of a project. */
function changeRequestRecords(
  { writing, project }: ProjectStores,
  requests: readonly ChangeRequest[],
): Static<typeof ChangeRequestRecord>[] {
  const { db } = writing.metadata;
  const keys = flagKeysById(db, project.id, getFlagIds(requests));
  const getAffected = affectedKeysFinder(writing, project.id);
  return requests.map((request) => ({
    id: request.id,
    flag: keys.get(request.flagId ?? -1) ?? "",
    cohort:
      request.cohortId === null ? "" : (getCohort(writing, request.projectId, request.cohortId)?.name ?? ""),
    cohort_id: request.cohortId,
    affected_flags: request.state === "pending" ? getAffected(request) : [],
    changes: request.changes,
    original: replacedMembers(request),
    note: request.note,
    state: request.state,
    created_at: request.createdAt.toISOString(),
    decided_at: request.decidedAt?.toISOString() ?? null,
  }));
}

/** What the changed members were at the time of the request. */
const replacedMembers = ({ changes, original }: ChangeRequest): JsonObject =>
  Object.fromEntries(Object.keys(changes).map((name) => [name, original[name] ?? null]));

const getCohort = ({ metadata }: { metadata: ProjectStores["metadata"] }, projectId: number, id: number) =>
  findCohort(metadata.db, projectId, id, { includeDeleted: true });

/** Such as `flag new-checkout`. */
const targetWords = ({ flag, cohort, cohort_id: id }: Static<typeof ChangeRequestRecord>) =>
  id === null ? `flag ${flag}` : `cohort ${cohort}`;

const userWords = "e-mail address of the acting user; optional if there is one";

/** @throws {AmbiguousSelectorError} @throws {NotFoundError} */
export function userOf({ metadata }: ProjectStores, email: string | undefined): User {
  if (email !== undefined) {
    const found = findUserByEmail(metadata.db, email);
    if (found === undefined) throw new NotFoundError(`User ${email} does not exist.`);
    return found;
  }
  const active = listUsers(metadata.db).filter(({ isActive }) => isActive);
  if (active.length === 1) return active[0]!;
  throw new AmbiguousSelectorError("Several users exist.", "Name one with --user EMAIL.");
}

export function futureTime(text: string): Date {
  const micros = parseInstant(text);
  if (micros === undefined) throw new InvalidArgumentError("Expected a date and time.");
  return new Date(micros / 1_000);
}

interface ScheduleOptions extends CommonOptions {
  at: Date;
  on?: true;
  off?: true;
  rollout?: number;
  user?: string;
}

export const schedule = withProjectAndJson(new Command("schedule"), ScheduledRecord)
  .description("Schedule a flag change; the server applies it if its user may still edit the flag then.")
  .argument("<key>", "flag key")
  .requiredOption(
    "--at <time>",
    "time of the change, for example 2026-01-31T09:00:00+01:00; UTC without a zone",
    futureTime,
  )
  .option("--on", "turn the flag on")
  .option("--off", "turn the flag off")
  .option("--rollout <percent>", "rollout percentage of the flag's only condition set", percentage)
  .option("--user <email>", creatorWords)
  .addHelpText(
    "after",
    "\nExample:\n  flagkeep flags schedule new-checkout --at 2026-11-24T09:00:00+01:00 --rollout 100",
  )
  .action(
    run((key: string, options: ScheduleOptions) =>
      withProject(options, (stores) => {
        const flag = getFlag(stores, key);
        const { metadata, project } = stores;
        const user = getCreator(metadata, project.organizationId, options.user) ?? userOf(stores, undefined);
        assertEditor(stores.writing, flag, user.id, `${user.email} may not edit this flag.`);
        const change = { payload: getPayload(flag, options), scheduledAt: options.at };
        const created = scheduleFlagChange(stores.writing, flag, change, {
          userId: user.id,
          now: changeTime(),
        });
        if (options.json) return printJson(scheduledRecord(created, new Map([[flag.id, flag.key]])));
        print(
          `Change ${created.id} of flag ${flag.key} is scheduled for ${created.scheduledAt.toISOString()}.`,
        );
      }),
    ),
  );

/** @throws {InvalidFieldError} */
function getPayload(flag: Flag, { on, off, rollout }: ScheduleOptions): JsonObject {
  if (on && off) throw new InvalidFieldError(null, "invalid_input", "--on and --off contradict each other.");
  const value: JsonObject = {
    ...(on || off ? { active: on === true } : {}),
    ...(rollout === undefined ? {} : scheduledRollout(flag, rollout)),
  };
  if (Object.keys(value).length === 0)
    throw new InvalidFieldError(null, "invalid_input", "Nothing to change: use --on, --off or --rollout.");
  return { operation: "update", value };
}

/**
 * An integer changes the condition set as it is at that time. A fraction, which only filters can contain, uses the
 * current one.
 */
function scheduledRollout(flag: Flag, rollout: number): JsonObject {
  return Number.isInteger(rollout) ? { rollout_percentage: rollout } : rolloutFields(flag.filters, rollout);
}

export const scheduled = withProjectAndJson(new Command("scheduled"), Type.Array(ScheduledRecord))
  .description("List scheduled flag changes, pending ones first.")
  .addHelpText("after", "\nExample:\n  flagkeep flags scheduled --json")
  .action(
    run((options: CommonOptions) =>
      withProject(options, ({ metadata, project }) => {
        const { changes } = listScheduled(metadata.db, project.id);
        const keys = flagKeysById(metadata.db, project.id, getFlagIds(changes));
        const found = changes.map((change) => scheduledRecord(change, keys));
        if (options.json) return printJson(found);
        printTable(
          ["id", "flag", "at", "change", "state"],
          found.map((change) => [
            ...[String(change.id), change.flag, change.scheduled_at, JSON.stringify(change.payload)],
            change.executed_at === null ? "waiting" : (change.failure_reason ?? "applied"),
          ]),
        );
      }),
    ),
  );

export const cancelScheduled = withProjectAndJson(new Command("unschedule"), Unscheduled)
  .description("Cancel a scheduled flag change.")
  .argument("<id>", "id shown by `flagkeep flags scheduled`", positiveInteger)
  .addHelpText("after", "\nExample:\n  flagkeep flags unschedule 3")
  .action(
    run((id: number, options: CommonOptions) =>
      withProject(options, ({ writing, project }) => {
        unschedule(writing, project.id, id);
        if (options.json) return printJson({ id, unscheduled: true });
        print(`Change ${id} is cancelled.`);
      }),
    ),
  );

export const changeRequests = withProjectAndJson(
  new Command("change-requests"),
  Type.Array(ChangeRequestRecord),
)
  .description("List change requests for flags and cohorts, newest first.")
  .addOption(new Option("--state <state>", "only requests in this state").choices(requestStates))
  .addHelpText("after", "\nExample:\n  flagkeep flags change-requests --state pending")
  .action(
    run((options: CommonOptions & { state?: RequestState }) =>
      withProject(options, (stores) => {
        const { requests } = listRequests(stores.metadata.db, stores.project.id, { state: options.state });
        const found = changeRequestRecords(stores, requests);
        if (options.json) return printJson(found);
        printTable(
          ["id", "of", "affects", "from", "to", "note", "state", "since"],
          found.map((one) => [
            ...[String(one.id), targetWords(one), one.affected_flags.join(", ") || "-"],
            ...[JSON.stringify(one.original), JSON.stringify(one.changes)],
            ...[one.note, one.state, one.created_at],
          ]),
        );
      }),
    ),
  );

interface Decision {
  stores: ProjectStores;
  user: User;
  now: Date;
  checkMayEdit: (flag: Flag) => void;
}

const deciding = (
  name: "approve" | "reject",
  description: string,
  decide: {
    flag(request: FlagRequest, decision: Decision): ChangeRequest;
    cohort(request: CohortRequest, decision: Decision): ChangeRequest;
  },
) =>
  withProjectAndJson(new Command(name), ChangeRequestRecord)
    .description(description)
    .argument("<id>", "id shown by `flagkeep flags change-requests`", positiveInteger)
    .option("--user <email>", userWords)
    .addHelpText("after", `\nExample:\n  flagkeep flags ${name} 5 --user ann@example.com`)
    .action(
      run((id: number, options: CommonOptions & { user?: string }) =>
        withProject(options, (stores) => {
          const { metadata, project, writing } = stores;
          const request = findRequest(metadata.db, project.id, id);
          const user = userOf(stores, options.user);
          const checkMayEdit = (flag: Flag) =>
            assertEditor(writing, flag, user.id, `${user.email} may not edit flag ${flag.key}.`);
          const decision = { stores, user, now: new Date(), checkMayEdit };
          const decided = isCohortRequest(request)
            ? decide.cohort(request, decision)
            : decide.flag(request as FlagRequest, decision);
          const record = changeRequestRecords(stores, [decided])[0]!;
          if (options.json) return printJson(record);
          print(`Change request ${id} for ${targetWords(record)} is ${record.state}.`);
        }),
      ),
    );

export const approve = deciding(
  "approve",
  "Approve a change request and apply it; its author cannot approve it.",
  {
    flag: (request, { stores: { writing }, user, now, checkMayEdit }) =>
      approveRequest(writing, request, { userId: user.id, now }, checkMayEdit).decided,
    cohort: (request, { stores: { writing }, user, now, checkMayEdit }) => {
      assertMember(
        writing,
        request.projectId,
        user.id,
        `${user.email} may not edit cohorts of this project.`,
      );
      const { fields, csv } = readDefinition(request.changes, { isPartial: true });
      // The persons belong to the server.
      if (csv !== undefined)
        throw new PermissionDeniedError(
          `Change request ${request.id} adds members to a static cohort: approve it in the console or over the API.`,
        );
      return approveCohortRequest(writing, request, fields, { userId: user.id, now }, checkMayEdit).decided;
    },
  },
);
export const reject = deciding("reject", "Reject a change request; its author withdraws it.", {
  flag: (request, { stores: { writing, metadata }, user, now, checkMayEdit }) => {
    const flag = findFlag(metadata.db, request.projectId, request.flagId);
    if (flag === undefined) throw new NotFoundError(`The flag of change request ${request.id} was deleted.`);
    checkMayEdit(flag);
    return rejectRequest(writing, request, { userId: user.id, now });
  },
  cohort: (request, { stores: { writing }, user, now, checkMayEdit }) => {
    assertMember(writing, request.projectId, user.id, `${user.email} may not edit cohorts of this project.`);
    checkProtected(writing, request, checkMayEdit);
    return rejectRequest(writing, request, { userId: user.id, now });
  },
});
