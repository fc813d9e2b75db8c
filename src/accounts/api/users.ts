/** The user of a key (contract: management-api 6.6). */

import type { Static } from "@sinclair/typebox";
import { permissionDenied } from "../../http/http-error.ts";
import { readUuid } from "../../http/path.ts";
import type { Route } from "../../http/route.ts";
import {
  bool,
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
import { currentOrganization, currentProject } from "../current.ts";
import type { KeyRestrictions } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import { getOrganizations } from "../organizations.ts";
import type { Project } from "../project-directory.ts";
import { getLevel, isOperator, type User, updateUser } from "../users.ts";
import { exampleOrganization, OrganizationBody, organizationBody } from "./organization-schemas.ts";
import { exampleProject, ProjectBody, projectBody } from "./project-schemas.ts";
import { type UserCall, userRoute } from "./routes.ts";
import { exampleUser, rolesAtOrganization, UserBody, userBody } from "./user-schemas.ts";

const tagName = "Users";
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

const exampleAnswer = {
  ...exampleUser,
  is_staff: false,
  team: exampleProject,
  organization: exampleOrganization,
  organizations: [exampleOrganization],
};

export function userRoutes(deps: { metadata: Metadata }): Route[] {
  return [
    userRoute("GET", "/api/users/:uuid", ["user:read"], {
      summary: "Get the current user",
      description:
        "`@me` or your own uuid. Other users are not accessible. A restricted key sees only its projects and organizations.",
      tag: tagName,
      allowsScopedKeys: true,
      answers: { 200: { description: "You.", schema: MeBody, example: exampleAnswer } },
      handle: (call) => meBody(deps, self(call), call.limits),
    }),
    userRoute("PATCH", "/api/users/:uuid", ["user:write"], {
      summary: "Update the current user",
      description:
        "`set_current_team` and `set_current_organization` change your `@current` project and organization, to one that the key has access to; omitted fields are kept.",
      tag: tagName,
      allowsScopedKeys: true,
      body: object({
        first_name: optional(string({ blank: true, max: nameLengthMax })),
        last_name: optional(string({ blank: true, max: nameLengthMax })),
        role_at_organization: optional(nullable(enumeration(["", ...rolesAtOrganization]))),
        hedgehog_config: optional(nullable(record())),
        set_current_team: optional(int()),
        set_current_organization: optional(uuid()),
      }),
      isPartial: true,
      bodyExample: { set_current_team: 1 },
      answers: { 200: { description: "You.", schema: MeBody, example: exampleAnswer } },
      handle: (call) => {
        const user = self(call);
        const { set_current_team: projectId, set_current_organization: organizationId } = call.body;
        const project = projectId === undefined ? undefined : deps.metadata.projects.find(projectId);
        const isForeign = !project || getLevel(deps.metadata.db, project.organizationId, user.id) === 0;
        if (projectId !== undefined && isForeign) throw unknown("set_current_team", projectId);
        if (organizationId !== undefined && getLevel(deps.metadata.db, organizationId, user.id) === 0) {
          throw unknown("set_current_organization", organizationId);
        }
        const reach = withinLimits(deps, call.limits);
        if (project && !reach.project(project)) throw permissionDenied(noAccess("project", project.id));
        if (organizationId !== undefined && !reach.organization(organizationId)) {
          throw permissionDenied(noAccess("organization", organizationId));
        }
        const change = {
          firstName: call.body.first_name,
          lastName: call.body.last_name,
          roleAtOrganization: call.body.role_at_organization === "" ? null : call.body.role_at_organization,
          hedgehogConfig: call.body.hedgehog_config,
          currentProjectId: projectId,
          currentOrganizationId: organizationId ?? project?.organizationId,
        };
        return meBody(deps, updateUser(deps.metadata, user.id, change), call.limits);
      },
    }),
  ];
}

function self(call: UserCall<unknown>): User {
  if (["@me", call.user.uuid].includes(readUuid(call.params, "uuid"))) return call.user;
  throw permissionDenied("Only your own user is accessible.");
}

function unknown(field: string, id: number | string): InvalidFieldError {
  return new InvalidFieldError(field, "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
}

const noAccess = (kind: string, id: number | string) =>
  `API key does not have access to the requested ${kind}: ID ${id}.`;

/** The projects and organizations that a key or session is not restricted from. */
function withinLimits(
  { metadata }: { metadata: Metadata },
  { projectIds, organizationIds }: KeyRestrictions,
) {
  const ofProjects = projectIds.map((id) => metadata.projects.find(id)?.organizationId);
  const organization = (id: string) =>
    (organizationIds.length === 0 || organizationIds.includes(id)) &&
    (projectIds.length === 0 || ofProjects.includes(id));
  const project = ({ id, organizationId }: Project) =>
    (projectIds.length === 0 || projectIds.includes(id)) && organization(organizationId);
  return { project, organization };
}

function meBody({ metadata }: { metadata: Metadata }, user: User, limits: KeyRestrictions) {
  const reach = withinLimits({ metadata }, limits);
  const current = currentProject(metadata, user);
  // The same as `@current` in paths of projects.
  const only = limits.projectIds.length === 1 ? metadata.projects.find(limits.projectIds[0]!) : current;
  const own = getOrganizations(metadata.db, user.id).filter(({ id }) => reach.organization(id));
  const currentId = currentOrganization(metadata, user)?.id;
  const isOpen = only?.archivedAt === null && own.some(({ id }) => id === only.organizationId);
  const team = isOpen && reach.project(only) ? only : undefined;
  const organization =
    own.find(({ id }) => id === currentId) ?? own.find(({ id }) => id === team?.organizationId);
  return {
    ...userBody(user),
    is_staff: isOperator(metadata.db, user.id),
    team: team ? projectBody(team) : null,
    organization: organization ? organizationBody(organization, organization.level) : null,
    organizations: own.map((one) => organizationBody(one, one.level)),
  } satisfies Static<typeof MeBody>;
}
