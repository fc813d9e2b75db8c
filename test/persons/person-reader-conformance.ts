/** What `PersonReader` promises, as tests that run over every implementation. */

import { afterEach, describe, expect, test } from "bun:test";
import { addCohortMembers } from "../../src/persons/cohort-members.ts";
import { addHashKeyOverrides } from "../../src/persons/hash-key-overrides.ts";
import type { PersonReader, SubjectQuery } from "../../src/persons/person-reader.ts";
import { alias, event, identify, newYearMicros, set, TestPersons } from "./support.ts";

export interface PersonReaderUnderTest {
  reader: PersonReader;
  close(): Promise<void>;
}

const nowMicros = newYearMicros + 3_600_000_000;

/** @param open a reader of what the engine stored in `people` until then. */
export function personReaderConformance(
  name: string,
  open: (people: TestPersons) => Promise<PersonReaderUnderTest>,
): void {
  describe(`${name} is a reader of persons`, () => {
    const opened: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const close of opened.splice(0)) await close();
    });
    const reading = async (fill: (people: TestPersons) => void): Promise<PersonReader> => {
      const people = new TestPersons();
      opened.push(async () => people[Symbol.dispose]());
      fill(people);
      const { reader, close } = await open(people);
      opened.unshift(close);
      return reader;
    };

    describe("persons", () => {
      test("by distinct id, in their project only", async () => {
        const reader = await reading((people) =>
          people.apply(identify("a", "b", { properties: { $set: { plan: "pro", size: 1e21 } } })),
        );
        const person = (await reader.personByDistinctId(1, "b"))!;
        expect(person).toMatchObject({ mainDistinctId: "a", isIdentified: true, projectId: 1 });
        expect(person.properties).toMatchObject({ plan: "pro", size: 1e21 });
        expect(await reader.personByDistinctId(1, "a")).toEqual(person);
        expect(await reader.personByDistinctId(2, "a")).toBe(undefined);
        expect(await reader.personByDistinctId(1, "c")).toBe(undefined);
        expect(await reader.personByUuid(1, person.uuid)).toEqual(person);
        expect(await reader.personByUuid(2, person.uuid)).toBe(undefined);
      });

      test("of many distinct ids at once, serialized", async () => {
        const reader = await reading((people) =>
          people.apply(
            identify("a", "b", { properties: { $set: { name: "Kim", size: 12.5, tags: ["x"] } } }),
            event({ distinctId: 'quote"' }),
            event({ distinctId: "a", projectId: 2 }),
          ),
        );
        const found = await reader.personsByDistinctIds(1, ["a", "b", "b", 'quote"', "nobody"]);
        expect([...found.keys()].sort()).toEqual(["a", "b", 'quote"']);
        const { propertiesText, storedProperties: _, propertiesWith: __, ...rest } = found.get("b")!;
        expect(await reader.personByDistinctId(1, "b")).toEqual({
          ...rest,
          properties: JSON.parse(propertiesText),
        });
        const { json, values } = found.get("a")!.propertiesWith(["size", "absent", "name", "tags"]);
        expect([json, values]).toEqual([propertiesText, [12.5, undefined, "Kim", ["x"]]]);
        expect(await reader.personsByDistinctIds(1, [])).toEqual(new Map());
        const many = Array.from({ length: 10_000 }, (_, n) => `id-${n}`);
        expect((await reader.personsByDistinctIds(1, [...many, "a"])).size).toBe(1);
      });

      test("whose ids are asked for", async () => {
        const reader = await reading((people) =>
          people.apply(identify("a", "b"), event({ distinctId: "c" })),
        );
        const [a, c] = await Promise.all(["a", "c"].map((id) => reader.personByDistinctId(1, id)));
        const owners = await reader.distinctIdOwners(1, ["b", "nobody", "c"]);
        expect(owners.toSorted((one, other) => (one.distinctId < other.distinctId ? -1 : 1))).toEqual([
          { distinctId: "b", personUuid: a!.uuid, isIdentified: true },
          { distinctId: "c", personUuid: c!.uuid, isIdentified: false },
        ]);
        const persons = await reader.personsWithIds(1, ["b", "a", "nobody"]);
        expect(persons.map(({ uuid, distinctIds }) => [uuid, distinctIds.sort()])).toEqual([
          [a!.uuid, ["a", "b"]],
        ]);
        expect(await reader.personsWithIds(2, ["a"])).toEqual([]);
      });

      test("all of a project, in pages", async () => {
        const reader = await reading((people) =>
          people.apply(
            ...Array.from({ length: 5 }, (_, n) => event({ distinctId: `id-${n}` })),
            event({ projectId: 2 }),
          ),
        );
        const seen: string[] = [];
        for (let page = await reader.personPage(1, { limit: 2 }); page.length > 0; ) {
          seen.push(...page.map(({ mainDistinctId }) => mainDistinctId));
          page = await reader.personPage(1, { afterId: page.at(-1)!.id, limit: 2 });
        }
        expect(seen.sort()).toEqual(["id-0", "id-1", "id-2", "id-3", "id-4"]);
        const { id } = (await reader.personByDistinctId(1, "id-3"))!;
        expect((await reader.personPage(1, { afterId: id - 1, limit: 1 }))[0]!.id).toBe(id);
      });

      test("with their overrides", async () => {
        const reader = await reading((people) => {
          people.apply(identify("user", "anon"), set("other", {}));
          addHashKeyOverrides(people.db, 1, {
            distinctIds: ["user", "pending"],
            flagKeys: ["half", "all"],
            hashKey: "anon",
            requestedMicros: nowMicros,
          });
        });
        const found = await reader.hashKeyOverrides(1, ["anon", "other", "pending", "nobody"]);
        expect([...found].map(([id, overrides]) => [id, Object.fromEntries(overrides)])).toEqual([
          ["anon", { half: "anon", all: "anon" }],
        ]);
      });

      test("with their ids, the main one first", async () => {
        const reader = await reading((people) =>
          people.apply(event({ distinctId: "x" }), identify("b", "a"), identify("b", "c"), alias("b", "z")),
        );
        const [b, x] = await Promise.all(["a", "x"].map((id) => reader.personByDistinctId(1, id)));
        const ids = await reader.distinctIds([b!, x!]);
        expect(ids).toEqual(
          new Map([
            [b!.id, [b!.mainDistinctId, ...["b", "a", "c", "z"].filter((id) => id !== b!.mainDistinctId)]],
            [x!.id, ["x"]],
          ]),
        );
        expect(await reader.distinctIds([])).toEqual(new Map());
      });

      test("listed newest first, in pages", async () => {
        const reader = await reading((people) =>
          people.apply(
            ...["p1", "p2", "p3"].map((distinctId) => event({ distinctId })),
            event({ distinctId: "other", projectId: 2 }),
          ),
        );
        const list = async (page?: { limit?: number; offset?: number }) => {
          const { persons, hasMore } = await reader.listPersons(1, page);
          return [persons.map(({ mainDistinctId }) => mainDistinctId), hasMore];
        };
        expect(await list()).toEqual([["p3", "p2", "p1"], false]);
        expect(await list({ limit: 2 })).toEqual([["p3", "p2"], true]);
        expect(await list({ limit: 2, offset: 2 })).toEqual([["p1"], false]);
        expect(await list({ offset: 3 })).toEqual([[], false]);
      });

      test("listed in shorter pages if they are large", async () => {
        const text = "x".repeat(500_000);
        const reader = await reading((people) => {
          for (let n = 0; n < 40; n++) people.apply(set(`p${n}`, { text }));
        });
        const { persons, hasMore } = await reader.listPersons(1);
        expect(hasMore).toBe(true);
        expect(persons.length).toBeWithin(1, 40);
        const rest = await reader.listPersons(1, { offset: persons.length });
        expect(persons.length + rest.persons.length).toBe(40);
        const found = await reader.searchPersons(1, "p");
        expect(found.persons.length).toBe(persons.length);
      });

      test("searched in names, addresses and ids, ignoring case", async () => {
        const reader = await reading((people) =>
          people.apply(
            set("id-1", { email: "Ann@example.com" }),
            set("id-2", { name: "Bob Ärmel" }),
            set("Straße-3", { plan: "ann" }),
            set("id-4", { email: "ann@example.com" }, { projectId: 2 }),
          ),
        );
        const search = async (text: string, page?: { limit?: number; offset?: number }) => {
          const { persons, hasMore } = await reader.searchPersons(1, text, page);
          return [persons.map(({ mainDistinctId }) => mainDistinctId), hasMore];
        };
        expect(await search("ANN@")).toEqual([["id-1"], false]);
        expect(await search("ärm")).toEqual([["id-2"], false]);
        expect(await search("STRAßE")).toEqual([["Straße-3"], false]);
        expect(await search("ID-")).toEqual([["id-2", "id-1"], false]);
        expect(await search("id-", { limit: 1 })).toEqual([["id-2"], true]);
        expect(await search("id-", { limit: 1, offset: 1 })).toEqual([["id-1"], false]);
        expect(await search("%")).toEqual([[], false]);
      });
    });

    describe("static cohorts", () => {
      test("have members, in pages, and a size", async () => {
        const reader = await reading((people) => {
          people.apply(...["p1", "p2", "p3", "p4"].map((distinctId) => event({ distinctId })));
          addCohortMembers(people.db, 1, 7, { distinctIds: ["p4", "p1", "p2", "nobody"] });
        });
        const members: string[] = [];
        for (let page = await reader.cohortMembers(7, { limit: 2 }); page.length > 0; ) {
          expect(page.length).toBeLessThanOrEqual(2);
          members.push(...page.map(({ mainDistinctId }) => mainDistinctId));
          page = await reader.cohortMembers(7, { afterId: page.at(-1)!.id, limit: 2 });
        }
        expect(members).toEqual(["p1", "p2", "p4"]);
        expect(await reader.cohortSizes([7, 8])).toEqual(
          new Map([
            [7, 3],
            [8, 0],
          ]),
        );
        expect(await reader.cohortSizes([])).toEqual(new Map());
        const [p1, p3] = await Promise.all(["p1", "p3"].map((id) => reader.personByDistinctId(1, id)));
        expect(await reader.cohortsOfPersons([p1!.id, p3!.id])).toEqual(
          new Map([
            [p1!.id, new Set([7])],
            [p3!.id, new Set<number>()],
          ]),
        );
      });
    });

    describe("groups", () => {
      const group = (type: string, $group_key: string, $group_set: object = {}) =>
        event({ event: "$groupidentify", properties: { $group_type: type, $group_key, $group_set } });

      test("have types, in the order of their appearance", async () => {
        const reader = await reading((people) => people.apply(group("team", "a"), group("company", "b")));
        const types = await reader.groupTypes(1);
        expect(types.map(({ typeIndex, name: type }) => [typeIndex, type])).toEqual([
          [0, "team"],
          [1, "company"],
        ]);
        expect(types[0]!.createdMicros).toBeWithin(newYearMicros, newYearMicros + 1e12);
        expect(await reader.groupTypes(2)).toEqual([]);
      });

      test("are found by key, listed newest first and searched", async () => {
        const reader = await reading((people) =>
          people.apply(
            group("company", "acme", { name: "Acme Ärzte" }),
            group("company", "beta", { size: 3 }),
            group("company", "gamma"),
            group("team", "delta"),
          ),
        );
        expect(await reader.findGroup(1, 0, "beta")).toMatchObject({ key: "beta", properties: { size: 3 } });
        expect(await reader.findGroup(1, 1, "beta")).toBe(undefined);
        const first = await reader.listGroups(1, 0, { limit: 2 });
        expect(first.groups.map(({ key }) => key)).toEqual(["gamma", "beta"]);
        const last = await reader.listGroups(1, 0, { limit: 2, after: first.next });
        expect([last.groups.map(({ key }) => key), last.next]).toEqual([["acme"], undefined]);
        const search = async (text: string) =>
          (await reader.searchGroups(1, 0, text)).groups.map(({ key }) => key);
        expect(await search("ÄRZ")).toEqual(["acme"]);
        expect(await search("BET")).toEqual(["beta"]);
        expect(await search("delta")).toEqual([]);
        const all = await reader.groupPage(1, undefined, 3);
        expect(all.map(({ type, typeIndex, key }) => [type, typeIndex, key])).toEqual([
          ["company", 0, "acme"],
          ["company", 0, "beta"],
          ["company", 0, "gamma"],
        ]);
        expect(JSON.parse(all[1]!.propertiesJson)).toEqual({ size: 3 });
        const others = await reader.groupPage(1, all[2], 3);
        expect(others.map(({ key }) => key)).toEqual(["delta"]);
      });
    });

    describe("subjects of flags", () => {
      const ask = async (reader: PersonReader, query: Partial<SubjectQuery>) =>
        await reader.subject({
          projectId: 1,
          distinctIds: [],
          withCohorts: false,
          withOverrides: false,
          groups: [],
          nowMicros,
          ...query,
        });
      const keys = (overrides: ReadonlyMap<string, string>) => Object.fromEntries(overrides);

      test("have a person, if the id has one", async () => {
        const reader = await reading((people) => people.apply(set("ann", { plan: "pro" })));
        const { person, staticCohortIds, overridden, groups } = await ask(reader, { distinctIds: ["ann"] });
        expect(JSON.parse(person!.propertiesText)).toMatchObject({ plan: "pro" });
        expect(person!.uuid).toBe((await reader.personByDistinctId(1, "ann"))!.uuid);
        expect([staticCohortIds, overridden, groups]).toEqual([undefined, [], []]);
        for (const distinctIds of [[], [""], ["bob"]])
          expect((await ask(reader, { distinctIds })).person).toBe(undefined);
        expect((await ask(reader, { distinctIds: ["ann"], projectId: 2 })).person).toBe(undefined);
      });

      test("are found by ids that capture has changed", async () => {
        const reader = await reading((people) => people.apply(set("a\u0000b", { plan: "pro" })));
        expect((await ask(reader, { distinctIds: ["a\u0000b"] })).person).toBeDefined();
      });

      test("equal properties have an equal encoding", async () => {
        const reader = await reading((people) =>
          people.apply(
            set("ann", { plan: "pro" }),
            set("ann", { plan: "pro" }),
            set("bob", { plan: "free" }),
          ),
        );
        const stored = async (id: string) =>
          (await ask(reader, { distinctIds: [id] })).person!.storedProperties;
        expect(await stored("ann")).toBe(await stored("ann"));
        expect(await stored("ann")).not.toBe(await stored("bob"));
      });

      test("have static cohorts", async () => {
        const reader = await reading((people) => {
          people.apply(set("ann", {}), set("bob", {}));
          for (const cohort of [3, 4]) addCohortMembers(people.db, 1, cohort, { distinctIds: ["ann"] });
        });
        const cohorts = async (id: string) =>
          (await ask(reader, { distinctIds: [id], withCohorts: true })).staticCohortIds;
        expect(await cohorts("ann")).toEqual(new Set([3, 4]));
        expect(await cohorts("bob")).toEqual(new Set());
        expect(await cohorts("nobody")).toBe(undefined);
      });

      test("have groups, in the order of the query", async () => {
        const group = ($group_key: string, size: string) =>
          event({
            event: "$groupidentify",
            properties: { $group_type: "company", $group_key, $group_set: { size } },
          });
        const reader = await reading((people) =>
          people.apply(group("acme", "large"), group("beta", "small")),
        );
        const wanted = ["beta", "none", "acme"].map((key) => ({ typeIndex: 0, key }));
        const { groups } = await ask(reader, { groups: wanted });
        expect(groups.map((found) => found?.properties.size)).toEqual(["small", undefined, "large"]);
        const others = await ask(reader, { groups: [{ typeIndex: 1, key: "acme" }] });
        expect(others.groups).toEqual([undefined]);
      });

      test("have the overrides of both ids, and once if they are one person's", async () => {
        const override = (
          people: TestPersons,
          distinctIds: string[],
          hashKey: string,
          requestedMicros: number,
        ) => addHashKeyOverrides(people.db, 1, { distinctIds, flagKeys: ["half"], hashKey, requestedMicros });
        const reader = await reading((people) => {
          people.apply(set("user", {}), set("other", {}), identify("joined", "former"));
          override(people, ["user"], "anon", nowMicros);
          override(people, ["joined"], "former", nowMicros);
          override(people, ["pending"], "anon", nowMicros);
          override(people, ["expired"], "anon", nowMicros - 400_000_000);
        });
        const overridden = async (...distinctIds: string[]) =>
          (await ask(reader, { distinctIds, withOverrides: true })).overridden.map((one) => ({
            ...one,
            overrides: keys(one.overrides),
          }));
        const ofPerson = { hasPerson: true, isOld: false };
        expect(await overridden("user", "other")).toEqual([
          { distinctId: "user", ...ofPerson, overrides: { half: "anon" } },
          { distinctId: "other", ...ofPerson, overrides: {} },
        ]);
        expect(await overridden("joined", "former")).toEqual([
          { distinctId: "joined", ...ofPerson, overrides: { half: "former" } },
        ]);
        expect(await overridden("pending", "expired")).toEqual([
          { distinctId: "pending", hasPerson: false, isOld: false, overrides: { half: "anon" } },
          { distinctId: "expired", hasPerson: false, isOld: true, overrides: {} },
        ]);
        expect(await overridden("", "user")).toEqual([
          { distinctId: "user", ...ofPerson, overrides: { half: "anon" } },
        ]);
        expect((await ask(reader, { distinctIds: ["user"] })).overridden).toEqual([]);
      });

      test("report whether overrides ever existed", async () => {
        const without = await reading((people) => people.apply(set("user", {})));
        expect(await without.hasHashKeyOverrides()).toBe(false);
        const pending = { flagKeys: ["half"], hashKey: "anon", requestedMicros: nowMicros };
        const reader = await reading((people) =>
          addHashKeyOverrides(people.db, 1, { ...pending, distinctIds: ["pending"] }),
        );
        expect(await reader.hasHashKeyOverrides()).toBe(true);
      });
    });
  });
}
