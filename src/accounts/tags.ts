/** Tags of flags, dashboards and insights (contract: management-api 3.2). */

import { and, asc, eq } from "drizzle-orm";
import type { MetadataTx, Reading } from "./db.ts";
import { type TaggedKind, tag } from "./schema.ts";

/** Replaces the tags of an item with these (normalized) tags. */
export function replaceTags(
  t: MetadataTx,
  projectId: number,
  itemKind: TaggedKind,
  itemId: number,
  names: readonly string[],
): void {
  t.delete(tag)
    .where(and(eq(tag.itemKind, itemKind), eq(tag.itemId, itemId)))
    .run();
  for (const name of names) t.insert(tag).values({ projectId, itemKind, itemId, name }).run();
}

/** The tags of an item, sorted. */
export function getTags(db: Reading, itemKind: TaggedKind, itemId: number): string[] {
  return db
    .select({ name: tag.name })
    .from(tag)
    .where(and(eq(tag.itemKind, itemKind), eq(tag.itemId, itemId)))
    .orderBy(asc(tag.name))
    .all()
    .map((row) => row.name);
}
