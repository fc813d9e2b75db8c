import { describe, expect, test } from "bun:test";
import { NewerDataVersionError } from "../../src/lib/sqlite.ts";
import { changesAfter, pruneChanges } from "../../src/persons/changes.ts";
import {
  addCohortMembers,
  cohortMembersPage,
  cohortsOfPerson,
  countCohortMembers,
} from "../../src/persons/cohort-members.ts";
import {
  addHashKeyOverrides,
  hashKeyOverrides,
  pendingHashKeyOverrides,
} from "../../src/persons/hash-key-overrides.ts";
import { openPersons } from "../../src/persons/open.ts";
import { laneCursors } from "../../src/persons/reader.ts";
import {
  alias,
  event,
  identify,
  mergeDangerously,
  newYearMicros,
  note,
  secondMicros,
  set,
  TestPersons,
} from "./support.ts";

describe("the cursor", () => {
  test("starts at 0, moves with each batch of its lane and survives a restart", () => {
    using people = new TestPersons();
    expect(laneCursors(people.db)).toEqual({ realtime: 0, historical: 0 });
    const item = event();
    const step = people.store.start("realtime");
    step.add({ items: [item], duplicates: [] });
    step.commit(item.seq + 5);
    people.store.start("historical").commit(3);
    people.reopen();
    expect([people.store.cursor("realtime"), people.store.cursor("historical")]).toEqual([item.seq + 5, 3]);
    expect(laneCursors(people.db)).toEqual({ realtime: item.seq + 5, historical: 3 });
  });

  test("a batch handed over again changes nothing", () => {
    using people = new TestPersons();
    const items = [
      set("a", { n: 1 }),
      event({ event: "$identify", mode: "propertyless" }),
      set("a", { n: 2 }),
    ];
    people.apply(...items);
    people.reopen();
    const before = people.dump();
    people.apply(...items);
    expect(people.dump()).toEqual(before);
    people.apply(...items, set("a", { n: 3 }));
    expect(people.properties("a")).toEqual({ n: 3 });
  });

  describe("does not move, and nothing else changes, when a statement fails", () => {
    const first = [set("anon", { n: 1 }), set("user", { n: 2 }), event({ distinctId: "x" }), note()];
    const later = { receivedMicros: first[0]!.receivedMicros + 90 * secondMicros };
    const second = [
      identify("user", "anon", later),
      event({ distinctId: "new", properties: { $groups: { team: "t" } }, ...later }),
      event({ event: "$groupidentify", properties: { $group_type: "company", $group_key: "c" }, ...later }),
      note({ kind: "drop", type: "missing_event_name", ...later }),
    ];
    const prepared = () => {
      const people = new TestPersons();
      people.apply(...first);
      addCohortMembers(people.db, 1, 9, { distinctIds: ["anon"] });
      return people;
    };
    const people = ["person", "distinct_id", "cohort_member", "change"];
    const others = [
      "group_type",
      "project_group",
      "usage_day",
      "ingestion_warning",
      "event_rate",
      "lane_cursor",
    ];
    for (const table of [...people, ...others]) {
      test(table, () => {
        using people = prepared();
        const before = people.dump();
        const failing = ["INSERT", "UPDATE"].map((change) => ({ change, name: `fail_${change}` }));
        for (const { change, name } of failing) {
          people.db.$client.run(
            `CREATE TEMP TRIGGER ${name} BEFORE ${change} ON ${table} BEGIN SELECT RAISE(ABORT, 'no room'); END`,
          );
        }
        expect(() => people.apply(...second)).toThrow("no room");
        expect(people.dump()).toEqual(before);
        for (const { name } of failing) people.db.$client.run(`DROP TRIGGER ${name}`);
        people.apply(...second);
        using untroubled = prepared();
        untroubled.apply(...second);
        expect(people.dump()).toEqual(untroubled.dump());
      });
    }
  });
});

describe("changes for the event store", () => {
  const seen = (people: TestPersons, afterId = 0) =>
    changesAfter(people.db, afterId, 100).map((change) =>
      change.kind === "distinct_id"
        ? `${change.distinctId} -> ${change.personUuid.slice(0, 4)}`
        : change.kind,
    );
  const uuid = (people: TestPersons, id: string) => people.person(id)!.uuid.slice(0, 4);

  test("are one row per person or id and batch, and none for what did not change", () => {
    using people = new TestPersons();
    people.apply(event(), set("a", { n: 1 }), set("a", { n: 2 }));
    const a = uuid(people, "a");
    expect(seen(people)).toEqual([`a -> ${a}`]);
    people.apply(set("a", { n: 2 }), event());
    expect(seen(people)).toHaveLength(1);
    people.apply(set("a", { n: 3 }), set("a", { n: 4 }));
    expect(seen(people).slice(1)).toEqual(["person"]);
  });

  test("list every moved id and the merged person", () => {
    using people = new TestPersons();
    people.apply(identify("a", "b"), event({ distinctId: "c" }));
    const { length } = changesAfter(people.db, 0, 100);
    people.apply(mergeDangerously("c", "a"));
    const c = uuid(people, "c");
    const after = changesAfter(people.db, 0, 100).at(length - 1)!.changeId;
    expect(seen(people, after).sort()).toEqual([`a -> ${c}`, `b -> ${c}`, "person_deleted"].sort());
  });

  test("keep their numbers when mirrored ones are forgotten, all of them included", () => {
    using people = new TestPersons();
    people.apply(event({ distinctId: "a" }), event({ distinctId: "b" }));
    const last = changesAfter(people.db, 0, 100).at(-1)!.changeId;
    pruneChanges(people.db, last);
    people.reopen();
    people.apply(event({ distinctId: "c" }));
    expect(changesAfter(people.db, last, 100).map(({ changeId }) => changeId)).toEqual([last + 1]);
    expect(changesAfter(people.db, 0, 100)).toHaveLength(1);
  });

  test("come in portions", () => {
    using people = new TestPersons();
    people.apply(...["a", "b", "c"].map((distinctId) => event({ distinctId })));
    const [first, second] = changesAfter(people.db, 0, 2);
    expect(changesAfter(people.db, second!.changeId, 2)).toHaveLength(1);
    expect(first!.changeId).toBeLessThan(second!.changeId);
  });
});

describe("static cohorts", () => {
  test("hold persons by distinct id or uuid, each once; unknown names are passed over", () => {
    using people = new TestPersons();
    people.apply(identify("a", "b"), event({ distinctId: "c" }), event({ distinctId: "a", projectId: 2 }));
    expect(addCohortMembers(people.db, 1, 5, { distinctIds: ["a", "b", "nobody"] })).toBe(1);
    expect(
      addCohortMembers(people.db, 1, 5, { uuids: [people.person("c")!.uuid, people.person("a")!.uuid] }),
    ).toBe(1);
    expect(addCohortMembers(people.db, 2, 5, { uuids: [people.person("c")!.uuid] })).toBe(0);
    expect(countCohortMembers(people.db, 5)).toBe(2);
    const [first] = cohortMembersPage(people.db, 5, { limit: 1 });
    expect(first!.mainDistinctId).toBe("a");
    expect(cohortMembersPage(people.db, 5, { afterId: first!.id }).map((p) => p.mainDistinctId)).toEqual([
      "c",
    ]);
    expect(cohortsOfPerson(people.db, people.person("b")!.id)).toEqual(new Set([5]));
  });

  test("move with a fold", () => {
    using people = new TestPersons();
    people.apply(event({ distinctId: "a" }), event({ distinctId: "b" }));
    addCohortMembers(people.db, 1, 5, { distinctIds: ["a", "b"] });
    addCohortMembers(people.db, 1, 6, { distinctIds: ["b"] });
    people.apply(alias("a", "b"));
    expect(cohortsOfPerson(people.db, people.person("a")!.id)).toEqual(new Set([5, 6]));
    expect([countCohortMembers(people.db, 5), countCohortMembers(people.db, 6)]).toEqual([1, 1]);
  });
});

describe("hash-key overrides", () => {
  test("are kept once stored; of two persons the first id's wins", () => {
    using people = new TestPersons();
    people.apply(event({ distinctId: "user" }), event({ distinctId: "anon" }));
    const store = (distinctIds: string[], flagKeys: string[], hashKey: string) =>
      addHashKeyOverrides(people.db, 1, { distinctIds, flagKeys, hashKey, requestedMicros: newYearMicros });
    expect(store(["anon", "nobody"], ["f", "g"], "anon")).toBe(2);
    expect(store(["user", "anon"], ["f"], "later")).toBe(1);
    expect(hashKeyOverrides(people.db, 1, ["user", "anon"])).toEqual(
      new Map([
        ["f", "later"],
        ["g", "anon"],
      ]),
    );
    expect(hashKeyOverrides(people.db, 1, ["anon", "user"]).get("f")).toBe("anon");
    expect(hashKeyOverrides(people.db, 2, ["anon"])).toEqual(new Map());
    people.apply(identify("user", "anon"));
    expect(hashKeyOverrides(people.db, 1, ["anon"])).toEqual(
      new Map([
        ["f", "later"],
        ["g", "anon"],
      ]),
    );
  });

  describe("of IDs without a person", () => {
    /** Requested at the first second of the year, from which tests count. */
    const at = (seconds: number) => newYearMicros + seconds * secondMicros;
    const request = (
      people: TestPersons,
      distinctIds: string[],
      { hashKey = "anon", seconds = 0, flagKeys = ["f"], pendingMax = undefined as number | undefined } = {},
    ) =>
      addHashKeyOverrides(
        people.db,
        1,
        { distinctIds, flagKeys, hashKey, requestedMicros: at(seconds) },
        pendingMax,
      );
    const pending = (people: TestPersons, id: string, seconds = 0, projectId = 1) =>
      Object.fromEntries(pendingHashKeyOverrides(people.db, projectId, id, at(seconds)).overrides);
    const ofPerson = (people: TestPersons, id: string) =>
      Object.fromEntries(hashKeyOverrides(people.db, 1, [id]));
    const received = (seconds: number) => ({ receivedMicros: at(seconds) });

    test("are valid for five minutes, in their project, and not for the former ID itself", () => {
      using people = new TestPersons();
      expect(request(people, ["user", "anon"])).toBe(0);
      expect([pending(people, "user"), pending(people, "user", 300)]).toEqual([{ f: "anon" }, { f: "anon" }]);
      expect([pending(people, "user", 331), pending(people, "user", 0, 2), pending(people, "anon")]).toEqual([
        {},
        {},
        {},
      ]);
    });

    test("go to the person that gets the ID by an event received within five minutes", () => {
      using people = new TestPersons();
      request(people, ["user", "anon"]);
      people.reopen();
      // However late it is applied.
      people.apply(identify("user", "anon", received(300)));
      expect([ofPerson(people, "user"), ofPerson(people, "anon")]).toEqual([{ f: "anon" }, { f: "anon" }]);
      expect(pending(people, "user")).toEqual({});
      request(people, ["late"]);
      people.apply(identify("late", "other", received(331)));
      expect([ofPerson(people, "late"), pending(people, "late")]).toEqual([{}, {}]);
    });

    test("of a person that has an override, that one wins", () => {
      using people = new TestPersons();
      people.apply(event({ distinctId: "anon" }));
      request(people, ["anon"], { hashKey: "older" });
      request(people, ["user"], { hashKey: "newer", flagKeys: ["f", "g"] });
      people.apply(identify("user", "anon", received(1)));
      expect(ofPerson(people, "user")).toEqual({ f: "older", g: "newer" });
    });

    test("the first request decides, later ones extend it and add flags; after it has expired, a new one decides", () => {
      using people = new TestPersons();
      request(people, ["user"], { hashKey: "first" });
      request(people, ["user"], { hashKey: "second", seconds: 200, flagKeys: ["g"] });
      expect(pending(people, "user", 500)).toEqual({ f: "first", g: "first" });
      request(people, ["user"], { hashKey: "third", seconds: 531 });
      expect(pending(people, "user", 531)).toEqual({ f: "third" });
    });

    test("another server stores one while the person is created: it is assigned afterwards", () => {
      using people = new TestPersons();
      people.apply(event({ distinctId: "user" }));
      people.db.$client.run(`INSERT INTO pending_override VALUES (1, 1, 'user', 'anon', '["f"]', ${at(0)})`);
      people.store.tick(at(1));
      expect([ofPerson(people, "user"), pending(people, "user")]).toEqual([{ f: "anon" }, {}]);
    });

    test("expired ones are deleted, and of too many the oldest", () => {
      using people = new TestPersons();
      const rows = () =>
        people.db.$client.query("SELECT distinct_id FROM pending_override ORDER BY id").values().flat();
      for (const id of ["a", "b", "c", "d"]) request(people, [id], { pendingMax: 3 });
      expect(rows()).toEqual(["b", "c", "d"]);
      request(people, ["e"], { seconds: 400 });
      people.store.tick(at(660));
      expect(rows()).toEqual(["b", "c", "d", "e"]);
      people.store.tick(at(661));
      expect(rows()).toEqual(["e"]);
    });

    test("skips ids that cannot belong to a person", () => {
      using people = new TestPersons();
      request(people, ["", "x".repeat(1_001)]);
      expect(people.db.$client.query("SELECT 1 FROM pending_override").all()).toEqual([]);
    });
  });
});

describe("the file", () => {
  test("of a newer version is rejected", () => {
    using people = new TestPersons();
    people.db.$client.run("INSERT INTO schema_migration VALUES (99, 'later', '', '')");
    expect(() => openPersons(people.path)).toThrow(NewerDataVersionError);
  });

  test("opened for reading shows what is written meanwhile and cannot be written", () => {
    using people = new TestPersons();
    const reader = openPersons(people.path, { readonly: true });
    people.apply(event());
    expect(laneCursors(reader).realtime).toBe(people.store.cursor("realtime"));
    expect(() => pruneChanges(reader, 1)).toThrow("readonly");
    reader.$client.close();
  });
});

test("changes are read in batches, limited by number and by characters of distinct ids", () => {
  using people = new TestPersons();
  people.apply(
    ...Array.from({ length: 10_020 }, (_, index) => event({ distinctId: `${index}-${"x".repeat(90)}` })),
  );
  const all = changesAfter(people.db, 0);
  expect(all).toHaveLength(10_020);
  expect(all.map(({ changeId }) => changeId)).toEqual(all.map((_, index) => all[0]!.changeId + index));
  expect(changesAfter(people.db, all[4]!.changeId, 7)).toEqual(all.slice(5, 12));
  expect(changesAfter(people.db, 0, 10_010)).toEqual(all.slice(0, 10_010));
  expect(changesAfter(people.db, 0, 20_000, 1_000)).toEqual(all.slice(0, 10_000));
});
