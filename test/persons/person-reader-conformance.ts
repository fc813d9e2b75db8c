/** What `PersonReader` promises, as tests that run over every implementation. */

import { afterEach, describe, expect, test } from "bun:test";
import { addCohortMembers } from "../../src/persons/cohort-members.ts";
import { addHashKeyOverrides } from "../../src/persons/hash-key-overrides.ts";
import type { PersonReader, SubjectQuery } from "../../src/persons/person-reader.ts";
import { event, identify, newYearMicros, set, TestPeople } from "./support.ts";

export interface PersonReaderUnderTest {
  reader: PersonReader;
  close(): Promise<void>;
}

const nowMicros = newYearMicros + 3_600_000_000;

/** @param open a reader of what the engine stored in `people` until then. */
export function personReaderConformance(
  name: string,
  open: (people: TestPeople) => Promise<PersonReaderUnderTest>,
): void {
  describe(`${name} is a reader of persons`, () => {
    const opened: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const close of opened.splice(0)) await close();
    });
    const reading = async (fill: (people: TestPeople) => void): Promise<PersonReader> => {
      const people = new TestPeople();
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
          people: TestPeople,
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

      test("say whether there ever were overrides", async () => {
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
