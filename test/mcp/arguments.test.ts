/** Arguments of the tools: none is ignored, and what flags have can be written (contract, management-api 8). */

import { beforeAll, describe, expect, test } from "bun:test";
import { conclusionCommentMax } from "../../src/experiments/api/schemas.ts";
import { server, useServer } from "../support/use-server.ts";

useServer({ args: ["--mcp", "on"] });

async function rpc(method: string, params: object) {
  const answer = await server.post(
    "/mcp",
    { jsonrpc: "2.0", id: 1, method, params },
    {
      Accept: "application/json, text/event-stream",
      Authorization: `Bearer ${server.initialized.personal_api_key}`,
    },
  );
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  return ((await answer.json()) as { result: any }).result;
}
async function call(name: string, args: unknown): Promise<{ text: string; isError: boolean }> {
  const result = await rpc("tools/call", { name, arguments: args });
  return { text: result.content[0].text, isError: result.isError === true };
}
/** The JSON of a call that succeeds. */
async function done(name: string, args: object) {
  const { text, isError } = await call(name, args);
  expect([isError, isError ? text : ""]).toEqual([false, ""]);
  return JSON.parse(text);
}
async function flagCount(): Promise<number> {
  const answer = await server.api("/api/projects/1/feature_flags/?limit=1");
  return ((await answer.json()) as { count: number }).count;
}

/** Valid arguments of every tool. */
const valid: Record<string, Record<string, unknown>> = {
  list_projects: {},
  list_flags: { project: 1 },
  explain_flag: { key: "subject", distinct_id: "kim" },
  create_flag: { key: "never-created" },
  update_flag: { key: "subject", name: "never written" },
  delete_flag: { key: "subject" },
  restore_flag: { key: "subject" },
  list_event_definitions: {},
  list_property_definitions: {},
  list_ingestion_warnings: {},
  list_activity: {},
  list_dashboards: {},
  list_insights: {},
  get_insight: { id: "1" },
  list_persons: {},
  flag_status: { key: "subject" },
  flag_usage: { key: "subject" },
  flag_blast_radius: { filters: {} },
  evaluate_flags: { distinct_id: "kim" },
  revert_flag: { key: "subject", activity_id: "0193d1a2-7b1c-7c3e-9f60-5a6b7c8d9e0f" },
  list_scheduled_changes: {},
  schedule_flag_change: { key: "subject", payload: {}, scheduled_at: "2099-01-02T00:00:00Z" },
  cancel_scheduled_change: { id: 1 },
  list_change_requests: {},
  request_change: { flag_id: 1, changes: {} },
  query_events: { sql: "SELECT 1 AS one" },
  list_experiments: { limit: 5 },
  create_experiment: { name: "An experiment" },
  get_experiment: { id: 1 },
  experiment_lifecycle: { id: 1, action: "launch" },
  experiment_results: { id: 1 },
  calculate_running_time: { baseline_value: 0.1, minimum_detectable_effect: 0.1 },
  list_cohorts: {},
  create_cohort: { name: "A cohort", is_static: true },
  get_cohort: { id: 1 },
  list_cohort_sizes: { id: 1 },
  list_surveys: {},
  create_survey: { name: "Why", type: "api", questions: [{ type: "open", question: "Why?" }] },
  survey_results: { id: "0193d1a2-7b1c-7c3e-9f60-5a6b7c8d9e0f" },
  list_early_access_features: {},
  set_early_access_stage: { id: "0193d1a2-7b1c-7c3e-9f60-5a6b7c8d9e0f", stage: "beta" },
};

describe("unknown arguments", () => {
  beforeAll(() => done("create_flag", { key: "subject", name: "as it was" }));

  test("every tool is in the table", async () => {
    const { tools } = await rpc("tools/list", {});
    expect(tools.map(({ name }: { name: string }) => name).sort()).toEqual(Object.keys(valid).sort());
    for (const { inputSchema } of tools) expect(inputSchema.additionalProperties).toBe(false);
  });

  for (const [tool, args] of Object.entries(valid)) {
    test(`${tool} rejects them by name, and does nothing`, async () => {
      const before = await flagCount();
      for (const name of ["rolloutPercentage", "Key", "projects", "constructor"]) {
        const { text, isError } = await call(tool, { ...args, [name]: 1 });
        expect([isError, text]).toEqual([true, expect.stringContaining(`"${name}"`)]);
      }
      expect(await flagCount()).toBe(before);
      const subject = await done("list_flags", { search: "subject" });
      expect(subject.results[0]).toMatchObject({ name: "as it was", deleted: false });
    });
  }

  const nested: [place: string, filters: (unknown: object) => object][] = [
    ["filters", (unknown) => ({ groups: [], ...unknown })],
    ["filters.groups[0]", (unknown) => ({ groups: [{ rollout_percentage: 10, ...unknown }] })],
    [
      "filters.groups[0].properties[0]",
      (unknown) => ({ groups: [{ properties: [{ key: "plan", value: "pro", ...unknown }] }] }),
    ],
    ["filters.super_groups[0]", (unknown) => ({ super_groups: [{ ...unknown }] })],
    ["filters.holdout_groups[0]", (unknown) => ({ holdout_groups: [{ ...unknown }] })],
    ["filters.holdout", (unknown) => ({ holdout: { id: 1, exclusion_percentage: 10, ...unknown } })],
    ["filters.multivariate", (unknown) => ({ multivariate: { variants: [], ...unknown } })],
    [
      "filters.multivariate.variants[0]",
      (unknown) => ({ multivariate: { variants: [{ key: "a", rollout_percentage: 100, ...unknown }] } }),
    ],
  ];
  for (const [place, filters] of nested) {
    test(`in ${place} they are rejected by name and place`, async () => {
      for (const [tool, key] of [
        ["create_flag", "never-created"],
        ["update_flag", "subject"],
      ] as const) {
        const { text, isError } = await call(tool, { key, filters: filters({ percentage: 5 }) });
        expect([isError, text]).toEqual([true, expect.stringContaining(`"percentage" at ${place}`)]);
      }
      expect((await done("list_flags", { search: "never-created" })).count).toBe(0);
    });
  }

  test("names that a caller chooses are no arguments: properties, groups, payloads", async () => {
    const properties = { anything: 1, rolloutPercentage: 2 };
    const explained = await done("explain_flag", {
      key: "subject",
      distinct_id: "kim",
      person_properties: properties,
      device_id: "d",
      groups: { company: "acme" },
      group_properties: { company: properties },
    });
    expect(explained.flag_key).toBe("subject");
    await done("update_flag", { key: "subject", filters: { payloads: { true: { any: "thing" } } } });
  });

  test("arguments of the wrong type are rejected, too", async () => {
    for (const [tool, args] of [
      ["create_flag", { key: "never-created", tags: "payments" }],
      ["create_flag", { key: "never-created", ensure_experience_continuity: "yes" }],
      ["create_flag", { key: "never-created", filters: { groups: {} } }],
      ["list_flags", { tags: "payments" }],
      // No filter, as the API reads it.
      ["list_flags", { tags: [] }],
      ["list_flags", []],
    ] as const) {
      expect(await rpc("tools/call", { name: tool, arguments: args }).then((it) => it?.isError ?? true)).toBe(
        true,
      );
    }
    expect((await done("list_flags", { search: "never-created" })).count).toBe(0);
  });
});

describe("what flags have", () => {
  test("tags and experience continuity are created, changed and listed by", async () => {
    const created = await done("create_flag", {
      key: "kept",
      tags: ["Payments", "beta"],
      ensure_experience_continuity: true,
      evaluation_runtime: "server",
      evaluation_contexts: ["beta"],
      rollout_percentage: 30,
    });
    expect(created).toMatchObject({
      tags: ["beta", "payments"],
      ensure_experience_continuity: true,
      evaluation_runtime: "server",
      evaluation_contexts: ["beta"],
      rollout_percentage: 30,
    });
    expect((await done("list_flags", { tags: ["beta"] })).results).toMatchObject([{ key: "kept" }]);
    const changed = await done("update_flag", {
      key: "kept",
      tags: ["payments"],
      ensure_experience_continuity: false,
      note: "as agreed",
    });
    expect(changed).toMatchObject({ tags: ["payments"], ensure_experience_continuity: false });
    expect((await done("list_flags", { tags: ["beta"] })).count).toBe(0);
    expect((await done("update_flag", { key: "kept", tags: [] })).tags).toEqual([]);
    const activity = await server.api(`/api/projects/1/feature_flags/${created.id}/activity/`);
    expect(JSON.stringify(await activity.json())).toContain("as agreed");
  });

  test("members that clients of PostHog send back are accepted", async () => {
    const filters = {
      groups: [
        {
          properties: [{ key: "plan", value: ["pro"], operator: "exact", type: "person", label: "x" }],
          rollout_percentage: 50,
          variant: null,
          sort_key: "a",
          description: null,
        },
      ],
      multivariate: null,
      payloads: {},
      aggregation_group_type_index: null,
    };
    const created = await done("create_flag", { key: "sent-back", filters });
    await done("update_flag", { key: "sent-back", filters: created.filters });
  });

  test("a flag is deleted, listed as deleted, and restored", async () => {
    const created = await done("create_flag", { key: "comes-back", rollout_percentage: 20 });
    expect(await done("delete_flag", { key: "comes-back" })).toMatchObject({ id: created.id, deleted: true });
    expect((await done("list_flags", { search: "comes-back" })).count).toBe(0);
    const deleted = await done("list_flags", { deleted: true, search: "comes-back" });
    expect(deleted.results).toMatchObject([{ id: created.id, key: "comes-back", deleted: true }]);
    expect(await call("delete_flag", { key: "comes-back" })).toEqual({
      text: "Flag comes-back does not exist.",
      isError: true,
    });
    const restored = await done("restore_flag", { key: "comes-back" });
    expect(restored).toMatchObject({
      id: created.id,
      key: "comes-back",
      deleted: false,
      rollout_percentage: 20,
    });
    expect(await call("restore_flag", { key: "comes-back" })).toEqual({
      text: "Deleted flag comes-back does not exist.",
      isError: true,
    });
  });

  test("of flags that had the same key, the one deleted last is restored, under a free key", async () => {
    const ids: number[] = [];
    for (let i = 0; i < 3; i++) {
      ids.push((await done("create_flag", { key: "again" })).id);
      if (i < 2) await done("delete_flag", { key: "again" });
    }
    expect(await done("restore_flag", { key: "again" })).toMatchObject({ id: ids[1], key: "again-2" });
    expect(await done("restore_flag", { key: "again" })).toMatchObject({ id: ids[0], key: "again-3" });
    // `deleted` of update_flag does the same, and changes nothing of a flag that is there.
    expect(await done("update_flag", { key: "again", deleted: false })).toMatchObject({ id: ids[2] });
    expect(await done("update_flag", { key: "again-2", deleted: true })).toMatchObject({ deleted: true });
    expect(await done("update_flag", { key: "again-2", deleted: false, name: "back" })).toMatchObject({
      id: ids[1],
      deleted: false,
      name: "back",
    });
  });

  test("a flag that others need is not deleted, and the reason is the result", async () => {
    const needed = await done("create_flag", { key: "needed" });
    const property = { key: String(needed.id), type: "flag", operator: "flag_evaluates_to", value: true };
    await done("create_flag", {
      key: "needs",
      filters: { groups: [{ properties: [property], rollout_percentage: 100 }] },
    });
    const { isError, text } = await call("delete_flag", { key: "needed" });
    expect([isError, text]).toEqual([true, expect.stringContaining("needs")]);
  });
});

test("archived experiments are chosen by a boolean or a word", async () => {
  const { id } = await done("create_experiment", { name: "Put away", feature_flag_key: "put-away" });
  for (const action of ["launch", "end"]) await done("experiment_lifecycle", { id, action });
  const archived = { id, action: "archive", disable_feature_flag: true };
  expect(await done("experiment_lifecycle", archived)).toMatchObject({ archived: true, status: "stopped" });
  const count = async (chosen: unknown) =>
    (
      await done("list_experiments", {
        search: "put-away",
        ...(chosen === undefined ? {} : { archived: chosen }),
      })
    ).count;
  for (const chosen of [true, "true", "all"]) expect([chosen, await count(chosen)]).toEqual([chosen, 1]);
  for (const chosen of [undefined, false, "false"])
    expect([chosen, await count(chosen)]).toEqual([chosen, 0]);
  const { isError, text } = await call("list_experiments", { archived: "some" });
  expect([isError, text]).toEqual([true, expect.stringContaining("at archived")]);
});

test("the comment on an experiment may be as long as over HTTP", async () => {
  const { id } = await done("create_experiment", { name: "Commented" });
  await done("experiment_lifecycle", { id, action: "launch" });
  const conclusion_comment = "x".repeat(conclusionCommentMax);
  const end = (comment: string) =>
    call("experiment_lifecycle", { id, action: "end", conclusion: "won", conclusion_comment: comment });
  expect((await end(`${conclusion_comment}x`)).isError).toBe(true);
  expect(JSON.parse((await end(conclusion_comment)).text)).toMatchObject({ conclusion_comment });
});

test("an experiment from its creation to its results, and a feature's stage", async () => {
  const result = await done("create_experiment", { name: "By a model", project: 1 });
  expect((await done("list_experiments", { search: "model" })).results).toMatchObject([{ id: result.id }]);
  expect((await done("experiment_lifecycle", { id: result.id, action: "launch" })).status).toBe("running");
  expect(Object.keys(await done("experiment_results", { id: result.id }))).toContain("sentence");
  const again = await call("experiment_lifecycle", { id: result.id, action: "launch" });
  expect(again).toMatchObject({ isError: true });
  expect(again.text).toContain("invalid_transition");
  const plan = { metric_type: "proportion", baseline_value: 0.1, minimum_detectable_effect: 0.1 };
  expect((await done("calculate_running_time", plan)).recommended_sample_size).toBe(29498);
  const created = await server.api("/api/projects/1/early_access_feature/", {
    method: "POST",
    body: { name: "Beta", stage: "draft" },
  });
  const { id } = (await created.json()) as { id: string };
  expect((await done("set_early_access_stage", { id, stage: "beta" })).stage).toBe("beta");
  expect((await done("list_early_access_features", {})).results).toMatchObject([{ id, stage: "beta" }]);
  const survey = await done("create_survey", valid.create_survey!);
  expect((await done("list_surveys", {})).results).toMatchObject([{ id: survey.id, status: "draft" }]);
  expect(await done("survey_results", { id: survey.id })).toMatchObject({ name: "Why", responses: 0 });
});
