/** A user embedded in other objects (requirement: User). */

import type { Static } from "@sinclair/typebox";
import {
  bool,
  dateTime,
  enumeration,
  int,
  intEnum,
  named,
  object,
  record,
  string,
  uuid,
} from "../../http/schemas.ts";
import { toApiTime } from "../../lib/time.ts";
import type { Reading } from "../db.ts";
import type { Organization } from "../organizations.ts";
import { hasPassword } from "../sessions/members.ts";
import type { Member, User } from "../users.ts";

export const rolesAtOrganization = [
  "engineering",
  "data",
  "product",
  "founder",
  "leadership",
  "marketing",
  "sales",
  "other",
] as const;

export const UserBody = named(
  "User",
  object({
    id: int(),
    uuid: uuid(),
    distinct_id: string({ description: "Distinct id of the user's own events and flag evaluations." }),
    first_name: string({ blank: true }),
    last_name: string({ blank: true }),
    email: string(),
    is_email_verified: bool(),
    hedgehog_config: record(),
    role_at_organization: enumeration(["", ...rolesAtOrganization], {
      description: "Empty when it is not set.",
    }),
  }),
);

export function userBody(user: User): Static<typeof UserBody> {
  return {
    id: user.id,
    uuid: user.uuid,
    distinct_id: user.distinctId,
    first_name: user.firstName,
    last_name: user.lastName,
    email: user.email,
    is_email_verified: user.isEmailVerified ?? false,
    hedgehog_config: user.hedgehogConfig ?? {},
    role_at_organization: (user.roleAtOrganization ?? "") as Static<typeof UserBody>["role_at_organization"],
  };
}

export const exampleUser = {
  id: 1,
  uuid: "0193d1a2-7b1c-7c3e-9f60-1f4f5d2b8a11",
  distinct_id: "0193d1a2-7b1c-7c3e-9f60-2a6b7c8d9e0f",
  first_name: "Ann",
  last_name: "Larsson",
  email: "ann@example.com",
  is_email_verified: true,
  hedgehog_config: {},
  role_at_organization: "engineering",
} as const;

/** Members of an organization in responses (contract: management-api 2.6). */

export const levels = [1, 8, 15] as const;

export const MemberBody = named(
  "OrganizationMember",
  object({
    id: uuid(),
    user: UserBody,
    level: intEnum(levels, { description: "1 member, 8 admin, 15 owner." }),
    joined_at: dateTime(),
    updated_at: dateTime(),
    is_active: bool({ description: "Keys and sessions of an inactive user are rejected." }),
    has_password: bool({ description: "Whether the user has signed in to the console with a link." }),
  }),
);

export const exampleMember = {
  id: "0193d1a2-7b1c-7c3e-9f60-7a8b9c0d1e2f",
  user: exampleUser,
  level: 15,
  joined_at: "2026-03-01T12:00:00.000000Z",
  updated_at: "2026-03-01T12:00:00.000000Z",
  is_active: true,
  has_password: true,
};

export function memberBody(db: Reading, member: Member): Static<typeof MemberBody> {
  return {
    id: member.id,
    user: userBody(member.user),
    level: member.level as (typeof levels)[number],
    joined_at: toApiTime(member.joinedAt),
    updated_at: toApiTime(member.updatedAt),
    is_active: member.user.isActive,
    has_password: hasPassword(db, member.user.id),
  };
}

export const organizationTag = "Organizations";
const levelDescription = { description: "1 member, 8 admin, 15 owner." };

export const OrganizationBody = named(
  "Organization",
  object({
    id: uuid(),
    name: string(),
    slug: string(),
    created_at: dateTime(),
    membership_level: intEnum([1, 8, 15], levelDescription),
    feature_flags_access_level: intEnum([21, 37], {
      description: "Default flag access of members: 21 view (roles can extend it), 37 edit (default).",
    }),
  }),
);

export const exampleOrganization = {
  id: "0193d1a2-7b1c-7c3e-9f60-4d5e6f7a8b9c",
  name: "Acme",
  slug: "acme",
  created_at: "2026-03-01T12:00:00.000000Z",
  membership_level: 15,
  feature_flags_access_level: 37,
};

/** An organization in responses to a user with this level. */
export function organizationBody(organization: Organization, level: number): Static<typeof OrganizationBody> {
  return {
    id: organization.id,
    name: organization.name,
    slug: organization.slug,
    created_at: toApiTime(organization.createdAt),
    membership_level: level as 1 | 8 | 15,
    feature_flags_access_level: organization.featureFlagsAccessLevel as 21 | 37,
  };
}
