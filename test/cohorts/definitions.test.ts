/** Cohorts over the API: what they may say, where they may be used, lists. */

import { describe, expect, test } from "bun:test";
import { flagsPath, TestServer } from "../support/management-server.ts";

const cohortsPath = "/api/projects/1/cohorts/";
const inCohort = (id: number) => ({ key: "id", type: "cohort", value: id, operator: "in" });
const rules = (...values: object[]) => ({ properties: { type: "OR", values: [{ type: "AND", values }] } });
const bought = { key: "bought", type: "behavioral", value: "performed_event" };
const named = { key: "name", type: "person", operator: "exact", value: "x" };

describe("cohort definitions", () => {
  for (const [name, body, code, attr, detail] of [
    ["no name", { filters: rules(named) }, "required", "name", "This field is required."],
    ["no filters", { name: "a" }, "invalid_input", "filters", undefined],
    ["no properties", { name: "a", filters: {} }, "invalid_input", "filters", undefined],
    [
      "a strange type",
      { name: "a", filters: rules({ type: "flag", key: "x" }) },
      "invalid_input",
      "filters",
      undefined,
    ],
    ...["", "x", "1.5", 1.5, true, null, [1], { id: 1 }].map(
      (value) =>
        [
          `a cohort called ${JSON.stringify(value)}`,
          { name: "a", filters: rules({ ...inCohort(1), value }) },
          "invalid_input",
          "filters",
          "A cohort condition requires a cohort id.",
        ] as const,
    ),
    [
      "an unknown cohort",
      { name: "a", filters: rules(inCohort(9)) },
      "cohort_does_not_exist",
      "filters",
      "Cohort with id 9 does not exist",
    ],
  ] as const) {
    test(`refused: ${name}`, async () => {
      using server = new TestServer();
      const answer = await server.ask("POST", cohortsPath, { body });
      expect(answer).toMatchObject({ status: 400, body: { code, attr, ...(detail ? { detail } : {}) } });
    });
  }

  const strange = [
    ...[1e20, 1e9, 1e12, -1, 0, 1.5, "x", "99999999999999999999", "", true].map((value) => ({
      time_value: value,
    })),
    ...["bogus", 7].map((value) => ({ time_interval: value })),
    ...["bogus", 1, null].map((value) => ({ value })),
    ...[-1, 1.5, "many", 1e300].map((value) => ({
      value: "performed_event_multiple",
      operator: "gte",
      operator_value: value,
    })),
    { value: "performed_event_multiple", operator: "bogus" },
    { event_type: "actions" },
    ...["-0d", "-30", "-1x", "-999999999y", "soon", 30, true].map((explicit_datetime) => ({
      explicit_datetime,
    })),
    { explicit_datetime: "-30d", explicit_datetime_to: "-10d" },
    ...["x", { key: "plan", value: "pro" }, [7], [{ value: "pro" }]].map((event_filters) => ({
      event_filters,
    })),
    ...[
      { operator: "bogus" },
      { operator: "semver_gt" },
      { operator: "regex", value: "(" },
      { type: "person" },
    ].map((part) => ({ event_filters: [{ key: "plan", value: "pro", type: "event", ...part }] })),
  ];
  test("rejected at creation and change: what persons did, by numbers and words without sense", async () => {
    using server = new TestServer();
    await server.ask("POST", cohortsPath, { body: { name: "a", filters: rules(bought) } });
    for (const part of strange) {
      const filters = rules({ ...bought, ...part });
      const rejection = { status: 400, body: { code: "invalid_input", attr: "filters" } };
      expect(await server.ask("POST", cohortsPath, { body: { name: "b", filters } })).toMatchObject(
        rejection,
      );
      expect(await server.ask("PATCH", `${cohortsPath}1/`, { body: { filters } })).toMatchObject(rejection);
    }
    for (const part of [
      { time_value: null, time_interval: null, operator_value: null },
      { time_value: "30", time_interval: "week" },
      { explicit_datetime: "-7d", explicit_datetime_to: null, event_type: "events", event_filters: null },
      {
        explicit_datetime: "2026-01-31",
        event_filters: [{ key: "plan", value: ["pro"], operator: "is_not" }],
      },
      { value: "performed_event_multiple", operator: "lte", operator_value: "2", time_value: 90 },
    ]) {
      const filters = rules({ ...bought, ...part });
      expect((await server.ask("PATCH", `${cohortsPath}1/`, { body: { filters } })).status).toBe(200);
    }
  });

  test("rejected: conditions that no one could ever meet", async () => {
    using server = new TestServer();
    for (const [condition, code, detail] of [
      [{ ...named, operator: "resembles" }, "invalid_operator", "Unknown operator: 'resembles'"],
      [{ ...named, operator: "constructor" }, "invalid_operator", "Unknown operator: 'constructor'"],
      [{ ...named, operator: 7 }, "invalid_operator", "Unknown operator: '7'"],
      [{ ...named, operator: "in" }, "invalid_operator", undefined],
      [{ ...named, operator: "flag_evaluates_to" }, "invalid_operator", undefined],
      [{ ...named, operator: "regex", value: "(?=a)b" }, "invalid_input", undefined],
      [{ ...named, operator: "not_regex", value: "(" }, "invalid_input", "name: invalid regex pattern"],
      [{ ...named, operator: "regex", value: 5 }, "invalid_value", "Invalid value for operator regex: 5"],
      [{ ...inCohort(1), operator: "gt" }, "invalid_operator", undefined],
      ...[null, true, [1], "", "1.5", -1].map(
        (value) =>
          [{ ...inCohort(1), value }, "invalid_input", "A cohort condition requires a cohort id."] as const,
      ),
    ] as const) {
      const filters = rules(condition);
      expect(await server.ask("POST", cohortsPath, { body: { name: "a", filters } })).toMatchObject({
        status: 400,
        body: { attr: "filters", code, ...(detail === undefined ? {} : { detail }) },
      });
    }
  });

  test("are stored with the id of a cohort as a number, and present names of operators", async () => {
    using server = new TestServer();
    await server.ask("POST", cohortsPath, { body: { name: "inner", filters: rules(named) } });
    const written = rules(
      { ...inCohort(1), value: "1" },
      { key: "age", type: "person", operator: "min", value: 18 },
    );
    const stored = rules(inCohort(1), { key: "age", type: "person", operator: "gte", value: 18 });
    const created = await server.ask("POST", cohortsPath, { body: { name: "outer", filters: written } });
    expect(created).toMatchObject({ status: 201, body: { filters: stored } });
    const changed = await server.ask("PATCH", `${cohortsPath}2/`, { body: { filters: written } });
    expect(changed).toMatchObject({ status: 200, body: { filters: stored } });
  });

  test("may not be circular", async () => {
    using server = new TestServer();
    for (const filters of [rules(named), rules(inCohort(1)), rules(inCohort(2))]) {
      expect((await server.ask("POST", cohortsPath, { body: { name: "c", filters } })).status).toBe(201);
    }
    for (const [id, to] of [
      [1, 1],
      [1, 3],
      [2, 3],
    ] as const) {
      expect(
        await server.ask("PATCH", `${cohortsPath}${id}/`, { body: { filters: rules(inCohort(to)) } }),
      ).toMatchObject({
        status: 400,
        body: { detail: "Cohorts cannot reference other cohorts in a loop." },
      });
    }
    expect(
      (await server.ask("PATCH", `${cohortsPath}3/`, { body: { filters: rules(inCohort(1)) } })).status,
    ).toBe(200);
  });

  test("stay free of behavior while an active flag uses them, directly or through others", async () => {
    using server = new TestServer();
    await server.ask("POST", cohortsPath, { body: { name: "inner", filters: rules(named) } });
    // SDKs and exports write ids as text, too.
    const byText = { ...inCohort(1), value: "1" };
    await server.ask("POST", cohortsPath, { body: { name: "middle", filters: rules(byText) } });
    await server.ask("POST", cohortsPath, { body: { name: "outer", filters: rules(inCohort(2)) } });
    await server.ask("POST", flagsPath, {
      body: { key: "a", filters: { groups: [{ properties: [inCohort(3)] }] } },
    });
    const change = () => server.ask("PATCH", `${cohortsPath}1/`, { body: { filters: rules(bought) } });
    expect(await change()).toMatchObject({
      status: 400,
      body: {
        code: "behavioral_cohort_found",
        detail: "Behavioral filters cannot be added to cohorts used in feature flags.",
      },
    });
    await server.ask("PATCH", `${flagsPath}1/`, { body: { active: false } });
    expect((await change()).status).toBe(200);
    const rejected = await server.ask("POST", flagsPath, {
      body: { key: "b", filters: { groups: [{ properties: [inCohort(3)] }] } },
    });
    expect(rejected.body).toMatchObject({
      code: "behavioral_cohort_found",
      detail: "Cohort 'inner' with filters on events cannot be used in feature flags.",
    });
  });

  test("stay free of behavior at any depth, and of cohorts that use it", async () => {
    using server = new TestServer();
    for (const filters of [rules(named), rules(inCohort(1)), rules(inCohort(2)), rules(bought)])
      await server.ask("POST", cohortsPath, { body: { name: "c", filters } });
    const properties = [inCohort(3)];
    await server.ask("POST", flagsPath, { body: { key: "a", filters: { groups: [{ properties }] } } });
    const change = (id: number, filters: object) =>
      server.ask("PATCH", `${cohortsPath}${id}/`, { body: { filters } });
    const rejected = { status: 400, body: { code: "behavioral_cohort_found" } };
    for (const id of [1, 2, 3]) {
      expect([id, await change(id, rules(bought))]).toMatchObject([id, rejected]);
      expect([id, await change(id, rules(inCohort(4)))]).toMatchObject([id, rejected]);
    }
    expect((await change(1, rules({ ...named, value: "y" }))).status).toBe(200);
    expect((await change(4, rules(named))).status).toBe(200);
  });

  test("may be deleted from the beginning", async () => {
    using server = new TestServer();
    const created = await server.ask("POST", cohortsPath, {
      body: { name: "a", is_static: true, deleted: true },
    });
    expect(created).toMatchObject({ status: 201, body: { id: 1, deleted: true } });
    expect((await server.ask("GET", cohortsPath)).body.count).toBe(0);
  });

  test("are listed newest first, searched, hidden when behavioral, deleted by PATCH only", async () => {
    using server = new TestServer();
    for (const [name, filters] of [
      ["Staff", rules(named)],
      ["Buyers", rules(bought)],
    ] as const) {
      await server.ask("POST", cohortsPath, { body: { name, filters } });
    }
    const names = async (query = "") =>
      (await server.ask("GET", `${cohortsPath}${query}`)).body.results.map(
        (cohort: { name: string }) => cohort.name,
      );
    expect(await names()).toEqual(["Buyers", "Staff"]);
    expect(await names("?search=STAF")).toEqual(["Staff"]);
    await server.ask("PATCH", `${cohortsPath}1/`, { body: { name: "ÄRZTE_100%" } });
    for (const part of ["ärzt", "_100%", " ÄRZTE "])
      expect(await names(`?search=${encodeURIComponent(part)}`)).toEqual(["ÄRZTE_100%"]);
    expect(await names("?search=a_z")).toEqual([]);
    await server.ask("PATCH", `${cohortsPath}1/`, { body: { name: "Staff" } });
    expect(await names("?hide_behavioral_cohorts=true")).toEqual(["Staff"]);
    expect(await server.ask("PUT", `${cohortsPath}1/`, { body: { description: "d" } })).toMatchObject({
      status: 400,
      body: { code: "required", attr: "name" },
    });
    const put = await server.ask("PUT", `${cohortsPath}1/`, { body: { name: "renamed", description: "d" } });
    expect(put).toMatchObject({ status: 200, body: { name: "renamed", description: "d" } });
    expect(await server.ask("DELETE", `${cohortsPath}1/`)).toMatchObject({ status: 405 });
    expect((await server.ask("PATCH", `${cohortsPath}1/`, { body: { deleted: true } })).body.deleted).toBe(
      true,
    );
    expect(await names()).toEqual(["Buyers"]);
  });
});

describe("cohorts of an older generation", () => {
  test("define members by groups of properties", async () => {
    using server = new TestServer();
    const groups = [{ properties: [{ key: "plan", value: "pro" }] }, { properties: [named] }];
    const created = await server.ask("POST", cohortsPath, { body: { name: "Old", groups } });
    expect(created).toMatchObject({ status: 201, body: { groups } });
    expect(created.body.filters).toEqual({
      properties: {
        type: "OR",
        values: [
          { type: "AND", values: [{ type: "person", key: "plan", value: "pro" }] },
          { type: "AND", values: [named] },
        ],
      },
    });
    for (const group of [{ action_id: 5 }, "x", { properties: ["x"] }]) {
      expect(await server.ask("POST", cohortsPath, { body: { name: "Odd", groups: [group] } })).toMatchObject(
        {
          status: 400,
          body: { attr: "filters" },
        },
      );
    }
  });
});
