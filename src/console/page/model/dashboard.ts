/** Dashboards in API responses, and templates of new ones. */

import type { Refine } from "../lib/api.ts";
import { request } from "../lib/api.ts";
import type { Dashboard as DashboardShort, DashboardWithTiles, Insight } from "../lib/api-types.ts";
import { inProject } from "../lib/session.ts";
import { lazyMessages } from "../messages/later.ts";
import type { Query } from "./insight.ts";

const names = lazyMessages.dashboards.templateTiles;

export type BoardInsight = Refine<Insight, { query: Query; result: unknown[] | null }>;

/** Date range that overrides that of the insights. */
export interface Dates {
  date_from?: string | null;
  date_to?: string | null;
}

export type BoardTile = Refine<DashboardWithTiles["tiles"][number], { insight: BoardInsight | null }>;

export type { DashboardShort };

export type ShownDashboard = Refine<DashboardWithTiles, { filters: Dates; tiles: BoardTile[] }>;

/** Text of the tile that lists flag changes: the API has tiles for insights and texts only. */
export const flagChangesText = "{{flag_changes}}";

/**
 * Changes one tile, or adds one after the others. All tiles are named, because the API moves the named ones to the top.
 *
 * @param tileId undefined for a new tile
 */
export async function changeTile(
  { id, tiles }: ShownDashboard,
  tileId: number | undefined,
  change: { text?: { body: string }; deleted?: boolean },
): Promise<void> {
  const named = tiles.map((tile) => ({ id: tile.id, ...(tile.id === tileId ? change : {}) }));
  const body = { tiles: tileId === undefined ? [...named, change] : named };
  await request(inProject(`dashboards/${id}/`), { method: "PATCH", body });
}

/** Key of the flag of a generated dashboard. */
export const usageFlagKey = (name: string): string =>
  /^Generated Dashboard: (.+) Usage$/.exec(name)?.[1] ?? name;

export type TemplateName = keyof typeof lazyMessages.dashboards.templates;

interface TemplateTile {
  /** Absent: a tile with `text`. */
  insight?: { name: string; query: Query };
  text?: string;
  layout: { x: number; y: number; w: number; h: number };
}

const eventsNode = (event: string | null, math = "total") => ({ kind: "EventsNode", event, math });
const insight = (source: Query): Query => ({ kind: "InsightVizNode", source });
const range = { dateRange: { date_from: "-30d" }, interval: "day" };

function trend(
  event: string | null,
  math: string,
  more: { breakdown?: string; display?: string; properties?: unknown[] } = {},
): Query {
  const { breakdown, display = "ActionsLineGraph", properties } = more;
  return insight({
    kind: "TrendsQuery",
    series: [eventsNode(event, math)],
    ...range,
    trendsFilter: { display },
    ...(breakdown ? { breakdownFilter: { breakdown, breakdown_type: "event" } } : {}),
    ...(properties ? { properties } : {}),
  });
}

/** Tiles of a template. @param flagKey of the template for a rollout */
function templateTiles(template: TemplateName, flagKey: string): TemplateTile[] {
  const view = "$pageview";
  const called = "$feature_flag_called";
  const ofFlag = [{ key: "$feature_flag", type: "event", operator: "exact", value: [flagKey] }];
  const at = (x: number, y: number, w = 6, h = 5) => ({ x, y, w, h });
  switch (template) {
    case "blank":
      return [];
    case "web":
      return [
        { insight: { name: names.visitors, query: trend(view, "dau") }, layout: at(0, 0) },
        { insight: { name: names.views, query: trend(view, "total") }, layout: at(6, 0) },
        {
          insight: { name: names.pages, query: trend(view, "dau", { breakdown: "$pathname" }) },
          layout: at(0, 5, 12),
        },
        {
          insight: { name: names.referrers, query: trend(view, "dau", { breakdown: "$referring_domain" }) },
          layout: at(0, 10),
        },
        {
          insight: { name: names.browsers, query: trend(view, "dau", { breakdown: "$browser" }) },
          layout: at(6, 10),
        },
      ];
    case "product":
      return [
        { insight: { name: names.active, query: trend(null, "dau") }, layout: at(0, 0) },
        { insight: { name: names.weekly, query: trend(null, "weekly_active") }, layout: at(6, 0) },
        {
          insight: {
            name: names.lifecycle,
            query: insight({ kind: "LifecycleQuery", series: [eventsNode(null)], ...range }),
          },
          layout: at(0, 5),
        },
        {
          insight: {
            name: names.retention,
            query: insight({
              kind: "RetentionQuery",
              retentionFilter: {
                period: "Week",
                totalIntervals: 11,
                targetEntity: { id: null, type: "events" },
                returningEntity: { id: null, type: "events" },
              },
            }),
          },
          layout: at(6, 5),
        },
      ];
    case "rollout":
      return [
        {
          insight: {
            name: names.evaluations,
            query: trend(called, "total", {
              breakdown: "$feature_flag_response",
              properties: ofFlag,
              display: "ActionsBar",
            }),
          },
          layout: at(0, 0),
        },
        {
          insight: {
            name: names.people,
            query: trend(called, "dau", { breakdown: "$feature_flag_response", properties: ofFlag }),
          },
          layout: at(6, 0),
        },
        {
          insight: {
            name: names.errors,
            query: trend("$exception", "total", { breakdown: `$feature/${flagKey}` }),
          },
          layout: at(0, 5),
        },
        { text: flagChangesText, layout: at(6, 5) },
      ];
  }
}

/** Creates a dashboard with the tiles of a template. Returns its ID. */
export async function createFromTemplate(
  name: string,
  template: TemplateName,
  flagKey: string,
): Promise<number> {
  const { id } = await request<{ id: number }>(inProject("dashboards/"), { method: "POST", body: { name } });
  const path = inProject(`dashboards/${id}/`);
  const tiles = templateTiles(template, flagKey);
  const ids = new Map<TemplateTile, number>();
  for (const tile of tiles) {
    if (!tile.insight) continue;
    const body = { ...tile.insight, dashboards: [id], saved: true };
    ids.set(tile, (await request<{ id: number }>(inProject("insights/"), { method: "POST", body })).id);
  }
  if (tiles.length === 0) return id;
  const created = await request<DashboardWithTiles>(`${path}?refresh=force_cache`);
  const getTile = (insightId: number | undefined) =>
    created.tiles.find((tile) => tile.insight?.id === insightId)?.id;
  const changes = tiles.map((tile) => ({
    ...(tile.text === undefined ? { id: getTile(ids.get(tile)) } : { text: { body: tile.text } }),
    layouts: { sm: tile.layout },
  }));
  await request(path, { method: "PATCH", body: { tiles: changes } });
  return id;
}
