/** Reads group types and groups. */

import { and, asc, desc, eq, lt, or, sql } from "drizzle-orm";
import { parseExactJson } from "../lib/exact-json.ts";
import type { PeopleDb } from "./open.ts";
import { fittingCount } from "./person.ts";
import { groupType, projectGroup } from "./schema.ts";

export interface GroupType {
  typeIndex: number;
  name: string;
  createdMicros: number;
}

export interface Group {
  id: number;
  typeIndex: number;
  key: string;
  createdMicros: number;
  properties: Record<string, unknown>;
}

/** Where the next page of groups starts. */
export interface GroupCursor {
  createdMicros: number;
  id: number;
}

const groupFields = {
  id: projectGroup.id,
  typeIndex: projectGroup.typeIndex,
  key: projectGroup.groupKey,
  createdMicros: projectGroup.createdMicros,
  properties: projectGroup.properties,
};

/** The group types of a project, by index. */
export function listGroupTypes(db: PeopleDb, projectId: number): GroupType[] {
  return db
    .select({ typeIndex: groupType.typeIndex, name: groupType.name, createdMicros: groupType.createdMicros })
    .from(groupType)
    .where(eq(groupType.projectId, projectId))
    .orderBy(asc(groupType.typeIndex))
    .all();
}

/** A page of the groups of one type, newest first; fewer than the limit where they are large. */
export function listGroups(
  db: PeopleDb,
  projectId: number,
  typeIndex: number,
  { after, limit = 100 }: { after?: GroupCursor; limit?: number } = {},
): { groups: Group[]; next: GroupCursor | undefined } {
  const isBehind =
    after === undefined
      ? undefined
      : or(
          lt(projectGroup.createdMicros, after.createdMicros),
          and(eq(projectGroup.createdMicros, after.createdMicros), lt(projectGroup.id, after.id)),
        );
  const chosen = and(eq(projectGroup.projectId, projectId), eq(projectGroup.typeIndex, typeIndex), isBehind);
  const newest = [desc(projectGroup.createdMicros), desc(projectGroup.id)];
  const sizes = db
    .select({ bytes: sql<number>`octet_length(${projectGroup.properties})` })
    .from(projectGroup)
    .where(chosen)
    .orderBy(...newest)
    .limit(limit + 1)
    .all();
  const count = fittingCount(sizes.slice(0, limit).map(({ bytes }) => bytes));
  const groups = db
    .select(groupFields)
    .from(projectGroup)
    .where(chosen)
    .orderBy(...newest)
    .limit(count)
    .all();
  const last = sizes.length > count ? groups.at(-1) : undefined;
  return { groups, next: last && { createdMicros: last.createdMicros, id: last.id } };
}

export function findGroup(
  db: PeopleDb,
  projectId: number,
  typeIndex: number,
  key: string,
): Group | undefined {
  return findGroups(db, projectId, typeIndex, [key])[0];
}

type GroupRow = [number, number, string, number, string];

/** Groups of one type by key, in no particular order; unknown ones are left out. */
export function findGroups(
  db: PeopleDb,
  projectId: number,
  typeIndex: number,
  keys: readonly string[],
): Group[] {
  // Raw: answers about group flags ask this.
  const query = db.$client.query<GroupRow, [number, number, string]>(`
    SELECT g.id, g.type_index, g.group_key, g.created_at, g.properties FROM json_each(?3) AS wanted
    CROSS JOIN project_group AS g ON g.project_id = ?1 AND g.type_index = ?2 AND g.group_key = wanted.value`);
  const rows = query.values(projectId, typeIndex, JSON.stringify(keys)) as GroupRow[];
  return rows.map(([id, index, key, createdMicros, properties]) => ({
    id,
    typeIndex: index,
    key,
    createdMicros,
    properties: parseExactJson(properties) as Record<string, unknown>,
  }));
}
