/** Share links of dashboards, insights and Overview (contract: management-api 6.9). */

import { type Static, Type } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../accounts/api/user-schemas.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { hashPassword } from "../accounts/sessions/passwords.ts";
import { userFinder } from "../accounts/users.ts";
import { shareTag as tag } from "../dashboards/api/shared.ts";
import {
  createShareLink,
  listShareLinks,
  revokeShareLink,
  type ShareLink,
} from "../dashboards/share-links.ts";
import { readBoolean, readIdFilter } from "../http/params.ts";
import {
  bool,
  dateTime,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { toApiTime, toApiTimeOrNull } from "../lib/time.ts";
import { jsonOptions } from "./experiment-list.ts";
import {
  type CommandArgument,
  getAuthor,
  listOperation,
  operation,
  type ProjectContext,
  slicePage,
} from "./operation.ts";

type Context = ProjectContext<{ metadata: Metadata }>;

const passwordLengthMin = 8;
const filtersMax = 20;

const OverviewInput = object(
  {
    dateRange: optional(record()),
    compareFilter: optional(record()),
    properties: optional(list(record(), { maxItems: filtersMax })),
    conversionGoal: optional(record()),
  },
  { description: "Shows Overview with these query members; later changes to it do not affect the link." },
);
const members = {
  id: int(),
  name: string({ blank: true }),
  dashboard_id: nullable(int()),
  insight_id: nullable(int()),
  overview: nullable(record(), { description: "Query members, if the link shows Overview." }),
  has_password: bool(),
  expires_at: nullable(dateTime()),
  created_by: nullable(UserBody),
  created_at: dateTime(),
};
const LinkBody = named("ShareLink", object(members));
const NewLinkBody = named(
  "NewShareLink",
  object({
    ...members,
    token: string({ description: "Only in this response." }),
    url: string({ description: "The link, with the token after `#`; only in this response." }),
  }),
);
type LinkRecord = Static<typeof LinkBody>;

/** Only the documented members: a link runs no other query. */
function pickOverview(sent: Static<typeof OverviewInput>): JsonObject {
  const known = Object.keys(OverviewInput.properties);
  return Object.fromEntries(Object.entries(sent).filter(([name]) => known.includes(name))) as JsonObject;
}

const example = {
  id: 1,
  name: "Wall",
  dashboard_id: 31,
  insight_id: null,
  overview: null,
  has_password: false,
  expires_at: null,
  created_by: exampleUser,
  created_at: "2026-03-04T16:00:01.007000Z",
};
const exampleNew = { ...example, token: "phl_...", url: "https://flags.example.com/console/shared#phl_..." };

function body({ stores: { metadata } }: Context, link: ShareLink): LinkRecord {
  const creator = userFinder(metadata.db)(link.createdById);
  return {
    id: link.id,
    name: link.name,
    dashboard_id: link.dashboardId,
    insight_id: link.insightId,
    overview: link.overview,
    has_password: link.hasPassword,
    expires_at: toApiTimeOrNull(link.expiresAt),
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(link.createdAt),
  };
}

const listAllShareLinks = listOperation({
  id: "share_links.list",
  on: "project",
  scope: "sharing_configuration:read",
  tag,
  summary: "List share links",
  description: "Newest first, without their tokens. Expired links stay listed until they are revoked.",
  http: { method: "GET", path: "/share_links", answer: "One page of share links." },
  cli: {
    name: "share-links list",
    examples: ["share-links list --json"],
    options: {
      dashboard_id: { flags: "--dashboard <id>", description: "only links of this dashboard" },
      insight_id: { flags: "--insight <id>", description: "only links of this insight" },
    },
    table: {
      headings: ["id", "name", "shows", "password", "expires", "created by"],
      row: (link: LinkRecord) => [
        String(link.id),
        link.name,
        link.overview !== null
          ? "overview"
          : link.dashboard_id === null
            ? `insight ${link.insight_id}`
            : `dashboard ${link.dashboard_id}`,
        link.has_password ? "yes" : "no",
        link.expires_at ?? "never",
        link.created_by?.email ?? "",
      ],
    },
  },
  input: object({
    dashboard_id: optional(int({ description: "Only links of this dashboard." })),
    insight_id: optional(int({ description: "Only links of this insight." })),
    overview: optional(bool({ description: "Only links of Overview." })),
  }),
  output: pageOf("ShareLinkPage", LinkBody),
  example,
  readQuery: (query) => ({
    dashboardId: readIdFilter(query, "dashboard_id"),
    insightId: readIdFilter(query, "insight_id"),
    isOfOverview: readBoolean(query, "overview") ?? false,
  }),
  run: (context: Context, { limit, offset, dashboardId, insightId, isOfOverview }) => {
    const subject = isOfOverview
      ? ("overview" as const)
      : dashboardId !== undefined
        ? { dashboardId }
        : insightId !== undefined
          ? { insightId }
          : undefined;
    const all = listShareLinks(context.stores.metadata.db, context.project.id, subject);
    return slicePage(all, { limit, offset }, (link) => body(context, link));
  },
});

const createNewShareLink = operation({
  id: "share_links.create",
  on: "project",
  scope: "sharing_configuration:write",
  tag,
  summary: "Create a share link",
  description:
    "Shows one dashboard or insight, or Overview, read-only and without people and SQL, to everyone who has the link, until it is revoked, expires, or its creator is no longer an active member.",
  http: {
    method: "POST",
    path: "/share_links",
    status: 201,
    answer: "The link.",
    makesCredential: true,
  },
  cli: {
    name: "share-links create",
    description: "Create a link that shows a dashboard, an insight or Overview without signing in.",
    examples: [
      "share-links create --dashboard 3 --expires 2026-12-31T00:00:00Z",
      `share-links create --overview '{"dateRange": {"date_from": "-30d"}}'`,
    ],
    settings: ["host", "port", "public-url"],
    hasCreator: true,
    options: {
      dashboard_id: { flags: "--dashboard <id>", description: "id of the dashboard", parse: Number },
      insight_id: { flags: "--insight <id>", description: "id of the insight", parse: Number },
      ...jsonOptions(["overview"]),
      expires_at: { flags: "--expires <time>", description: "time when the link ends; default: never" },
    },
    done: (link: Static<typeof NewLinkBody>) => `Share link ${link.id}, shown only once:\n${link.url}`,
  },
  input: object({
    dashboard_id: optional(int({ description: "Either this or `insight_id`." })),
    insight_id: optional(int({ description: "Either this or `dashboard_id`." })),
    overview: optional(OverviewInput),
    name: optional(string({ description: "Display name.", blank: true, max: 200 })),
    password: optional(
      nullable(
        string({
          description: `Required to open the link; at least ${passwordLengthMin} characters.`,
          max: 256,
        }),
      ),
    ),
    expires_at: optional(nullable(dateTime({ description: "Null: never." }))),
  }),
  inputExample: { dashboard_id: 31, name: "Wall" },
  output: NewLinkBody,
  example: exampleNew,
  run: async (context: Context, input) => {
    const { stores, project, actor, now, baseUrl } = context;
    const {
      dashboard_id: dashboardId,
      insight_id: insightId,
      overview,
      name = "",
      password,
      expires_at: expiresAt,
    } = input;
    const item =
      overview !== undefined
        ? { overview: pickOverview(overview) }
        : dashboardId !== undefined
          ? { dashboardId }
          : { insightId: insightId! };
    if ([dashboardId, insightId, overview].filter((item) => item !== undefined).length !== 1)
      throw new InvalidFieldError(
        "dashboard_id",
        "invalid_input",
        "Send one of `dashboard_id`, `insight_id` and `overview`.",
      );
    if (password && [...password].length < passwordLengthMin)
      throw new InvalidFieldError("password", "min_length", `Use at least ${passwordLengthMin} characters.`);
    const { link, token } = createShareLink(stores.metadata, {
      projectId: project.id,
      name: name.trim(),
      by: getAuthor(actor),
      now,
      item,
      passwordHash: password ? await hashPassword(password) : null,
      expiresAt: expiresAt ? new Date(expiresAt) : null,
    });
    return { ...body(context, link), token, url: `${await baseUrl()}/console/shared#${token}` };
  },
});

const idArgument: CommandArgument = {
  name: "id",
  description: "share link id",
  member: "id",
  lookup: {
    in: () => listAllShareLinks,
    matches: (link: LinkRecord, argument) => String(link.id) === argument,
    value: (link: LinkRecord) => link.id,
    missing: (argument) => `Share link ${argument} does not exist.`,
  },
};

const revokeOneShareLink = operation({
  id: "share_links.revoke",
  on: "project",
  scope: "sharing_configuration:write",
  tag,
  summary: "Revoke a share link",
  description: "It stops working immediately.",
  http: { method: "DELETE", path: "/share_links/:id" },
  cli: {
    name: "share-links revoke",
    examples: ["share-links revoke 1"],
    arguments: [idArgument],
    result: {
      schema: object({ ...LinkBody.properties, revoked: Type.Literal(true) }),
      build: ({ found }: { found: { id: LinkRecord } }) => ({ ...found.id, revoked: true }),
    },
    done: (link: LinkRecord) => `Share link ${link.id} is revoked.`,
  },
  input: object({ id: int() }),
  run: ({ stores: { metadata }, project, actor, now }: Context, { id }) =>
    revokeShareLink(metadata, { projectId: project.id, id, by: getAuthor(actor), now }),
});

/** In the order of the documentation. */
export const shareLinkOperations = [listAllShareLinks, createNewShareLink, revokeOneShareLink];
