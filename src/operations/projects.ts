/** Projects (contract: management-api 6.5). */

import type { Static } from "@sinclair/typebox";
import { checkOrganizationLimit } from "../accounts/api/permissions.ts";
import {
  CountScreens,
  exampleProject as example,
  exampleFullProject,
  FlagViews,
  FullProjectBody,
  fullProjectBody,
  ProjectBody,
  projectBody,
  ShortProjectBody,
  shortProjectBody,
  WebGoals,
  WeekStartDay,
} from "../accounts/api/project-schemas.ts";
import { currentOrganization } from "../accounts/current.ts";
import { allows, type KeyRestrictions } from "../accounts/limits.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { findOrganization, getOrganizations, listOrganizations } from "../accounts/organizations.ts";
import type { Project } from "../accounts/project-directory.ts";
import { archiveProject, assertNotLastProject, createProject, updateProject } from "../accounts/projects.ts";
import { getLevel, membershipLevels } from "../accounts/users.ts";
import { notFound } from "../http/http-error.ts";
import { readBoolean } from "../http/params.ts";
import {
  bool,
  enumeration,
  int,
  nullable,
  object,
  optional,
  pageOf,
  string,
  union,
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError, PermissionDeniedError } from "../lib/errors.ts";
import { retentionDaysMax } from "../lib/setting-types.ts";
import { groupTypeBody } from "../persons/api/person-schemas.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import {
  type Actor,
  type Context as AnyContext,
  getAuthor,
  getLimits,
  listOperation,
  type OrganizationContext,
  operation,
  type ProjectContext,
  slicePage,
} from "./operation.ts";
import { assertAdminOf, assertMayGrantFlags } from "./permissions.ts";

export interface ProjectStores {
  metadata: Metadata;
  persons: PersonReader;
}
type Context = AnyContext<ProjectStores>;
export type InProject = ProjectContext<ProjectStores>;

const tag = "Projects";
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
const ProjectFilter = object({
  archived: optional(bool({ description: "List archived projects instead of active ones." })),
});
const readProjectQuery = (query: URLSearchParams) => ({
  isArchived: readBoolean(query, "archived") ?? false,
});
const ProjectPage = pageOf("ProjectPage", union(ProjectBody, ShortProjectBody));
const pageAnswer = "One page of projects.";

/** Paths that provisioning tools use for a project. */
const aliases = ["/api/organizations/:organization_id/projects/:project_id"];

/** What operations of one project have in common. */
export const ofProject = {
  on: "project",
  tag,
  output: FullProjectBody,
  example: exampleFullProject,
} as const;

/** The project in the response, with its secret key if the actor may see it. */
export async function projectResponse(
  { stores, actor, now }: Context,
  project: Project,
): Promise<Static<typeof FullProjectBody>> {
  const { metadata, persons } = stores;
  const groupTypes = (await persons.groupTypes(project.id)).map(groupTypeBody);
  const level =
    actor.kind === "user"
      ? getLevel(metadata.db, project.organizationId, actor.user.id)
      : membershipLevels.owner;
  return fullProjectBody(project, level, groupTypes, {
    publicUse: metadata.projects.formerKeyUse(project.id, "public", now),
    secretUse: metadata.projects.formerKeyUse(project.id, "secret", now),
    seesSecrets: actor.kind === "operator" || (actor.seesCredentials && level >= levelThatSeesSecrets(actor)),
    now,
  });
}

const levelThatSeesSecrets = ({ key }: Actor & { kind: "user" }) =>
  key === undefined ? membershipLevels.owner : membershipLevels.admin;

/** Undefined: every organization. */
function organizationsIn({ db }: Metadata, actor: Actor): string[] | undefined {
  if (actor.kind === "operator") return undefined;
  const { organizationIds } = actor.limits;
  return getOrganizations(db, actor.user.id)
    .map(({ id }) => id)
    .filter((id) => organizationIds.length === 0 || organizationIds.includes(id));
}

/** One page of the projects of organizations; undefined: of every organization. */
function page(
  { stores: { metadata }, actor }: Context,
  { limit, offset, isArchived }: { limit: number; offset: number; isArchived: boolean },
  organizationIds: readonly string[] | undefined,
) {
  const limits = getLimits(actor);
  const all = usableProjects(metadata, { isArchived, organizationIds, limits });
  return slicePage(all, { limit, offset }, projectWriter(limits));
}

export const listAllProjects = listOperation({
  id: "projects.list",
  on: "user",
  tag,
  summary: "List projects",
  description:
    "Projects that your key has access to, by id. Without the scope `project:read` only `id`, `uuid`, `name`, `organization` and `api_token`.",
  http: { method: "GET", path: "/api/projects", answer: pageAnswer, allowsScopedKeys: true },
  mcp: {
    name: "list_projects",
    description: "List the projects that the key has access to.",
    limitDefault: 100,
  },
  input: ProjectFilter,
  output: ProjectPage,
  example,
  readQuery: readProjectQuery,
  run: (context: Context, input) =>
    page(context, input, organizationsIn(context.stores.metadata, context.actor)),
});

const createNewProject = operation({
  id: "projects.create",
  on: "user",
  scope: "project:write",
  tag,
  summary: "Create a project",
  description: "In your current organization, or the one in `organization`. Admins and owners only.",
  http: {
    method: "POST",
    path: "/api/projects",
    status: 201,
    answer: "The new project.",
    makesCredential: "shown",
  },
  input: object({ ...NewProjectInput.properties, organization: optional(uuid()) }),
  inputExample: { name: "Web shop", timezone: "Europe/Berlin" },
  output: FullProjectBody,
  example: exampleFullProject,
  run: (context: Context, { organization: named, ...input }) => {
    const { stores, actor } = context;
    if (named !== undefined && !findOrganization(stores.metadata.db, named)) {
      throw new InvalidFieldError(
        "organization",
        "does_not_exist",
        `Invalid pk "${named}" - object does not exist.`,
      );
    }
    const organizationId = named ?? currentOrganizationId(context);
    checkOrganizationLimit(getLimits(actor), organizationId);
    return create(context, organizationId, input);
  },
});

/** Of the operator: the only one. */
function currentOrganizationId({ stores: { metadata }, actor }: Context): string {
  if (actor.kind === "user") return currentOrganization(metadata, actor.user)?.id ?? "";
  const [first, ...others] = listOrganizations(metadata.db);
  if (first !== undefined && others.length === 0) return first.id;
  throw new InvalidFieldError("organization", "required", "Several organizations exist. Name one.");
}

function create(context: Context, organizationId: string, input: Static<typeof NewProjectInput>) {
  assertAdminOf(context, organizationId);
  const { stores, actor, now } = context;
  const { name, timezone, anonymize_ips: anonymizeIps, week_start_day: weekStartDay } = input;
  const fields = { organizationId, name, timezone, anonymizeIps, weekStartDay };
  return projectResponse(context, createProject(stores.metadata, fields, getAuthor(actor), now));
}

const listProjectsOfOrganization = listOperation({
  id: "organizations.projects.list",
  on: "organization",
  scope: "project:read",
  tag,
  summary: "List the projects of an organization",
  description: "Projects that your key has access to, by id.",
  http: { method: "GET", path: "/projects", answer: pageAnswer },
  input: ProjectFilter,
  output: ProjectPage,
  example,
  readQuery: readProjectQuery,
  run: (context: OrganizationContext<ProjectStores>, input) =>
    page(context, input, [context.organization.id]),
});

export const createProjectInOrganization = operation({
  id: "organizations.projects.create",
  on: "organization",
  scope: "project:write",
  tag,
  summary: "Create a project in an organization",
  description: "Admins and owners only.",
  http: {
    method: "POST",
    path: "/projects",
    status: 201,
    answer: "The new project.",
    makesCredential: "shown",
  },
  input: NewProjectInput,
  inputExample: { name: "Web shop" },
  output: FullProjectBody,
  example: exampleFullProject,
  run: (context: OrganizationContext<ProjectStores>, input) =>
    create(context, context.organization.id, input),
});

export const getProject = operation({
  ...ofProject,
  id: "projects.get",
  scope: "project:read",
  summary: "Get a project",
  description: "`@current` instead of the id selects your current one.",
  http: { method: "GET", path: "", aliases, answer: "The project.", makesCredential: "shown" },
  input: object({}),
  run: (context: InProject) => projectResponse(context, context.project),
});

export const updateOneProject = operation({
  ...ofProject,
  id: "projects.update",
  scope: "project:write",
  summary: "Update, archive or restore a project",
  description:
    "Archiving, `approvals` and event retention: admins and owners only. The last active project cannot be archived. Relaxing `approvals` also requires the scope `feature_flag:write`. Only `GET /api/projects/?archived=true` lists archived projects; `archived: false` restores one.",
  http: {
    method: "PATCH",
    path: "",
    aliases,
    answer: "The project.",
    makesCredential: "shown",
    takesArchived: true,
    requiresReauthentication: isForAdmins,
  },
  input: ProjectEdit,
  inputExample: { timezone: "Europe/Berlin" },
  run: (context: InProject, input) => {
    const { stores, project, actor, now } = context;
    const { metadata } = stores;
    const { name, timezone, anonymize_ips: anonymizeIps, approvals, archived } = input;
    const { events_retention_days: eventsRetentionDays, week_start_day: weekStartDay } = input;
    const { web_goals: webGoals, count_screens: countScreens, flag_views: flagViews } = input;
    const change = {
      name,
      timezone,
      anonymizeIps,
      approvals,
      eventsRetentionDays,
      weekStartDay,
      webGoals,
      countScreens,
      flagViews,
    };
    const { id, organizationId, archivedAt } = project;
    if (actor.kind === "user" && archivedAt !== null && archived !== false)
      throw notFound("Project not found.");
    if (isForAdmins(changedFields(input, project)) || archivedAt !== null)
      assertAdminOf(context, organizationId);
    if (isLoosened(project.approvals, approvals)) assertMayGrantFlags(actor);
    if (archived === true) assertNotLastProject(metadata, id);
    const by = getAuthor(actor);
    const changed = updateProject(metadata, id, change, by, now);
    if (archived === undefined || archived === (archivedAt !== null))
      return projectResponse(context, changed);
    return projectResponse(context, archiveProject(metadata, id, archived, by, now));
  },
});

const archiveOneProject = operation({
  id: "projects.delete",
  on: "project",
  scope: "project:write",
  tag,
  summary: "Archive a project",
  description:
    "Same as `archived: true`: the project rejects events and flag requests, its data is kept, and `archived: false` restores it. Owners only. The last active project cannot be archived.",
  // Same as archiving by PATCH.
  http: {
    method: "DELETE",
    path: "",
    aliases,
    answer: "The project is archived.",
    requiresReauthentication: true,
  },
  input: object({}),
  run: ({ stores: { metadata }, project: { id, organizationId }, actor, now }: InProject) => {
    if (
      actor.kind === "user" &&
      getLevel(metadata.db, organizationId, actor.user.id) < membershipLevels.owner
    ) {
      throw new PermissionDeniedError("Only owners of the organization can delete a project.");
    }
    assertNotLastProject(metadata, id);
    archiveProject(metadata, id, true, getAuthor(actor), now);
  },
});

/** The projects of these organizations that a key or session may use; undefined: no restriction. */
function usableProjects(
  { projects }: Pick<Metadata, "projects">,
  details: {
    isArchived: boolean;
    organizationIds?: readonly string[] | undefined;
    limits?: KeyRestrictions | undefined;
  },
): Project[] {
  const { isArchived, organizationIds, limits } = details;
  const projectIds = limits?.projectIds ?? [];
  return projects
    .list({ includeArchived: isArchived })
    .filter(({ archivedAt }) => (archivedAt !== null) === isArchived)
    .filter(({ organizationId }) => organizationIds?.includes(organizationId) ?? true)
    .filter(({ id }) => projectIds.length === 0 || projectIds.includes(id));
}

/** Formats projects for a key or session: short form without `project:read`. */
const projectWriter = ({ scopes }: Pick<KeyRestrictions, "scopes">) =>
  allows(scopes, "project:read") ? projectBody : shortProjectBody;

/** Drops unchanged fields of the body: clients send back the whole project that they read. */
function changedFields(body: Static<typeof ProjectEdit>, project: Project): Static<typeof ProjectEdit> {
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

/** In the order of the documentation. */
export const projectOperations = [
  listAllProjects,
  createNewProject,
  listProjectsOfOrganization,
  createProjectInOrganization,
  getProject,
  updateOneProject,
  archiveOneProject,
];
