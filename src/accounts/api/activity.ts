/** Who changed what (requirement: activity endpoints; contract: management-api 5.10). */

import type { Static } from "@sinclair/typebox";
import { readInstant } from "../../http/query.ts";
import type { Route } from "../../http/route.ts";
import {
  anyJson,
  bool,
  choice,
  dictionary,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  text,
  uuid,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { toWire } from "../../lib/wire-time.ts";
import {
  type ActivityEntry,
  type ActivityFilter,
  type ActivityOwner,
  activityBytes,
  listActivity,
} from "../activity.ts";
import type { Metadata } from "../metadata.ts";
import { findUserByEmail, listUsers } from "../users.ts";
import { checkAdmin } from "./roles.ts";
import { organizationRoute, projectRoute } from "./routes.ts";

export const activityTag = "Activity";
const limitDefault = 10;
const activities = [
  ...(["created", "updated", "deleted", "restored", "activated", "deactivated"] as const),
  ...(["link_created", "password_set", "sign_in_failed"] as const),
];

const EntryBody = named(
  "ActivityEntry",
  object({
    id: uuid(),
    user: object({
      first_name: text({ blank: true }),
      email: nullable(text()),
      is_system: optional(
        bool({
          description:
            "Not a user: the server itself, or what `detail.trigger` names, such as a command. `first_name` is `System` then, and `email` null.",
        }),
      ),
    }),
    activity: choice(activities),
    scope: text(),
    item_id: text(),
    detail: object({
      changes: list(
        object({
          type: text(),
          action: choice(["created", "changed", "deleted"]),
          field: text(),
          before: anyJson(),
          after: anyJson(),
        }),
      ),
      trigger: nullable(dictionary(), {
        description:
          "What acted in place of a person: `job_type` is `command_line` (`job_id` is the operating system's user), `scheduled_change` or `sign_in` (the address).",
      }),
      type: nullable(text()),
      name: text({ description: "What people call the item, e.g. the key of a flag.", blank: true }),
      short_id: nullable(text()),
      note: optional(text({ description: "Why, in the words of whoever did it." })),
    }),
    created_at: instant(),
  }),
);

const ActivityPage = named(
  "ActivityPage",
  object({
    results: list(EntryBody),
    next: nullable(text()),
    previous: nullable(text()),
    total_count: int(),
  }),
);

const exampleAnswer = {
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

export const ActivityQuery = object({
  limit: optional(int({ minimum: 1, default: limitDefault })),
  page: optional(int({ minimum: 1, default: 1, description: "From 1." })),
});

const FilterQuery = object({
  ...ActivityQuery.properties,
  scope: optional(text({ description: "Only changes of this kind of item." })),
  item_id: optional(text({ description: "Only changes of this item." })),
  user: optional(
    text({
      description:
        "Only changes by this person: an id, a uuid or an e-mail address; `system` for those by nobody.",
    }),
  ),
  activity: optional(choice(activities, { description: "Only changes of this kind." })),
  date_from: optional(instant({ description: "Not earlier than this." })),
  date_to: optional(instant({ description: "Earlier than this." })),
});

export const activityAnswers = {
  200: { description: "Newest first.", schema: ActivityPage, example: exampleAnswer },
};

export function activityRoutes(deps: { metadata: Metadata }): Route[] {
  return [
    projectRoute("GET", "/activity_log", "activity_log:read", {
      summary: "List the activity of a project",
      description:
        "Flags and who may edit them (`FeatureFlag`), cohorts (`Cohort`) and the project itself (`Team`).",
      tag: activityTag,
      query: FilterQuery,
      answers: activityAnswers,
      handle: (call) =>
        activityPage(deps, call, { projectId: call.project.id, ...filterOf(deps.metadata, call.query) }),
    }),
    organizationRoute("GET", "/activity_log", "activity_log:read", {
      summary: "List the activity of an organization",
      description:
        "Personal keys (`PersonalAPIKey`), roles (`Role`), people (`User`), the organisation (`Organization`) and its projects (`Team`). Admins and owners only.",
      tag: activityTag,
      query: FilterQuery,
      answers: activityAnswers,
      handle: (call) => {
        checkAdmin(deps, call);
        return activityPage(deps, call, {
          organizationId: call.organization.id,
          ...filterOf(deps.metadata, call.query),
        });
      },
    }),
  ];
}

/** Entries tell the filters of flags before and after: as many as fill a page would fill the memory. */
const pageBytesMax = 64 * 1024 * 1024;

/**
 * A page of the entries that a route is about.
 *
 * @throws {InvalidField} `limit` or `page` is none, or the page would be too long.
 */
export function activityPage(
  { metadata }: { metadata: Metadata },
  call: { url: string; query: URLSearchParams },
  of: ActivityOwner & ActivityFilter,
): Static<typeof ActivityPage> {
  const limit = readAtLeastOne(call.query, "limit") ?? limitDefault;
  const page = readAtLeastOne(call.query, "page") ?? 1;
  const wanted = { limit, offset: (page - 1) * limit };
  const bytes = limit > limitDefault ? activityBytes(metadata.db, of, wanted) : 0;
  if (bytes > pageBytesMax) {
    const detail = `This page has ${bytes} bytes; ask for fewer entries at once.`;
    throw new InvalidField("limit", "max_value", detail);
  }
  const { entries, total } = listActivity(metadata.db, of, wanted);
  return {
    results: entries.map(entryBody),
    next: page * limit < total ? pageAddress(call.url, page + 1, limit) : null,
    previous: page > 1 ? pageAddress(call.url, page - 1, limit) : null,
    total_count: total,
  };
}

/** @throws {InvalidField} */
function filterOf({ db }: Metadata, query: URLSearchParams): ActivityFilter {
  return {
    scope: query.get("scope") || undefined,
    itemId: query.get("item_id") || undefined,
    userId: userIn(db, query.get("user") ?? ""),
    activity: query.get("activity") || undefined,
    after: momentIn(query, "date_from"),
    before: momentIn(query, "date_to"),
  };
}

/** @returns -1 for somebody there is not: nobody's changes. */
function userIn(db: Metadata["db"], name: string): number | null | undefined {
  if (name === "") return undefined;
  if (name === "system") return null;
  if (name.includes("@")) return findUserByEmail(db, name)?.id ?? -1;
  const found = listUsers(db).find(({ id, uuid }) => String(id) === name || uuid === name);
  return found?.id ?? -1;
}

function momentIn(query: URLSearchParams, name: string): Date | undefined {
  const micros = readInstant(query, name);
  return micros === undefined ? undefined : new Date(micros / 1_000);
}

function entryBody(entry: ActivityEntry): Static<typeof EntryBody> {
  return {
    id: entry.id,
    user: entry.user
      ? { first_name: entry.user.firstName, email: entry.user.email }
      : { first_name: "System", email: null, is_system: true },
    activity: entry.activity as Static<typeof EntryBody>["activity"],
    scope: entry.scope,
    item_id: entry.itemId,
    detail: entry.detail as unknown as Static<typeof EntryBody>["detail"],
    created_at: toWire(entry.createdAt),
  };
}

function pageAddress(url: string, page: number, limit: number): string {
  const target = new URL(url);
  target.searchParams.set("page", String(page));
  target.searchParams.set("limit", String(limit));
  return target.href;
}

/** @throws {InvalidField} not a whole number, or under 1: unlike elsewhere, the contract has an error for that. */
function readAtLeastOne(query: URLSearchParams, name: string): number | undefined {
  const given = query.get(name);
  if (given === null || given === "") return undefined;
  if (!/^-?\d{1,9}$/.test(given)) {
    throw new InvalidField(name, "invalid_input", "A valid integer is required.");
  }
  if (Number(given) < 1) {
    throw new InvalidField(name, "min_value", "Ensure this value is greater than or equal to 1.");
  }
  return Number(given);
}
