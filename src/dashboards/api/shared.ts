/**
 * What a share link shows: one dashboard or insight with results, for a token instead of a session. No queries, no people, no SQL:
 * a statement may select persons.
 */

import type { Static } from "@sinclair/typebox";
import { isPasswordOf } from "../../accounts/sessions/passwords.ts";
import { SignInLimiter } from "../../accounts/sessions/sign-in-rate-limit.ts";
import { toStatement } from "../../events/query/hogql.ts";
import { breakdownNames } from "../../events/web/stats-table.ts";
import { authenticationFailed, HttpError, notAuthenticated } from "../../http/http-error.ts";
import { RateLimiter, type RateLimits } from "../../http/rate-limit.ts";
import { publicRoute, type Route } from "../../http/route.ts";
import {
  anyJson,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  record,
  string,
} from "../../http/schemas.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { toApiTimeOrNull } from "../../lib/time.ts";
import { type OpenedLink, openShareLink } from "../share-links.ts";
import { getTiles, type Insight } from "../store.ts";
import { compute, type InsightDeps, withDates } from "./compute-insight.ts";

export const shareTag = "Share links";
const passwordHeader = "x-flagkeep-share-password";

/** Requests of one link, which run queries. */
const limits: RateLimits = {
  management: [{ name: "share link", requestsMax: 120, windowMs: 60_000 }],
  local_evaluation: [],
  remote_config: [],
};

const SharedInsight = object({
  name: string({ blank: true }),
  description: string({ blank: true }),
  kind: string({ description: "Kind of the query, such as `TrendsQuery`.", blank: true }),
  display: nullable(string(), { description: "Form of the chart, such as `ActionsBar`." }),
  result: anyJson({ description: "As in an insight; null if it cannot be computed." }),
  last_refresh: nullable(dateTime()),
  problem: nullable(string(), { description: "Reason if `result` is null." }),
});
const SharedBody = named(
  "SharedItem",
  object({
    kind: enumeration(["dashboard", "insight", "overview"]),
    name: string({ blank: true }),
    description: string({ blank: true }),
    project: string({ description: "Name of the project." }),
    timezone: string(),
    tiles: list(
      object({
        id: int(),
        layouts: record(),
        color: nullable(string({ blank: true })),
        text: nullable(string({ description: "Markdown.", blank: true })),
        insight: nullable(SharedInsight),
      }),
      {
        description:
          "Of an insight: one. Of Overview: one per query of web analytics, named by its `breakdownBy` if it is a list.",
      },
    ),
  }),
);

const example: Static<typeof SharedBody> = {
  kind: "dashboard",
  name: "Orders",
  description: "",
  project: "Web shop",
  timezone: "UTC",
  tiles: [{ id: 7, layouts: {}, color: null, text: "Updated daily", insight: null }],
};

const passwordRequired = () =>
  new HttpError(401, "authentication_error", "password_required", "This link requires a password.");

/** @param nodes number of nodes that share the rate limits. */
export function sharedRoutes(deps: InsightDeps & { nodeCount?: () => number }): Route[] {
  const nodes = () => deps.nodeCount?.() ?? 1;
  const attempts = new SignInLimiter(nodes);
  const requests = new RateLimiter(limits, nodes);
  return [
    publicRoute("GET", "/api/shared", {
      summary: "Get what a share link shows",
      description:
        "With the token of the link in the Authorization header (`Bearer phl_…`) and its password, if it has one, in `X-Flagkeep-Share-Password`. At most 120 requests per link and minute.",
      tag: shareTag,
      answers: {
        200: { description: "The dashboard, insight or Overview.", schema: SharedBody, example },
        401: {
          description:
            "The link is invalid, was revoked or has expired, or its password is missing or wrong.",
        },
        429: { description: "Too many requests of the link, or too many invalid ones of the address." },
        503: { description: "The analytics engine is not available." },
      },
      handle: async ({ request, address, now }) => {
        const [, token] = /^Bearer\s+(phl_\w+)\s*$/i.exec(request.headers.get("authorization") ?? "") ?? [];
        if (token === undefined) throw notAuthenticated();
        const attempt = attempts.start(address, token, now.getTime());
        const link = openShareLink(deps.metadata, token, now);
        if (link === undefined) {
          attempt.failed(undefined);
          throw authenticationFailed("This link is invalid, was revoked or has expired.");
        }
        const password = request.headers.get(passwordHeader);
        // Neither a failure nor a success, which would forget earlier failures.
        if (link.passwordHash !== null && password === null) throw passwordRequired();
        if (link.passwordHash !== null && !(await isPasswordOf(link.passwordHash, decoded(password!)))) {
          attempt.failed(undefined);
          throw authenticationFailed("The password is wrong.");
        }
        attempt.succeeded(0);
        requests.count(`link ${link.id}`, "management", now.getTime());
        return await sharedBody(deps, link, now);
      },
    }),
  ];
}

/** Headers contain ASCII only, so that clients encode passwords as in URLs. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function sharedBody(
  deps: InsightDeps,
  { project, item }: OpenedLink,
  now: Date,
): Promise<Static<typeof SharedBody>> {
  const shownInsight = async (insight: StoredQuery, filters: JsonObject) =>
    await insightBody(deps, {
      project,
      now,
      insight: { ...insight, query: withDates(insight.query, filters) },
    });
  const owner = { project: project.name, timezone: project.timezone };
  if (item.kind === "insight") {
    const insight = await shownInsight(item.insight, {});
    const { name, description } = item.insight;
    const tile = { id: 0, layouts: {}, color: null, text: null, insight };
    return { kind: "insight", name, description, ...owner, tiles: [tile] };
  }
  if (item.kind === "overview") {
    const tiles = overviewQueries(item.overview).map(async (query, id) => {
      const name = typeof query.breakdownBy === "string" ? query.breakdownBy : "";
      const insight = await shownInsight({ name, description: "", query }, {});
      return { id, layouts: {}, color: null, text: null, insight };
    });
    return { kind: "overview", name: "", description: "", ...owner, tiles: await Promise.all(tiles) };
  }
  const { id, name, description, filters } = item.dashboard;
  const tiles = getTiles(deps.metadata.db, id).map(async ({ id, layouts, color, text, insight }) => ({
    id,
    layouts,
    color,
    text,
    insight: insight === undefined ? null : await shownInsight(insight, filters),
  }));
  return { kind: "dashboard", name, description, ...owner, tiles: await Promise.all(tiles) };
}

type StoredQuery = Pick<Insight, "name" | "description" | "query">;

const sharedRowsMax = 10;
const hourlyRanges = ["0d", "dStart", "-24h"];

/** The queries that Overview shows, without goals and users who are online. */
function overviewQueries(common: JsonObject): JsonObject[] {
  const dateRange = isJsonObject(common.dateRange) ? common.dateRange : {};
  const interval = hourlyRanges.includes(String(dateRange.date_from))
    ? "hour"
    : dateRange.date_from === "-12m"
      ? "week"
      : "day";
  const { conversionGoal: _, ...ofTrend } = common;
  return [
    { kind: "WebOverviewQuery", ...ofTrend },
    { kind: "WebTrendsQuery", interval, ...ofTrend },
    ...breakdownNames
      .filter((name) => sharedLists.includes(name))
      .map((breakdownBy) => ({
        kind: "WebStatsTableQuery",
        breakdownBy,
        includeBounceRate: true,
        limit: sharedRowsMax,
        ...common,
      })),
  ];
}

const sharedLists: readonly string[] = [
  "InitialChannelType",
  "InitialReferringDomain",
  "InitialUTMCampaign",
  "Page",
  "InitialPage",
  "ExitPage",
  "Country",
  "Language",
  "Browser",
  "OS",
  "DeviceType",
  "Viewport",
];

async function insightBody(
  deps: InsightDeps,
  { project, now, insight }: { project: OpenedLink["project"]; now: Date; insight: StoredQuery },
): Promise<Static<typeof SharedInsight>> {
  const { name, description, query } = insight;
  const source = isJsonObject(query.source) ? query.source : query;
  const display = isJsonObject(source.trendsFilter) ? source.trendsFilter.display : null;
  const shown = {
    name,
    description,
    kind: typeof source.kind === "string" ? source.kind : "",
    display: typeof display === "string" ? display : null,
  };
  if (toStatement(query) !== undefined) return { ...shown, ...none, problem: "Share links do not show SQL." };
  const options = { project, now, refresh: null, limits: noScopes };
  const computed = await compute(deps, options, insight).catch(() => undefined);
  if (computed === undefined) return { ...shown, ...none };
  if ("problem" in computed) return { ...shown, ...none, problem: computed.problem };
  return { ...shown, result: computed.result, last_refresh: toApiTimeOrNull(computed.at), problem: null };
}

const none = { result: null, last_refresh: null, problem: null };
const noScopes = { scopes: [], projectIds: [], organizationIds: [] };
