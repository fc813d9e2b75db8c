/** Roles and who has them (contract: management-api 6.1). */

import { notFound } from "../../http/failure.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readUuid } from "../../http/path.ts";
import { Reply, type Route } from "../../http/route.ts";
import { intChoice, object, onePage, optional, PageQuery, text, uuid } from "../../http/shapes.ts";
import { NotPermitted } from "../../lib/errors.ts";
import type { Limits } from "../limits.ts";
import type { Metadata } from "../metadata.ts";
import {
  addRoleMember,
  createRole,
  deleteRole,
  findRole,
  listRoles,
  type Role,
  removeRoleMember,
  updateRole,
} from "../roles.ts";
import { findUser, levelOf, membershipLevels } from "../users.ts";
import { checkScopes } from "./guard.ts";
import {
  exampleRole,
  exampleRoleMembership,
  FullRoleBody,
  fullRoleBody,
  RoleMembershipBody,
  RoleMembershipPage,
  RolePage,
  roleMembershipBody,
} from "./role-shapes.ts";
import { type OrganizationCall, organizationRoute } from "./routes.ts";

const tagName = "Roles";
const exampleAnswer = { ...exampleRole, role_memberships: [exampleRoleMembership] };
const oneRole = { 200: { description: "The role.", schema: FullRoleBody, example: exampleAnswer } };
const RoleEdit = object({
  name: text({ max: 200 }),
  feature_flags_access_level: optional(intChoice([21, 37])),
});

export function roleRoutes(deps: { metadata: Metadata }): Route[] {
  const { metadata } = deps;
  const write = (role: Role) =>
    fullRoleBody(role, role.createdById === null ? undefined : findUser(metadata.db, role.createdById));
  const edit = (call: OrganizationCall<{ name?: string; feature_flags_access_level?: 21 | 37 }>) => {
    checkAdmin(deps, call);
    const { name, feature_flags_access_level: featureFlagsAccessLevel } = call.body;
    const of = { organizationId: call.organization.id, id: readUuid(call.params, "id"), by: call.user.id };
    const before = getRole(deps, call, "id").featureFlagsAccessLevel;
    if ((featureFlagsAccessLevel ?? before) > before) checkMayGrantFlags(call.limits);
    return write(updateRole(metadata, of, { name, featureFlagsAccessLevel }, call.now));
  };
  return [
    organizationRoute("GET", "/roles", "organization:read", {
      summary: "List roles",
      tag: tagName,
      query: PageQuery,
      answers: {
        200: onePage("One page of roles.", RolePage, exampleAnswer),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const { roles, count } = listRoles(metadata.db, call.organization.id, page);
        return pageAnswer(call.url, page, count, roles.map(write));
      },
    }),
    organizationRoute("POST", "/roles", "organization:write", {
      summary: "Create a role",
      description: "It starts with the organisation's default access to flags. Admins and owners only.",
      tag: tagName,
      body: object({ name: text({ max: 200 }) }),
      bodyExample: { name: "Checkout team" },
      answers: { 201: { description: "The new role.", schema: FullRoleBody, example: exampleAnswer } },
      handle: (call) => {
        checkAdmin(deps, call);
        const input = { organizationId: call.organization.id, name: call.body.name, by: call.user.id };
        return new Reply(201, write(createRole(metadata, input, call.now)));
      },
    }),
    organizationRoute("GET", "/roles/:id", "organization:read", {
      summary: "Get a role",
      tag: tagName,
      answers: oneRole,
      handle: (call) => write(getRole(deps, call, "id")),
    }),
    organizationRoute("PATCH", "/roles/:id", "organization:write", {
      summary: "Update a role",
      description:
        "Admins and owners only. To raise its access to flags, a key needs `feature_flag:write` too.",
      tag: tagName,
      body: RoleEdit,
      isPartial: true,
      bodyExample: { feature_flags_access_level: 37 },
      answers: oneRole,
      handle: edit,
    }),
    organizationRoute("PUT", "/roles/:id", "organization:write", {
      summary: "Replace a role",
      description:
        "Admins and owners only. To raise its access to flags, a key needs `feature_flag:write` too.",
      tag: tagName,
      body: RoleEdit,
      bodyExample: { name: "Checkout team", feature_flags_access_level: 21 },
      answers: oneRole,
      handle: edit,
    }),
    organizationRoute("DELETE", "/roles/:id", "organization:write", {
      summary: "Delete a role",
      description: "Its memberships and role access records go with it.",
      tag: tagName,
      answers: { 204: { description: "Gone." } },
      handle: (call) => {
        checkAdmin(deps, call);
        const of = {
          organizationId: call.organization.id,
          id: readUuid(call.params, "id"),
          by: call.user.id,
        };
        deleteRole(metadata, of, call.now);
        return new Reply(204);
      },
    }),
    organizationRoute("GET", "/roles/:role_id/role_memberships", "organization:read", {
      summary: "List the members of a role",
      tag: tagName,
      query: PageQuery,
      answers: {
        200: onePage("One page of memberships.", RoleMembershipPage, exampleRoleMembership),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const { members } = getRole(deps, call, "role_id");
        const shown = members.slice(page.offset, page.offset + page.limit).map(roleMembershipBody);
        return pageAnswer(call.url, page, members.length, shown);
      },
    }),
    organizationRoute("POST", "/roles/:role_id/role_memberships", "organization:write", {
      summary: "Add a member to a role",
      description: "Admins and owners only. A key needs `feature_flag:write` too.",
      tag: tagName,
      body: object({ user_uuid: uuid() }),
      bodyExample: { user_uuid: exampleRoleMembership.user.uuid },
      answers: {
        201: {
          description: "The new membership.",
          schema: RoleMembershipBody,
          example: exampleRoleMembership,
        },
      },
      handle: (call) => {
        checkAdmin(deps, call);
        checkMayGrantFlags(call.limits);
        const of = {
          organizationId: call.organization.id,
          roleId: readUuid(call.params, "role_id"),
          userUuid: call.body.user_uuid,
          by: call.user.id,
        };
        return new Reply(201, roleMembershipBody(addRoleMember(metadata, of, call.now)));
      },
    }),
    organizationRoute("GET", "/roles/:role_id/role_memberships/:id", "organization:read", {
      summary: "Get a role membership",
      tag: tagName,
      answers: {
        200: { description: "The membership.", schema: RoleMembershipBody, example: exampleRoleMembership },
      },
      handle: (call) => {
        const member = getRole(deps, call, "role_id").members.find(
          ({ id }) => id === readUuid(call.params, "id"),
        );
        if (!member) throw notFound();
        return roleMembershipBody(member);
      },
    }),
    organizationRoute("DELETE", "/roles/:role_id/role_memberships/:id", "organization:write", {
      summary: "Remove a member from a role",
      tag: tagName,
      answers: { 204: { description: "Gone." } },
      handle: (call) => {
        checkAdmin(deps, call);
        const of = {
          organizationId: call.organization.id,
          roleId: readUuid(call.params, "role_id"),
          id: readUuid(call.params, "id"),
          by: call.user.id,
        };
        removeRoleMember(metadata, of, call.now);
        return new Reply(204);
      },
    }),
  ];
}

/** @throws {NotPermitted} the caller is a plain member. */
export function checkAdmin(
  deps: { metadata: Metadata },
  call: { user: { id: number }; organization: { id: string } },
): void {
  if (levelOf(deps.metadata.db, call.organization.id, call.user.id) >= membershipLevels.admin) return;
  throw new NotPermitted("You need to have admin level or higher.");
}

/**
 * Before others get the right to edit flags: a key gives at most the permissions it has (contract: management-api 2.7).
 *
 * @throws {HttpFailure} 403.
 */
export function checkMayGrantFlags(limits: Limits): void {
  checkScopes(limits, ["feature_flag:write"]);
}

function getRole(deps: { metadata: Metadata }, call: OrganizationCall<unknown>, name: string): Role {
  const role = findRole(deps.metadata.db, call.organization.id, readUuid(call.params, name));
  if (!role) throw notFound();
  return role;
}
