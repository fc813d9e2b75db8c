/** The user behind a key (contract: management-api 6.6). */

import type { Static } from "@sinclair/typebox";
import { permissionDenied } from "../../http/failure.ts";
import { readUuid } from "../../http/path.ts";
import type { Route } from "../../http/route.ts";
import {
  bool,
  choice,
  dictionary,
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
import { currentOrganization, currentProject } from "../current.ts";
import type { Metadata } from "../metadata.ts";
import { organizationsOf } from "../organizations.ts";
import { isOperator, levelOf, type User, updateUser } from "../users.ts";
import { exampleOrganization, OrganizationBody, organizationBody } from "./organizations.ts";
import { exampleProject, ProjectBody, projectBody } from "./project-shapes.ts";
import { type UserCall, userRoute } from "./routes.ts";
import { exampleUser, rolesAtOrganization, UserBody, userBody } from "./user-shapes.ts";

const tagName = "Users";
const nameLengthMax = 150;

const MeBody = named(
  "Me",
  object({
    ...UserBody.properties,
    is_staff: bool({ description: "Whether you look after the server: an owner of its first organisation." }),
    team: nullable(ProjectBody, { description: "The project that `@current` means." }),
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
      description: "`@me`, or your own uuid; nobody else's.",
      tag: tagName,
      ignoresNarrowing: true,
      answers: { 200: { description: "You.", schema: MeBody, example: exampleAnswer } },
      handle: (call) => meBody(deps, self(call)),
    }),
    userRoute("PATCH", "/api/users/:uuid", ["user:write"], {
      summary: "Update the current user",
      description:
        "`set_current_team` and `set_current_organization` move what `@current` means for you; fields that are not sent stay.",
      tag: tagName,
      ignoresNarrowing: true,
      body: object({
        first_name: optional(text({ blank: true, max: nameLengthMax })),
        last_name: optional(text({ blank: true, max: nameLengthMax })),
        role_at_organization: optional(nullable(choice(["", ...rolesAtOrganization]))),
        hedgehog_config: optional(nullable(dictionary())),
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
        const isForeign = !project || levelOf(deps.metadata.db, project.organizationId, user.id) === 0;
        if (projectId !== undefined && isForeign) throw unknown("set_current_team", projectId);
        if (organizationId !== undefined && levelOf(deps.metadata.db, organizationId, user.id) === 0) {
          throw unknown("set_current_organization", organizationId);
        }
        const change = {
          firstName: call.body.first_name,
          lastName: call.body.last_name,
          roleAtOrganization: call.body.role_at_organization === "" ? null : call.body.role_at_organization,
          hedgehogConfig: call.body.hedgehog_config,
          currentProjectId: projectId,
          currentOrganizationId: organizationId ?? project?.organizationId,
        };
        return meBody(deps, updateUser(deps.metadata, user.id, change));
      },
    }),
  ];
}

function self(call: UserCall<unknown>): User {
  if (["@me", call.user.uuid].includes(readUuid(call.params, "uuid"))) return call.user;
  throw permissionDenied("You can only look at your own user.");
}

function unknown(field: string, id: number | string): InvalidField {
  return new InvalidField(field, "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
}

function meBody({ metadata }: { metadata: Metadata }, user: User): Static<typeof MeBody> {
  const project = currentProject(metadata, user);
  const current = currentOrganization(metadata, user);
  return {
    ...userBody(user),
    is_staff: isOperator(metadata.db, user.id),
    team: project ? projectBody(project) : null,
    organization: current ? organizationBody(current, current.level) : null,
    organizations: organizationsOf(metadata.db, user.id).map((organization) =>
      organizationBody(organization, organization.level),
    ),
  };
}
