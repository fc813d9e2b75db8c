/** Users, and the user of a key (contract: management-api 6.6). */

import type { Static } from "@sinclair/typebox";
import { exampleProject, ProjectBody, projectBody } from "../accounts/api/project-schemas.ts";
import {
  exampleOrganization,
  exampleUser,
  OrganizationBody,
  organizationBody,
  rolesAtOrganization,
  UserBody,
  userBody,
} from "../accounts/api/user-schemas.ts";
import { currentOrganization, currentProject } from "../accounts/current.ts";
import { isUnlimited, type KeyRestrictions } from "../accounts/limits.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { getOrganizations } from "../accounts/organizations.ts";
import type { Project } from "../accounts/project-directory.ts";
import { getLevel, isOperator, listUsers, type User, updateUser } from "../accounts/users.ts";
import { notFound, permissionDenied } from "../http/http-error.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { toApiTime } from "../lib/time.ts";
import {
  type Actor,
  type Context as AnyContext,
  getLimits,
  listOperation,
  operation,
  slicePage,
} from "./operation.ts";

type Context = AnyContext<{ metadata: Metadata }>;

const tag = "Users";
const nameLengthMax = 150;

const MeBody = named(
  "Me",
  object({
    ...UserBody.properties,
    is_staff: bool({
      description: "Whether you are an operator of the server: an owner of its first organization.",
    }),
    team: nullable(ProjectBody, { description: "The current project, `@current`." }),
    organization: nullable(OrganizationBody),
    organizations: list(OrganizationBody),
  }),
);

const example = {
  ...exampleUser,
  is_staff: false,
  team: exampleProject,
  organization: exampleOrganization,
  organizations: [exampleOrganization],
};

export const getCurrentUser = operation({
  id: "users.get",
  on: "user",
  scope: "user:read",
  tag,
  summary: "Get the current user",
  description:
    "`@me` or your own uuid. Other users are not accessible. A restricted key sees only its projects and organizations.",
  http: { method: "GET", path: "/api/users/:uuid", answer: "You.", allowsScopedKeys: true },
  input: object({ uuid: uuid() }),
  output: MeBody,
  example,
  run: (context: Context, { uuid: id }) => meBody(context, getSelf(context, id)),
});

const ListedUser = named(
  "ListedUser",
  object({
    ...UserBody.properties,
    is_active: bool({ description: "Keys and sessions of an inactive user are rejected." }),
    created_at: dateTime(),
  }),
);
type ListedUser = Static<typeof ListedUser>;

export const listAllUsers = listOperation({
  id: "users.list",
  on: "user",
  scope: "user:read",
  tag,
  summary: "List users",
  description:
    "All users of the server for its operators (`is_staff`), with a key with `*` and no restriction; only yourself for others.",
  http: { method: "GET", path: "/api/users", answer: "One page of users.", allowsScopedKeys: true },
  cli: {
    name: "users list",
    description: "List users; `flagkeep members` shows their levels.",
    examples: ["users list --json", "users list --url https://flags.example.com"],
    table: {
      headings: ["id", "email", "name", "state"],
      row: ({ id, email, first_name: name, is_active: isActive }: ListedUser) => [
        String(id),
        email,
        name,
        isActive ? "active" : "inactive",
      ],
    },
  },
  input: object({}),
  output: pageOf("UserPage", ListedUser),
  example: { ...exampleUser, is_active: true, created_at: "2026-03-01T12:00:00.000000Z" },
  run: ({ stores: { metadata }, actor }: Context, page) =>
    slicePage(visibleUsers(metadata, actor), page, (user) => ({
      ...userBody(user),
      is_active: user.isActive,
      created_at: toApiTime(user.createdAt),
    })),
});

function visibleUsers({ db }: Metadata, actor: Actor): User[] {
  if (actor.kind === "operator") return listUsers(db);
  return isUnlimited(actor.limits) && isOperator(db, actor.user.id) ? listUsers(db) : [actor.user];
}

const updateCurrentUser = operation({
  id: "users.update",
  on: "user",
  scope: "user:write",
  tag,
  summary: "Update the current user",
  description:
    "`set_current_team` and `set_current_organization` change your `@current` project and organization, to one that the key has access to; omitted fields are kept.",
  http: { method: "PATCH", path: "/api/users/:uuid", answer: "You.", allowsScopedKeys: true },
  input: object({
    uuid: uuid(),
    first_name: optional(string({ blank: true, max: nameLengthMax })),
    last_name: optional(string({ blank: true, max: nameLengthMax })),
    role_at_organization: optional(nullable(enumeration(["", ...rolesAtOrganization]))),
    hedgehog_config: optional(nullable(record())),
    set_current_team: optional(int()),
    set_current_organization: optional(uuid()),
  }),
  inputExample: { set_current_team: 1 },
  output: MeBody,
  example,
  run: (context: Context, { uuid: id, ...input }) => {
    const user = getSelf(context, id);
    const { metadata } = context.stores;
    const { set_current_team: projectId, set_current_organization: organizationId } = input;
    const project = projectId === undefined ? undefined : metadata.projects.find(projectId);
    const isForeign = !project || getLevel(metadata.db, project.organizationId, user.id) === 0;
    if (projectId !== undefined && isForeign) throw unknown("set_current_team", projectId);
    if (organizationId !== undefined && getLevel(metadata.db, organizationId, user.id) === 0) {
      throw unknown("set_current_organization", organizationId);
    }
    const isUsable = withinLimits(metadata, getLimits(context.actor));
    if (project && !isUsable.project(project)) throw permissionDenied(noAccess("project", project.id));
    if (organizationId !== undefined && !isUsable.organization(organizationId)) {
      throw permissionDenied(noAccess("organization", organizationId));
    }
    const change = {
      firstName: input.first_name,
      lastName: input.last_name,
      roleAtOrganization: input.role_at_organization === "" ? null : input.role_at_organization,
      hedgehogConfig: input.hedgehog_config,
      currentProjectId: projectId,
      currentOrganizationId: organizationId ?? project?.organizationId,
    };
    return meBody(context, updateUser(metadata, user.id, change));
  },
});

/** The acting user; of the operator, any user. @throws {HttpError} */
function getSelf({ stores, actor }: Context, uuid: string): User {
  if (actor.kind === "operator") {
    const found = listUsers(stores.metadata.db).find((user) => user.uuid === uuid);
    if (found === undefined) throw notFound();
    return found;
  }
  if (["@me", actor.user.uuid].includes(uuid)) return actor.user;
  throw permissionDenied("Only your own user is accessible.");
}

function unknown(field: string, id: number | string): InvalidFieldError {
  return new InvalidFieldError(field, "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
}

const noAccess = (kind: string, id: number | string) =>
  `API key does not have access to the requested ${kind}: ID ${id}.`;

/** The projects and organizations that a key or session is not restricted from. */
function withinLimits(metadata: Metadata, { projectIds, organizationIds }: KeyRestrictions) {
  const ofProjects = projectIds.map((id) => metadata.projects.find(id)?.organizationId);
  const organization = (id: string) =>
    (organizationIds.length === 0 || organizationIds.includes(id)) &&
    (projectIds.length === 0 || ofProjects.includes(id));
  const project = ({ id, organizationId }: Project) =>
    (projectIds.length === 0 || projectIds.includes(id)) && organization(organizationId);
  return { project, organization };
}

function meBody({ stores: { metadata }, actor }: Context, user: User) {
  const limits = getLimits(actor);
  const isUsable = withinLimits(metadata, limits);
  const current = currentProject(metadata, user);
  // The same as `@current` in paths of projects.
  const only = limits.projectIds.length === 1 ? metadata.projects.find(limits.projectIds[0]!) : current;
  const own = getOrganizations(metadata.db, user.id).filter(({ id }) => isUsable.organization(id));
  const currentId = currentOrganization(metadata, user)?.id;
  const isOpen = only?.archivedAt === null && own.some(({ id }) => id === only.organizationId);
  const team = isOpen && isUsable.project(only) ? only : undefined;
  const organization =
    own.find(({ id }) => id === currentId) ?? own.find(({ id }) => id === team?.organizationId);
  return {
    ...userBody(user),
    is_staff: isOperator(metadata.db, user.id),
    team: team ? projectBody(team) : null,
    organization: organization ? organizationBody(organization, organization.level) : null,
    organizations: own.map((item) => organizationBody(item, item.level)),
  } satisfies Static<typeof MeBody>;
}

/** In the order of the documentation. */
export const userOperations = [listAllUsers, getCurrentUser, updateCurrentUser];
