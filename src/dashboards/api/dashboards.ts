/** Dashboards (contract: management-api 6.3). */

import type { Static } from "@sinclair/typebox";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-schemas.ts";
import { type UserFinder, userFinder } from "../../accounts/users.ts";
import { getRefresh } from "../../events/insights/insight-cache.ts";
import { notFound } from "../../http/http-error.ts";
import { pageAnswer, readPage } from "../../http/pagination.ts";
import { readId } from "../../http/path.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  intEnum,
  list,
  longString,
  named,
  nullable,
  object,
  optional,
  pageExample,
  pageOf,
  record,
  string,
  tag,
  withPage,
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/api-time.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { sharedDashboards } from "../share-links.ts";
import {
  createDashboard,
  creationModes,
  type Dashboard,
  findDashboard,
  getDashboards,
  getTiles,
  listDashboards,
  type Tile,
  type TileChange,
  tagsOfInsight,
  updateDashboard,
} from "../store.ts";
import { exampleInsight, InsightBody, insightBody } from "./insight-schemas.ts";
import { compute, type InsightDeps, RefreshQuery } from "./insights.ts";

const tagName = "Dashboards";

const DashboardFields = {
  id: int(),
  name: string({ blank: true }),
  description: string({ blank: true }),
  pinned: bool(),
  created_at: dateTime(),
  created_by: nullable(UserBody),
  last_accessed_at: nullable(dateTime()),
  is_shared: bool(),
  deleted: bool(),
  creation_mode: string(),
  tags: list(string()),
  restriction_level: intEnum([21, 37]),
  effective_restriction_level: intEnum([21, 37]),
  effective_privilege_level: intEnum([21, 37]),
  user_access_level: string(),
  access_control_version: string(),
};

const DashboardBody = named("Dashboard", object(DashboardFields));

const FullDashboardBody = named(
  "DashboardWithTiles",
  object({
    ...DashboardFields,
    filters: record(),
    variables: record(),
    tiles: list(
      object({
        id: int(),
        layouts: record(),
        color: nullable(string({ blank: true })),
        order: int(),
        show_description: nullable(bool()),
        insight: nullable(InsightBody),
        text: nullable(object({ id: int(), body: string({ blank: true, description: "Markdown." }) })),
      }),
    ),
  }),
);

const DashboardInput = object({
  name: optional(string({ blank: true, max: 400 })),
  description: optional(longString()),
  pinned: optional(bool()),
  deleted: optional(bool()),
  tags: optional(list(tag())),
  filters: optional(
    record({ description: "`date_from` and `date_to` override the date range of every insight." }),
  ),
});

const textLengthMax = 4_000;
const DashboardChange = object({
  ...DashboardInput.properties,
  tiles: optional(
    list(
      object({
        id: optional(int({ description: "Omit it to add a tile with `text`." })),
        layouts: optional(record()),
        color: optional(
          nullable(string({ blank: true, max: 50, description: "Empty or null: default color." })),
        ),
        show_description: optional(nullable(bool())),
        text: optional(
          nullable(object({ body: string({ blank: true, max: textLengthMax, description: "Markdown." }) })),
        ),
        deleted: optional(nullable(bool({ description: "Removes the tile; its insight is kept." }))),
      }),
      {
        description: "Tiles in their new order; omitted tiles follow in their current order.",
      },
    ),
  ),
});

const exampleAnswer = {
  id: 31,
  name: "Orders",
  description: "",
  pinned: false,
  created_at: "2026-03-02T08:15:30.120000Z",
  created_by: exampleUser,
  last_accessed_at: null,
  is_shared: false,
  deleted: false,
  creation_mode: "default",
  tags: ["payments"],
  restriction_level: 21,
  effective_restriction_level: 21,
  effective_privilege_level: 37,
  user_access_level: "editor",
  access_control_version: "v2",
};
const exampleFull = {
  ...exampleAnswer,
  filters: { date_from: "-30d" },
  variables: {},
  tiles: [
    {
      ...{ id: 7, layouts: {}, color: "blue", order: 0, show_description: null },
      ...{ insight: exampleInsight, text: null },
    },
  ],
};
const oneAnswer = { 200: { description: "The dashboard.", schema: FullDashboardBody, example: exampleFull } };

export function dashboardRoutes(deps: InsightDeps): Route[] {
  const { metadata } = deps;
  return [
    projectRoute("GET", "/dashboards", "dashboard:read", {
      summary: "List dashboards",
      description: "Pinned ones first, then the newest.",
      tag: tagName,
      query: withPage(
        object({
          search: optional(string({ description: "Part of the name." })),
          creation_mode: optional(
            enumeration(creationModes, {
              description: "`default`: created by users; `template`: usage dashboards created with flags.",
            }),
          ),
          exclude_generated: optional(
            enumeration(["true", "false"], { description: "`true`: the same as `creation_mode=default`." }),
          ),
        }),
      ),
      answers: {
        200: pageExample("One page of dashboards.", pageOf("DashboardPage", DashboardBody), exampleAnswer),
      },
      handle: (call) => {
        const page = readPage(call.query);
        const creationMode =
          call.query.get("exclude_generated") === "true"
            ? "default"
            : creationModes.find((mode) => mode === call.query.get("creation_mode"));
        const filter = {
          search: call.query.get("search") ?? "",
          ...(creationMode ? { creationMode } : {}),
        };
        const { dashboards, count } = listDashboards(metadata.db, call.project.id, filter, page);
        const users = userFinder(metadata.db);
        const shared = sharedDashboards(metadata.db, call.project.id, call.now);
        const shown = dashboards.map((dashboard) => dashboardBody(dashboard, users, shared));
        return pageAnswer(call.url, page, count, shown);
      },
    }),
    projectRoute("POST", "/dashboards", "dashboard:write", {
      summary: "Create a dashboard",
      description: "Add insights by creating them with this dashboard.",
      tag: tagName,
      body: object({
        ...DashboardInput.properties,
        use_dashboard: optional(
          nullable(
            int({
              description:
                "ID of the dashboard whose description, filters, tags and tiles are copied. Both show the same insights.",
            }),
          ),
        ),
      }),
      bodyExample: { name: "Orders", tags: ["payments"] },
      answers: {
        201: { description: "The new dashboard.", schema: FullDashboardBody, example: exampleFull },
      },
      handle: async (call) => {
        const { use_dashboard: copiedFrom, ...fields } = call.body;
        const input = {
          ...{ projectId: call.project.id, by: call.user.id, fields },
          copiedFrom: copiedFrom ?? undefined,
        };
        return new RouteResponse(
          201,
          await withTiles(deps, call, createDashboard(metadata, input, call.now)),
        );
      },
    }),
    projectRoute("GET", "/dashboards/:id", "dashboard:read", {
      summary: "Get a dashboard with its tiles",
      description: "Includes the result of each insight, or null if it cannot be computed.",
      tag: tagName,
      query: RefreshQuery,
      answers: oneAnswer,
      handle: (call) => {
        getRefresh(call.query.get("refresh"));
        const dashboard = findDashboard(metadata.db, call.project.id, readId(call.params, "id"));
        if (!dashboard) throw notFound();
        return withTiles(deps, call, dashboard);
      },
    }),
    projectRoute("PATCH", "/dashboards/:id", "dashboard:write", {
      summary: "Update or delete a dashboard",
      description: "`tiles` reorders, colors and deletes tiles, and edits text tiles.",
      tag: tagName,
      body: DashboardChange,
      isPartial: true,
      bodyExample: { pinned: true },
      answers: oneAnswer,
      handle: (call) => {
        const of = { projectId: call.project.id, id: readId(call.params, "id") };
        const { tiles, ...fields } = call.body;
        return withTiles(deps, call, updateDashboard(metadata, of, fields, tiles?.map(tileChange)));
      },
    }),
  ];
}

/** A null or absent member means unchanged, except where null clears. */
function tileChange(sent: NonNullable<Static<typeof DashboardChange>["tiles"]>[number]): TileChange {
  const { id, layouts, color, show_description: showDescription, text: sentText, deleted } = sent;
  return {
    ...(id === undefined ? {} : { id }),
    ...(layouts === undefined ? {} : { layouts }),
    ...(color === undefined ? {} : { color }),
    ...(showDescription === undefined ? {} : { showDescription }),
    ...(sentText ? { text: sentText.body } : {}),
    ...(deleted ? { deleted } : {}),
  };
}

async function withTiles(
  deps: InsightDeps,
  call: ProjectCall<unknown>,
  dashboard: Dashboard,
): Promise<Static<typeof FullDashboardBody>> {
  const users = userFinder(deps.metadata.db);
  const tiles = getTiles(deps.metadata.db, dashboard.id);
  const shared = sharedDashboards(deps.metadata.db, dashboard.projectId, call.now);
  return {
    ...dashboardBody(dashboard, users, shared),
    filters: dashboard.filters,
    variables: dashboard.variables,
    tiles: await Promise.all(tiles.map((tile) => tileBody(deps, call, { tile, dashboard, users }))),
  };
}

async function tileBody(
  deps: InsightDeps,
  call: ProjectCall<unknown>,
  { tile, dashboard, users }: { tile: Tile; dashboard: Dashboard; users: UserFinder },
) {
  const { insight } = tile;
  // A failed insight must not fail the whole dashboard.
  const computed =
    insight &&
    (await compute(deps, call, {
      ...insight,
      query: withDates(insight.query, dashboard.filters),
    }).catch(() => undefined));
  return {
    id: tile.id,
    layouts: tile.layouts,
    color: tile.color,
    order: tile.position,
    insight: insight
      ? insightBody(insight, {
          creator: users(insight.createdById),
          dashboards: getDashboards(deps.metadata.db, insight.id),
          tags: tagsOfInsight(deps.metadata.db, insight.id),
          computed,
        })
      : null,
    show_description: tile.showDescription,
    text: tile.text === null ? null : { id: tile.id, body: tile.text },
  };
}

/** Applies the dashboard's dates to a query, or to the node that wraps one; no change if it has none. */
export function withDates(query: JsonObject, filters: JsonObject): JsonObject {
  const { date_from = null, date_to = null } = filters;
  if ((date_from === null && date_to === null) || Object.keys(query).length === 0) return query;
  if (isJsonObject(query.source)) return { ...query, source: withDates(query.source, filters) };
  return { ...query, dateRange: { date_from, date_to } };
}

function dashboardBody(
  dashboard: Dashboard,
  users: UserFinder,
  shared: ReadonlySet<number>,
): Static<typeof DashboardBody> {
  const creator = users(dashboard.createdById);
  return {
    id: dashboard.id,
    name: dashboard.name,
    description: dashboard.description,
    pinned: dashboard.pinned,
    created_at: toApiTime(dashboard.createdAt),
    created_by: creator ? userBody(creator) : null,
    last_accessed_at: toApiTimeOrNull(dashboard.lastAccessedAt),
    is_shared: shared.has(dashboard.id),
    deleted: dashboard.deleted,
    creation_mode: dashboard.creationMode,
    tags: dashboard.tags,
    restriction_level: dashboard.restrictionLevel as 21 | 37,
    effective_restriction_level: dashboard.restrictionLevel as 21 | 37,
    effective_privilege_level: 37,
    user_access_level: "editor",
    access_control_version: "v2",
  };
}
