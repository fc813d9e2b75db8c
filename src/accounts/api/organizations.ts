/** Organizations (contract: README, "Who may edit"; management-api 2.6). */

import type { Static } from "@sinclair/typebox";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import type { Route } from "../../http/route.ts";
import {
  dateTime,
  intEnum,
  named,
  object,
  PageQuery,
  pageExample,
  pageOf,
  string,
  uuid,
} from "../../http/schemas.ts";
import { toApiTime } from "../../lib/api-time.ts";
import type { Metadata } from "../metadata.ts";
import { getOrganizations, type Organization } from "../organizations.ts";
import { userRoute } from "./routes.ts";

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

export function organizationRoutes({ metadata }: { metadata: Metadata }): Route[] {
  return [
    userRoute("GET", "/api/organizations", ["organization:read"], {
      summary: "List the organizations of the current user",
      tag: organizationTag,
      query: PageQuery,
      answers: {
        200: pageExample(
          "One page of organizations.",
          pageOf("OrganizationPage", OrganizationBody),
          exampleOrganization,
        ),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const limits = call.limits.organizationIds;
        const own = getOrganizations(metadata.db, call.user.id).filter(
          ({ id }) => limits.length === 0 || limits.includes(id),
        );
        const shown = own.slice(page.offset, page.offset + page.limit);
        return pageAnswer(
          call.url,
          page,
          own.length,
          shown.map((organization) => organizationBody(organization, organization.level)),
        );
      },
    }),
  ];
}

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
