/** Organizations in responses. */

import type { Static } from "@sinclair/typebox";
import { dateTime, intEnum, named, object, string, uuid } from "../../http/schemas.ts";
import { toApiTime } from "../../lib/api-time.ts";
import type { Organization } from "../organizations.ts";

export const organizationTag = "Organizations";
const levelWords = { description: "1 member, 8 admin, 15 owner." };

export const OrganizationBody = named(
  "Organization",
  object({
    id: uuid(),
    name: string(),
    slug: string(),
    created_at: dateTime(),
    membership_level: intEnum([1, 8, 15], levelWords),
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
