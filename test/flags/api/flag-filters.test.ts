import { describe, expect, test } from "bun:test";
import { firstFlagPath, flagsPath, TestServer, withFlag } from "../../support/management-server.ts";

describe("filters", () => {
  test("a flag created by key alone is off for everyone until it has a condition set", async () => {
    using it = await withFlag();
    expect(it.flag).toMatchObject({ filters: { groups: [] }, rollout_percentage: 0, is_simple_flag: false });
    const value = async () =>
      (await it.server.ask("GET", `${flagsPath}evaluation_reasons/?distinct_id=x`)).body[it.flag.key];
    expect(await value()).toMatchObject({ value: false, evaluation: { reason: "no_condition_match" } });
    const opened = await it.patch({ rollout_percentage: 100 });
    expect(opened.body.filters).toEqual({ groups: [{ properties: [], rollout_percentage: 100 }] });
    expect((await value()).value).toBe(true);
    const config = { key: "settings", is_remote_configuration: true };
    expect((await it.server.ask("POST", flagsPath, { body: config })).body).toMatchObject({
      rollout_percentage: 100,
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    });
  });
  test("members that are sent replace the stored ones, null clears, others stay", async () => {
    const variants = [{ key: "x", rollout_percentage: 100 }];
    using it = await withFlag({
      filters: { groups: [{ properties: [] }], multivariate: { variants }, payloads: { x: '"p"' } },
    });
    const payload = await it.patch({ filters: { payloads: { x: { a: 1 } } } });
    expect(payload.body.filters).toMatchObject({ multivariate: { variants }, payloads: { x: '{"a":1}' } });
    const cleared = await it.patch({ filters: { multivariate: null, payloads: null } });
    expect(cleared.body.filters).toMatchObject({
      multivariate: null,
      payloads: {},
      groups: [{ properties: [] }],
    });
  });
  for (const [name, filters, code, detail] of [
    [
      "variants that do not add up",
      { groups: [{}], multivariate: { variants: [{ key: "a", rollout_percentage: 99 }] } },
      "invalid_input",
      "Invalid variant definitions: Variant rollout percentages must sum to 100.",
    ],
    [
      "a cohort that is not there",
      { groups: [{ properties: [{ key: "id", type: "cohort", value: 9 }] }] },
      "cohort_does_not_exist",
      "Cohort with id 9 does not exist",
    ],
    [
      "an override that names no variant",
      { groups: [{ variant: "x" }] },
      "invalid_input",
      "Filters are not valid (variant override does not exist)",
    ],
    [
      "a number for an operator of texts",
      { groups: [{ properties: [{ key: "age", type: "person", operator: "gt", value: 3 }] }] },
      "invalid_value",
      "Invalid value for operator gt: 3",
    ],
    [
      "a payload that is not JSON",
      { groups: [{}], payloads: { true: "{" } },
      "invalid_input",
      "Payload value is not valid JSON",
    ],
    [
      "a flag that is not there",
      {
        groups: [{ properties: [{ key: "77", type: "flag", operator: "flag_evaluates_to", value: true }] }],
      },
      "invalid_input",
      "Flag dependency references non-existent flag with ID 77",
    ],
  ] as const) {
    test(`refused: ${name}`, async () => {
      using server = new TestServer();
      expect(await server.ask("POST", flagsPath, { body: { key: "a", filters } })).toMatchObject({
        status: 400,
        body: { type: "validation_error", code, detail, attr: "filters" },
      });
    });
  }
});

describe("filters are a free-form map", () => {
  const free = { note: "mine", nested: { any: [1, null, { thing: true }] }, version: 3, groups_v2: "x" };
  test("any object is accepted and returned; without groups the flag is off", async () => {
    using server = new TestServer();
    const evaluated = async (key: string) =>
      (await server.ask("GET", `${flagsPath}evaluation_reasons/?distinct_id=x`)).body[key].value;
    for (const [index, filters] of [{}, free, { groups: [] }, { groups: null, note: 1 }].entries()) {
      const key = `free-${index}`;
      const created = await server.ask("POST", flagsPath, { body: { key, filters } });
      expect(created).toMatchObject({ status: 201, body: { rollout_percentage: 0, is_simple_flag: false } });
      expect(created.body.filters).toEqual(filters);
      expect(await evaluated(key)).toBe(false);
      const one = `${flagsPath}${created.body.id}/`;
      expect((await server.ask("GET", one)).body.filters).toEqual(filters);
      // A client that reads a flag and sends it back changes nothing.
      expect((await server.ask("PATCH", one, { body: created.body })).body.filters).toEqual(filters);
      expect((await server.ask("PATCH", one, { body: { rollout_percentage: 100 } })).body.filters).toEqual({
        ...filters,
        groups: [{ properties: [], rollout_percentage: 100 }],
      });
      expect(await evaluated(key)).toBe(true);
    }
    const result = await server.ask("POST", flagsPath, { body: { key: "none" } });
    expect(result.body.filters).toEqual({ groups: [] });
    expect([result.body.rollout_percentage, await evaluated("none")]).toEqual([0, false]);
  });

  test("SDKs with local evaluation always get a list of groups", async () => {
    using server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "a", filters: free } });
    const { flags } = (await server.ask("GET", `${flagsPath}local_evaluation/`)).body;
    expect(flags[0].filters).toMatchObject({ groups: [] });
  });
});

describe("rollout_percentage next to filters", () => {
  test("on create it is the rollout of the flag", async () => {
    using server = new TestServer();
    for (const [index, percentage] of [25, 0, 33, 100].entries()) {
      const body = { key: `p${index}`, rollout_percentage: percentage };
      const created = await server.ask("POST", flagsPath, { body });
      expect(created.body).toMatchObject({
        rollout_percentage: percentage,
        filters: { groups: [{ properties: [], rollout_percentage: percentage }] },
      });
    }
    const absent = await server.ask("POST", flagsPath, { body: { key: "absent", rollout_percentage: null } });
    expect(absent.body).toMatchObject({ rollout_percentage: 0, filters: { groups: [] } });
    for (const wrong of [-1, 101, 33.3, 0.5, "33.3", "x", true, [], {}]) {
      const rejected = await server.ask("POST", flagsPath, {
        body: { key: "wrong", rollout_percentage: wrong },
      });
      expect(rejected).toMatchObject({ status: 400, body: { attr: "rollout_percentage" } });
    }
  });

  test("on PATCH it changes the rollout; null, and the stored value, change nothing", async () => {
    using it = await withFlag();
    const property = { key: "plan", type: "person", operator: "exact", value: "pro" };
    await it.patch({ filters: { groups: [{ properties: [property], rollout_percentage: 40 }] } });
    const { body: read } = await it.server.ask("GET", firstFlagPath);
    expect(read).toMatchObject({ rollout_percentage: 40, is_simple_flag: false });
    const whole = { ...read, filters: { groups: [{ properties: [], rollout_percentage: 60 }] } };
    expect((await it.patch(whole)).body).toMatchObject({ rollout_percentage: 60 });
    for (const same of [null, 60, "60"]) {
      expect((await it.patch({ rollout_percentage: same })).body.rollout_percentage).toBe(60);
    }
    expect((await it.patch({ rollout_percentage: 25 })).body).toMatchObject({
      rollout_percentage: 25,
      filters: { groups: [{ properties: [], rollout_percentage: 25 }] },
    });
    const several = { groups: [{ rollout_percentage: 10 }, { rollout_percentage: 20 }] };
    expect((await it.patch({ ...read, rollout_percentage: 25, filters: several })).body).toMatchObject({
      rollout_percentage: null,
      filters: several,
    });
    const { body: before } = await it.server.ask("GET", firstFlagPath);
    for (const body of [
      { rollout_percentage: 25 },
      { rollout_percentage: 25, filters: { groups: [{ rollout_percentage: 30 }] } },
      { rollout_percentage: 25, filters: several },
    ]) {
      expect(await it.patch(body)).toMatchObject({
        status: 400,
        body: { type: "validation_error", code: "invalid_input", attr: "rollout_percentage" },
      });
    }
    expect((await it.server.ask("GET", firstFlagPath)).body).toEqual(before);
  });

  test("of fractions an integer is read, and sending it back has no effect", async () => {
    using it = await withFlag();
    const set = { properties: [], rollout_percentage: 33.3 };
    const read = (await it.patch({ filters: { groups: [set] } })).body;
    expect(read).toMatchObject({ rollout_percentage: 33, filters: { groups: [set] } });
    for (const body of [
      read,
      { rollout_percentage: 33 },
      { rollout_percentage: 33.0, filters: { groups: [set] } },
    ])
      expect((await it.patch(body)).body.filters).toEqual({ groups: [set] });
    const { id: _, key: __, ...copied } = read;
    const copy = await it.server.ask("POST", flagsPath, { body: { ...copied, key: "copy" } });
    expect(copy.body).toMatchObject({ rollout_percentage: 33, filters: { groups: [set] } });
    for (const [percentage, shown] of [
      [12.5, 13],
      [0.4, 0],
      [99.6, 100],
    ] as const) {
      const groups = [{ properties: [], rollout_percentage: percentage }];
      expect((await it.patch({ filters: { groups } })).body).toMatchObject({
        rollout_percentage: shown,
        filters: { groups },
      });
      const listed = (await it.server.ask("GET", `${flagsPath}?key=${it.flag.key}`)).body.results[0];
      expect(listed.rollout_percentage).toBe(shown);
    }
    for (const percentage of [33.3, "33.3"])
      expect(await it.patch({ rollout_percentage: percentage })).toMatchObject({
        status: 400,
        body: { attr: "rollout_percentage", detail: "A valid integer is required." },
      });
    expect((await it.patch({ rollout_percentage: 34 })).body.filters.groups).toMatchObject([
      { rollout_percentage: 34 },
    ]);
  });

  test("previews accept an integer, too", async () => {
    using it = await withFlag();
    for (const [path, body] of [
      ["user_blast_radius", {}],
      ["explain", { key: "x", subjects: [{ distinct_id: "a" }] }],
    ] as const)
      expect(
        await it.server.ask("POST", `${flagsPath}${path}/`, { body: { ...body, rollout_percentage: 33.3 } }),
      ).toMatchObject({ status: 400, body: { attr: "rollout_percentage" } });
  });

  test("of two people the later one does not undo what the first one changed", async () => {
    using it = await withFlag();
    await it.patch({ rollout_percentage: 60 });
    const echoed = await it.patch({ ...it.flag, name: "b", original_flag: it.flag });
    expect(echoed).toMatchObject({ status: 200, body: { name: "b", rollout_percentage: 60 } });
    const other = { rollout_percentage: 30, version: it.flag.version, original_flag: it.flag };
    expect((await it.patch(other)).status).toBe(409);
  });
});
