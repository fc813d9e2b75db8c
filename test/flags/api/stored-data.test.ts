/** What the stores know about persons, groups and cohorts counts, and is read only when a flag needs it. */

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { addCohortMembers } from "../../../src/persons/cohort-members.ts";
import type { SubjectQuery, SubjectReader } from "../../../src/persons/person-reader.ts";
import { event, set } from "../../persons/support.ts";
import { until } from "../../support/server.ts";
import { inCohort, person, when } from "../make.ts";
import { TestEvaluation } from "./support.ts";

const company = (properties: JsonObject[], rollout = 100) => ({
  groups: [{ properties, rollout_percentage: rollout, aggregation_group_type_index: 0 }],
});
const aboutCompany = (key: string, value: string) => ({
  key,
  value,
  type: "group",
  operator: "exact",
  group_type_index: 0,
});

describe("persons", () => {
  test("stored properties apply unless the request overrides them", async () => {
    using server = new TestEvaluation();
    server.flag("pro", when([person("plan", "exact", "pro")]));
    server.flag("known", when([person("email", "is_set", "is_set")]));
    server.people.apply(set("ann", { plan: "pro", email: "ann@example.com" }));
    const pro = async (body: object) => (await server.values(body as Record<string, unknown>)).pro;
    expect(await pro({ distinct_id: "ann" })).toBe(true);
    expect(await pro({ distinct_id: "bob" })).toBe(false);
    expect(await pro({ distinct_id: "ann", person_properties: { plan: "free" } })).toBe(false);
    expect(await pro({ distinct_id: "bob", person_properties: { plan: "pro" } })).toBe(true);
    expect(await server.values({ distinct_id: "ann", person_properties: { plan: "free" } })).toMatchObject({
      known: true,
    });
    server.people.apply(set("ann", { plan: "free" }));
    expect(await pro({ distinct_id: "ann" })).toBe(false);
  });

  test("a slower store returns the same values", async () => {
    const queries: SubjectQuery[] = [];
    const reading = (persons: SubjectReader): SubjectReader => ({
      hasHashKeyOverrides: async () => persons.hasHashKeyOverrides(),
      subject: async (query) => {
        queries.push(query);
        await new Promise(setImmediate);
        return await persons.subject(query);
      },
    });
    using server = new TestEvaluation({ reading });
    server.flag("all", when([]));
    expect(await server.values({ distinct_id: "ann" })).toEqual({ all: true });
    expect(queries).toEqual([]);
    server.flag("pro", when([person("plan", "exact", "pro")]));
    server.people.apply(set("ann", { plan: "pro" }));
    expect(await server.values({ distinct_id: "ann" })).toEqual({ all: true, pro: true });
    expect(await server.values({ distinct_id: "bob" })).toEqual({ all: true, pro: false });
    expect(queries.map(({ distinctIds }) => distinctIds)).toEqual([["ann"], ["bob"]]);
  });

  test("a person is known under all its ids, also when an id is a number", async () => {
    using server = new TestEvaluation();
    server.flag("pro", when([person("plan", "exact", "pro")]));
    server.people.apply(set("42", { plan: "pro" }));
    expect(await server.values({ distinct_id: 42 })).toEqual({ pro: true });
    expect(await server.values({ distinct_id: "42" })).toEqual({ pro: true });
  });

  test("persons of other projects are not seen", async () => {
    using server = new TestEvaluation();
    server.flag("pro", when([person("plan", "exact", "pro")]));
    server.people.apply(set("ann", { plan: "pro" }, { projectId: 2 }));
    expect(await server.values({ distinct_id: "ann" })).toEqual({ pro: false });
  });

  test("the distinct id of the request is a property", async () => {
    using server = new TestEvaluation();
    server.flag("ann", when([person("distinct_id", "exact", "ann")]));
    expect(await server.values({ distinct_id: "ann" })).toEqual({ ann: true });
    expect(await server.values({ distinct_id: "bob" })).toEqual({ ann: false });
  });
});

describe("cohorts", () => {
  test("a static cohort is a list, a dynamic one a rule that also sees the request's properties", async () => {
    using server = new TestEvaluation();
    const list = server.cohort({ name: "list", isStatic: true });
    const rule = server.cohort({
      name: "rule",
      filters: { properties: { type: "AND", values: [person("plan", "exact", "pro")] } },
    });
    server.flag("listed", when([inCohort(list)]));
    server.flag("ruled", when([inCohort(rule)]));
    server.people.apply(set("ann", { plan: "pro" }), set("bob", { plan: "free" }));
    addCohortMembers(server.people.db, 1, list, { distinctIds: ["bob"] });
    expect(await server.values({ distinct_id: "ann" })).toEqual({ listed: false, ruled: true });
    expect(await server.values({ distinct_id: "bob" })).toEqual({ listed: true, ruled: false });
    // Nothing has to be read for the rule here; the list is asked for all the same.
    expect(await server.values({ distinct_id: "bob", person_properties: { plan: "pro" } })).toEqual({
      listed: true,
      ruled: true,
    });
    expect(await server.values({ distinct_id: "nobody" })).toEqual({ listed: false, ruled: false });
  });
});

describe("groups", () => {
  const groupEvent = (key: string, $group_set: object) =>
    event({
      event: "$groupidentify",
      properties: { $group_type: "company", $group_key: key, $group_set },
    });

  test("stored properties of the named group apply unless the request overrides them", async () => {
    using server = new TestEvaluation();
    server.people.apply(groupEvent("acme", { size: "large" }), groupEvent("7", { size: "large" }));
    server.flag("large", company([aboutCompany("size", "large")]));
    server.flag("acme", company([aboutCompany("$group_key", "acme")]));
    expect(await server.values({ distinct_id: "a" })).toEqual({ large: false, acme: false });
    expect(await server.values({ distinct_id: "a", groups: { company: "acme" } })).toEqual({
      large: true,
      acme: true,
    });
    expect(await server.values({ distinct_id: "a", $groups: { company: 7 } })).toEqual({
      large: true,
      acme: false,
    });
    expect(await server.values({ distinct_id: "a", groups: { company: "new" } })).toEqual({
      large: false,
      acme: false,
    });
    const sent = { groups: { company: "acme" }, group_properties: { company: { size: "small" } } };
    expect(await server.values({ distinct_id: "a", ...sent })).toEqual({ large: false, acme: true });
    const partly = { groups: { company: "acme" }, group_properties: { company: { other: 1 } } };
    expect(await server.values({ distinct_id: "a", ...partly })).toEqual({ large: true, acme: true });
  });

  test("a group type may be called __proto__", async () => {
    using server = new TestEvaluation();
    const properties = JSON.parse(
      '{"$group_type":"__proto__","$group_key":"acme","$group_set":{"size":"large"}}',
    );
    server.people.apply(event({ event: "$groupidentify", properties }));
    server.flag("large", company([aboutCompany("size", "large")]));
    const groups = JSON.parse('{"__proto__":"acme"}');
    expect(await server.values({ distinct_id: "a", groups })).toEqual({ large: true });
  });

  test("without a group the flag is off, with the reason", async () => {
    using server = new TestEvaluation();
    server.people.apply(groupEvent("acme", {}));
    server.flag("by-company", company([]));
    for (const groups of [undefined, {}, { company: "" }, { other: "acme" }]) {
      const { flags } = await server.ask({ distinct_id: "a", groups });
      expect(flags["by-company"]).toMatchObject({ enabled: false, reason: { code: "no_group_type" } });
    }
  });

  test("a new group type is known a moment later", async () => {
    using server = new TestEvaluation();
    server.flag("by-company", company([]));
    const asked = { distinct_id: "a", groups: { company: "acme" } };
    expect(await server.values(asked)).toEqual({ "by-company": false });
    // Another connection, as in the server: a connection does not notice its own commits.
    const other = new (await import("bun:sqlite")).Database(server.people.path);
    other.run("INSERT INTO group_type VALUES (1, 0, 'company', 0)");
    other.close();
    // The other one's commits are looked for every two milliseconds.
    await until(async () => (await server.values(asked))["by-company"], "the type is known", 1_000);
  });
});

describe("reads of the stores", () => {
  /** Counts statements on the store of persons. */
  function counting(server: TestEvaluation): { count: number; texts: string[] } {
    const { $client } = server.people.db;
    const seen = { count: 0, texts: [] as string[] };
    const query = $client.query.bind($client);
    $client.query = ((text: string) => {
      if (!text.startsWith("PRAGMA")) seen.texts.push(text);
      seen.count = seen.texts.length;
      return query(text);
    }) as typeof $client.query;
    return seen;
  }

  test("nothing, when no flag uses persons or groups", async () => {
    using server = new TestEvaluation();
    server.flag("half", when([], 50));
    await server.values({ distinct_id: "a" });
    const seen = counting(server);
    await server.values({ distinct_id: "a", groups: { company: "acme" } });
    expect(seen.texts).toEqual([]);
  });

  test("the person once, for any number of flags; not at all when the request contains everything", async () => {
    using server = new TestEvaluation();
    server.people.apply(set("ann", { plan: "pro" }));
    for (let i = 0; i < 50; i++) server.flag(`flag-${i}`, when([person("plan", "exact", "pro")]));
    await server.values({ distinct_id: "ann" });
    const seen = counting(server);
    const values = await server.values({ distinct_id: "ann" });
    expect(Object.values(values)).toEqual(Array(50).fill(true));
    expect(seen.count).toBe(1);
    await server.values({ distinct_id: "ann", person_properties: { plan: "free" } });
    expect(seen.count).toBe(1);
  });
});
