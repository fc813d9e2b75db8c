/** Reads group types and groups from rows in PostgreSQL. */

import type { Postgres } from "../../cluster/connection.ts";
import { parseExactJson } from "../../lib/json/exact.ts";
import type { Group, GroupCursor, GroupJson, GroupPage, GroupPageOptions, GroupType } from "../groups.ts";
import { fittingCount } from "../person.ts";
import type { GroupKey } from "../person-reader.ts";
import { hashList, numberList } from "./hashes.ts";

type GroupRow = Omit<Group, "properties"> & { properties: string };

const groupColumns = `g.id::float8 AS id, g.type_index AS "typeIndex", g.group_key AS key,
  g.created_at::float8 AS "createdMicros", g.properties`;

/** Groups per statement of a search. */
const searchedAtOnce = 500;

export class PostgresGroups {
  constructor(protected readonly postgres: Postgres) {}

  async groupTypes(projectId: number): Promise<GroupType[]> {
    return await this.postgres.run(
      (sql) => sql<GroupType[]>`
        SELECT type_index AS "typeIndex", name, created_at::float8 AS "createdMicros" FROM flagkeep.group_type
        WHERE project_id = ${projectId} ORDER BY type_index`,
    );
  }

  async findGroup(projectId: number, typeIndex: number, key: string): Promise<Group | undefined> {
    return (await this.storedGroups([{ projectId, typeIndex, key }]))[0];
  }

  async listGroups(
    projectId: number,
    typeIndex: number,
    { after, limit = 100 }: GroupPageOptions = {},
  ): Promise<GroupPage> {
    const rows = await this.groupsAfter(projectId, typeIndex, after, limit + 1);
    return toPage(rows, limit);
  }

  async searchGroups(
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
    const found: GroupRow[] = [];
    const isPageFull = () =>
      found.length > limit || fittingCount(found.map(({ properties }) => properties.length)) < found.length;
    for (let last = after, hasMore = true; hasMore && !isPageFull(); ) {
      const rows = await this.groupsAfter(projectId, typeIndex, last, searchedAtOnce);
      const { groups, next } = toPage(rows, searchedAtOnce - 1);
      const checked = rows.slice(0, groups.length);
      for (const [index, row] of checked.entries())
        if (hasText(row.key) || hasText(groups[index]!.properties.name)) found.push(row);
      last = next;
      hasMore = next !== undefined;
    }
    return toPage(found.slice(0, limit + 1), limit);
  }

  async groupPage(projectId: number, after: GroupKey | undefined, limit: number): Promise<GroupJson[]> {
    const { typeIndex, key } = after ?? { typeIndex: -1, key: "" };
    return await this.postgres.run(
      (sql) => sql<GroupJson[]>`
        SELECT t.name AS type, g.type_index AS "typeIndex", g.group_key AS key,
          g.created_at::float8 AS "createdMicros", g.properties AS "propertiesJson"
        FROM flagkeep.project_group g
        JOIN flagkeep.group_type t ON t.project_id = g.project_id AND t.type_index = g.type_index
        WHERE g.project_id = ${projectId} AND (g.type_index, g.group_key COLLATE "C") > (${typeIndex}, ${key} COLLATE "C")
        ORDER BY g.type_index, g.group_key COLLATE "C" LIMIT ${limit}`,
    );
  }

  async storedGroups(keys: readonly (GroupKey & { projectId: number })[]): Promise<(Group | undefined)[]> {
    if (keys.length === 0) return [];
    const rows = await this.postgres.run(
      (sql) => sql<(GroupRow & { position: number })[]>`
        SELECT wanted.position::int AS position, ${sql.unsafe(groupColumns)}
        FROM unnest(${numberList(keys.map(({ projectId }) => projectId))}::text::int[],
          ${numberList(keys.map(({ typeIndex }) => typeIndex))}::text::int[],
          ${hashList(keys.map(({ key }) => key))}::text::uuid[])
          WITH ORDINALITY AS wanted(project_id, type_index, hash, position)
        JOIN flagkeep.project_group g ON g.project_id = wanted.project_id AND g.type_index = wanted.type_index
          AND g.key_hash = wanted.hash`,
    );
    const found = new Map(rows.map(({ position, ...row }) => [position, readGroup(row)]));
    return keys.map((_, index) => found.get(index + 1));
  }

  private async groupsAfter(
    projectId: number,
    typeIndex: number,
    after: GroupCursor | undefined,
    limit: number,
  ): Promise<GroupRow[]> {
    return await this.postgres.run(
      (sql) => sql<GroupRow[]>`
        SELECT ${sql.unsafe(groupColumns)} FROM flagkeep.project_group g
        WHERE g.project_id = ${projectId} AND g.type_index = ${typeIndex}
          ${after === undefined ? sql`` : sql`AND (g.created_at, g.id) < (${after.createdMicros}, ${after.id})`}
        ORDER BY g.created_at DESC, g.id DESC LIMIT ${limit}`,
    );
  }
}

/** @param rows one more than the limit if there are more */
function toPage(rows: readonly GroupRow[], limit: number): GroupPage {
  const count = fittingCount(rows.slice(0, limit).map(({ properties }) => Buffer.byteLength(properties)));
  const groups = rows.slice(0, count).map(readGroup);
  const last = rows.length > count ? groups.at(-1) : undefined;
  return { groups, next: last && { createdMicros: last.createdMicros, id: last.id } };
}

function readGroup({ properties, ...group }: GroupRow): Group {
  return { ...group, properties: parseExactJson(properties) as Record<string, unknown> };
}
