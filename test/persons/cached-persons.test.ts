/** Persons stay in memory from step to step: no one can tell from what is stored, and there is a limit to it. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JournalItem } from "../../src/journal/entry.ts";
import { cachedCharactersMax, cachedIdsMax, cachedPersonsMax } from "../../src/persons/cached-persons.ts";
import { openPersons } from "../../src/persons/open.ts";
import { listWarnings } from "../../src/persons/warnings.ts";
import { event, identify, newYearMicros, note, set, TestPersons } from "./support.ts";

const ids = fc.constantFrom("a", "b", "c", "d", "e");
const seldom = <Value>(what: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: what });
const values = fc.dictionary(fc.constantFrom("p", "q", "email", "7"), fc.constantFrom(1, 2, "x@y", "Z"), {
  maxKeys: 2,
});
const sent = fc.record({
  name: fc.constantFrom("seen", "seen", "$identify", "$create_alias", "$merge_dangerously", "$groupidentify"),
  distinctId: ids,
  partner: ids,
  $set: seldom(values),
  $set_once: seldom(values),
  $unset: seldom(fc.subarray(["p", "email"])),
  seconds: fc.nat(5),
  historical: fc.boolean(),
  isPersonless: fc.constantFrom(false, false, false, true),
  isDeletion: fc.constantFrom(false, false, false, false, false, true),
  endsStep: fc.boolean(),
});
type Sent = typeof sent extends fc.Arbitrary<infer Value> ? Value : never;

function getItem(one: Sent, projectId: number): JournalItem {
  const { name, distinctId, partner, historical } = one;
  if (one.isDeletion) {
    const details = { uuid: "", distinct_id: distinctId };
    return note({ kind: "person_deleted", projectId, type: "person_deleted", details, historical });
  }
  const { $set, $set_once, $unset } = one;
  const merge = name === "$identify" ? { $anon_distinct_id: partner } : { alias: partner };
  const group = { $group_type: "company", $group_key: partner, $group_set: $set };
  const about = name === "$groupidentify" ? group : name === "seen" ? {} : merge;
  return event({
    projectId,
    event: name,
    distinctId,
    historical,
    timeMicros: newYearMicros + one.seconds * 1e6,
    mode: one.isPersonless ? "propertyless" : "full",
    properties: { ...about, $set, $set_once, $unset },
  });
}

/** Everything that is stored of a project, but in which order, and which row is whose. */
function getRows({ db }: TestPersons, projectId: number) {
  const rows = (table: string, columns: string, more = "") =>
    db.$client
      .query(`SELECT ${columns} FROM ${table} ${more} WHERE project_id = ? ORDER BY ${columns}`)
      .all(projectId);
  return {
    persons: rows(
      "person",
      `uuid, main_distinct_id, is_main_alias, joined_count, is_identified, created_at, version, search_text,
       properties, property_times, unset_times`,
    ),
    ids: db.$client
      .query(
        `SELECT d.distinct_id, d.joined, p.uuid FROM distinct_id AS d JOIN person AS p ON p.id = d.person_id
         WHERE d.project_id = ? ORDER BY d.distinct_id`,
      )
      .all(projectId),
    changes: rows("change", "person_uuid, distinct_id, is_deleted"),
    personless: rows("personless_id", "id_hash"),
    groupTypes: rows("group_type", "type_index, name, created_at"),
    groups: rows("project_group", "type_index, group_key, created_at, version, properties, property_times"),
    warnings: listWarnings(db, projectId),
  };
}

test("every row is as if all persons were read again in each step", () => {
  using retaining = new TestPersons();
  using reading = new TestPersons();
  let projectId = 0;
  const check = (all: readonly Sent[]) => {
    projectId += 1;
    let step: JournalItem[] = [];
    const flush = () => {
      if (step.length === 0) return;
      retaining.apply(...step);
      reading.reopen();
      reading.apply(...step);
      step = [];
    };
    for (const one of all) {
      if (step.length > 0 && step[0]!.historical !== one.historical) flush();
      step.push(getItem(one, projectId));
      if (one.endsStep) flush();
    }
    flush();
    expect(getRows(retaining, projectId)).toEqual(getRows(reading, projectId));
  };
  fc.assert(fc.property(fc.array(sent, { minLength: 2, maxLength: 25 }), check), { numRuns: 300 });
});

describe("persons are read again", () => {
  /** Changes a row behind the store's back, and has an event change it: that tells whether it was read again. */
  const isReadAgain = (people: TestPersons, edit = (sql: string) => void people.db.$client.run(sql)) => {
    const before = people.person("a")!.version;
    edit("UPDATE person SET version = version + 1000 WHERE main_distinct_id = 'a'");
    people.apply(set("a", { changed: before }));
    const more = people.person("a")!.version - before;
    expect([1, 1_001]).toContain(more);
    return more === 1_001;
  };
  const filled = () => {
    const people = new TestPersons();
    people.apply(set("a", { n: 1 }));
    return people;
  };

  test("not in the next step, as a rule", () => {
    using people = filled();
    expect(isReadAgain(people)).toBeFalse();
    people.store.tick(newYearMicros);
    expect(isReadAgain(people)).toBeFalse();
  });

  test("when another process has written the file", () => {
    using people = filled();
    using other = openPersons(people.path).$client;
    expect(isReadAgain(people, (sql) => void other.run(sql))).toBeTrue();
    expect(isReadAgain(people)).toBeFalse();
  });

  test("when nothing was done for some seconds", () => {
    using people = filled();
    people.store.tick(newYearMicros);
    people.store.tick(newYearMicros + 5e6);
    expect(isReadAgain(people)).toBeTrue();
  });

  test("after a step with a deletion, and after one that failed or was aborted", () => {
    using people = filled();
    const details = { uuid: "", distinct_id: "nobody" };
    people.apply(note({ kind: "person_deleted", type: "person_deleted", details }));
    expect(isReadAgain(people)).toBeTrue();

    people.store.start("realtime").abandon();
    expect(isReadAgain(people)).toBeTrue();

    const { $client } = people.db;
    $client.run("CREATE TRIGGER fails BEFORE UPDATE ON person BEGIN SELECT RAISE(ABORT, 'on purpose'); END");
    expect(() => people.apply(set("a", { failed: true }))).toThrow("on purpose");
    $client.run("DROP TRIGGER fails");
    expect(isReadAgain(people)).toBeTrue();
    expect(people.properties("a")).not.toHaveProperty("failed");
  });

  test.each([
    ["persons", (n: number) => event({ distinctId: `person-${n}` }), cachedPersonsMax],
    ["ids", (n: number) => identify("a", `id-${n}`), cachedIdsMax],
    [
      "characters",
      (n: number) => set(`person-${n}`, { text: "x".repeat(500_000) }),
      Math.ceil(cachedCharactersMax / 500_000),
    ],
    [
      "characters of ids",
      (n: number) => event({ distinctId: `${n}`.padEnd(500_000, "x") }),
      Math.ceil(cachedCharactersMax / 500_000),
    ],
  ])("when there are too many %s", (_, make, max) => {
    using people = filled();
    const apply = (count: number) => {
      const items = Array.from({ length: count }, (_, n) => make(n));
      const step = people.store.start("realtime");
      step.add({ items, duplicates: [] });
      step.commit(items.at(-1)!.seq);
    };
    apply(max >> 1);
    expect(isReadAgain(people)).toBeFalse();
    apply(max);
    expect(isReadAgain(people)).toBeTrue();
    expect(isReadAgain(people)).toBeFalse();
  });
});
