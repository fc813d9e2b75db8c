/** Organisations (contract: README, "Who may edit"; management-api 2.6). */

import type { Static } from "@sinclair/typebox";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import type { Route } from "../../http/route.ts";
import {
  instant,
  intChoice,
  named,
  object,
  onePage,
  optional,
  PageQuery,
  pageOf,
  text,
  uuid,
} from "../../http/shapes.ts";
import { toWire } from "../../lib/wire-time.ts";
import type { Metadata } from "../metadata.ts";
import { type Organization, organizationsOf, updateOrganization } from "../organizations.ts";
import { levelOf } from "../users.ts";
import { checkAdmin, checkMayGrantFlags } from "./roles.ts";
import { organizationRoute, userRoute } from "./routes.ts";

const tagName = "Organisations";
const levelWords = { description: "1 member, 8 admin, 15 owner." };

export const OrganizationBody = named(
  "Organization",
  object({
    id: uuid(),
    name: text(),
    slug: text(),
    created_at: instant(),
    membership_level: intChoice([1, 8, 15], levelWords),
    feature_flags_access_level: intChoice([21, 37], {
      description:
        "What members may do with flags: 21 view them, unless a role says otherwise; 37 edit them (default).",
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

const oneAnswer = {
  200: { description: "The organisation.", schema: OrganizationBody, example: exampleOrganization },
};

export function organizationRoutes(deps: { metadata: Metadata }): Route[] {
  const { metadata } = deps;
  const levelFor = (organization: Organization, userId: number) =>
    levelOf(metadata.db, organization.id, userId);
  return [
    userRoute("GET", "/api/organizations", ["organization:read"], {
      summary: "List the organizations of the current user",
      tag: tagName,
      query: PageQuery,
      answers: {
        200: onePage(
          "One page of organisations.",
          pageOf("OrganizationPage", OrganizationBody),
          exampleOrganization,
        ),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const limits = call.limits.organizationIds;
        const own = organizationsOf(metadata.db, call.user.id).filter(
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
    organizationRoute("GET", "", "organization:read", {
      summary: "Get an organization",
      description: "`@current` in place of the id means the one you work in.",
      tag: tagName,
      answers: oneAnswer,
      handle: ({ organization, user }) => organizationBody(organization, levelFor(organization, user.id)),
    }),
    organizationRoute("PATCH", "", "organization:write", {
      summary: "Update an organization",
      description:
        "Admins and owners only. To raise the access to flags, a key needs `feature_flag:write` too.",
      tag: tagName,
      body: object({
        name: optional(text({ max: 64 })),
        feature_flags_access_level: optional(intChoice([21, 37])),
      }),
      isPartial: true,
      bodyExample: { feature_flags_access_level: 21 },
      answers: oneAnswer,
      handle: (call) => {
        checkAdmin(deps, call);
        const { name, feature_flags_access_level: featureFlagsAccessLevel } = call.body;
        const before = call.organization.featureFlagsAccessLevel;
        if ((featureFlagsAccessLevel ?? before) > before) checkMayGrantFlags(call.limits);
        const after = updateOrganization(
          metadata,
          call.organization.id,
          { name, featureFlagsAccessLevel },
          call.user.id,
          call.now,
        );
        return organizationBody(after, levelFor(after, call.user.id));
      },
    }),
  ];
}

/** The wire form of an organisation for somebody with this level in it. */
export function organizationBody(organization: Organization, level: number): Static<typeof OrganizationBody> {
  return {
    id: organization.id,
    name: organization.name,
    slug: organization.slug,
    created_at: toWire(organization.createdAt),
    membership_level: level as 1 | 8 | 15,
    feature_flags_access_level: organization.featureFlagsAccessLevel as 21 | 37,
  };
}
