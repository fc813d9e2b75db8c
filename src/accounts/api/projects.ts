/** Projects (contract: management-api 6.5; README, "Project time zone"). */

import type { Static, TObject } from "@sinclair/typebox";
import { notFound } from "../../http/http-error.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readBoolean } from "../../http/query.ts";
import { type Method, type Route, RouteResponse, type RouteSpec } from "../../http/route.ts";
import {
  bool,
  enumeration,
  int,
  nullable,
  object,
  optional,
  pageExample,
  pageOf,
  string,
  union,
  uuid,
  withPage,
} from "../../http/schemas.ts";
import { InvalidFieldError, PermissionDeniedError } from "../../lib/errors.ts";
import { retentionDaysMax } from "../../lib/setting-types.ts";
import { currentOrganization } from "../current.ts";
import { allows, type KeyRestrictions } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import { findOrganization } from "../organizations.ts";
import type { Project } from "../project-directory.ts";
import {
  archiveProject,
  assertNotLastProject,
  createProject,
  graceSecondsMax,
  revokePreviousKey,
  rotateProjectKey,
  rotateSecretKey,
  updateProject,
} from "../projects.ts";
import { getLevel, membershipLevels } from "../users.ts";
import { checkAdmin, checkMayGrantFlags, checkOrganizationLimit } from "./permissions.ts";
import {
  CountScreens,
  exampleFullProject,
  exampleProject,
  FlagViews,
  FullProjectBody,
  fullProjectBody,
  type GroupTypeBody,
  ProjectBody,
  projectBody,
  ShortProjectBody,
  shortProjectBody,
  WebGoals,
  WeekStartDay,
} from "./project-schemas.ts";
import { organizationRoute, type ProjectCall, projectRoute, type UserCall, userRoute } from "./routes.ts";

export const projectTag = "Projects";
const NewProjectInput = object({
  name: string({ max: 200 }),
  timezone: optional(
    string({ max: 64, description: "IANA time zone name, case-insensitive; default: UTC." }),
  ),
  anonymize_ips: optional(bool()),
  week_start_day: optional(WeekStartDay),
});
const ProjectEdit = object({
  name: optional(string({ max: 200 })),
  timezone: optional(string({ max: 64 })),
  anonymize_ips: optional(bool()),
  week_start_day: optional(WeekStartDay),
  web_goals: optional(WebGoals),
  count_screens: optional(CountScreens),
  flag_views: optional(FlagViews),
  approvals: optional(
    enumeration(["off", "critical", "all"], {
      description: "Flags whose changes require approval by another user. Admins and owners only.",
    }),
  ),
  events_retention_days: optional(
    nullable(int({ minimum: 0, maximum: retentionDaysMax }), {
      description: "Event retention; 0: unlimited, null: the server's setting.",
    }),
  ),
  archived: optional(
    bool({ description: "An archived project rejects events and flag requests; its data is kept." }),
  ),
});
const Rotation = object({
  grace_seconds: optional(
    int({
      minimum: 0,
      maximum: graceSecondsMax,
      description: "Grace period during which the old key stays valid; default: 0.",
    }),
  ),
});
export const ProjectFilter = object({
  archived: optional(bool({ description: "List archived projects instead of active ones." })),
});
export const readProjectQuery = (query: URLSearchParams) => ({
  isArchived: readBoolean(query, "archived") ?? false,
});
export const ProjectPage = pageOf("ProjectPage", union(ProjectBody, ShortProjectBody));
const projectPage = {
  200: pageExample("One page of projects.", ProjectPage, exampleProject),
};
const oneAnswer = {
  200: { description: "The project.", schema: FullProjectBody, example: exampleFullProject },
};
const made = {
  201: { description: "The new project.", schema: FullProjectBody, example: exampleFullProject },
};

/** Paths that provisioning tools use for a project. */
const ownAliases = ["/api/organizations/:organization_id/projects/:project_id"];

/** Decides whether a response contains the secret key. */
type Showing = Pick<UserCall, "user" | "session" | "seesCredentials" | "now">;

export interface ProjectDeps {
  metadata: Metadata;
  /** The group types of a project in responses. */
  groupTypesOf(projectId: number): Static<typeof GroupTypeBody>[];
}

export function projectRoutes(deps: ProjectDeps): Route[] {
  const { metadata } = deps;
  const full = (project: Project, { user, session, seesCredentials, now }: Showing) => {
    const level = getLevel(metadata.db, project.organizationId, user.id);
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
    return new RouteResponse(201, full(createProject(metadata, input, call.user.id, call.now), call));
  };
  /** One page of the projects that the caller's key or session may use, of one organization. */
  const list = (call: Pick<UserCall, "query" | "limits" | "url">, organizationId: string) => {
    const page = readPage(call.query);
    const { isArchived } = readProjectQuery(call.query);
    const all = usableProjects(metadata, {
      isArchived,
      organizationIds: [organizationId],
      limits: call.limits,
    });
    const shown = all.slice(page.offset, page.offset + page.limit).map(projectWriter(call.limits));
    return pageAnswer<object>(call.url, page, all.length, shown);
  };
  return [
    userRoute("POST", "/api/projects", ["project:write"], {
      summary: "Create a project",
      description: "In your current organization, or the one in `organization`. Admins and owners only.",
      tag: projectTag,
      makesCredential: "shown",
      body: object({ ...NewProjectInput.properties, organization: optional(uuid()) }),
      bodyExample: { name: "Web shop", timezone: "Europe/Berlin" },
      answers: made,
      handle: (call) => {
        const named = call.body.organization;
        if (named !== undefined && !findOrganization(metadata.db, named)) {
          throw new InvalidFieldError(
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
      description: "Projects that your key has access to, by id.",
      tag: projectTag,
      query: withPage(ProjectFilter),
      answers: projectPage,
      handle: (call) => list(call, call.organization.id),
    }),
    organizationRoute("POST", "/projects", "project:write", {
      summary: "Create a project in an organization",
      description: "Admins and owners only.",
      tag: projectTag,
      makesCredential: "shown",
      body: NewProjectInput,
      bodyExample: { name: "Web shop" },
      answers: made,
      handle: (call) => create(call, call.organization.id),
    }),
    projectRoute("GET", "", "project:read", {
      aliases: ownAliases,
      summary: "Get a project",
      description: "`@current` instead of the id selects your current one.",
      tag: projectTag,
      makesCredential: "shown",
      answers: oneAnswer,
      handle: (call) => full(call.project, call),
    }),
    projectRoute("PATCH", "", "project:write", {
      aliases: ownAliases,
      takesArchived: true,
      summary: "Update, archive or restore a project",
      description:
        "Archiving, `approvals` and event retention: admins and owners only. The last active project cannot be archived. Relaxing `approvals` also requires the scope `feature_flag:write`. Only `GET /api/projects/?archived=true` lists archived projects; `archived: false` restores one.",
      requiresReauthentication: isForAdmins,
      makesCredential: "shown",
      tag: projectTag,
      body: ProjectEdit,
      isPartial: true,
      bodyExample: { timezone: "Europe/Berlin" },
      answers: oneAnswer,
      handle: (call) => {
        const { name, timezone, anonymize_ips: anonymizeIps, approvals } = call.body;
        const { events_retention_days: eventsRetentionDays, week_start_day: weekStartDay } = call.body;
        const { web_goals: webGoals, count_screens: countScreens, flag_views: flagViews } = call.body;
        const change = {
          ...{ name, timezone, anonymizeIps, approvals, eventsRetentionDays, weekStartDay },
          ...{ webGoals, countScreens, flagViews },
        };
        const { id, organizationId, archivedAt } = call.project;
        if (archivedAt !== null && call.body.archived !== false) throw notFound("Project not found.");
        if (isForAdmins(saysAnew(call.body, call.project)) || archivedAt !== null) {
          checkAdmin(deps, { user: call.user, organization: { id: organizationId } });
        }
        if (isLoosened(call.project.approvals, approvals)) checkMayGrantFlags(call.limits);
        if (call.body.archived === true) assertNotLastProject(metadata, id);
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
        "Same as `archived: true`: the project rejects events and flag requests, its data is kept, and `archived: false` restores it. Owners only. The last active project cannot be archived.",
      // Same as archiving by PATCH.
      requiresReauthentication: true,
      tag: projectTag,
      answers: { 204: { description: "The project is archived." } },
      handle: ({ project: { id, organizationId }, user, now }) => {
        if (getLevel(metadata.db, organizationId, user.id) < membershipLevels.owner) {
          throw new PermissionDeniedError("Only owners of the organization can delete a project.");
        }
        assertNotLastProject(metadata, id);
        archiveProject(metadata, id, true, user.id, now);
        return new RouteResponse(204);
      },
    }),
    ...rotation("/reset_token", {
      summary: "Rotate the project key",
      description:
        "The old key becomes invalid immediately or after `grace_seconds`; the project shows how often it is still used. Admins and owners only.",
      body: Rotation,
      bodyExample: { grace_seconds: 604_800 },
      handle: ({ project, body, user, now }) =>
        rotateProjectKey(metadata, project.id, user.id, { graceSeconds: body.grace_seconds, now }),
    }),
    ...rotation("/delete_token_backup", {
      summary: "Revoke the previous public key of a project",
      description: "The key becomes invalid immediately. Admins and owners only.",
      handle: ({ project, user, now }) => revokePreviousKey(metadata, project.id, "public", user.id, now),
    }),
    ...rotation("/rotate_secret_token", {
      summary: "Rotate the secret key",
      description:
        "Like `reset_token` for the public key. Admins and owners only; the key in the response is visible as in the project.",
      makesCredential: true,
      body: Rotation,
      bodyExample: { grace_seconds: 86_400 },
      handle: ({ project, body, user, now }) =>
        rotateSecretKey(metadata, project.id, user.id, { graceSeconds: body.grace_seconds, now }),
    }),
    ...rotation("/delete_secret_token_backup", {
      summary: "Revoke the previous secret key of a project",
      description: "The key becomes invalid immediately. Admins and owners only.",
      handle: ({ project, user, now }) => revokePreviousKey(metadata, project.id, "secret", user.id, now),
    }),
  ];

  /** Clients use both methods. */
  function rotation<Body extends TObject>(
    path: string,
    { handle, ...spec }: Rotating<ProjectCall<Static<Body>>, Body>,
  ): Route[] {
    return (["PATCH", "POST"] satisfies Method[]).map((method) =>
      projectRoute<Body>(method, path, "project:write", {
        makesCredential: "shown",
        ...spec,
        tag: projectTag,
        answers: oneAnswer,
        handle: (call) => {
          checkAdmin(deps, { user: call.user, organization: { id: call.project.organizationId } });
          return full(handle(call), call);
        },
      }),
    );
  }
}

/** The projects of these organizations that a key or session may use; undefined: no restriction. */
export function usableProjects(
  { projects }: Pick<Metadata, "projects">,
  of: {
    isArchived: boolean;
    organizationIds?: readonly string[] | undefined;
    limits?: KeyRestrictions | undefined;
  },
): Project[] {
  const { isArchived, organizationIds, limits } = of;
  const projectIds = limits?.projectIds ?? [];
  return projects
    .list({ includeArchived: isArchived })
    .filter(({ archivedAt }) => (archivedAt !== null) === isArchived)
    .filter(({ organizationId }) => organizationIds?.includes(organizationId) ?? true)
    .filter(({ id }) => projectIds.length === 0 || projectIds.includes(id));
}

/** Formats projects for a key or session: short form without `project:read`. */
export const projectWriter = ({ scopes }: Pick<KeyRestrictions, "scopes">) =>
  allows(scopes, "project:read") ? projectBody : shortProjectBody;

type Rotating<Call, Body extends TObject> = Pick<
  RouteSpec<Call, Body>,
  "summary" | "description" | "body" | "bodyExample" | "makesCredential"
> & { handle: (call: Call) => Project };

/** Drops unchanged fields of the body: clients send back the whole project that they read. */
function saysAnew(body: Static<typeof ProjectEdit>, project: Project): Static<typeof ProjectEdit> {
  const { approvals, events_retention_days: days, ...others } = body;
  return {
    ...others,
    ...(approvals === project.approvals ? {} : { approvals }),
    ...(days === project.eventsRetentionDays ? {} : { events_retention_days: days }),
  };
}

/** Strictest first: flags whose changes need another user's approval. */
const approvalKinds: readonly Project["approvals"][] = ["all", "critical", "off"];

/** Whether a change lets users edit flags that they could not edit alone before. */
function isLoosened(before: Project["approvals"], after: Project["approvals"] = before): boolean {
  return approvalKinds.indexOf(after) > approvalKinds.indexOf(before);
}

/** Fields that members may not change, and a session only after re-authentication. */
function isForAdmins(body: { archived?: unknown; approvals?: unknown; events_retention_days?: unknown }) {
  return body.archived === true || body.approvals !== undefined || body.events_retention_days !== undefined;
}
