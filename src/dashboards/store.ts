/** Dashboards, what stands on them, and insights (contract: management-api 6.3). */

import { and, asc, desc, eq, sql } from "drizzle-orm";
import type { MetadataTx, Reading } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { dashboard, insight, tile } from "../accounts/schema.ts";
import { replaceTags, tagsOf } from "../accounts/tags.ts";
import { normalizeTags } from "../flags/rules/tags.ts";
import { InvalidField, NotFound } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { newShortId } from "../lib/short-id.ts";

export interface Insight {
  id: number;
  projectId: number;
  shortId: string;
  name: string;
  description: string;
  query: JsonObject;
  saved: boolean;
  deleted: boolean;
  createdById: number | null;
  createdAt: Date;
  updatedAt: Date;
}

export interface Tile {
  id: number;
  layouts: JsonObject;
  color: string | null;
  /** From 0. */
  position: number;
  insight: Insight | undefined;
  text: string | null;
}

export interface Dashboard {
  id: number;
  projectId: number;
  name: string;
  description: string;
  pinned: boolean;
  deleted: boolean;
  creationMode: string;
  /** 21 or 37. */
  restrictionLevel: number;
  filters: JsonObject;
  variables: JsonObject;
  tags: string[];
  createdById: number | null;
  createdAt: Date;
  lastAccessedAt: Date | null;
}

export type DashboardFields = Pick<
  Dashboard,
  "name" | "description" | "pinned" | "deleted" | "tags" | "filters"
>;
export type InsightFields = Pick<Insight, "name" | "description" | "query" | "saved" | "deleted">;

/** The dashboards of a project that are not deleted: pinned ones first, then newest first. */
export function listDashboards(
  db: Reading,
  projectId: number,
  page: { limit: number; offset: number },
): { dashboards: Dashboard[]; count: number } {
  const chosen = and(eq(dashboard.projectId, projectId), eq(dashboard.deleted, false));
  const count = db.select({ count: sql<number>`count(*)` }).from(dashboard).where(chosen).get()!.count;
  const rows = db
    .select()
    .from(dashboard)
    .where(chosen)
    .orderBy(desc(dashboard.pinned), desc(dashboard.createdAt), desc(dashboard.id))
    .limit(page.limit)
    .offset(page.offset)
    .all();
  return { dashboards: rows.map((row) => ({ ...row, tags: tagsOf(db, "dashboard", row.id) })), count };
}

/** One dashboard that is not deleted. */
export function findDashboard(db: Reading, projectId: number, id: number): Dashboard | undefined {
  const row = db
    .select()
    .from(dashboard)
    .where(and(eq(dashboard.projectId, projectId), eq(dashboard.id, id), eq(dashboard.deleted, false)))
    .get();
  return row && { ...row, tags: tagsOf(db, "dashboard", row.id) };
}

/** What stands on a dashboard, in order; tiles of deleted insights are left out. */
export function tilesOf(db: Reading, dashboardId: number): Tile[] {
  return db
    .select()
    .from(tile)
    .leftJoin(insight, eq(insight.id, tile.insightId))
    .where(eq(tile.dashboardId, dashboardId))
    .orderBy(asc(tile.position), asc(tile.id))
    .all()
    .filter((row) => row.insight?.deleted !== true)
    .map((row) => ({
      id: row.tile.id,
      layouts: row.tile.layouts,
      color: row.tile.color,
      position: row.tile.position,
      insight: row.insight ?? undefined,
      text: row.tile.body,
    }));
}

/** Makes an empty dashboard. */
export function createDashboard(
  metadata: Metadata,
  input: { projectId: number; by: number; fields: Partial<DashboardFields> },
  now: Date,
): Dashboard {
  const { tags, ...plain } = input.fields;
  return metadata.change((t) => {
    const created = t
      .insert(dashboard)
      .values({
        ...plain,
        name: plain.name ?? "",
        projectId: input.projectId,
        createdById: input.by,
        createdAt: now,
      })
      .returning()
      .get();
    replaceTags(t, input.projectId, "dashboard", created.id, normalizeTags(tags, "tags") ?? []);
    return { ...created, tags: tagsOf(t, "dashboard", created.id) };
  });
}

/** How a tile is to stand; its place is that in the list. */
export interface TilePlace {
  id: number;
  layouts?: JsonObject;
  color?: string | null;
}

/**
 * Changes or deletes a dashboard; a deleted one can only be brought back.
 *
 * @param places of tiles, in order; those that are not named come behind them, in the order they had.
 * @throws {NotFound}
 * @throws {InvalidField} a tile is of another dashboard.
 */
export function updateDashboard(
  metadata: Metadata,
  of: { projectId: number; id: number },
  fields: Partial<DashboardFields>,
  places: readonly TilePlace[] = [],
): Dashboard {
  const { tags, ...plain } = fields;
  return metadata.change((t) => {
    const before = t
      .select()
      .from(dashboard)
      .where(and(eq(dashboard.projectId, of.projectId), eq(dashboard.id, of.id)))
      .get();
    if (!before || (before.deleted && fields.deleted !== false)) throw new NotFound();
    if (Object.keys(plain).length > 0) {
      t.update(dashboard).set(plain).where(eq(dashboard.id, of.id)).run();
    }
    if (tags) replaceTags(t, of.projectId, "dashboard", of.id, normalizeTags(tags, "tags") ?? []);
    arrange(t, of.id, places);
    return { ...before, ...plain, tags: tagsOf(t, "dashboard", of.id) };
  });
}

/** Tiles whose places are told at once. */
const placesMax = 1_000;

function arrange(t: MetadataTx, dashboardId: number, places: readonly TilePlace[]): void {
  if (places.length === 0) return;
  if (places.length > placesMax) {
    throw new InvalidField("tiles", "max_length", `At most ${placesMax} tiles can be arranged at once.`);
  }
  const known = tilesOf(t, dashboardId).map(({ id }) => id);
  const named = new Set(places.map(({ id }) => id));
  for (const id of named) {
    if (known.includes(id)) continue;
    throw new InvalidField("tiles", "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
  }
  const looks = new Map(places.map(({ id, ...look }) => [id, look]));
  for (const [position, id] of [...named, ...known.filter((id) => !named.has(id))].entries()) {
    t.update(tile)
      .set({ position, ...looks.get(id) })
      .where(eq(tile.id, id))
      .run();
  }
}

/** The insights of a project that are not deleted, newest first. */
export function listInsights(
  db: Reading,
  projectId: number,
  filter: { search?: string; shortId?: string },
  page: { limit: number; offset: number },
): { insights: Insight[]; count: number } {
  const wanted = filter.search?.trim().toLowerCase() ?? "";
  const named = db
    .select({ id: insight.id, name: insight.name })
    .from(insight)
    .where(
      and(
        eq(insight.projectId, projectId),
        eq(insight.deleted, false),
        filter.shortId ? eq(insight.shortId, filter.shortId) : undefined,
      ),
    )
    .orderBy(desc(insight.createdAt), desc(insight.id))
    .all()
    // SQLite folds the case of ASCII only.
    .filter(({ name }) => name.toLowerCase().includes(wanted));
  const ids = named.slice(page.offset, page.offset + page.limit).map(({ id }) => id);
  const isOnPage = sql`${insight.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`;
  const rows = db.select().from(insight).where(isOnPage).all();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return { insights: ids.map((id) => byId.get(id)!), count: named.length };
}

/** One insight by id or short id, when it is not deleted. */
export function findInsight(
  db: Reading,
  projectId: number,
  name: string,
  { deleted = false } = {},
): Insight | undefined {
  const byName = /^\d{1,15}$/.test(name) ? eq(insight.id, Number(name)) : eq(insight.shortId, name);
  return db
    .select()
    .from(insight)
    .where(and(eq(insight.projectId, projectId), eq(insight.deleted, deleted), byName))
    .get();
}

/** The dashboards an insight stands on; deleted ones have it when they are brought back. */
export function dashboardsOf(db: Reading, insightId: number): number[] {
  return db
    .select({ id: tile.dashboardId })
    .from(tile)
    .innerJoin(dashboard, eq(dashboard.id, tile.dashboardId))
    .where(and(eq(tile.insightId, insightId), eq(dashboard.deleted, false)))
    .orderBy(asc(tile.dashboardId))
    .all()
    .map(({ id }) => id);
}

/** What an insight is linked with; absent: left as it is. */
export interface InsightLinks {
  dashboards?: readonly number[];
  tags?: readonly string[];
}

/** Makes an insight and puts it on dashboards. @throws {InvalidField} on `dashboards`: one is not of the project. */
export function createInsight(
  metadata: Metadata,
  input: { projectId: number; by: number; fields: Partial<InsightFields>; links: InsightLinks },
  now: Date,
): Insight {
  return metadata.change((t) => {
    const created = t
      .insert(insight)
      .values({
        name: "",
        query: {},
        ...input.fields,
        projectId: input.projectId,
        shortId: newShortId(),
        createdById: input.by,
        createdAt: now,
        updatedAt: now,
      })
      .returning()
      .get();
    link(t, created, input.links);
    return created;
  });
}

/** Changes or deletes an insight. @throws {NotFound} @throws {InvalidField} as `createInsight`. */
export function updateInsight(
  metadata: Metadata,
  of: { projectId: number; name: string },
  { fields, links }: { fields: Partial<InsightFields>; links: InsightLinks },
  now: Date,
): Insight {
  return metadata.change((t) => {
    const isRestored = fields.deleted === false;
    const before =
      findInsight(t, of.projectId, of.name) ??
      (isRestored ? findInsight(t, of.projectId, of.name, { deleted: true }) : undefined);
    if (!before) throw new NotFound();
    link(t, before, links);
    return t
      .update(insight)
      .set({ ...fields, updatedAt: now })
      .where(eq(insight.id, before.id))
      .returning()
      .get();
  });
}

/** Puts an insight on exactly these dashboards and gives it exactly these tags. */
function link(t: MetadataTx, { id, projectId }: Insight, { dashboards, tags }: InsightLinks): void {
  if (tags) replaceTags(t, projectId, "insight", id, normalizeTags(tags, "tags") ?? []);
  if (dashboards === undefined) return;
  const before = dashboardsOf(t, id);
  for (const dashboardId of before.filter((known) => !dashboards.includes(known))) {
    t.delete(tile)
      .where(and(eq(tile.insightId, id), eq(tile.dashboardId, dashboardId)))
      .run();
  }
  for (const dashboardId of new Set(dashboards)) {
    if (before.includes(dashboardId)) continue;
    if (!findDashboard(t, projectId, dashboardId)) {
      const detail = `Invalid pk "${dashboardId}" - object does not exist.`;
      throw new InvalidField("dashboards", "does_not_exist", detail);
    }
    t.insert(tile)
      .values({ dashboardId, insightId: id, position: tilesOf(t, dashboardId).length })
      .run();
  }
}

/** The tags of an insight, sorted. */
export const tagsOfInsight = (db: Reading, insightId: number): string[] => tagsOf(db, "insight", insightId);
