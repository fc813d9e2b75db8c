import { describe, expect, test } from "bun:test";
import { exactNumber } from "../../src/lib/json/exact.ts";
import {
  findGroup,
  findGroups,
  type GroupCursor,
  listGroups,
  listGroupTypes,
  searchGroups,
} from "../../src/persons/groups.ts";
import { type EventParts, event, newYearMicros, TestPersons } from "./support.ts";

const group = (type: string, key: unknown, $group_set?: unknown, more: EventParts = {}) =>
  event({
    ...more,
    event: "$groupidentify",
    properties: { $group_type: type, $group_key: key, $group_set, ...more.properties },
  });
const typeNames = (people: TestPersons) => listGroupTypes(people.db, 1).map(({ name }) => name);

describe("group types", () => {
  test("numbered by arrival; $groups uses a number but creates no group", () => {
    using people = new TestPersons();
    const first = event({ properties: { $groups: { company: "acme", team: 7 } } });
    people.apply(first, event({ properties: { $groups: { team: "x" } } }));
    expect(listGroupTypes(people.db, 1)).toEqual([
      { typeIndex: 0, name: "company", createdMicros: first.receivedMicros },
      { typeIndex: 1, name: "team", createdMicros: first.receivedMicros },
    ]);
    expect(listGroups(people.db, 1, 0).groups).toEqual([]);
  });

  test("a type of an earlier step keeps its number", () => {
    using people = new TestPersons();
    const eventOfGroup = (type: string) => event({ properties: { $groups: { [type]: "x" } } });
    people.applyOneByOne(
      eventOfGroup("company"),
      eventOfGroup("company"),
      eventOfGroup("team"),
      eventOfGroup("company"),
    );
    expect(typeNames(people)).toEqual(["company", "team"]);
  });

  test("none from a personless event", () => {
    using people = new TestPersons();
    people.apply(event({ mode: "propertyless", properties: { $groups: { company: "acme" } } }));
    expect(typeNames(people)).toEqual([]);
  });

  test("there may be any number of them, with names of any length", () => {
    for (const isOneByOne of [false, true]) {
      using people = new TestPersons();
      const names = [..."abcdefghijklmnopqrstuvwxyz", "t".repeat(5_000)];
      const items = names.map((type) => group(type, "k", { type }));
      if (isOneByOne) people.applyOneByOne(...items);
      else people.apply(...items);
      expect(typeNames(people)).toEqual(names);
      expect(findGroup(people.db, 1, 25, "k")?.properties).toEqual({ type: "z" });
      expect(people.warnings()).toEqual([]);
    }
  });

  test("each project has its own", () => {
    using people = new TestPersons();
    people.apply(group("company", "x"), group("team", "x", {}, { projectId: 2 }));
    expect(typeNames(people)).toEqual(["company"]);
    expect(findGroup(people.db, 2, 0, "x")).toBeDefined();
  });
});

describe("groups", () => {
  test("a search finds parts of keys and names in any case, in pages, of one type and project", async () => {
    using people = new TestPersons();
    const many = Array.from({ length: 1_200 }, (_, index) =>
      group("company", `other-${index}`, { name: index }),
    );
    people.apply(
      group("company", "ÄRA-1", { name: "Elephant & Co" }),
      ...many,
      group("company", "key-2", { name: "The ära" }),
      group("company", "key-3", { city: "ära" }),
      group("team", "ära"),
      group("company", "ära", {}, { projectId: 2 }),
    );
    const find = async (search: string, page: { after?: GroupCursor; limit?: number } = {}) =>
      await searchGroups(people.db, 1, 0, search, page);
    const keys = async (search: string) => (await find(search)).groups.map(({ key }) => key);
    expect(await keys("ÄRA")).toEqual(["key-2", "ÄRA-1"]);
    expect(await keys("phant &")).toEqual(["ÄRA-1"]);
    expect(await keys("1199")).toEqual(["other-1199"]);
    for (const none of ["%", "city", "null", "ära\nthe"]) expect(await keys(none)).toEqual([]);
    const first = await find("ära", { limit: 1 });
    expect(first.groups.map(({ key }) => key)).toEqual(["key-2"]);
    const second = await find("ära", { limit: 1, after: first.next! });
    expect(second.groups.map(({ key }) => key)).toEqual(["ÄRA-1"]);
    expect(second.next).toBeUndefined();
    expect((await find("other", { limit: 700 })).groups).toHaveLength(700);
  });

  test("a search among large groups finds all of them, in pages that are not larger than others", async () => {
    using people = new TestPersons();
    const large = "x".repeat(400_000);
    const keys = Array.from({ length: 60 }, (_, n) => `large-${n}`);
    for (const key of keys) people.apply(group("company", key, { name: "Large", large }));
    people.apply(group("company", "small", { name: "Small" }));
    const found: string[] = [];
    const pages: number[] = [];
    for (let after: GroupCursor | undefined; ; ) {
      const { groups, next } = await searchGroups(people.db, 1, 0, "large", after && { after });
      found.push(...groups.map(({ key }) => key));
      pages.push(groups.length);
      if (next === undefined) break;
      after = next;
    }
    expect(found.sort()).toEqual(keys.sort());
    expect(Math.max(...pages)).toBeLessThan(60);
  });

  test("keep all digits of a property when another one changes", () => {
    using people = new TestPersons();
    const digits = "9007199254746192393";
    const account = { ref: exactNumber(digits), list: [exactNumber(digits)] };
    people.applyOneByOne(group("company", "x", account), group("company", "x", { plan: "pro" }));
    const { properties } = findGroup(people.db, 1, 0, "x")!;
    expect(JSON.stringify(properties)).toBe(`{"ref":${digits},"list":[${digits}],"plan":"pro"}`);
  });

  test("are created by the first identify and merged shallowly by the next, in one batch and in two", () => {
    for (const isOneByOne of [false, true]) {
      using people = new TestPersons();
      const first = group("company", "acme", { size: 1, address: { city: "Kyiv", zip: 1 } });
      const second = group("company", "acme", { size: 2, address: { city: "Lviv" }, plan: "pro" });
      if (isOneByOne) people.applyOneByOne(first, second);
      else people.apply(first, second);
      expect(findGroup(people.db, 1, 0, "acme")).toMatchObject({
        typeIndex: 0,
        key: "acme",
        createdMicros: first.timeMicros,
        properties: { size: 2, address: { city: "Lviv" }, plan: "pro" },
      });
    }
  });

  test("a number as key is its text; an absent set makes an empty group", () => {
    using people = new TestPersons();
    people.apply(group("company", 5), group("company", 6, null));
    expect(
      findGroups(people.db, 1, 0, ["5", "6", "7"]).map(({ key, properties }) => [key, properties]),
    ).toEqual([
      ["5", {}],
      ["6", {}],
    ]);
  });

  test("the person of the event is created, and not written", () => {
    using people = new TestPersons();
    people.apply(
      group("company", "x", { size: 1 }, { distinctId: "server", properties: { $set: { plan: "pro" } } }),
    );
    expect(people.persons()).toEqual([{ ids: ["server"], properties: {}, identified: false }]);
  });

  test("history does not overwrite what was written later", () => {
    using people = new TestPersons();
    const old = { historical: true, timeMicros: newYearMicros - 1 };
    people.applyOneByOne(
      group("company", "x", { plan: "pro" }),
      group("company", "x", { plan: "trial", city: "Kyiv" }, old),
    );
    expect(findGroup(people.db, 1, 0, "x")?.properties).toEqual({ plan: "pro", city: "Kyiv" });
  });

  test("keys are kept whole: two that begin alike are two groups", () => {
    using people = new TestPersons();
    const one = `${"k".repeat(1_000)}1`;
    const other = `${"k".repeat(1_000)}2`;
    people.apply(group("company", one, { n: 1 }), group("company", other, { n: 2 }));
    const found = findGroups(people.db, 1, 0, [one, other]);
    expect(found.map(({ properties }) => properties.n).sort()).toEqual([1, 2]);
  });

  test("an invalid set leaves the group unchanged, and creates no group and no type", () => {
    using people = new TestPersons();
    for (const set of ["size", 5, true, ["size"]]) {
      people.apply(group("company", "k", { size: 1 }), group("company", "k", set), group("team", "new", set));
      expect(findGroup(people.db, 1, 0, "k")?.properties).toEqual({ size: 1 });
      expect(listGroups(people.db, 1, 0).groups).toHaveLength(1);
      expect(typeNames(people)).toEqual(["company"]);
    }
  });

  test("too large properties are rejected with a warning", () => {
    using people = new TestPersons();
    people.apply(
      group("company", "x", { size: 1 }),
      group("company", "x", { size: 2, text: "x".repeat(600_000) }),
    );
    expect(findGroup(people.db, 1, 0, "x")?.properties).toEqual({ size: 2 });
    expect(people.warnings()).toEqual(["group_properties_size_violation"]);
  });

  test("are listed newest first, in pages", () => {
    using people = new TestPersons();
    const times = [3, 1, 2, 2, 5];
    people.apply(...times.map((timeMicros, index) => group("company", `k${index}`, {}, { timeMicros })));
    const seen: string[] = [];
    let after: { createdMicros: number; id: number } | undefined;
    do {
      const page = listGroups(people.db, 1, 0, { after, limit: 2 });
      seen.push(...page.groups.map(({ key }) => key));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(["k4", "k0", "k3", "k2", "k1"]);
  });
});
