/** Persons as rows in PostgreSQL are read like the ones in files, and written many at once. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Postgres } from "../../src/cluster/connection.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { toHash } from "../../src/persons/postgres/hashes.ts";
import { PostgresPersonReader } from "../../src/persons/postgres/reader.ts";
import { type ChangedPerson, updatePersons } from "../../src/persons/postgres/writer.ts";
import { propertiesJson } from "../../src/persons/property-key-sets.ts";
import { personReaderConformance } from "../persons/person-reader-conformance.ts";
import { event, TestPeople } from "../persons/support.ts";
import { hasPostgres, startPostgres, type TestPostgres } from "../support/postgres.ts";
import { until } from "../support/server.ts";

const tables = join(import.meta.dir, "../../src/persons/postgres/tables.sql");

let server: TestPostgres;
let databases = 0;

type Row = Record<string, unknown>;

/** Each table with the columns that are copied from SQLite. */
const copied: Record<string, { columns: string; change?: (row: Row, people: TestPeople) => Row }> = {
  person: {
    columns:
      "id bigint, project_id int, uuid uuid, version int, main_distinct_id text, is_main_alias boolean, is_identified boolean, joined_count int, created_at bigint, properties text, search_text text",
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
      "id bigint, project_id int, type_index int, key_hash uuid, group_key text, created_at bigint, properties text",
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

async function copy(people: TestPeople, postgres: Postgres): Promise<void> {
  await postgres.run(async (sql) => {
    await sql.unsafe(`CREATE SCHEMA flagkeep; ${await Bun.file(tables).text()}`);
    for (const [table, { columns, change = (row: Row) => row }] of Object.entries(copied)) {
      const rows = people.db.$client
        .query<Row, []>(`SELECT * FROM ${table}`)
        .all()
        .map((row) => change(row, people));
      const names = columns.replaceAll(/ \w+(?=,|$)/g, "");
      await sql.unsafe(
        `INSERT INTO flagkeep.${table} (${names}) SELECT ${names} FROM json_to_recordset($1::text::json) AS x(${columns})`,
        [JSON.stringify(rows, (_, value) => (value instanceof Uint8Array ? undefined : value))],
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

  describe("writing persons", () => {
    const count = 40;
    const open = async () => {
      databases += 1;
      const url = await server.create(`persons_${databases}`);
      const postgres = new Postgres(parsePostgresUrl(url)!, { connections: 4, name: "test" });
      using people = new TestPeople();
      people.apply(...Array.from({ length: count }, (_, n) => event({ distinctId: `p${n}` })));
      await copy(people, postgres);
      const reader = new PostgresPersonReader(postgres);
      const changed = async (json: string): Promise<ChangedPerson[]> =>
        (await reader.personPage(1)).map(({ properties: _, id: __, ...person }) => ({
          ...person,
          isMainAlias: false,
          joinedCount: 1,
          createdNumber: 7,
          json,
          stamps: new Uint8Array([0, 255]),
          searchText: null,
        }));
      return { postgres, reader, changed, [Symbol.asyncDispose]: async () => await postgres.close() };
    };

    test("changes rows that have the version that was read, and returns the others", async () => {
      await using it = await open();
      const json = JSON.stringify({ text: '"quoted", \\ and {braces}\n', number: 1e21, none: null });
      const first = await it.changed(json);
      expect(await it.postgres.transaction((t) => updatePersons(t, first.slice(0, 1)))).toEqual([]);
      expect(await it.postgres.transaction((t) => updatePersons(t, first))).toEqual(first.slice(0, 1));
      const persons = await it.reader.personPage(1);
      expect(persons.map(({ version }) => version)).toEqual(first.map(({ version }) => version + 1));
      for (const { properties } of persons) expect(properties).toEqual(JSON.parse(json));
      const unknown = { ...first[0]!, uuid: crypto.randomUUID() };
      expect(await it.postgres.transaction((t) => updatePersons(t, [unknown]))).toEqual([unknown]);
      expect(await it.postgres.transaction((t) => updatePersons(t, []))).toEqual([]);
    });

    test("two writers of the same rows do not deadlock", async () => {
      await using it = await open();
      const ascending = (await it.changed("{}")).sort((one, other) => (one.uuid < other.uuid ? -1 : 1));
      const write = (persons: readonly ChangedPerson[]) =>
        it.postgres.transaction((t) => updatePersons(t, persons));
      const waiting = async () => {
        const rows = await it.postgres.run(
          (sql) =>
            sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        return rows.length;
      };
      const writers: Promise<ChangedPerson[]>[] = [];
      // A third one holds a row between the first and the last: in other orders, each would hold what the other needs.
      await it.postgres.transaction(async (t) => {
        expect(await updatePersons(t, [ascending[count / 2]!])).toEqual([]);
        for (const persons of [ascending, ascending.toReversed()]) {
          writers.push(write(persons));
          await until(async () => (await waiting()) === writers.length, "the writer waits");
        }
      });
      const [first, second] = await Promise.all(writers);
      expect(first).toEqual([ascending[count / 2]!]);
      expect(second).toHaveLength(count);
      const versions = (await it.reader.personPage(1)).map(({ version }) => version);
      expect(versions).toEqual(Array.from({ length: count }, () => 1));
    });
  });
}
