/** Roles and their members (contract: management-api 6.1). */

import { type Static, Type } from "@sinclair/typebox";
import {
  exampleRole,
  exampleRoleMembership,
  FullRoleBody,
  fullRoleBody,
  RoleMembershipBody,
  RoleMembershipPage,
  RolePage,
  roleMembershipBody,
} from "../accounts/api/role-schemas.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { flagsAccess, getFlagsAccess } from "../accounts/organizations.ts";
import {
  addRoleMember,
  createRole,
  deleteRole,
  findRole,
  listRoles,
  type Role,
  removeRoleMember,
  updateRole,
} from "../accounts/roles.ts";
import { findUser } from "../accounts/users.ts";
import { notFound } from "../http/http-error.ts";
import { intEnum, object, optional, string, uuid } from "../http/schemas.ts";
import { memberByEmail } from "./members.ts";
import {
  type CommandArgument,
  type CommandResult,
  getAuthor,
  type Lookup,
  listOperation,
  type OrganizationContext,
  operation,
  slicePage,
} from "./operation.ts";
import { assertAdmin, assertMayGrantFlags, flagsAccessOption } from "./permissions.ts";

type Context = OrganizationContext<{ metadata: Metadata }>;

const tag = "Roles";
const example = { ...exampleRole, role_memberships: [exampleRoleMembership] };
const flagsAccessLevel = optional(intEnum([21, 37]));
const name = string({ max: 200 });

type RoleRecord = Static<typeof FullRoleBody>;
type Membership = Static<typeof RoleMembershipBody>;

function body({ stores: { metadata } }: Context, role: Role): RoleRecord {
  return fullRoleBody(role, role.createdById === null ? undefined : findUser(metadata.db, role.createdById));
}

function roleIn({ stores: { metadata }, organization }: Context, id: string): Role {
  const role = findRole(metadata.db, organization.id, id);
  if (!role) throw notFound();
  return role;
}

export const roleByName: Lookup = {
  in: () => listAllRoles,
  matches: (role: RoleRecord, argument) => role.name.toLowerCase() === argument.trim().toLowerCase(),
  value: (role: RoleRecord) => role.id,
  missing: (argument) => `Role ${argument} does not exist.`,
};
const nameArgument: CommandArgument = {
  name: "name",
  description: "role name",
  member: "id",
  lookup: roleByName,
};
const roleArgument: CommandArgument = {
  name: "role",
  description: "role name",
  member: "role_id",
  lookup: roleByName,
};

const formerJson = {
  properties: {
    flags_access: Type.Union(flagsAccess.map((level) => Type.Literal(level))),
    /** E-mail addresses; the API joins them into one string. */
    members: Type.Array(Type.String()),
  },
  build: (role: RoleRecord) => ({
    flags_access: getFlagsAccess(role.feature_flags_access_level),
    members: role.role_memberships.map(({ user }) => user.email),
  }),
};
/** The role after the change. */
const roleAfter: CommandResult = {
  schema: FullRoleBody,
  build: ({ found }: { found: { role: RoleRecord } }, caller) => caller.call(getRole, { id: found.role.id }),
};

const membersSentence = (role: RoleRecord) =>
  `Role ${role.name}: ${role.role_memberships.map(({ user }) => user.email).join(", ") || "no members"}.`;

const listAllRoles = listOperation({
  id: "roles.list",
  on: "organization",
  scope: "organization:read",
  tag,
  summary: "List roles",
  http: { method: "GET", path: "/roles", answer: "One page of roles." },
  cli: {
    name: "roles list",
    description: "List roles and their members.",
    examples: ["roles list --json"],
    formerJson,
    table: {
      headings: ["id", "name", "flags", "members"],
      row: (role: RoleRecord) => [
        role.id,
        role.name,
        getFlagsAccess(role.feature_flags_access_level),
        role.members.replaceAll(",", ", "),
      ],
    },
  },
  input: object({}),
  output: RolePage,
  example,
  run: (context: Context, page) => {
    const { roles, count } = listRoles(context.stores.metadata.db, context.organization.id, page);
    return { count, results: roles.map((role) => body(context, role)) };
  },
});

const createNewRole = operation({
  id: "roles.create",
  on: "organization",
  scope: "organization:write",
  tag,
  summary: "Create a role",
  description: "The role starts with the organization's default flag access. Admins and owners only.",
  http: { method: "POST", path: "/roles", status: 201, answer: "The new role." },
  cli: {
    name: "roles create",
    examples: ["roles create Release --json"],
    arguments: [{ name: "name", description: "display name", member: "name" }],
    hasCreator: true,
    formerJson,
    done: (role: RoleRecord) => `Role ${role.name} (${role.id}) created.`,
  },
  input: object({ name }),
  inputExample: { name: "Checkout team" },
  output: FullRoleBody,
  example,
  run: (context: Context, input) => {
    assertAdmin(context);
    const target = {
      organizationId: context.organization.id,
      name: input.name,
      by: getAuthor(context.actor),
    };
    return body(context, createRole(context.stores.metadata, target, context.now));
  },
});

const getRole = operation({
  id: "roles.get",
  on: "organization",
  scope: "organization:read",
  tag,
  summary: "Get a role",
  http: { method: "GET", path: "/roles/:id", answer: "The role." },
  input: object({ id: uuid() }),
  output: FullRoleBody,
  example,
  run: (context: Context, { id }) => body(context, roleIn(context, id)),
});

interface RoleEdit {
  id: string;
  name?: string;
  feature_flags_access_level?: 21 | 37;
}

function edit(context: Context, input: RoleEdit): RoleRecord {
  assertAdmin(context);
  const { stores, organization, actor, now } = context;
  const { id, name, feature_flags_access_level: featureFlagsAccessLevel } = input;
  const before = roleIn(context, id).featureFlagsAccessLevel;
  if ((featureFlagsAccessLevel ?? before) > before) assertMayGrantFlags(actor);
  const target = { organizationId: organization.id, id, by: getAuthor(actor) };
  return body(context, updateRole(stores.metadata, target, { name, featureFlagsAccessLevel }, now));
}

const editDescription =
  "Admins and owners only. Raising flag access also requires the scope `feature_flag:write`.";

const updateOneRole = operation({
  id: "roles.update",
  on: "organization",
  scope: "organization:write",
  tag,
  summary: "Update a role",
  description: editDescription,
  http: { method: "PATCH", path: "/roles/:id", answer: "The role." },
  cli: {
    name: "roles set",
    description: "Update a role: its name or the flag access it grants.",
    examples: ["roles set Release --flags-access view"],
    arguments: [nameArgument],
    options: {
      name: { flags: "--name <name>", description: "display name" },
      feature_flags_access_level: {
        ...flagsAccessOption,
        description: "access of the role's members to flags: view or edit",
      },
    },
    formerJson,
    done: (role: RoleRecord) => `Role ${role.name} updated.`,
  },
  input: object({ id: uuid(), name: optional(name), feature_flags_access_level: flagsAccessLevel }),
  inputExample: { feature_flags_access_level: 37 },
  output: FullRoleBody,
  example,
  run: edit,
});

const replaceRole = operation({
  id: "roles.replace",
  on: "organization",
  scope: "organization:write",
  tag,
  summary: "Replace a role",
  description: editDescription,
  http: { method: "PUT", path: "/roles/:id", answer: "The role." },
  input: object({ id: uuid(), name, feature_flags_access_level: flagsAccessLevel }),
  inputExample: { name: "Checkout team", feature_flags_access_level: 21 },
  output: FullRoleBody,
  example,
  run: edit,
});

const deleteOneRole = operation({
  id: "roles.delete",
  on: "organization",
  scope: "organization:write",
  tag,
  summary: "Delete a role",
  description: "Also deletes its memberships and role access records.",
  http: { method: "DELETE", path: "/roles/:id" },
  cli: {
    name: "roles delete",
    description: "Delete a role and the flag access it grants.",
    examples: ["roles delete Release"],
    arguments: [nameArgument],
    result: {
      schema: object({ ...FullRoleBody.properties, deleted: Type.Literal(true) }),
      build: ({ found }: { found: { name: RoleRecord } }) => ({ ...found.name, deleted: true }),
    },
    formerJson,
    done: (role: RoleRecord) => `Role ${role.name} deleted.`,
  },
  input: object({ id: uuid() }),
  run: (context: Context, { id }) => {
    assertAdmin(context);
    const { stores, organization, actor, now } = context;
    deleteRole(stores.metadata, { organizationId: organization.id, id, by: getAuthor(actor) }, now);
  },
});

const listRoleMembers = listOperation({
  id: "roles.members.list",
  on: "organization",
  scope: "organization:read",
  tag,
  summary: "List the members of a role",
  http: { method: "GET", path: "/roles/:role_id/role_memberships", answer: "One page of memberships." },
  input: object({ role_id: uuid() }),
  output: RoleMembershipPage,
  example: exampleRoleMembership,
  run: (context: Context, { role_id, limit, offset }) => {
    const { members } = roleIn(context, role_id);
    return slicePage(members, { limit, offset }, roleMembershipBody);
  },
});

const addMemberToRole = operation({
  id: "roles.members.add",
  on: "organization",
  scope: "organization:write",
  tag,
  summary: "Add a member to a role",
  description: "Admins and owners only. Also requires the scope `feature_flag:write`.",
  http: {
    method: "POST",
    path: "/roles/:role_id/role_memberships",
    status: 201,
    answer: "The new membership.",
  },
  cli: {
    name: "roles add-member",
    description: "Add a user to a role.",
    examples: ["roles add-member Release ann@example.com"],
    arguments: [
      roleArgument,
      {
        name: "email",
        description: "e-mail address",
        member: "user_uuid",
        lookup: memberByEmail,
      },
    ],
    result: roleAfter,
    formerJson,
    done: membersSentence,
  },
  input: object({ role_id: uuid(), user_uuid: uuid() }),
  inputExample: { user_uuid: exampleRoleMembership.user.uuid },
  output: RoleMembershipBody,
  example: exampleRoleMembership,
  run: (context: Context, { role_id: roleId, user_uuid: userUuid }) => {
    assertAdmin(context);
    const { stores, organization, actor, now } = context;
    assertMayGrantFlags(actor);
    const target = { organizationId: organization.id, roleId, userUuid, by: getAuthor(actor) };
    return roleMembershipBody(addRoleMember(stores.metadata, target, now));
  },
});

const getRoleMember = operation({
  id: "roles.members.get",
  on: "organization",
  scope: "organization:read",
  tag,
  summary: "Get a role membership",
  http: { method: "GET", path: "/roles/:role_id/role_memberships/:id", answer: "The membership." },
  input: object({ role_id: uuid(), id: uuid() }),
  output: RoleMembershipBody,
  example: exampleRoleMembership,
  run: (context: Context, { role_id, id }) => {
    const member = roleIn(context, role_id).members.find((member) => member.id === id);
    if (!member) throw notFound();
    return roleMembershipBody(member);
  },
});

const removeMemberFromRole = operation({
  id: "roles.members.remove",
  on: "organization",
  scope: "organization:write",
  tag,
  summary: "Remove a member from a role",
  http: { method: "DELETE", path: "/roles/:role_id/role_memberships/:id" },
  cli: {
    name: "roles remove-member",
    description: "Remove a user from a role.",
    examples: ["roles remove-member Release ann@example.com"],
    arguments: [
      roleArgument,
      {
        name: "email",
        description: "e-mail address",
        member: "id",
        lookup: {
          in: () => listRoleMembers,
          input: ({ role }) => ({ role_id: (role as RoleRecord).id }),
          matches: ({ user }: Membership, email) => user.email.toLowerCase() === email.toLowerCase(),
          value: ({ id }: Membership) => id,
          missing: (email, { role }: { role: RoleRecord }) => `${email} does not have the role ${role.name}.`,
        },
      },
    ],
    result: roleAfter,
    formerJson,
    done: membersSentence,
  },
  input: object({ role_id: uuid(), id: uuid() }),
  run: (context: Context, { role_id: roleId, id }) => {
    assertAdmin(context);
    const { stores, organization, actor, now } = context;
    removeRoleMember(
      stores.metadata,
      { organizationId: organization.id, roleId, id, by: getAuthor(actor) },
      now,
    );
  },
});

/** In the order of the documentation. */
export const roleOperations = [
  listAllRoles,
  createNewRole,
  getRole,
  updateOneRole,
  replaceRole,
  deleteOneRole,
  listRoleMembers,
  addMemberToRole,
  getRoleMember,
  removeMemberFromRole,
];
