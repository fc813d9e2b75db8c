/** Dashboards (contract: management-api 6.3). */

import type { Static } from "@sinclair/typebox";
import { getCreatorId } from "../accounts/activity.ts";
import { type UserFinder, userFinder } from "../accounts/users.ts";
import {
  type ComputeOptions,
  compute,
  type InsightDeps,
  withDates,
} from "../dashboards/api/compute-insight.ts";
import {
  DashboardBody,
  DashboardChange,
  DashboardInput,
  dashboardBody,
  exampleFullDashboard as example,
  exampleDashboard,
  FullDashboardBody,
  tileChange,
} from "../dashboards/api/dashboard-schemas.ts";
import { insightBody } from "../dashboards/api/insight-schemas.ts";
import { sharedDashboards } from "../dashboards/share-links.ts";
import {
  createDashboard,
  creationModes,
  type Dashboard,
  findDashboard,
  getDashboards,
  getTiles,
  listDashboards,
  type Tile,
  tagsOfInsight,
  updateDashboard,
} from "../dashboards/store.ts";
import { getRefresh } from "../events/insights/insight-cache.ts";
import { notFound } from "../http/http-error.ts";
import { readBoolean, readChoice } from "../http/params.ts";
import { enumeration, int, nullable, object, optional, pageOf, string } from "../http/schemas.ts";
import { RefreshQuery, readRefresh } from "./insights.ts";
import {
  type CommandArgument,
  getAuthor,
  getLimits,
  listOperation,
  type Operation,
  operation,
  type ProjectContext,
} from "./operation.ts";

type Context = ProjectContext<InsightDeps>;

const tag = "Dashboards";

const listAllDashboards = listOperation({
  id: "dashboards.list",
  on: "project",
  scope: "dashboard:read",
  tag,
  summary: "List dashboards",
  description: "Pinned ones first, then the newest.",
  http: { method: "GET", path: "/dashboards", answer: "One page of dashboards." },
  cli: {
    name: "dashboards list",
    examples: ["dashboards list --creation-mode default"],
    table: {
      headings: ["id", "name", "pinned", "tags"],
      row: (dashboard: Static<typeof DashboardBody>) => [
        String(dashboard.id),
        dashboard.name,
        dashboard.pinned ? "yes" : "no",
        dashboard.tags.join(","),
      ],
    },
  },
  mcp: { name: "list_dashboards" },
  input: object({
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
  output: pageOf("DashboardPage", DashboardBody),
  example: exampleDashboard,
  readQuery: (query) => {
    const isCreated = readBoolean(query, "exclude_generated") === true;
    const chosen = readChoice(query, "creation_mode", creationModes);
    const creationMode = isCreated ? "default" : chosen;
    return { search: query.get("search") ?? "", ...(creationMode ? { creationMode } : {}) };
  },
  run: ({ stores: { metadata }, project, now }: Context, { limit, offset, ...filter }) => {
    const { dashboards, count } = listDashboards(metadata.db, project.id, filter, { limit, offset });
    const users = userFinder(metadata.db);
    const shared = sharedDashboards(metadata.db, project.id, now);
    return { count, results: dashboards.map((dashboard) => dashboardBody(dashboard, users, shared)) };
  },
});

const createNewDashboard = operation({
  id: "dashboards.create",
  on: "project",
  scope: "dashboard:write",
  tag,
  summary: "Create a dashboard",
  description: "Add insights by creating them with this dashboard.",
  http: { method: "POST", path: "/dashboards", status: 201, answer: "The new dashboard." },
  input: object({
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
  inputExample: { name: "Orders", tags: ["payments"] },
  output: FullDashboardBody,
  example,
  readQuery: readRefresh,
  run: async (context: Context, { use_dashboard: copiedFrom, refresh, ...fields }) => {
    const { stores, project, actor, now } = context;
    const by = getCreatorId(getAuthor(actor));
    const input = { projectId: project.id, by, fields, copiedFrom: copiedFrom ?? undefined };
    return await withTiles(context, createDashboard(stores.metadata, input, now), refresh);
  },
});

const getOneDashboard = operation({
  id: "dashboards.get",
  on: "project",
  scope: "dashboard:read",
  tag,
  summary: "Get a dashboard with its tiles",
  description: "Includes the result of each insight, or null if it cannot be computed.",
  http: { method: "GET", path: "/dashboards/:id", answer: "The dashboard." },
  input: object({ id: int(), ...RefreshQuery.properties }),
  output: FullDashboardBody,
  example,
  readQuery: (query) => {
    getRefresh(query.get("refresh"));
    return readRefresh(query);
  },
  run: async (context: Context, { id, refresh }) => {
    const dashboard = findDashboard(context.stores.metadata.db, context.project.id, id);
    if (!dashboard) throw notFound();
    return await withTiles(context, dashboard, refresh);
  },
});

const updateOneDashboard = operation({
  id: "dashboards.update",
  on: "project",
  scope: "dashboard:write",
  tag,
  summary: "Update or delete a dashboard",
  description: "`tiles` reorders, colors and deletes tiles, and edits text tiles.",
  http: { method: "PATCH", path: "/dashboards/:id", answer: "The dashboard." },
  input: object({ id: int(), ...DashboardChange.properties }),
  inputExample: { pinned: true },
  output: FullDashboardBody,
  example,
  readQuery: readRefresh,
  run: async (context: Context, { id, tiles, refresh, ...fields }) => {
    const target = { projectId: context.project.id, id };
    const updated = updateDashboard(context.stores.metadata, target, fields, tiles?.map(tileChange));
    return await withTiles(context, updated, refresh);
  },
});

async function withTiles(
  { stores, project, actor, now }: Context,
  dashboard: Dashboard,
  refresh: string | null,
): Promise<Static<typeof FullDashboardBody>> {
  const { db } = stores.metadata;
  const users = userFinder(db);
  const shared = sharedDashboards(db, dashboard.projectId, now);
  const options = { project, limits: getLimits(actor), now, refresh };
  const tiles = getTiles(db, dashboard.id);
  return {
    ...dashboardBody(dashboard, users, shared),
    filters: dashboard.filters,
    variables: dashboard.variables,
    tiles: await Promise.all(tiles.map((tile) => tileBody(stores, options, { tile, dashboard, users }))),
  };
}

async function tileBody(
  deps: InsightDeps,
  options: ComputeOptions,
  { tile, dashboard, users }: { tile: Tile; dashboard: Dashboard; users: UserFinder },
) {
  const { insight } = tile;
  // A failed insight must not fail the whole dashboard.
  const computed =
    insight &&
    (await compute(deps, options, {
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

type FullDashboard = Static<typeof FullDashboardBody>;

const idArgument: CommandArgument = {
  name: "dashboard",
  description: "dashboard id or name",
  member: "id",
  lookup: {
    in: () => listAllDashboards,
    matches: (dashboard: Static<typeof DashboardBody>, text) =>
      String(dashboard.id) === text || dashboard.name === text,
    value: (dashboard: Static<typeof DashboardBody>) => dashboard.id,
    missing: (text) => `Dashboard ${text} does not exist.`,
  },
};

/** Commands of their own; the routes are those of the operations. */
const showCommand = {
  ...getOneDashboard,
  cli: {
    name: "dashboards show",
    description: "Show a dashboard and its tiles; a server computes their results.",
    examples: ["dashboards show Orders --json"],
    arguments: [idArgument],
    done: ({ id, name, tiles }: FullDashboard) =>
      [
        `${name} (${id})`,
        ...tiles.map(({ insight, text }) =>
          insight === null ? `  ${text?.body ?? ""}` : `  ${insight.short_id}  ${insight.name}`,
        ),
      ].join("\n"),
  },
} satisfies Operation;
const createCommand = {
  ...createNewDashboard,
  input: object({
    name: string({ max: 400 }),
    description: optional(string({ blank: true })),
    use_dashboard: optional(int()),
  }),
  cli: {
    name: "dashboards create",
    examples: ["dashboards create Orders", "dashboards create Copy --use-dashboard 3"],
    arguments: [{ name: "name", description: "display name", member: "name" }],
    options: {
      description: { description: "description" },
      use_dashboard: { description: "id of the dashboard to copy" },
    },
    hasCreator: true,
    done: ({ id, name }: FullDashboard) => `Dashboard ${name} (${id}) created.`,
  },
} satisfies Operation;
const deleteCommand = {
  ...updateOneDashboard,
  input: object({ id: int() }),
  cli: {
    name: "dashboards delete",
    description: "Delete a dashboard; its insights are kept.",
    examples: ["dashboards delete Orders"],
    arguments: [idArgument],
    adds: () => ({ deleted: true }),
    done: ({ id, name }: FullDashboard) => `Dashboard ${name} (${id}) deleted.`,
  },
} satisfies Operation;

export const dashboardCommands: readonly Operation[] = [showCommand, createCommand, deleteCommand];

/** In the order of the documentation. */
export const dashboardOperations = [
  listAllDashboards,
  createNewDashboard,
  getOneDashboard,
  updateOneDashboard,
];
