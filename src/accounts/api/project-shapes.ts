/** Projects in answers (contract: management-api 6.5). */

import type { Static } from "@sinclair/typebox";
import {
  bool,
  choice,
  dictionary,
  instant,
  int,
  intChoice,
  list,
  named,
  nullable,
  object,
  text,
  uuid,
} from "../../http/shapes.ts";
import { toWire, toWireOrNull } from "../../lib/wire-time.ts";
import type { Project } from "../project-directory.ts";
import { type FormerKeyUse, formerKeyOf } from "../project-keys.ts";

/** A kind of group that events of the project named. */
export const GroupTypeBody = named(
  "GroupType",
  object({
    group_type: text(),
    group_type_index: int({ minimum: 0 }),
    name_singular: nullable(text()),
    name_plural: nullable(text()),
    detail_dashboard: nullable(int()),
    default_columns: nullable(list(text())),
    created_at: nullable(instant()),
  }),
);

export const WeekStartDay = nullable(intChoice([0, 1]), {
  description:
    "On which day the weeks of insights start: 0 Sunday, 1 Monday; null means Monday. A query can name another one as `weekStartDay`.",
});

const ProjectFields = {
  id: int(),
  uuid: uuid(),
  organization: uuid(),
  project_id: int({ description: "Same as `id`." }),
  api_token: text({ description: "The public key that SDKs send." }),
  name: text(),
  completed_snippet_onboarding: bool(),
  has_completed_onboarding_for: nullable(dictionary()),
  ingested_event: bool({ description: "Whether an event ever arrived." }),
  is_demo: bool(),
  timezone: text({ description: "IANA name, no offset; dates in flag conditions are read in it." }),
  week_start_day: WeekStartDay,
  access_control: bool(),
};

/** A project as any key may see it that may use it. */
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

/** The wire form for keys without `project:read`. */
export function shortProjectBody({ id, uuid, name, organizationId, apiToken }: Project) {
  return { id, uuid, name, organization: organizationId, api_token: apiToken };
}

/** A project in lists and inside of other objects. */
export const ProjectBody = named("Project", object(ProjectFields));

const TokenBackupUse = named(
  "TokenBackupUse",
  object({
    ends_at: instant({ description: "From then on it is refused." }),
    requests: int({ minimum: 0, description: "With the key before, since the key was changed." }),
    requests_with_new: int({ minimum: 0, description: "With the present key, in the same time." }),
    last_used_at: nullable(instant()),
  }),
);

/** A project of its own. */
export const FullProjectBody = named(
  "ProjectWithDetails",
  object({
    ...ProjectFields,
    created_at: instant(),
    anonymize_ips: bool({ description: "Events are stored without the sender's address." }),
    archived_at: nullable(instant()),
    approvals: choice(["off", "critical", "all"], {
      description:
        "Changes of which flags somebody else has to agree to: none, those tagged `critical`, all.",
    }),
    events_retention_days: nullable(int({ minimum: 0 }), {
      description: "How long events are kept: 0 for ever, null as the server's setting says.",
    }),
    api_token_backup: nullable(text(), {
      description: "The public key before the present one, while it counts as well.",
    }),
    api_token_backup_use: nullable(TokenBackupUse),
    effective_membership_level: intChoice([1, 8, 15]),
    group_types: list(GroupTypeBody),
    secret_api_token: nullable(text(), {
      description:
        "For local evaluation. Shown to an owner's session with password re-authentication, unless it was created with a restricted key, and to a key of an admin or owner with `*` and no restriction; null for others.",
    }),
    secret_api_token_backup: nullable(text(), {
      description: "The secret key before the present one, while it counts as well; for those who see that.",
    }),
    secret_api_token_backup_use: nullable(TokenBackupUse),
  }),
);

/** The wire form of a project, without its secret key. */
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

/** The wire form of a project for a member with this level. */
export function fullProjectBody(
  project: Project,
  level: number,
  groupTypes: Static<typeof GroupTypeBody>[],
  of: {
    publicUse: FormerKeyUse | undefined;
    secretUse: FormerKeyUse | undefined;
    /** Whether the answer shows the secret keys. */
    seesSecrets: boolean;
    now: Date;
  },
): Static<typeof FullProjectBody> {
  const { publicUse, secretUse, seesSecrets, now } = of;
  return {
    ...projectBody(project),
    created_at: toWire(project.createdAt),
    anonymize_ips: project.anonymizeIps,
    archived_at: toWireOrNull(project.archivedAt),
    approvals: project.approvals,
    events_retention_days: project.eventsRetentionDays,
    api_token_backup: formerKeyOf(project, "public", now)?.token ?? null,
    api_token_backup_use: publicUse === undefined ? null : formerKeyBody(publicUse),
    effective_membership_level: level as 1 | 8 | 15,
    group_types: groupTypes,
    secret_api_token: seesSecrets ? project.secretToken : null,
    secret_api_token_backup: seesSecrets ? (formerKeyOf(project, "secret", now)?.token ?? null) : null,
    secret_api_token_backup_use: secretUse === undefined ? null : formerKeyBody(secretUse),
  };
}

function formerKeyBody(use: FormerKeyUse): Static<typeof TokenBackupUse> {
  return {
    ends_at: toWire(use.endsAt),
    requests: use.requests,
    requests_with_new: use.presentRequests,
    last_used_at: toWireOrNull(use.lastUsedAt),
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
