/** Members of an organization in responses (contract: management-api 2.6). */

import type { Static } from "@sinclair/typebox";
import { bool, dateTime, intEnum, named, object, uuid } from "../../http/schemas.ts";
import { toApiTime } from "../../lib/api-time.ts";
import type { Reading } from "../db.ts";
import { hasPassword } from "../sessions/members.ts";
import type { Member } from "../users.ts";
import { exampleUser, UserBody, userBody } from "./user-schemas.ts";

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
