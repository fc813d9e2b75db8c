/** Projects (contract: management-api 6.5; README, "Project time zone"). */

import type { Static, TObject } from "@sinclair/typebox";
import { notFound } from "../../http/failure.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readBoolean } from "../../http/query.ts";
import { type Method, Reply, type Route, type RouteSpec } from "../../http/route.ts";
import {
  bool,
  choice,
  either,
  int,
  nullable,
  object,
  onePage,
  optional,
  pageOf,
  text,
  uuid,
  withPage,
} from "../../http/shapes.ts";
import { InvalidField, NotPermitted } from "../../lib/errors.ts";
import { retentionDaysMax } from "../../lib/setting-kinds.ts";
import { currentOrganization } from "../current.ts";
import { allows } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import { findOrganization, organizationsOf } from "../organizations.ts";
import type { Project } from "../project-directory.ts";
import {
  archiveProject,
  createProject,
  endFormerKey,
  graceSecondsMax,
  requireAnotherProject,
  rotateProjectKey,
  rotateSecretKey,
  updateProject,
} from "../projects.ts";
import { levelOf, membershipLevels } from "../users.ts";
import { checkOrganizationLimit } from "./guard.ts";
import {
  exampleFullProject,
  exampleProject,
  FullProjectBody,
  fullProjectBody,
  type GroupTypeBody,
  ProjectBody,
  projectBody,
  ShortProjectBody,
  shortProjectBody,
  WeekStartDay,
} from "./project-shapes.ts";
import { checkAdmin, checkMayGrantFlags } from "./roles.ts";
import { organizationRoute, type ProjectCall, projectRoute, type UserCall, userRoute } from "./routes.ts";

const tagName = "Projects";
const NewProjectInput = object({
  name: text({ max: 200 }),
  timezone: optional(
    text({ max: 64, description: "IANA name in any letter case, no offset; UTC when absent." }),
  ),
  anonymize_ips: optional(bool()),
  week_start_day: optional(WeekStartDay),
});
const ProjectEdit = object({
  name: optional(text({ max: 200 })),
  timezone: optional(text({ max: 64 })),
  anonymize_ips: optional(bool()),
  week_start_day: optional(WeekStartDay),
  approvals: optional(
    choice(["off", "critical", "all"], {
      description: "Changes of which flags somebody else has to agree to. Admins and owners only.",
    }),
  ),
  events_retention_days: optional(
    nullable(int({ minimum: 0, maximum: retentionDaysMax }), {
      description: "How long events are kept: 0 for ever, null as the server's setting says.",
    }),
  ),
  archived: optional(
    bool({ description: "Archived, a project takes no events and answers no flags; its data stay." }),
  ),
});
const Rotation = object({
  grace_seconds: optional(
    int({
      minimum: 0,
      maximum: graceSecondsMax,
      description: "How long the old key counts beside the new one; 0 when absent.",
    }),
  ),
});
const ProjectQuery = withPage(
  object({
    archived: optional(bool({ description: "Those that are archived instead of the open ones." })),
  }),
);
const projectPage = {
  200: onePage(
    "One page of projects.",
    pageOf("ProjectPage", either(ProjectBody, ShortProjectBody)),
    exampleProject,
  ),
};
const oneAnswer = {
  200: { description: "The project.", schema: FullProjectBody, example: exampleFullProject },
};
const made = {
  201: { description: "The new project.", schema: FullProjectBody, example: exampleFullProject },
};

/** Where provisioning tools look for a project. */
const ownAliases = ["/api/organizations/:organization_id/projects/:project_id"];

/** What decides whether an answer shows the secret key. */
type Showing = Pick<UserCall, "user" | "session" | "seesCredentials" | "now">;

/** What the routes of projects need. */
export interface ProjectDeps {
  metadata: Metadata;
  /** The group types of a project as answers show them. */
  groupTypesOf(projectId: number): Static<typeof GroupTypeBody>[];
}

export function projectRoutes(deps: ProjectDeps): Route[] {
  const { metadata } = deps;
  const full = (project: Project, { user, session, seesCredentials, now }: Showing) => {
    const level = levelOf(metadata.db, project.organizationId, user.id);
    const levelNeeded = session === undefined ? membershipLevels.admin : membershipLevels.owner;
    return fullProjectBody(project, level, deps.groupTypesOf(project.id), {
      publicUse: metadata.projects.formerKeyUse(project.id, "public", now),
      secretUse: metadata.projects.formerKeyUse(project.id, "secret", now),
      seesSecrets: seesCredentials && level >= levelNeeded,
      now,
    });
  };
  const create = (
    call: Showing & {
      body: Static<typeof NewProjectInput>;
    },
    organizationId: string,
  ) => {
    checkAdmin(deps, { user: call.user, organization: { id: organizationId } });
    const { name, timezone, anonymize_ips: anonymizeIps } = call.body;
    const input = { organizationId, name, timezone, anonymizeIps, weekStartDay: call.body.week_start_day };
    return new Reply(201, full(createProject(metadata, input, call.user.id, call.now), call));
  };
  /** One page of the projects that the caller's key or session may use, of these organizations. */
  const list = (call: Pick<UserCall, "query" | "limits" | "url">, organizationIds: readonly string[]) => {
    const page = readPage(call.query);
    const { projectIds, scopes } = call.limits;
    const isArchived = readBoolean(call.query, "archived") ?? false;
    const all = metadata.projects
      .list({ includeArchived: isArchived })
      .filter(({ archivedAt }) => (archivedAt !== null) === isArchived)
      .filter(({ organizationId }) => organizationIds.includes(organizationId))
      .filter(({ id }) => projectIds.length === 0 || projectIds.includes(id));
    const shown = all.slice(page.offset, page.offset + page.limit);
    const write = allows(scopes, "project:read") ? projectBody : shortProjectBody;
    return pageAnswer<object>(call.url, page, all.length, shown.map(write));
  };
  return [
    userRoute("GET", "/api/projects", [], {
      summary: "List projects",
      description:
        "The projects that your key may use, by id. Without the scope `project:read` in short form: `id`, `uuid`, `name`, `organization`, `api_token`.",
      tag: tagName,
      ignoresNarrowing: true,
      query: ProjectQuery,
      answers: projectPage,
      handle: (call) => {
        const { organizationIds } = call.limits;
        const own = organizationsOf(metadata.db, call.user.id)
          .map((organization) => organization.id)
          .filter((id) => organizationIds.length === 0 || organizationIds.includes(id));
        return list(call, own);
      },
    }),
    userRoute("POST", "/api/projects", ["project:write"], {
      summary: "Create a project",
      description:
        "In the organisation you work in, unless `organization` names another. Admins and owners only.",
      tag: tagName,
      makesCredential: "shown",
      body: object({ ...NewProjectInput.properties, organization: optional(uuid()) }),
      bodyExample: { name: "Web shop", timezone: "Europe/Berlin" },
      answers: made,
      handle: (call) => {
        const named = call.body.organization;
        if (named !== undefined && !findOrganization(metadata.db, named)) {
          throw new InvalidField(
            "organization",
            "does_not_exist",
            `Invalid pk "${named}" - object does not exist.`,
          );
        }
        const organizationId = named ?? currentOrganization(metadata, call.user)?.id ?? "";
        checkOrganizationLimit(call.limits, organizationId);
        return create(call, organizationId);
      },
    }),
    organizationRoute("GET", "/projects", "project:read", {
      summary: "List the projects of an organization",
      description: "The projects that your key may use, by id.",
      tag: tagName,
      query: ProjectQuery,
      answers: projectPage,
      handle: (call) => list(call, [call.organization.id]),
    }),
    organizationRoute("POST", "/projects", "project:write", {
      summary: "Create a project in an organization",
      description: "Admins and owners only.",
      tag: tagName,
      makesCredential: "shown",
      body: NewProjectInput,
      bodyExample: { name: "Web shop" },
      answers: made,
      handle: (call) => create(call, call.organization.id),
    }),
    projectRoute("GET", "", "project:read", {
      aliases: ownAliases,
      summary: "Get a project",
      description: "`@current` in place of the id means the one you work in.",
      tag: tagName,
      makesCredential: "shown",
      answers: oneAnswer,
      handle: (call) => full(call.project, call),
    }),
    projectRoute("PATCH", "", "project:write", {
      aliases: ownAliases,
      takesArchived: true,
      summary: "Update, archive or restore a project",
      description:
        "Only admins and owners archive, change `approvals` or how long events are kept, and never the last open project. To let changes of more flags go without agreement, a key needs `feature_flag:write` too. An archived project is found nowhere but in `GET /api/projects/?archived=true`; `archived: false` opens it again.",
      asksAgain: isForAdmins,
      makesCredential: "shown",
      tag: tagName,
      body: ProjectEdit,
      isPartial: true,
      bodyExample: { timezone: "Europe/Berlin" },
      answers: oneAnswer,
      handle: (call) => {
        const { name, timezone, anonymize_ips: anonymizeIps, approvals } = call.body;
        const { events_retention_days: eventsRetentionDays, week_start_day: weekStartDay } = call.body;
        const change = { name, timezone, anonymizeIps, approvals, eventsRetentionDays, weekStartDay };
        const { id, organizationId, archivedAt } = call.project;
        if (archivedAt !== null && call.body.archived !== false) throw notFound("Project not found.");
        if (isForAdmins(saysAnew(call.body, call.project)) || archivedAt !== null) {
          checkAdmin(deps, { user: call.user, organization: { id: organizationId } });
        }
        if (isLoosened(call.project.approvals, approvals)) checkMayGrantFlags(call.limits);
        if (call.body.archived === true) requireAnotherProject(metadata, id);
        const changed = updateProject(metadata, id, change, call.user.id, call.now);
        const { archived } = call.body;
        if (archived === undefined || archived === (archivedAt !== null)) return full(changed, call);
        return full(archiveProject(metadata, id, archived, call.user.id, call.now), call);
      },
    }),
    projectRoute("DELETE", "", "project:write", {
      aliases: ownAliases,
      summary: "Archive a project",
      description:
        "The same as `archived: true`: the project takes no events and answers no flags, its data stay, and `archived: false` opens it again. Owners only, and never the last open project.",
      // As for archiving by PATCH.
      asksAgain: true,
      tag: tagName,
      answers: { 204: { description: "The project is archived." } },
      handle: ({ project: { id, organizationId }, user, now }) => {
        if (levelOf(metadata.db, organizationId, user.id) < membershipLevels.owner) {
          throw new NotPermitted("Only owners of the organization can delete a project.");
        }
        requireAnotherProject(metadata, id);
        archiveProject(metadata, id, true, user.id, now);
        return new Reply(204);
      },
    }),
    ...rotation("/reset_token", {
      summary: "Rotate the project key",
      description:
        "The old key stops working at once, or with `grace_seconds` so much later; the project tells how much it is still used. Admins and owners only.",
      body: Rotation,
      bodyExample: { grace_seconds: 604_800 },
      handle: ({ project, body, user, now }) =>
        rotateProjectKey(metadata, project.id, user.id, { graceSeconds: body.grace_seconds, now }),
    }),
    ...rotation("/delete_token_backup", {
      summary: "Revoke the previous public key of a project",
      description: "It stops working at once. Admins and owners only.",
      handle: ({ project, user, now }) => endFormerKey(metadata, project.id, "public", user.id, now),
    }),
    ...rotation("/rotate_secret_token", {
      summary: "Rotate the secret key",
      description:
        "As `reset_token` does for the public key. Admins and owners only; the answer shows the key as reading the project does.",
      makesCredential: true,
      body: Rotation,
      bodyExample: { grace_seconds: 86_400 },
      handle: ({ project, body, user, now }) =>
        rotateSecretKey(metadata, project.id, user.id, { graceSeconds: body.grace_seconds, now }),
    }),
    ...rotation("/delete_secret_token_backup", {
      summary: "Revoke the previous secret key of a project",
      description: "It stops working at once. Admins and owners only.",
      handle: ({ project, user, now }) => endFormerKey(metadata, project.id, "secret", user.id, now),
    }),
  ];

  /** Clients know both methods for this. */
  function rotation<Body extends TObject>(
    path: string,
    { handle, ...spec }: Rotating<ProjectCall<Static<Body>>, Body>,
  ): Route[] {
    return (["PATCH", "POST"] satisfies Method[]).map((method) =>
      projectRoute<Body>(method, path, "project:write", {
        makesCredential: "shown",
        ...spec,
        tag: tagName,
        answers: oneAnswer,
        handle: (call) => {
          checkAdmin(deps, { user: call.user, organization: { id: call.project.organizationId } });
          return full(handle(call), call);
        },
      }),
    );
  }
}

type Rotating<Call, Body extends TObject> = Pick<
  RouteSpec<Call, Body>,
  "summary" | "description" | "body" | "bodyExample" | "makesCredential"
> & { handle: (call: Call) => Project };

/** A body without what it only repeats: clients send back the whole project that they read. */
function saysAnew(body: Static<typeof ProjectEdit>, project: Project): Static<typeof ProjectEdit> {
  const { approvals, events_retention_days: days, ...others } = body;
  return {
    ...others,
    ...(approvals === project.approvals ? {} : { approvals }),
    ...(days === project.eventsRetentionDays ? {} : { events_retention_days: days }),
  };
}

/** From the strictest: changes of which flags need somebody else's agreement. */
const approvalKinds: readonly Project["approvals"][] = ["all", "critical", "off"];

/** Whether a change lets users edit flags that they could not edit alone before. */
function isLoosened(before: Project["approvals"], after: Project["approvals"] = before): boolean {
  return approvalKinds.indexOf(after) > approvalKinds.indexOf(before);
}

/** What members may not change, and a session only after the password was asked for again. */
function isForAdmins(body: { archived?: unknown; approvals?: unknown; events_retention_days?: unknown }) {
  return body.archived === true || body.approvals !== undefined || body.events_retention_days !== undefined;
}
