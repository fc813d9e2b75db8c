/** Routes of the activity log (requirement: activity endpoints; contract: management-api 5.10). */

import type { Static } from "@sinclair/typebox";
import { readDate } from "../../http/params.ts";
import type { Route } from "../../http/route.ts";
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
  record,
  string,
  uuid,
} from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { toApiTime } from "../../lib/time.ts";
import {
  type ActivityEntry,
  type ActivityFilter,
  type ActivityOwner,
  activityBytes,
  listActivity,
} from "../activity.ts";
import type { Metadata } from "../metadata.ts";
import { findUserByEmail, listUsers } from "../users.ts";
import { projectRoute } from "./routes.ts";

export const activityTag = "Activity";
const limitDefault = 10;
const activities = [
  "created",
  "updated",
  "deleted",
  "restored",
  "activated",
  "deactivated",
  "link_created",
  "password_set",
  "sign_in_failed",
] as const;

export const EntryBody = named(
  "ActivityEntry",
  object({
    id: uuid(),
    user: object({
      first_name: string({ blank: true }),
      email: nullable(string()),
      is_system: optional(
        bool({
          description:
            "Not a user: the server itself, or the trigger in `detail.trigger`, such as a command. Then `first_name` is `System` and `email` is null.",
        }),
      ),
    }),
    activity: enumeration(activities),
    scope: string(),
    item_id: string(),
    detail: object({
      changes: list(
        object({
          type: string(),
          action: enumeration(["created", "changed", "deleted"]),
          field: string(),
          before: anyJson(),
          after: anyJson(),
        }),
      ),
      trigger: nullable(record(), {
        description:
          "Trigger of an automatic change: `job_type` is `command_line` (`job_id` is the operating system user), `scheduled_change` or `sign_in` (the address). With `change_request`, `user` approved what `proposed_by` requested.",
      }),
      type: nullable(string()),
      name: string({ description: "Display name of the item, for example the key of a flag.", blank: true }),
      short_id: nullable(string()),
      note: optional(string({ description: "Reason given by the author." })),
    }),
    created_at: dateTime(),
  }),
);

export const ActivityPage = named(
  "ActivityPage",
  object({
    results: list(EntryBody),
    next: nullable(string()),
    previous: nullable(string()),
    total_count: int(),
  }),
);

export const exampleActivity = {
  results: [
    {
      id: "0193d1a2-7b1c-7c3e-9f60-ad1e2f3a4b5c",
      user: { first_name: "Ann", email: "ann@example.com" },
      activity: "updated",
      scope: "FeatureFlag",
      item_id: "12",
      detail: {
        changes: [
          { type: "FeatureFlag", action: "changed", field: "active", before: true, after: false },
          { type: "FeatureFlag", action: "changed", field: "version", before: 2, after: 3 },
        ],
        trigger: null,
        type: null,
        name: "one-click-pay",
        short_id: null,
      },
      created_at: "2026-03-04T16:00:01.007000Z",
    },
  ],
  next: null,
  previous: null,
  total_count: 1,
};

const ActivityQuery = object({
  limit: optional(int({ minimum: 1, default: limitDefault })),
  page: optional(int({ minimum: 1, default: 1, description: "From 1." })),
});

export const ActivityFilterQuery = object({
  ...ActivityQuery.properties,
  scope: optional(string({ description: "Only changes of this kind of item." })),
  item_id: optional(string({ description: "Only changes of this item." })),
  user: optional(
    string({
      description:
        "Only changes by this user: an id, a uuid or an e-mail address; `system` for changes without a user.",
    }),
  ),
  activity: optional(enumeration(activities, { description: "Only changes of this kind." })),
  date_from: optional(dateTime({ description: "Start time, inclusive." })),
  date_to: optional(dateTime({ description: "End time, exclusive." })),
});

const activityAnswers = {
  200: { description: "Newest first.", schema: ActivityPage, example: exampleActivity },
};

/**
 * The activity of a kind of objects, and of one of them.
 *
 * @param target.path below the project, such as `/experiments`. @param target.find the id of the object in the path
 * @throws {NotFoundError} from `find`
 */
export function itemActivityRoutes(
  deps: { metadata: Metadata },
  target: {
    path: string;
    scope: string;
    /** For the documentation: `flags` and `a flag`. */
    names: readonly [all: string, one: string];
    description?: string;
    find: (call: { project: { id: number }; params: Record<string, string> }) => number | string;
  },
): Route[] {
  const documented = { tag: activityTag, query: ActivityQuery, answers: activityAnswers };
  const [all, one] = target.names;
  return [
    projectRoute("GET", `${target.path}/activity`, "activity_log:read", {
      ...documented,
      summary: `List the activity of all ${all}`,
      handle: (call) => activityPage(deps, call, { projectId: call.project.id, scope: target.scope }),
    }),
    projectRoute("GET", `${target.path}/:id/activity`, "activity_log:read", {
      ...documented,
      summary: `List the activity of ${one}`,
      description: target.description,
      handle: (call) =>
        activityPage(deps, call, {
          projectId: call.project.id,
          scope: target.scope,
          itemId: target.find(call),
        }),
    }),
  ];
}

/** Entries contain the filters of flags before and after, so a full page could exhaust memory. */
const pageBytesMax = 64 * 1024 * 1024;

/** A page of the entries for a route. @throws {InvalidFieldError} */
function activityPage(
  deps: { metadata: Metadata },
  call: { url: string; query: URLSearchParams },
  filter: ActivityOwner & ActivityFilter,
): Static<typeof ActivityPage> {
  const { next, previous, ...page } = listEntries(deps, filter, readActivityPage(call.query));
  const link = (other: ActivityPosition | null) => other && pageAddress(call.url, other);
  return { ...page, next: link(next), previous: link(previous) };
}

export interface ActivityPosition {
  limit: number;
  /** From 1. */
  page: number;
}

/** @throws {InvalidFieldError} `limit` or `page` is invalid. */
export const readActivityPage = (query: URLSearchParams): ActivityPosition => ({
  limit: readAtLeastOne(query, "limit") ?? limitDefault,
  page: readAtLeastOne(query, "page") ?? 1,
});

/** A page of the entries, and the positions of its neighbors. @throws {InvalidFieldError} the page would be too long. */
export function listEntries(
  { metadata }: { metadata: Metadata },
  filter: ActivityOwner & ActivityFilter,
  { limit, page }: ActivityPosition,
) {
  const wanted = { limit, offset: (page - 1) * limit };
  const bytes = limit > limitDefault ? activityBytes(metadata.db, filter, wanted) : 0;
  if (bytes > pageBytesMax) {
    const detail = `This page has ${bytes} bytes, which exceeds the limit. Request fewer entries per page.`;
    throw new InvalidFieldError("limit", "max_value", detail);
  }
  const { entries, total } = listActivity(metadata.db, filter, wanted);
  return {
    results: entries.map(entryBody),
    next: page * limit < total ? { page: page + 1, limit } : null,
    previous: page > 1 ? { page: page - 1, limit } : null,
    total_count: total,
  };
}

/** The filters of a request as they were sent. */
export const readActivityFilter = (query: URLSearchParams) => ({
  scope: query.get("scope") || undefined,
  itemId: query.get("item_id") || undefined,
  user: query.get("user") ?? "",
  activity: query.get("activity") || undefined,
  after: readDate(query, "date_from"),
  before: readDate(query, "date_to"),
});

export const toActivityFilter = (
  { db }: Metadata,
  { user, ...filter }: ReturnType<typeof readActivityFilter>,
): ActivityFilter => ({ ...filter, userId: userIn(db, user) });

/** @returns -1 for an unknown user, which matches no entry. */
function userIn(db: Metadata["db"], name: string): number | null | undefined {
  if (name === "") return undefined;
  if (name === "system") return null;
  if (name.includes("@")) return findUserByEmail(db, name)?.id ?? -1;
  const found = listUsers(db).find(({ id, uuid }) => String(id) === name || uuid === name);
  return found?.id ?? -1;
}

export function entryBody(entry: ActivityEntry): Static<typeof EntryBody> {
  return {
    id: entry.id,
    user: entry.user
      ? { first_name: entry.user.firstName, email: entry.user.email }
      : { first_name: "System", email: null, is_system: true },
    activity: entry.activity as Static<typeof EntryBody>["activity"],
    scope: entry.scope,
    item_id: entry.itemId,
    detail: entry.detail as unknown as Static<typeof EntryBody>["detail"],
    created_at: toApiTime(entry.createdAt),
  };
}

function pageAddress(url: string, { page, limit }: ActivityPosition): string {
  const target = new URL(url);
  target.searchParams.set("page", String(page));
  target.searchParams.set("limit", String(limit));
  return target.href;
}

/**
 * @throws {InvalidFieldError} not a whole number, or under 1: unlike elsewhere, the contract defines an error for that.
 */
function readAtLeastOne(query: URLSearchParams, name: string): number | undefined {
  const option = query.get(name);
  if (option === null || option === "") return undefined;
  if (!/^-?\d{1,9}$/.test(option)) {
    throw new InvalidFieldError(name, "invalid_input", "A valid integer is required.");
  }
  if (Number(option) < 1) {
    throw new InvalidFieldError(name, "min_value", "Ensure this value is greater than or equal to 1.");
  }
  return Number(option);
}
