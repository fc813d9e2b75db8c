/** Organizations (contract: README, "Who may edit"; management-api 2.6). */

import { type Static, Type } from "@sinclair/typebox";
import {
  exampleOrganization as example,
  OrganizationBody,
  organizationBody,
  organizationTag as tag,
} from "../accounts/api/user-schemas.ts";
import type { Metadata } from "../accounts/metadata.ts";
import {
  flagsAccess,
  getFlagsAccess,
  getOrganizations,
  listOrganizations,
  type Organization,
  updateOrganization,
} from "../accounts/organizations.ts";
import { getLevel, membershipLevels } from "../accounts/users.ts";
import { intEnum, object, optional, pageOf, string } from "../http/schemas.ts";
import {
  type Context as AnyContext,
  getAuthor,
  listOperation,
  type OrganizationContext,
  operation,
} from "./operation.ts";
import { assertAdmin, assertMayGrantFlags, flagsAccessOption } from "./permissions.ts";

type UserContext = AnyContext<{ metadata: Metadata }>;
type Context = OrganizationContext<{ metadata: Metadata }>;
type OrganizationRecord = Static<typeof OrganizationBody>;

/** The operator of the data directory has the rights of an owner. */
function body({ stores, actor }: Context, organization: Organization): OrganizationRecord {
  const level =
    actor.kind === "user"
      ? getLevel(stores.metadata.db, organization.id, actor.user.id)
      : membershipLevels.owner;
  return organizationBody(organization, level);
}

/** The organizations of a user that the key is not restricted from, or all, with the operator's level. */
function usableOrganizations({ stores: { metadata }, actor }: UserContext): OrganizationRecord[] {
  if (actor.kind === "operator")
    return listOrganizations(metadata.db).map((organization) =>
      organizationBody(organization, membershipLevels.owner),
    );
  const { organizationIds } = actor.limits;
  return getOrganizations(metadata.db, actor.user.id)
    .filter(({ id }) => organizationIds.length === 0 || organizationIds.includes(id))
    .map((organization) => organizationBody(organization, organization.level));
}

const listAllOrganizations = listOperation({
  id: "organizations.list",
  on: "user",
  scope: "organization:read",
  tag,
  summary: "List the organizations of the current user",
  http: { method: "GET", path: "/api/organizations", answer: "One page of organizations." },
  input: object({}),
  output: pageOf("OrganizationPage", OrganizationBody),
  example,
  run: (context: UserContext, { limit, offset }) => {
    const all = usableOrganizations(context);
    return { count: all.length, results: all.slice(offset, offset + limit) };
  },
});

const getOrganization = operation({
  id: "organizations.get",
  on: "organization",
  scope: "organization:read",
  tag,
  summary: "Get an organization",
  description: "`@current` instead of the id selects your current one.",
  http: { method: "GET", path: "", answer: "The organization." },
  input: object({}),
  output: OrganizationBody,
  example,
  run: (context: Context) => body(context, context.organization),
});

const updateOneOrganization = operation({
  id: "organizations.update",
  on: "organization",
  scope: "organization:write",
  tag,
  summary: "Update an organization",
  description: "Admins and owners only. Raising flag access also requires the scope `feature_flag:write`.",
  http: { method: "PATCH", path: "", answer: "The organization." },
  cli: {
    name: "organization set",
    description: "Update organization settings.",
    examples: ["organization set --flags-access view"],
    options: {
      name: { flags: "--name <name>", description: "display name" },
      feature_flags_access_level: {
        ...flagsAccessOption,
        description: "default access of members to flags: edit or view",
      },
    },
    formerJson: {
      properties: { flags_access: Type.Union(flagsAccess.map((level) => Type.Literal(level))) },
      build: (record: OrganizationRecord) => ({
        flags_access: getFlagsAccess(record.feature_flags_access_level),
      }),
    },
    done: ({ name, feature_flags_access_level: level }: OrganizationRecord) =>
      `Organization ${name} updated; members may ${getFlagsAccess(level)} flags unless a role says otherwise.`,
  },
  input: object({
    name: optional(string({ max: 64 })),
    feature_flags_access_level: optional(intEnum([21, 37])),
  }),
  inputExample: { feature_flags_access_level: 21 },
  output: OrganizationBody,
  example,
  run: (context: Context, { name, feature_flags_access_level: featureFlagsAccessLevel }) => {
    assertAdmin(context);
    const { stores, organization, actor, now } = context;
    const before = organization.featureFlagsAccessLevel;
    if ((featureFlagsAccessLevel ?? before) > before) assertMayGrantFlags(actor);
    const change = { name, featureFlagsAccessLevel };
    return body(context, updateOrganization(stores.metadata, organization.id, change, getAuthor(actor), now));
  },
});

export const organizationOperations = [listAllOrganizations, getOrganization, updateOneOrganization];
