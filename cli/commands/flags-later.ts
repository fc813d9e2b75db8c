/** Changes of flags for later: at a time, or when somebody else agrees. */

import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import { requestStates } from "../../src/accounts/schema.ts";
import { findUserByEmail, listUsers, type User } from "../../src/accounts/users.ts";
import {
  approveRequest,
  type FlagRequest,
  rejectRequest,
  requireEditor,
  scheduleFlagChange,
} from "../../src/flags/api/later-changes.ts";
import type { Flag } from "../../src/flags/fields.ts";
import { findFlag, flagKeysById } from "../../src/flags/store/flag.ts";
import {
  type ChangeRequest,
  findRequest,
  flagIdsOf,
  listRequests,
  listScheduled,
  type RequestState,
  type ScheduledChange,
  unschedule,
} from "../../src/flags/store/pending-changes.ts";
import { InvalidField, NotFound } from "../../src/lib/errors.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { exactly, Instant, orNull } from "../../src/lib/schema.ts";
import { parseInstant } from "../../src/lib/timestamp.ts";
import { positiveInteger, print, printJson, printTable, run } from "../output.ts";
import { creatorOf, creatorWords, type ProjectStores, WhichOne, withProject } from "../stores.ts";
import { type CommonOptions, flagOf, percentage, rolloutFields, withProjectAndJson } from "./flags-common.ts";

const FreeObject = Type.Record(Type.String(), Type.Unknown());
const ScheduledRecord = exactly({
  id: Type.Integer(),
  flag: Type.String(),
  payload: FreeObject,
  scheduled_at: Instant,
  executed_at: orNull(Instant),
  failure_reason: orNull(Type.String()),
});
const ProposalRecord = exactly({
  id: Type.Integer(),
  flag: Type.String(),
  changes: FreeObject,
  note: Type.String(),
  state: Type.Union(requestStates.map((state) => Type.Literal(state))),
  created_at: Instant,
  decided_at: orNull(Instant),
});
const Unscheduled = exactly({ id: Type.Integer(), unscheduled: Type.Literal(true) });

const scheduledRecord = (
  change: ScheduledChange,
  keys: Map<number, string>,
): Static<typeof ScheduledRecord> => ({
  ...{ id: change.id, flag: keys.get(change.flagId) ?? "", payload: change.payload },
  scheduled_at: change.scheduledAt.toISOString(),
  executed_at: change.executedAt?.toISOString() ?? null,
  failure_reason: change.failureReason,
});
const proposalRecord = (
  request: ChangeRequest,
  keys: Map<number, string>,
): Static<typeof ProposalRecord> => ({
  ...{ id: request.id, flag: keys.get(request.flagId ?? -1) ?? "", changes: request.changes },
  ...{ note: request.note, state: request.state, created_at: request.createdAt.toISOString() },
  decided_at: request.decidedAt?.toISOString() ?? null,
});

const userWords = "e-mail address of the acting user; optional if there is one";

/** @throws {WhichOne} @throws {NotFound} */
function userOf({ metadata }: ProjectStores, email: string | undefined): User {
  if (email !== undefined) {
    const found = findUserByEmail(metadata.db, email);
    if (found === undefined) throw new NotFound(`There is no user ${email}.`);
    return found;
  }
  const active = listUsers(metadata.db).filter(({ isActive }) => isActive);
  if (active.length === 1) return active[0]!;
  throw new WhichOne("There are several users.", "Name one with --user EMAIL.");
}

function futureTime(text: string): Date {
  const micros = parseInstant(text);
  if (micros === undefined) throw new InvalidArgumentError("It must be a date and time.");
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
        const flag = flagOf(stores, key);
        const { metadata, project } = stores;
        const user = creatorOf(metadata, project.organizationId, options.user) ?? userOf(stores, undefined);
        requireEditor(stores.writing, flag, user.id, `${user.email} may not edit this flag.`);
        const change = { payload: payloadOf(flag, options), scheduledAt: options.at };
        const made = scheduleFlagChange(stores.writing, flag, change, { userId: user.id, now: new Date() });
        if (options.json) return printJson(scheduledRecord(made, new Map([[flag.id, flag.key]])));
        print(
          `Flag ${flag.key} is changed at ${made.scheduledAt.toISOString()}; the change's id is ${made.id}.`,
        );
      }),
    ),
  );

/** @throws {InvalidField} */
function payloadOf(flag: Flag, { on, off, rollout }: ScheduleOptions): JsonObject {
  if (on && off) throw new InvalidField(null, "invalid_input", "--on and --off contradict each other.");
  const value: JsonObject = {
    ...(on || off ? { active: on === true } : {}),
    ...(rollout === undefined ? {} : scheduledRollout(flag, rollout)),
  };
  if (Object.keys(value).length === 0)
    throw new InvalidField(null, "invalid_input", "Say what is to be changed: --on, --off or --rollout.");
  return { operation: "update", value };
}

/** An integer changes the condition set as it is then, a fraction, which only filters can have, as it is now. */
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
        const keys = flagKeysById(metadata.db, project.id, flagIdsOf(changes));
        const found = changes.map((change) => scheduledRecord(change, keys));
        if (options.json) return printJson(found);
        printTable(
          ["id", "flag", "at", "change", "state"],
          found.map((change) => [
            ...[String(change.id), change.flag, change.scheduled_at, JSON.stringify(change.payload)],
            change.executed_at === null ? "waiting" : (change.failure_reason ?? "made"),
          ]),
        );
      }),
    ),
  );

export const takeBack = withProjectAndJson(new Command("unschedule"), Unscheduled)
  .description("Cancel a scheduled flag change.")
  .argument("<id>", "id shown by `flagkeep flags scheduled`", positiveInteger)
  .addHelpText("after", "\nExample:\n  flagkeep flags unschedule 3")
  .action(
    run((id: number, options: CommonOptions) =>
      withProject(options, ({ writing, project }) => {
        unschedule(writing, project.id, id);
        if (options.json) return printJson({ id, unscheduled: true });
        print(`Change ${id} is taken back.`);
      }),
    ),
  );

export const proposals = withProjectAndJson(new Command("change-requests"), Type.Array(ProposalRecord))
  .description("List change requests, newest first.")
  .addOption(new Option("--state <state>", "only requests in this state").choices(requestStates))
  .addHelpText("after", "\nExample:\n  flagkeep flags change-requests --state pending")
  .action(
    run((options: CommonOptions & { state?: RequestState }) =>
      withProject(options, ({ metadata, project }) => {
        const { requests } = listRequests(metadata.db, project.id, { state: options.state });
        const keys = flagKeysById(metadata.db, project.id, flagIdsOf(requests));
        const found = requests.map((one) => proposalRecord(one, keys));
        if (options.json) return printJson(found);
        printTable(
          ["id", "flag", "changes", "note", "state", "since"],
          found.map((one) => [
            ...[String(one.id), one.flag, JSON.stringify(one.changes), one.note, one.state, one.created_at],
          ]),
        );
      }),
    ),
  );

const deciding = (
  name: "approve" | "reject",
  description: string,
  decide: (stores: ProjectStores, request: ChangeRequest, user: User) => ChangeRequest,
) =>
  withProjectAndJson(new Command(name), ProposalRecord)
    .description(description)
    .argument("<id>", "id shown by `flagkeep flags change-requests`", positiveInteger)
    .option("--user <email>", userWords)
    .addHelpText("after", `\nExample:\n  flagkeep flags ${name} 5 --user ann@example.com`)
    .action(
      run((id: number, options: CommonOptions & { user?: string }) =>
        withProject(options, (stores) => {
          const { metadata, project } = stores;
          const request = findRequest(metadata.db, project.id, id);
          if (request.flagId === null)
            throw new NotFound(
              `Change request ${id} is about a cohort: decide it in the console or over the API.`,
            );
          const flag = findFlag(metadata.db, project.id, request.flagId);
          if (flag === undefined) throw new NotFound(`The flag of proposal ${id} is gone.`);
          const user = userOf(stores, options.user);
          requireEditor(stores.writing, flag, user.id, `${user.email} may not edit this flag.`);
          const decided = decide(stores, request, user);
          const record = proposalRecord(decided, new Map([[flag.id, flag.key]]));
          if (options.json) return printJson(record);
          print(`Proposal ${id} for flag ${record.flag} is ${record.state}.`);
        }),
      ),
    );

export const approve = deciding(
  "approve",
  "Approve a change request and apply it; its author cannot approve it.",
  ({ writing }, request, user) =>
    approveRequest(writing, request as FlagRequest, { userId: user.id, now: new Date() }, (flag) =>
      requireEditor(writing, flag, user.id, `${user.email} may not edit flag ${flag.key}.`),
    ).decided,
);
export const reject = deciding(
  "reject",
  "Reject a change request; its author withdraws it.",
  ({ writing }, request, user) => rejectRequest(writing, request, { userId: user.id, now: new Date() }),
);
