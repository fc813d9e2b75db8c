/** Persons as rows in PostgreSQL are read like the ones in files. */

import { afterAll, beforeAll } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { toHash } from "../../src/persons/postgres/hashes.ts";
import { PostgresPersonReader } from "../../src/persons/postgres/reader.ts";
import { propertiesJson } from "../../src/persons/property-key-sets.ts";
import { personReaderConformance } from "../persons/person-reader-conformance.ts";
import type { TestPeople } from "../persons/support.ts";
import { hasPostgres, startPostgres, type TestPostgres } from "../support/postgres.ts";

let server: TestPostgres;
let databases = 0;

type Row = Record<string, unknown>;

/** Each table with the columns that are copied from SQLite. */
const copied: Record<string, { columns: string; change?: (row: Row, people: TestPeople) => Row }> = {
  person: {
    columns:
      "id bigint, project_id int, uuid uuid, version int, main_distinct_id text, is_main_alias boolean, is_identified boolean, joined_count int, created_at bigint, properties text, property_times bytea, search_text text",
    change: (row, people) => ({
      ...row,
      is_main_alias: row.is_main_alias === 1,
      is_identified: row.is_identified === 1,
      properties: propertiesJson(people.db.$client, row.properties as string),
    }),
  },
  distinct_id: {
    columns: "project_id int, id_hash uuid, distinct_id text, person_id bigint, joined int",
    change: (row) => ({ ...row, id_hash: toHash(row.distinct_id as string) }),
  },
  group_type: { columns: "project_id int, type_index int, name text, created_at bigint" },
  project_group: {
    columns:
      "id bigint, project_id int, type_index int, key_hash uuid, group_key text, created_at bigint, version int, properties text, property_times bytea",
    change: (row) => ({ ...row, key_hash: toHash(row.group_key as string) }),
  },
  cohort_member: { columns: "cohort_id int, person_id bigint" },
  hash_key_override: { columns: "person_id bigint, flag_key text, hash_key text" },
  pending_override: {
    columns:
      "project_id int, id_hash uuid, distinct_id text, hash_key text, flag_keys text, requested_at bigint",
    change: (row) => ({ ...row, id_hash: toHash(row.distinct_id as string) }),
  },
};

const toHex = (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`;

async function copy(people: TestPeople, postgres: Postgres): Promise<void> {
  await migratePostgres(postgres);
  await postgres.run(async (sql) => {
    for (const [table, { columns, change = (row: Row) => row }] of Object.entries(copied)) {
      const rows = people.db.$client
        .query<Row, []>(`SELECT * FROM ${table}`)
        .all()
        .map((row) => change(row, people));
      const names = columns.replaceAll(/ \w+(?=,|$)/g, "");
      await sql.unsafe(
        `INSERT INTO flagkeep.${table} (${names}) SELECT ${names} FROM json_to_recordset($1::text::json) AS x(${columns})`,
        [JSON.stringify(rows, (_, value) => (value instanceof Uint8Array ? toHex(value) : value))],
      );
    }
  }, 30_000);
}

if (hasPostgres) {
  beforeAll(async () => {
    server = await startPostgres();
  }, 60_000);
  afterAll(async () => await server[Symbol.asyncDispose]());
  personReaderConformance("PostgresPersonReader", async (people) => {
    databases += 1;
    const url = await server.create(`persons_${databases}`);
    const postgres = new Postgres(parsePostgresUrl(url)!, { connections: 4, name: "test" });
    await copy(people, postgres);
    return { reader: new PostgresPersonReader(postgres), close: async () => await postgres.close() };
  });
}
