/** Persons as rows in PostgreSQL are read like the ones in files, and copied from and to files. */

import { expect, spyOn, test } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { changeRange } from "../../src/persons/changes.ts";
import { addCohortMembers } from "../../src/persons/cohort-members.ts";
import { addHashKeyOverrides } from "../../src/persons/hash-key-overrides.ts";
import { copyFromRows, copyToRows, rowTables } from "../../src/persons/postgres/copy.ts";
import { deletePerson } from "../../src/persons/postgres/merge-rows.ts";
import { NodePersonReader } from "../../src/persons/postgres/node-reader.ts";
import { postgresPersonWriter } from "../../src/persons/postgres/person-writer.ts";
import { PostgresPersonReader } from "../../src/persons/postgres/reader.ts";
import { propertiesJson } from "../../src/persons/property-key-sets.ts";
import { personReaderConformance } from "../persons/person-reader-conformance.ts";
import { alias, event, identify, note, set, TestPersons } from "../persons/support.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { hasPostgres } from "../support/postgres.ts";

const openNodeReader = (postgres: Postgres) =>
  new NodePersonReader(postgres, {
    cacheBytes: 1_000_000,
    isUnavailable: () => false,
    onError: () => undefined,
  });

/** Everything that both sides have, in an order; properties as JSON. */
function getContent(people: TestPersons): Record<string, unknown[]> {
  const dump = people.dump();
  return Object.fromEntries(
    [...rowTables, "group_type"]
      .filter((table) => table !== "property_list")
      .map((table) => [
        table,
        (dump[table] as Record<string, unknown>[])
          .map((row) =>
            table === "person"
              ? { ...row, properties: propertiesJson(people.db.$client, row.properties as string) }
              : row,
          )
          .map((row) => JSON.stringify(row, Object.keys(row).sort()))
          .sort(),
      ]),
  );
}

usePostgres();
if (hasPostgres) {
  personReaderConformance("PostgresPersonReader", async (people) => {
    const { postgres } = await createDatabase();
    await copyToRows(people.db, postgres);
    return { reader: new PostgresPersonReader(postgres), close: async () => await postgres.close() };
  });

  personReaderConformance("NodePersonReader", async (people) => {
    const { postgres } = await createDatabase();
    await copyToRows(people.db, postgres);
    const reader = openNodeReader(postgres);
    const close = async () => {
      reader.stop();
      await postgres.close();
    };
    return { reader, close };
  });

  test("requests of one event-loop tick for ids of several projects are one statement", async () => {
    using people = new TestPersons();
    const ids = Array.from({ length: 20 }, (_, n) => `p${n}`);
    people.apply(...ids.map((id) => set(id, { id })), event({ distinctId: "p3", projectId: 2 }));
    const { postgres } = await createDatabase();
    await copyToRows(people.db, postgres);
    const reader = openNodeReader(postgres);
    // Reading changes would be counted.
    reader.stop();
    const withCohorts = { groups: [], withCohorts: true, withOverrides: true, nowMicros: 0 };
    const read = async (projectId: number, id: string) =>
      (await reader.subject({ projectId, distinctIds: [id], ...withCohorts })).person;
    const statements = spyOn(postgres, "run");
    const found = await Promise.all([...ids.map((id) => read(1, id)), read(2, "p3"), read(2, "p4")]);
    expect(statements).toHaveBeenCalledTimes(1);
    expect(found.map((person) => person && [person.projectId, person.mainDistinctId])).toEqual([
      ...ids.map((id) => [1, id]),
      [2, "p3"],
      undefined,
    ]);
    await postgres.close();
  });

  test("the statement that reads persons for flags is planned once, not for each list of ids", async () => {
    using people = new TestPersons();
    people.apply(...Array.from({ length: 100 }, (_, n) => set(`p${n}`, { n })));
    const { postgres } = await createDatabase();
    await copyToRows(people.db, postgres);
    // Of few persons, planning costs more than any plan.
    await postgres.run(
      (sql) => sql`
        WITH more AS (
          INSERT INTO flagkeep.person SELECT n, 2, gen_random_uuid(), 0, 'x', false, true, 1, 0, '{}', '', NULL, NULL
          FROM generate_series(1000, 20000) AS n RETURNING id)
        INSERT INTO flagkeep.distinct_id SELECT 2, gen_random_uuid(), 'x', id, 1 FROM more`,
    );
    await postgres.run((sql) => sql`ANALYZE`);
    // Plans belong to a connection.
    const single = new Postgres(postgres.address, { connections: 1, name: "test" });
    const reader = new PostgresPersonReader(single);
    const countPlans = async () => {
      const [row] = await single.run(
        (sql) => sql<{ count: number }[]>`SELECT custom_plans::int AS count FROM pg_prepared_statements
          WHERE statement LIKE ${"%flagkeep.pending_override q ON%"}`,
      );
      return row!.count;
    };
    const read = async (count: number) => {
      const ids = Array.from({ length: count }, (_, n) => ({ projectId: 1, distinctId: `p${n}` }));
      const found = await reader.storedIds(ids, 0);
      expect(found.map(({ person }) => person?.mainDistinctId)).toEqual(
        ids.map(({ distinctId }) => distinctId),
      );
    };
    // PostgreSQL plans the first five executions with their values.
    for (let count = 1; count <= 5; count++) await read(count);
    expect(await countPlans()).toBe(5);
    for (const count of [1, 2, 100]) await read(count);
    expect(await countPlans()).toBe(5);
    await single.close();
    await postgres.close();
  });

  test("persons that are copied to rows and back are the same, and later ones get other IDs", async () => {
    using people = new TestPersons();
    const values = { text: '"quoted", \\ and {braces}\n\u0000', number: 1e21, none: null, list: ["ключ"] };
    people.apply(
      ...Array.from({ length: 30 }, (_, n) => set(`p${n}`, { ...values, n })),
      event({ distinctId: "anonymous", mode: "propertyless" }),
      identify("p1", "anon"),
      alias("p2", "other"),
      event({ distinctId: "p3", properties: { $unset: ["n"] } }),
      event({
        distinctId: "p4",
        event: "$groupidentify",
        properties: { $group_type: "company", $group_key: "ö", $group_set: values },
      }),
    );
    addCohortMembers(people.db, 1, 7, { distinctIds: ["p1", "p2"] });
    const overrides = { flagKeys: ["f", "g"], hashKey: "former", requestedMicros: 5 };
    addHashKeyOverrides(people.db, 1, { distinctIds: ["p5", "unknown"], ...overrides });
    const { postgres } = await createDatabase();
    await copyToRows(people.db, postgres);
    // A migration that was interrupted begins again.
    await copyToRows(people.db, postgres);
    using back = new TestPersons();
    await copyFromRows(postgres, back.db);
    expect(getContent(back)).toEqual(getContent(people));
    expect(changeRange(back.db).last).toBeGreaterThan(changeRange(people.db).last);
    const [next] = await postgres.run(
      (sql) =>
        sql`SELECT nextval('flagkeep.person_ids')::int AS id, (SELECT max(id) FROM flagkeep.person)::int AS last`,
    );
    expect(next!.id).toBeGreaterThan(next!.last);
    await postgres.close();
  });

  test("persons are found by UUIDs in any spelling, and invalid ones are ignored", async () => {
    using people = new TestPersons();
    people.apply(set("ann", {}), set("kim", {}));
    const { postgres } = await createDatabase();
    await copyToRows(people.db, postgres);
    const writer = postgresPersonWriter((run) => postgres.transaction((t) => run(t)));
    const uuid = people.person("ann")!.uuid.toUpperCase();
    await writer.addCohortMembers(1, 7, { uuids: [uuid, "invalid"] });
    const reader = new PostgresPersonReader(postgres);
    const members = await reader.cohortMembers(7);
    expect(members.map(({ mainDistinctId }) => mainDistinctId)).toEqual(["ann"]);
    const remove = (details: JsonObject) =>
      postgres.transaction((t) => deletePerson(t, note({ kind: "person_deleted", details })));
    await remove({ uuid, distinct_id: "other" });
    await remove({ uuid: "invalid", distinct_id: "unknown" });
    expect((await reader.personPage(1)).map(({ mainDistinctId }) => mainDistinctId)).toEqual(["kim"]);
    await postgres.close();
  });
}
