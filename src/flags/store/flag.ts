/** Reads flags from their table. */

import { and, asc, eq, inArray } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import { flag, flagDashboard, tag } from "../../accounts/schema.ts";
import type { Flag, FlagRow } from "../fields.ts";

/** The flag with this id in this project, deleted ones included. */
export function findFlag(db: Reading, projectId: number, id: number): Flag | undefined {
  const row = db
    .select()
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.id, id)))
    .get();
  return row && getFlags(db, [row])[0];
}

/** The flag with this key that is not deleted. */
export function findFlagByKey(db: Reading, projectId: number, key: string): Flag | undefined {
  const row = db
    .select()
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.key, key), eq(flag.deleted, false)))
    .get();
  return row && getFlags(db, [row])[0];
}

/** The keys of a project's flags by ID, deleted ones included; unknown IDs are skipped. */
export function flagKeysById(db: Reading, projectId: number, ids: readonly number[]): Map<number, string> {
  const rows = inChunks(ids, (chunk) =>
    db
      .select({ id: flag.id, key: flag.key })
      .from(flag)
      .where(and(eq(flag.projectId, projectId), inArray(flag.id, chunk)))
      .all(),
  );
  return new Map(rows.map(({ id, key }) => [id, key]));
}

/** All flags of a project that are not deleted, inactive ones included, by key. For evaluation. */
export function readFlags(db: Reading, projectId: number): Flag[] {
  const rows = db
    .select()
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.deleted, false)))
    .orderBy(asc(flag.key))
    .all();
  return getFlags(db, rows);
}

/** Converts rows to flags, with two further queries in total. */
export function getFlags(db: Reading, rows: readonly FlagRow[]): Flag[] {
  if (rows.length === 0) return [];
  const ids = rows.map((row) => row.id);
  const tags = new Map<number, string[]>();
  for (const row of inChunks(ids, (chunk) =>
    db
      .select({ id: tag.itemId, name: tag.name })
      .from(tag)
      .where(and(eq(tag.itemKind, "flag"), inArray(tag.itemId, chunk)))
      .orderBy(asc(tag.name))
      .all(),
  )) {
    tags.set(row.id, [...(tags.get(row.id) ?? []), row.name]);
  }
  const dashboards = new Map<number, number[]>();
  for (const row of inChunks(ids, (chunk) =>
    db
      .select()
      .from(flagDashboard)
      .where(inArray(flagDashboard.flagId, chunk))
      .orderBy(asc(flagDashboard.dashboardId))
      .all(),
  )) {
    dashboards.set(row.flagId, [...(dashboards.get(row.flagId) ?? []), row.dashboardId]);
  }
  return rows.map((row) => getFlag(row, tags.get(row.id) ?? [], dashboards.get(row.id) ?? []));
}

/** A flag from its row, its tags and its dashboards. */
export function getFlag(row: FlagRow, tags: string[], analyticsDashboards: number[]): Flag {
  const { variantCount: _, isFullyRolledOut: __, searchText: ___, ...own } = row;
  return { ...own, tags, analyticsDashboards };
}

/** SQLite limits the number of parameters per statement. */
export function inChunks<Item, Found>(items: readonly Item[], query: (chunk: Item[]) => Found[]): Found[] {
  const found: Found[] = [];
  for (let at = 0; at < items.length; at += 10_000) found.push(...query(items.slice(at, at + 10_000)));
  return found;
}
