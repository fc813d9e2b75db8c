/** Projects in responses (contract: management-api 6.5). */

import type { Static } from "@sinclair/typebox";
import {
  bool,
  dateTime,
  enumeration,
  int,
  intEnum,
  list,
  named,
  nullable,
  object,
  optional,
  record,
  string,
  uuid,
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import type { Project } from "../project-directory.ts";
import { type PreviousKeyUsage, previousKey } from "../project-keys.ts";
import {
  flagViewsMax,
  goalNameLengthMax,
  goalTargetLengthMax,
  viewNameLengthMax,
  viewQueryLengthMax,
  webGoalsMax,
} from "../project-settings.ts";

/** A group type that events of the project use. */
export const GroupTypeBody = named(
  "GroupType",
  object({
    group_type: string(),
    group_type_index: int({ minimum: 0 }),
    name_singular: nullable(string()),
    name_plural: nullable(string()),
    detail_dashboard: nullable(int()),
    default_columns: nullable(list(string())),
    created_at: nullable(dateTime()),
  }),
);

export const WeekStartDay = nullable(intEnum([0, 1]), {
  description:
    "First day of the week in insights: 0 Sunday, 1 Monday; null means Monday. A query can override it with `weekStartDay`.",
});

export const WebGoals = list(
  object({
    name: string({ max: goalNameLengthMax }),
    event: optional(nullable(string({ max: goalTargetLengthMax, description: "The event to perform." }))),
    path: optional(
      nullable(
        string({
          max: goalTargetLengthMax,
          description: "The path of the page to view, for example `/thanks`.",
        }),
      ),
    ),
  }),
  {
    description: `Goals of web analytics, at most ${webGoalsMax}: each has either an event or a path.`,
  },
);
export const FlagViews = list(
  object({
    name: string({ max: viewNameLengthMax }),
    query: string({
      max: viewQueryLengthMax,
      blank: true,
      description: "Filters and sort order, as the query string of the console's flag list.",
    }),
  }),
  { description: `Saved views of the flag list, at most ${flagViewsMax}.` },
);
export const CountScreens = bool({ description: "Count `$screen` as a page view in web analytics." });

const ProjectFields = {
  id: int(),
  uuid: uuid(),
  organization: uuid(),
  project_id: int({ description: "Same as `id`." }),
  api_token: string({ description: "The public key that SDKs send." }),
  name: string(),
  completed_snippet_onboarding: bool(),
  has_completed_onboarding_for: nullable(record()),
  ingested_event: bool({ description: "Whether any event has arrived." }),
  is_demo: bool(),
  timezone: string({ description: "IANA time zone name; applies to dates in flag conditions." }),
  week_start_day: WeekStartDay,
  access_control: bool(),
};

/** A project in short form, for any key that may use it. */
export const ShortProjectBody = named(
  "ShortProject",
  object({
    id: ProjectFields.id,
    uuid: ProjectFields.uuid,
    name: ProjectFields.name,
    organization: ProjectFields.organization,
    api_token: ProjectFields.api_token,
  }),
);

/** The project in a response to keys without `project:read`. */
export function shortProjectBody({ id, uuid, name, organizationId, apiToken }: Project) {
  return { id, uuid, name, organization: organizationId, api_token: apiToken };
}

/** A project in lists and embedded in other objects. */
export const ProjectBody = named("Project", object(ProjectFields));

const TokenBackupUse = named(
  "TokenBackupUse",
  object({
    ends_at: dateTime({ description: "Time from which it is rejected." }),
    requests: int({ minimum: 0, description: "Requests with the previous key since the rotation." }),
    requests_with_new: int({ minimum: 0, description: "Requests with the current key in the same period." }),
    last_used_at: nullable(dateTime()),
  }),
);

/** A single project. */
export const FullProjectBody = named(
  "ProjectWithDetails",
  object({
    ...ProjectFields,
    created_at: dateTime(),
    anonymize_ips: bool({ description: "Discard client IP addresses of events." }),
    archived_at: nullable(dateTime()),
    approvals: enumeration(["off", "critical", "all"], {
      description:
        "Flags whose changes require approval by another user: none, flags tagged `critical`, or all.",
    }),
    web_goals: WebGoals,
    count_screens: CountScreens,
    flag_views: FlagViews,
    events_retention_days: nullable(int({ minimum: 0 }), {
      description: "Event retention; 0: unlimited, null: the server's setting.",
    }),
    api_token_backup: nullable(string(), {
      description: "The previous public key, while it is still valid.",
    }),
    api_token_backup_use: nullable(TokenBackupUse),
    effective_membership_level: intEnum([1, 8, 15]),
    group_types: list(GroupTypeBody),
    secret_api_token: nullable(string(), {
      description:
        "For local evaluation. Visible in an owner's session after password re-authentication, unless created with a restricted key, and to an unrestricted `*` key of an admin or owner; otherwise null.",
    }),
    secret_api_token_backup: nullable(string(), {
      description: "The previous secret key, while it is still valid; visible like the secret key.",
    }),
    secret_api_token_backup_use: nullable(TokenBackupUse),
  }),
);

/** A project in responses, without its secret key. */
export function projectBody(project: Project): Static<typeof ProjectBody> {
  return {
    id: project.id,
    uuid: project.uuid,
    organization: project.organizationId,
    project_id: project.id,
    api_token: project.apiToken,
    name: project.name,
    completed_snippet_onboarding: project.ingestedEvent,
    has_completed_onboarding_for: null,
    ingested_event: project.ingestedEvent,
    is_demo: false,
    timezone: project.timezone,
    week_start_day: project.weekStartDay,
    access_control: false,
  };
}

/** A project in responses to a member with this level. */
export function fullProjectBody(
  project: Project,
  level: number,
  groupTypes: Static<typeof GroupTypeBody>[],
  details: {
    publicUse: PreviousKeyUsage | undefined;
    secretUse: PreviousKeyUsage | undefined;
    /** Whether the response contains the secret keys. */
    seesSecrets: boolean;
    now: Date;
  },
): Static<typeof FullProjectBody> {
  const { publicUse, secretUse, seesSecrets, now } = details;
  return {
    ...projectBody(project),
    created_at: toApiTime(project.createdAt),
    anonymize_ips: project.anonymizeIps,
    archived_at: toApiTimeOrNull(project.archivedAt),
    approvals: project.approvals,
    web_goals: [...project.webGoals],
    count_screens: project.countScreens,
    flag_views: [...project.flagViews],
    events_retention_days: project.eventsRetentionDays,
    api_token_backup: previousKey(project, "public", now)?.token ?? null,
    api_token_backup_use: publicUse === undefined ? null : formerKeyBody(publicUse),
    effective_membership_level: level as 1 | 8 | 15,
    group_types: groupTypes,
    secret_api_token: seesSecrets ? project.secretToken : null,
    secret_api_token_backup: seesSecrets ? (previousKey(project, "secret", now)?.token ?? null) : null,
    secret_api_token_backup_use: secretUse === undefined ? null : formerKeyBody(secretUse),
  };
}

function formerKeyBody(use: PreviousKeyUsage): Static<typeof TokenBackupUse> {
  return {
    ends_at: toApiTime(use.endsAt),
    requests: use.requests,
    requests_with_new: use.presentRequests,
    last_used_at: toApiTimeOrNull(use.lastUsedAt),
  };
}

export const exampleProject = {
  id: 1,
  uuid: "0193d1a2-7b1c-7c3e-9f60-3c4d5e6f7a8b",
  organization: "0193d1a2-7b1c-7c3e-9f60-4d5e6f7a8b9c",
  project_id: 1,
  api_token: "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx",
  name: "Web shop",
  completed_snippet_onboarding: true,
  has_completed_onboarding_for: null,
  ingested_event: true,
  is_demo: false,
  timezone: "Europe/Berlin",
  week_start_day: null,
  access_control: false,
};

export const exampleFullProject = {
  ...exampleProject,
  created_at: "2026-03-01T12:00:00.000000Z",
  anonymize_ips: false,
  archived_at: null,
  approvals: "off" as const,
  web_goals: [{ name: "Order", event: "order paid", path: null }],
  count_screens: false,
  flag_views: [{ name: "Stale web flags", query: "state=stale&tag=web" }],
  events_retention_days: 400,
  api_token_backup: "phc_8sWqNz1rYb5tKc7mLd3xHf9vPj2gQa6eTuRiOyZkXwV",
  api_token_backup_use: {
    ends_at: "2026-03-08T12:00:00.000000Z",
    requests: 12,
    requests_with_new: 3_412,
    last_used_at: "2026-03-02T09:30:00.000000Z",
  },
  effective_membership_level: 15,
  group_types: [],
  secret_api_token: "phs_4kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzBvCxMn",
  secret_api_token_backup: null,
  secret_api_token_backup_use: null,
};
