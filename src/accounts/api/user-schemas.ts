/** A user embedded in other objects (requirement: User). */

import type { Static } from "@sinclair/typebox";
import { bool, enumeration, int, named, object, record, string, uuid } from "../../http/schemas.ts";
import type { User } from "../users.ts";

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
