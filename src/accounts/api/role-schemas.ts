/** Roles in responses (requirement: Role; contract: README, `members` and `role_memberships`). */

import type { Static } from "@sinclair/typebox";
import {
  dateTime,
  intEnum,
  list,
  named,
  nullable,
  object,
  pageOf,
  string,
  uuid,
} from "../../http/schemas.ts";
import { toApiTime } from "../../lib/time.ts";
import type { Role, RoleMember } from "../roles.ts";
import type { User } from "../users.ts";
import { exampleUser, UserBody, userBody } from "./user-schemas.ts";

const RoleFields = {
  id: uuid(),
  name: string(),
  feature_flags_access_level: intEnum([21, 37], { description: "21: views flags; 37: edits all flags." }),
  created_at: dateTime(),
  created_by: nullable(UserBody),
  members: string({ blank: true, description: "E-mail addresses of the members, separated by commas." }),
};

/** A role embedded in a role access record. */
export const RoleBody = named("Role", object(RoleFields));

export const RoleMembershipBody = named(
  "RoleMembership",
  object({ id: uuid(), role_id: uuid(), user: UserBody, joined_at: dateTime(), updated_at: dateTime() }),
);

/** A single role. */
export const FullRoleBody = named(
  "RoleWithMemberships",
  object({ ...RoleFields, role_memberships: list(RoleMembershipBody) }),
);

export const RolePage = pageOf("RolePage", FullRoleBody);
export const RoleMembershipPage = pageOf("RoleMembershipPage", RoleMembershipBody);

/** `creator` is the user who created the role, if still known. */
export function roleBody(role: Role, creator: User | undefined): Static<typeof RoleBody> {
  return {
    id: role.id,
    name: role.name,
    feature_flags_access_level: role.featureFlagsAccessLevel as 21 | 37,
    created_at: toApiTime(role.createdAt),
    created_by: creator ? userBody(creator) : null,
    members: role.members.map((member) => member.user.email).join(","),
  };
}

/** A role in responses with its members. */
export function fullRoleBody(role: Role, creator: User | undefined): Static<typeof FullRoleBody> {
  return { ...roleBody(role, creator), role_memberships: role.members.map(roleMembershipBody) };
}

export function roleMembershipBody(member: RoleMember): Static<typeof RoleMembershipBody> {
  return {
    id: member.id,
    role_id: member.roleId,
    user: userBody(member.user),
    joined_at: toApiTime(member.joinedAt),
    updated_at: toApiTime(member.updatedAt),
  };
}

export const exampleRoleMembership = {
  id: "0193d1a2-7b1c-7c3e-9f60-5e6f7a8b9c0d",
  role_id: "0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e",
  user: exampleUser,
  joined_at: "2026-03-02T08:15:30.120000Z",
  updated_at: "2026-03-02T08:15:30.120000Z",
};

export const exampleRole = {
  id: "0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e",
  name: "Checkout team",
  feature_flags_access_level: 21,
  created_at: "2026-03-02T08:15:30.120000Z",
  created_by: exampleUser,
  members: "ann@example.com",
};
