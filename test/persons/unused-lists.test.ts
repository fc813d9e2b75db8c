import { expect, test } from "bun:test";
import {
  firstLookMicros,
  graceMicros,
  nextLookMicros,
  personsPerTurn,
} from "../../src/persons/key-set-gc.ts";
import { personByDistinctId } from "../../src/persons/reader.ts";
import { newYearMicros, note, set, TestPersons } from "./support.ts";

/** A store, and turns of its housekeeping. */
class CachedPeople extends TestPersons {
  private nowMicros = newYearMicros;

  tick(afterMicros: number): void {
    this.nowMicros += afterMicros;
    this.store.tick(this.nowMicros);
  }

  /** Looks at all persons. */
  look(): void {
    this.tick(0);
    this.tick(firstLookMicros);
  }

  lists(): string[] {
    const rows = this.db.$client.query("SELECT names FROM property_list").values() as [string][];
    return rows
      .map(([names]) => (JSON.parse(names) as string[]).filter((name) => name[0] !== "$").join())
      .sort();
  }

  delete(distinctId: string): void {
    const { uuid } = personByDistinctId(this.db, 1, distinctId)!;
    this.apply(note({ kind: "person_deleted", details: { uuid, distinct_id: distinctId } }));
  }

  planOf(distinctId: string): unknown {
    return personByDistinctId(this.db, 1, distinctId)?.properties;
  }
}

test("a name that only a deleted person had is deleted too; others stay", () => {
  using people = new CachedPeople();
  people.apply(set("a", { "ann@example.com": 1 }), set("b", { plan: "pro" }));
  expect(people.lists()).toEqual(["ann@example.com", "plan"]);
  people.delete("a");
  people.look();
  expect(people.lists()).toEqual(["ann@example.com", "plan"]);
  people.tick(graceMicros - 1);
  expect(people.lists()).toEqual(["ann@example.com", "plan"]);
  people.tick(1);
  expect(people.lists()).toEqual(["plan"]);
  expect(people.planOf("b")).toMatchObject({ plan: "pro" });
});

test("also after the first time, a day later", () => {
  using people = new CachedPeople();
  people.apply(set("a", { one: 1 }), set("b", { two: 1 }));
  people.look();
  people.tick(graceMicros);
  people.delete("a");
  people.tick(nextLookMicros - 1);
  people.tick(graceMicros);
  people.tick(graceMicros);
  expect(people.lists()).toEqual(["two"]);
});

test("lists written by a concurrent step are used, even if its persons were checked before", () => {
  using people = new CachedPeople();
  people.apply(set("a", { one: 1 }), set("b", { two: 1 }));
  people.delete("a");
  people.look();
  people.apply(set("c", { one: 2 }));
  people.apply(set("b", { three: 3 }));
  people.tick(graceMicros);
  expect(people.lists()).toEqual(["one", "two", "two,three"]);
  expect(people.planOf("c")).toMatchObject({ one: 2 });
  expect(people.planOf("b")).toMatchObject({ two: 1, three: 3 });
});

test("nothing is checked or deleted while a step is open", () => {
  using people = new CachedPeople();
  people.apply(set("a", { one: 1 }));
  people.delete("a");
  people.look();
  const step = people.store.start("realtime");
  people.tick(graceMicros);
  expect(people.lists()).toEqual(["one"]);
  step.abandon();
  people.tick(0);
  expect(people.lists()).toEqual([]);
});

test("persons are checked in batches, and those without a list need none", () => {
  using people = new CachedPeople();
  people.apply(set("a", { one: 1 }), set("last", { two: 2 }));
  people.db.$client.run(
    `WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${personsPerTurn})
     INSERT INTO person (project_id, uuid, main_distinct_id, is_main_alias, joined_count, is_identified, created_at,
                         version, properties, property_times)
     SELECT 1, 'uuid-' || n, 'id-' || n, 0, 1, 0, 0, 1, '{"one":1}', x'00' FROM number`,
  );
  people.db.$client.run("UPDATE person SET id = id + 1000000 WHERE main_distinct_id = 'last'");
  people.db.$client.run("UPDATE distinct_id SET person_id = person_id + 1000000 WHERE distinct_id = 'last'");
  people.delete("a");
  people.look();
  people.tick(graceMicros);
  expect(people.lists()).toEqual(["one", "two"]);
  people.tick(graceMicros);
  expect(people.lists()).toEqual(["two"]);
  expect(people.planOf("last")).toMatchObject({ two: 2 });
});
