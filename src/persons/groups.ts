/** Reads group types and groups. */

import { and, asc, desc, eq, inArray, lt, or, sql } from "drizzle-orm";
import { parseExactJson } from "../lib/json/exact.ts";
import type { PersonsDb } from "./open.ts";
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

/** Start of the next page of groups. */
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
export function listGroupTypes(db: PersonsDb, projectId: number): GroupType[] {
  return db
    .select({ typeIndex: groupType.typeIndex, name: groupType.name, createdMicros: groupType.createdMicros })
    .from(groupType)
    .where(eq(groupType.projectId, projectId))
    .orderBy(asc(groupType.typeIndex))
    .all();
}

/** Groups per slice of a search, which takes a few milliseconds. */
const searchedAtOnce = 500;
/** Maximum bytes of properties parsed per slice. */
const searchedBytesMax = 1024 * 1024;

export interface GroupPage {
  groups: Group[];
  /** Undefined on the last page. */
  next: GroupCursor | undefined;
}

export interface GroupPageOptions {
  after?: GroupCursor | undefined;
  limit?: number;
}

/** A page of the groups of one type, newest first; shorter than the limit if groups are large. */
export function listGroups(
  db: PersonsDb,
  projectId: number,
  typeIndex: number,
  { after, limit = 100 }: GroupPageOptions = {},
): GroupPage {
  const positions = db
    .select(locationFields)
    .from(projectGroup)
    .where(behind(projectId, typeIndex, after))
    .orderBy(...newestFirst)
    .limit(limit + 1)
    .all();
  return pageOf(db, positions, limit);
}

/** Like `listGroups`, for groups with `search` in their key or their property `name`, ignoring case. */
export async function searchGroups(
  db: PersonsDb,
  projectId: number,
  typeIndex: number,
  search: string,
  { after, limit = 100 }: GroupPageOptions = {},
): Promise<GroupPage> {
  const wanted = search.toLowerCase();
  const hasText = (text: unknown) =>
    String(text ?? "")
      .toLowerCase()
      .includes(wanted);
  const found: GroupLocation[] = [];
  const isPageFull = () =>
    found.length > limit || fittingCount(found.map(({ bytes }) => bytes)) < found.length;
  for (let last = after, hasMore = true; hasMore && !isPageFull(); ) {
    const locations = db
      .select({ ...locationFields, key: projectGroup.groupKey })
      .from(projectGroup)
      .where(behind(projectId, typeIndex, last))
      .orderBy(...newestFirst)
      .limit(searchedAtOnce)
      .all();
    const checked = locations.slice(0, countWithin(locations, searchedBytesMax));
    const names = new Map(
      db
        .select({
          id: projectGroup.id,
          name: sql<unknown>`json_extract(${projectGroup.properties}, '$.name')`,
        })
        .from(projectGroup)
        .where(
          inArray(
            projectGroup.id,
            checked.map(({ id }) => id),
          ),
        )
        .all()
        .map(({ id, name }) => [id, name]),
    );
    for (const { key, ...location } of checked)
      if (hasText(key) || hasText(names.get(location.id))) found.push(location);
    last = checked.at(-1);
    hasMore = checked.length < locations.length || locations.length === searchedAtOnce;
    await new Promise(setImmediate);
  }
  return pageOf(db, found.slice(0, limit + 1), limit);
}

/** How many of the first groups fit in `bytesMax`; at least one. */
function countWithin(locations: readonly GroupLocation[], bytesMax: number): number {
  let bytes = 0;
  const end = locations.findIndex((position) => {
    bytes += position.bytes;
    return bytes > bytesMax;
  });
  return end === -1 ? locations.length : Math.max(end, 1);
}

/** Position of a group in lists, and its size. */
interface GroupLocation extends GroupCursor {
  bytes: number;
}

const locationFields = {
  id: projectGroup.id,
  createdMicros: projectGroup.createdMicros,
  bytes: sql<number>`octet_length(${projectGroup.properties})`,
};
const newestFirst = [desc(projectGroup.createdMicros), desc(projectGroup.id)];

/** Groups of one type, after a cursor if given. */
function behind(projectId: number, typeIndex: number, after: GroupCursor | undefined) {
  const isLagging =
    after === undefined
      ? undefined
      : or(
          lt(projectGroup.createdMicros, after.createdMicros),
          and(eq(projectGroup.createdMicros, after.createdMicros), lt(projectGroup.id, after.id)),
        );
  return and(eq(projectGroup.projectId, projectId), eq(projectGroup.typeIndex, typeIndex), isLagging);
}

/** @param locations one more than the limit if there are more */
function pageOf(db: PersonsDb, locations: readonly GroupLocation[], limit: number): GroupPage {
  const count = fittingCount(locations.slice(0, limit).map(({ bytes }) => bytes));
  const ids = locations.slice(0, count).map(({ id }) => id);
  const groups = db
    .select(groupFields)
    .from(projectGroup)
    .where(inArray(projectGroup.id, ids))
    .orderBy(...newestFirst)
    .all();
  const last = locations.length > count ? groups.at(-1) : undefined;
  return { groups, next: last && { createdMicros: last.createdMicros, id: last.id } };
}

/** A group with serialized properties, for passing on many without parsing them. */
export interface GroupJson {
  /** Name of its type. */
  type: string;
  typeIndex: number;
  key: string;
  createdMicros: number;
  propertiesJson: string;
}

/** All groups of a project in pages, ordered by type and key. */
export function groupJsonPage(
  db: PersonsDb,
  projectId: number,
  after: { typeIndex: number; key: string } = { typeIndex: -1, key: "" },
  limit: number,
): GroupJson[] {
  const query = db.$client.query<GroupJson, [number, number, string, number]>(`
    SELECT t.name AS type, g.type_index AS typeIndex, g.group_key AS key, g.created_at AS createdMicros,
      g.properties AS propertiesJson
    FROM project_group g JOIN group_type t ON t.project_id = g.project_id AND t.type_index = g.type_index
    WHERE g.project_id = ? AND (g.type_index, g.group_key) > (?, ?)
    ORDER BY g.type_index, g.group_key LIMIT ?`);
  return query.all(projectId, after.typeIndex, after.key, limit);
}

export function findGroup(
  db: PersonsDb,
  projectId: number,
  typeIndex: number,
  key: string,
): Group | undefined {
  return findGroups(db, projectId, typeIndex, [key])[0];
}

type GroupRow = [number, number, string, number, string];

/** Groups of one type by key, unordered; unknown ones are omitted. */
export function findGroups(
  db: PersonsDb,
  projectId: number,
  typeIndex: number,
  keys: readonly string[],
): Group[] {
  // Raw SQL: hot path of flags on groups.
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
