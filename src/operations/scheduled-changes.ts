/** Scheduled changes of flags. */

import { type Static, Type } from "@sinclair/typebox";
import { checkMayEdit, flagAnswers, flagTag as tag } from "../flags/api/feature-flags.ts";
import { exampleScheduled as example, ScheduledBody, scheduledBody } from "../flags/api/flag-schemas.ts";
import { assertSchedulable, scheduleFlagChange } from "../flags/api/pending-changes.ts";
import type { Flag } from "../flags/fields.ts";
import { findFlag, flagKeysById } from "../flags/store/flag.ts";
import {
  findScheduled,
  getFlagIds,
  listScheduled,
  reschedule,
  type ScheduledChange,
  unschedule,
} from "../flags/store/pending-changes.ts";
import { readIdFilter } from "../http/params.ts";
import { dateTime, enumeration, int, object, optional, pageOf, record } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { type ActingUser, type FlagContext as Context, getFlagActor, getScheduler } from "./flag-actor.ts";
import { byKey, keyArgument } from "./flag-tools.ts";
import { listAllFlags } from "./flags.ts";
import { listOperation, operation } from "./operation.ts";

const payloadHelp =
  "`operation` and `value`. `update_status`: the flag's state; `add_release_condition`: `value.groups` are added to the condition sets; `update`: the body of a PATCH of the flag; `update_rollout`: `value.rollout_percentage` of the condition set `value.condition_index` (from 0). A rollback of the flag ends pending `update_rollout` changes.";
const toolPayloadHelp =
  "`operation` and `value`: `update_status` with true or false, or `update` with the body of a PATCH of the flag";

type ScheduledRecord = Static<typeof ScheduledBody>;

/** The flag's key under its former name. */
export const scheduledFormerJson = {
  properties: { flag: Type.String() },
  build: ({ flag_key: flag }: ScheduledRecord) => ({ flag }),
};

const formatState = ({ executed_at: executedAt, failure_reason: reason }: ScheduledRecord) =>
  executedAt === null ? "waiting" : (reason ?? "applied");

const listAllScheduled = listOperation({
  id: "scheduled_changes.list",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List scheduled changes",
  description: "Pending changes first, then the latest.",
  http: { method: "GET", path: "/scheduled_changes", answer: "One page of changes." },
  mcp: { name: "list_scheduled_changes" },
  cli: {
    name: "flags scheduled",
    description: "List scheduled flag changes, pending ones first.",
    examples: ["flags scheduled --json"],
    options: { record_id: { flags: "--flag-id <id>", description: "only changes of the flag with this id" } },
    formerJson: scheduledFormerJson,
    table: {
      headings: ["id", "flag", "at", "change", "state"],
      row: (change: ScheduledRecord) => [
        String(change.id),
        change.flag_key,
        change.scheduled_at,
        JSON.stringify(change.payload),
        formatState(change),
      ],
    },
  },
  input: object({ record_id: optional(int({ description: "Only changes of this flag." })) }),
  output: pageOf("ScheduledChangePage", ScheduledBody),
  example,
  readQuery: (query) => ({ flagId: readIdFilter(query, "record_id") }),
  run: ({ stores, project }: Context, { flagId, limit, offset }) => {
    const { db } = stores.metadata;
    const { changes, count } = listScheduled(db, project.id, flagId, { limit, offset });
    const keys = flagKeysById(db, project.id, getFlagIds(changes));
    return { count, results: changes.map((change) => scheduledBody(db, change, keys)) };
  },
});

export const scheduleChangeOfFlag = operation({
  id: "scheduled_changes.create",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Schedule a flag change",
  description: "Applied within seconds of its time if its author still has permission to edit the flag.",
  http: { method: "POST", path: "/scheduled_changes", status: 201, answer: "The change." },
  mcp: {
    name: "schedule_flag_change",
    target: byKey(() => listAllFlags, undefined, "record_id"),
    arguments: {
      key: keyArgument,
      payload: record({ description: toolPayloadHelp }),
      scheduled_at: dateTime({ description: "ISO 8601, in the future" }),
    },
  },
  input: object({
    record_id: int(),
    model_name: optional(enumeration(["FeatureFlag"])),
    payload: record({ description: payloadHelp }),
    scheduled_at: dateTime(),
  }),
  inputExample: {
    record_id: 12,
    payload: { operation: "update_status", value: true },
    scheduled_at: "2026-03-05T09:00:00.000000Z",
  },
  output: ScheduledBody,
  example,
  run: (context: Context, input) => {
    const { stores, now } = context;
    const by = getScheduler(context);
    const flag = editableFlag(context, by, input.record_id, "record_id");
    const change = { payload: input.payload as JsonObject, scheduledAt: new Date(input.scheduled_at) };
    return getBody(context, flag, scheduleFlagChange(stores, flag, change, { userId: by.user.id, now }));
  },
});

const getOneScheduled = operation({
  id: "scheduled_changes.get",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "Get a scheduled change",
  http: { method: "GET", path: "/scheduled_changes/:id", answer: "The change." },
  input: object({ id: int() }),
  output: ScheduledBody,
  example,
  run: ({ stores: { metadata }, project }: Context, { id }) => {
    const change = findScheduled(metadata.db, project.id, id);
    return scheduledBody(metadata.db, change, flagKeysById(metadata.db, project.id, [change.flagId]));
  },
});

const updateOneScheduled = operation({
  id: "scheduled_changes.update",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Update a scheduled change",
  description:
    "The updating user becomes the author, whose permission is checked when the change is applied.",
  http: { method: "PATCH", path: "/scheduled_changes/:id", answer: "The change." },
  input: object({
    id: int(),
    payload: optional(record({ description: payloadHelp })),
    scheduled_at: optional(dateTime()),
  }),
  inputExample: { scheduled_at: "2026-03-06T09:00:00.000000Z" },
  output: ScheduledBody,
  example,
  run: (context: Context, { id, ...input }) => {
    const { stores, project, now } = context;
    const by = getScheduler(context);
    const change = findScheduled(stores.metadata.db, project.id, id);
    const flag = editableFlag(context, by, change.flagId, "id");
    const payload = (input.payload as JsonObject | undefined) ?? change.payload;
    const scheduledAt = input.scheduled_at === undefined ? change.scheduledAt : new Date(input.scheduled_at);
    assertSchedulable(stores, flag, { payload, scheduledAt }, now);
    return getBody(
      context,
      flag,
      reschedule(stores, change, { payload, scheduledAt, createdById: by.user.id }),
    );
  },
});

const cancelOneScheduled = operation({
  id: "scheduled_changes.delete",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Cancel a scheduled change",
  http: { method: "DELETE", path: "/scheduled_changes/:id" },
  mcp: { name: "cancel_scheduled_change", hints: { destructiveHint: true } },
  cli: {
    name: "flags unschedule",
    description: "Cancel a scheduled flag change.",
    examples: ["flags unschedule 3"],
    arguments: [
      { name: "id", description: "id shown by `flagkeep flags scheduled`", member: "id", isNumber: true },
    ],
    result: {
      schema: object({ id: int(), unscheduled: Type.Literal(true) }),
      build: ({ input }: { input: { id: number } }) => ({ id: input.id, unscheduled: true }),
    },
    done: ({ id }: { id: number }) => `Change ${id} is cancelled.`,
  },
  input: object({ id: int() }),
  run: (context: Context, { id }) => {
    const { stores, project } = context;
    const { flagId } = findScheduled(stores.metadata.db, project.id, id);
    // Also of a deleted flag, which allows nothing else.
    checkMayEdit(
      flagAnswers(stores, getFlagActor(context)),
      findFlag(stores.metadata.db, project.id, flagId)!,
    );
    unschedule(stores, project.id, id);
  },
});

const getBody = ({ stores }: Context, { id, key }: Flag, change: ScheduledChange) =>
  scheduledBody(stores.metadata.db, change, new Map([[id, key]]));

/** @param field names the flag @throws {InvalidFieldError} it does not exist. @throws {PermissionDeniedError} */
export function editableFlag({ stores, project }: Context, by: ActingUser, id: number, field: string): Flag {
  const flag = findFlag(stores.metadata.db, project.id, id);
  if (flag === undefined || flag.deleted)
    throw new InvalidFieldError(field, "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
  by.assertMayEdit(flag);
  return flag;
}

/** In the order of the documentation. */
export const scheduledOperations = [
  listAllScheduled,
  scheduleChangeOfFlag,
  getOneScheduled,
  updateOneScheduled,
  cancelOneScheduled,
];
