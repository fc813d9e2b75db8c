/** Deleted persons: what goes, what stays, and that it holds however the journal is applied. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JournalItem } from "../../src/journal/entry.ts";
import { decodeEntries } from "../../src/journal/entry-reader.ts";
import { changesAfter } from "../../src/persons/changes.ts";
import { addCohortMembers, countCohortMembers } from "../../src/persons/cohort-members.ts";
import { deletionEntry } from "../../src/persons/deletion.ts";
import { addHashKeyOverrides, hashKeyOverrides } from "../../src/persons/hash-key-overrides.ts";
import { alias, event, identify, newYearMicros, note, set, TestPersons } from "./support.ts";

const deletion = (uuid: string, distinctId: string) =>
  note({ kind: "person_deleted", type: "person_deleted", details: { uuid, distinct_id: distinctId } });

const unknownPerson = "00000000-0000-0000-0000-000000000000";

describe("a deleted person", () => {
  test("is deleted with properties, ids, cohorts and flag keys; others stay", () => {
    using people = new TestPersons();
    people.apply(set("kim", { plan: "platinum" }), identify("kim", "anon"), set("ann", { plan: "free" }));
    addCohortMembers(people.db, 1, 7, { distinctIds: ["kim", "ann"] });
    addHashKeyOverrides(people.db, 1, {
      distinctIds: ["kim"],
      flagKeys: ["f"],
      hashKey: "anon",
      requestedMicros: newYearMicros,
    });
    const { uuid } = people.person("kim")!;
    people.apply(deletion(uuid, "kim"));
    expect([people.person("kim"), people.person("anon")]).toEqual([undefined, undefined]);
    expect(people.persons()).toEqual([{ ids: ["ann"], properties: { plan: "free" }, identified: false }]);
    expect(countCohortMembers(people.db, 7)).toBe(1);
    expect(hashKeyOverrides(people.db, 1, ["kim"]).size).toBe(0);
    expect(people.warnings()).toEqual([]);
    expect(JSON.stringify(people.dump())).not.toContain("platinum");
    // The event store's copies learn of every id.
    const changes = changesAfter(people.db, 0, 100).slice(-3);
    expect(
      changes.map((change) => ("distinctId" in change ? change.distinctId : change.kind)).sort(),
    ).toEqual(["anon", "kim", "person_deleted"]);
  });

  test("is created empty by the next event of its id", () => {
    using people = new TestPersons();
    people.apply(set("kim", { plan: "pro" }));
    people.apply(deletion(people.person("kim")!.uuid, "kim"), event({ distinctId: "kim" }));
    expect(people.persons()).toEqual([{ ids: ["kim"], properties: {}, identified: false }]);
  });

  test("is found by its main id when it was merged meanwhile", () => {
    using people = new TestPersons();
    people.apply(set("anon", { phone: "123" }));
    const { uuid } = people.person("anon")!;
    people.apply(set("kim", {}), identify("kim", "anon"), deletion(uuid, "anon"));
    expect(people.persons()).toEqual([]);
  });

  test("of another project stays, and a deletion of no one changes nothing", () => {
    using people = new TestPersons();
    people.apply(set("kim", { a: 1 }, { projectId: 2 }));
    const { uuid } = people.person("kim", 2)!;
    const before = people.persons(2);
    people.apply(deletion(uuid, "kim"), deletion(unknownPerson, "x"));
    expect(people.persons(2)).toEqual(before);
  });
});

test("the journal's line is read back as what it was", () => {
  const line = deletionEntry(3, { uuid: unknownPerson, distinctId: 'a"\n' }, 1_000);
  const { entries, rejected } = decodeEntries(Buffer.from(`{"seq":9,${line}\n`), 0);
  expect(rejected).toEqual([]);
  expect(entries).toEqual([
    {
      kind: "person_deleted",
      seq: 9,
      projectId: 3,
      receivedMicros: 1_000,
      historical: false,
      type: "person_deleted",
      details: { uuid: unknownPerson, distinct_id: 'a"\n' },
    },
  ]);
});

test("in one batch or in many, with the events around it: the same persons", () => {
  const id = fc.constantFrom("a", "b", "c");
  const step = fc.oneof(
    fc.tuple(fc.constant("set" as const), id, fc.nat(3)),
    fc.tuple(fc.constant("identify" as const), id, id),
    fc.tuple(fc.constant("alias" as const), id, id),
    fc.tuple(fc.constant("delete" as const), id, fc.constant(0)),
    fc.tuple(fc.constant("personless" as const), id, fc.constant(0)),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
      using together = new TestPersons();
      using apart = new TestPersons();
      const items = steps.map(([kind, one, other]): JournalItem => {
        if (kind === "set") return set(one, { n: other });
        if (kind === "identify") return identify(one, String(other));
        if (kind === "alias") return alias(one, other);
        if (kind === "personless") return event({ distinctId: one, mode: "propertyless" });
        return deletion(unknownPerson, one);
      });
      together.apply(...items);
      for (const item of items) apart.apply(item);
      const shown = (people: TestPersons) => [people.persons(), people.dump().personless_id];
      expect(shown(together)).toEqual(shown(apart));
    }),
    { numRuns: 25 },
  );
});
