/** Dashboards, their tiles, and insights (contract: management-api 6.3). */

import { and, asc, desc, eq, sql } from "drizzle-orm";
import type { MetadataTx, Reading } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { dashboard, insight, tile } from "../accounts/schema.ts";
import { getTags, replaceTags } from "../accounts/tags.ts";
import { normalizeTags } from "../flags/rules/key.ts";
import { InvalidFieldError, NotFoundError } from "../lib/errors.ts";
import { newShortId } from "../lib/ids.ts";
import type { JsonObject } from "../lib/json/value.ts";

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
  /** Name that a client derives from the query; stored only. */
  derivedName: string | null;
  favorited: boolean;
}

export interface Tile {
  id: number;
  layouts: JsonObject;
  color: string | null;
  /** From 0. */
  position: number;
  insight: Insight | undefined;
  /** Markdown of a text tile. */
  text: string | null;
  /** Null: the client decides. */
  showDescription: boolean | null;
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
export type InsightFields = Pick<
  Insight,
  "name" | "derivedName" | "description" | "query" | "saved" | "favorited" | "deleted"
>;

/** How a dashboard was created: by a user, or with a flag. */
export const creationModes = ["default", "template"] as const;
export type CreationMode = (typeof creationModes)[number];

/** Undeleted dashboards of a project: pinned first, then newest first. */
export function listDashboards(
  db: Reading,
  projectId: number,
  filter: { search?: string; creationMode?: CreationMode },
  page: { limit: number; offset: number },
): { dashboards: Dashboard[]; count: number } {
  const wanted = filter.search?.trim().toLowerCase() ?? "";
  const named = db
    .select({ id: dashboard.id, name: dashboard.name })
    .from(dashboard)
    .where(
      and(
        eq(dashboard.projectId, projectId),
        eq(dashboard.deleted, false),
        filter.creationMode ? eq(dashboard.creationMode, filter.creationMode) : undefined,
      ),
    )
    .orderBy(desc(dashboard.pinned), desc(dashboard.createdAt), desc(dashboard.id))
    .all()
    // SQLite folds the case of ASCII only.
    .filter(({ name }) => name.toLowerCase().includes(wanted));
  const ids = named.slice(page.offset, page.offset + page.limit).map(({ id }) => id);
  const isOnPage = sql`${dashboard.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`;
  const rows = db.select().from(dashboard).where(isOnPage).all();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return {
    dashboards: ids.map((id) => ({ ...byId.get(id)!, tags: getTags(db, "dashboard", id) })),
    count: named.length,
  };
}

/** Ignores deleted dashboards. */
export function findDashboard(db: Reading, projectId: number, id: number): Dashboard | undefined {
  const row = db
    .select()
    .from(dashboard)
    .where(and(eq(dashboard.projectId, projectId), eq(dashboard.id, id), eq(dashboard.deleted, false)))
    .get();
  return row && { ...row, tags: getTags(db, "dashboard", row.id) };
}

/** Tiles in order, without those of deleted insights. */
export function getTiles(db: Reading, dashboardId: number): Tile[] {
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
      showDescription: row.tile.showDescription,
    }));
}

export function createDashboard(
  metadata: Metadata,
  input: {
    projectId: number;
    by: number | null;
    fields: Partial<DashboardFields>;
    /** ID of the dashboard whose description, filters, tags and tiles are copied; insights are shared by both. */
    copiedFrom?: number | undefined;
  },
  now: Date,
): Dashboard {
  return metadata.change((t) => {
    const original =
      input.copiedFrom === undefined ? undefined : findDashboard(t, input.projectId, input.copiedFrom);
    if (input.copiedFrom !== undefined && original === undefined) {
      const detail = `Invalid pk "${input.copiedFrom}" - object does not exist.`;
      throw new InvalidFieldError("use_dashboard", "does_not_exist", detail);
    }
    const { tags, ...plain } = {
      ...(original && {
        description: original.description,
        filters: original.filters,
        tags: original.tags,
      }),
      ...input.fields,
    };
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
    for (const copied of original ? getTiles(t, original.id) : []) {
      const { layouts, color, position, insight: shown, text: body, showDescription } = copied;
      const insightId = shown?.id ?? null;
      t.insert(tile)
        .values({ dashboardId: created.id, insightId, layouts, color, position, body, showDescription })
        .run();
    }
    return { ...created, tags: getTags(t, "dashboard", created.id) };
  });
}

/** A change to a tile; the order of the changes is the order of the tiles. */
export interface TileChange {
  /** Absent: a new tile with `text`. */
  id?: number;
  layouts?: JsonObject;
  color?: string | null;
  showDescription?: boolean | null;
  /** Text tiles only. */
  text?: string;
  /** Removes the tile from the dashboard; the insight remains. */
  deleted?: boolean;
}

/**
 * Changes or deletes a dashboard; a deleted one can only be restored.
 *
 * @param tiles in order; unnamed tiles follow in their previous order.
 * @throws {NotFoundError}
 * @throws {InvalidFieldError} a tile belongs to another dashboard, or has neither `id` nor text.
 */
export function updateDashboard(
  metadata: Metadata,
  target: { projectId: number; id: number },
  fields: Partial<DashboardFields>,
  tiles: readonly TileChange[] = [],
): Dashboard {
  const { tags, ...plain } = fields;
  return metadata.change((t) => {
    const before = t
      .select()
      .from(dashboard)
      .where(and(eq(dashboard.projectId, target.projectId), eq(dashboard.id, target.id)))
      .get();
    if (!before || (before.deleted && fields.deleted !== false)) throw new NotFoundError();
    if (Object.keys(plain).length > 0) {
      t.update(dashboard).set(plain).where(eq(dashboard.id, target.id)).run();
    }
    if (tags) replaceTags(t, target.projectId, "dashboard", target.id, normalizeTags(tags, "tags") ?? []);
    changeTiles(t, target.id, tiles);
    return { ...before, ...plain, tags: getTags(t, "dashboard", target.id) };
  });
}

/** Maximum tiles per change, and per dashboard when text tiles are added. */
const tilesMax = 1_000;

function changeTiles(t: MetadataTx, dashboardId: number, changes: readonly TileChange[]): void {
  if (changes.length === 0) return;
  if (changes.length > tilesMax) {
    throw new InvalidFieldError(
      "tiles",
      "max_length",
      `At most ${tilesMax} tiles can be changed in one request.`,
    );
  }
  const known = getTiles(t, dashboardId);
  // For a tile that is named twice: the first position and the last appearance.
  const looks = new Map<number, TileChange>();
  let count = known.length;
  for (const change of changes) {
    const id = change.id ?? newTextTile(t, dashboardId, change, count++);
    const tileBefore = known.find((each) => each.id === id);
    if (change.id !== undefined && tileBefore === undefined) {
      throw new InvalidFieldError("tiles", "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
    }
    if (change.text !== undefined && tileBefore?.insight !== undefined) {
      throw new InvalidFieldError(
        "tiles",
        "invalid_input",
        `Tile ${id} shows an insight and cannot have text.`,
      );
    }
    looks.set(id, { ...looks.get(id), ...change });
  }
  let position = 0;
  for (const id of [...looks.keys(), ...known.map((each) => each.id).filter((id) => !looks.has(id))]) {
    const { id: _, deleted, text, ...look } = looks.get(id) ?? {};
    if (deleted) {
      t.delete(tile).where(eq(tile.id, id)).run();
      continue;
    }
    const body = text === undefined ? {} : { body: text };
    t.update(tile)
      .set({ position: position++, ...look, ...body })
      .where(eq(tile.id, id))
      .run();
  }
}

function newTextTile(t: MetadataTx, dashboardId: number, { text }: TileChange, count: number): number {
  if (text === undefined) {
    const detail = "A tile requires an `id`, or a `text` with a `body` if it is new.";
    throw new InvalidFieldError("tiles", "required", detail);
  }
  if (count >= tilesMax) {
    throw new InvalidFieldError("tiles", "max_length", `A dashboard has at most ${tilesMax} tiles.`);
  }
  return t.insert(tile).values({ dashboardId, body: text }).returning({ id: tile.id }).get().id;
}

/** Undeleted insights of a project, newest first. */
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

/** Finds an undeleted insight by id or short id. */
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

/** The dashboards of an insight, including deleted ones, which show it when restored. */
export function getDashboards(db: Reading, insightId: number): number[] {
  return db
    .select({ id: tile.dashboardId })
    .from(tile)
    .innerJoin(dashboard, eq(dashboard.id, tile.dashboardId))
    .where(and(eq(tile.insightId, insightId), eq(dashboard.deleted, false)))
    .orderBy(asc(tile.dashboardId))
    .all()
    .map(({ id }) => id);
}

/** Links of an insight; absent: unchanged. */
export interface InsightLinks {
  dashboards?: readonly number[];
  tags?: readonly string[];
}

/**
 * Creates an insight and adds it to dashboards. @throws {InvalidFieldError} on `dashboards`: one is not of the project.
 */
export function createInsight(
  metadata: Metadata,
  input: { projectId: number; by: number | null; fields: Partial<InsightFields>; links: InsightLinks },
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

/** Changes or deletes an insight. @throws {NotFoundError} @throws {InvalidFieldError} as `createInsight`. */
export function updateInsight(
  metadata: Metadata,
  target: { projectId: number; name: string },
  { fields, links }: { fields: Partial<InsightFields>; links: InsightLinks },
  now: Date,
): Insight {
  return metadata.change((t) => {
    const isRestored = fields.deleted === false;
    const before =
      findInsight(t, target.projectId, target.name) ??
      (isRestored ? findInsight(t, target.projectId, target.name, { deleted: true }) : undefined);
    if (!before) throw new NotFoundError();
    link(t, before, links);
    return t
      .update(insight)
      .set({ ...fields, updatedAt: now })
      .where(eq(insight.id, before.id))
      .returning()
      .get();
  });
}

/** Replaces the dashboards and tags of an insight. */
function link(t: MetadataTx, { id, projectId }: Insight, { dashboards, tags }: InsightLinks): void {
  if (tags) replaceTags(t, projectId, "insight", id, normalizeTags(tags, "tags") ?? []);
  if (dashboards === undefined) return;
  const before = getDashboards(t, id);
  for (const dashboardId of before.filter((known) => !dashboards.includes(known))) {
    t.delete(tile)
      .where(and(eq(tile.insightId, id), eq(tile.dashboardId, dashboardId)))
      .run();
  }
  for (const dashboardId of new Set(dashboards)) {
    if (before.includes(dashboardId)) continue;
    if (!findDashboard(t, projectId, dashboardId)) {
      const detail = `Invalid pk "${dashboardId}" - object does not exist.`;
      throw new InvalidFieldError("dashboards", "does_not_exist", detail);
    }
    t.insert(tile)
      .values({ dashboardId, insightId: id, position: getTiles(t, dashboardId).length })
      .run();
  }
}

/** Sorted. */
export const tagsOfInsight = (db: Reading, insightId: number): string[] => getTags(db, "insight", insightId);
