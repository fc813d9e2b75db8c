/** Puts persons and groups into the people store of a test server. */

import type { TestServer } from "./management-server.ts";

/** 2026-03-01T12:00:00Z in microseconds. */
const created = Date.UTC(2026, 2, 1, 12) * 1_000;

/** Adds a person of project 1; the first distinct id is the main one. Returns the uuid. */
export function addPerson(
  server: TestServer,
  distinctIds: readonly string[],
  properties: Record<string, unknown> = {},
): string {
  const client = server.deps.people.$client;
  const uuid = Bun.randomUUIDv7();
  const { id } = client
    .query(
      `INSERT INTO person (project_id, uuid, main_distinct_id, is_main_alias, joined_count, is_identified, created_at,
         version, search_text, properties, property_times)
       VALUES (1, ?, ?, 0, ?, 0, ?, 0, ?, ?, x'') RETURNING id`,
    )
    .get(
      uuid,
      distinctIds[0]!,
      distinctIds.length,
      created,
      typeof properties.email === "string" ? properties.email : null,
      JSON.stringify(properties),
    ) as { id: number };
  for (const [joined, distinctId] of distinctIds.entries()) {
    client.run("INSERT INTO distinct_id VALUES (1, ?, ?, ?)", [distinctId, id, joined]);
    client.run("INSERT INTO change (project_id, person_uuid, distinct_id, is_deleted) VALUES (1, ?, ?, 0)", [
      uuid,
      distinctId,
    ]);
  }
  return uuid;
}

/** Adds a group of project 1, and its type when `name` is given. */
export function addGroup(
  server: TestServer,
  typeIndex: number,
  key: string,
  properties: Record<string, unknown> = {},
  name?: string,
): void {
  const client = server.deps.people.$client;
  if (name) client.run("INSERT INTO group_type VALUES (1, ?, ?, ?)", [typeIndex, name, created]);
  client.run(
    `INSERT INTO project_group (project_id, type_index, group_key, created_at, version, properties, property_times)
     VALUES (1, ?, ?, ?, 0, ?, x'')`,
    [typeIndex, key, created, JSON.stringify(properties)],
  );
}

/** A condition of a flag or cohort. */
export const emailContains = (part: string) => ({
  key: "email",
  type: "person",
  operator: "icontains",
  value: part,
});
