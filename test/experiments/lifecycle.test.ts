/** States, rights and links of experiments. Source: contract, experiments 1.1 to 1.3. */

import { describe, expect, test } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";
import { type ApiResponse, api, createDraft, patch, post } from "./support.ts";

useServer();

const go = (id: number, ...names: string[]) =>
  names.reduce(
    async (before, name) => {
      await before;
      return await post(
        `/experiments/${id}/${name}/`,
        name === "ship_variant" ? { variant_key: "test" } : {},
      );
    },
    Promise.resolve<ApiResponse>({ status: 0, body: undefined }),
  );

test("a draft creates its flag, off, with control and test", async () => {
  const created = await createDraft({ name: "Ünïcode Name!" });
  expect(created).toMatchObject({
    status: "draft",
    feature_flag_key: "unicode-name",
    version: 1,
    start_date: null,
  });
  expect(created.feature_flag).toMatchObject({
    active: false,
    creation_context: "experiments",
    experiment_set: [created.id],
    filters: {
      multivariate: {
        variants: [
          { key: "control", rollout_percentage: 50 },
          { key: "test", rollout_percentage: 50 },
        ],
      },
    },
  });
  expect(
    (await api("/feature_flags/?type=experiment")).body.results.map(({ id }: { id: number }) => id),
  ).toContain(created.feature_flag.id);
});

test("experiments of one name get flags of their own", async () => {
  const names = await Promise.all([createDraft({ name: "Same name" }), createDraft({ name: "Same name" })]);
  expect(names.map(({ feature_flag_key: key }) => key).sort()).toEqual(["same-name", "same-name-2"]);
});

describe("every transition from every state", () => {
  const ways: Record<string, string[]> = {
    draft: [],
    running: ["launch"],
    paused: ["launch", "pause"],
    stopped: ["launch", "end"],
    archived: ["launch", "end", "archive"],
  };
  const results: Record<string, Record<string, string | undefined>> = {
    launch: { draft: "running" },
    pause: { running: "paused" },
    resume: { paused: "running" },
    end: { running: "stopped", paused: "stopped" },
    ship_variant: { running: "stopped", paused: "stopped", stopped: "stopped", archived: "stopped" },
    reset: { running: "draft", paused: "draft", stopped: "draft", archived: "draft" },
    archive: { stopped: "stopped" },
    unarchive: { archived: "stopped" },
  };
  for (const [state, way] of Object.entries(ways))
    test(state, async () => {
      for (const [name, states] of Object.entries(results)) {
        const { id } = await createDraft();
        await go(id, ...way);
        const before = (await api(`/experiments/${id}/`)).body;
        const { status, body } = await go(id, name);
        if (states[state] === undefined) {
          expect({ name, status, code: body.code }).toEqual({
            name,
            status: 400,
            code: "invalid_transition",
          });
          expect((await api(`/experiments/${id}/`)).body).toEqual(before);
        } else
          expect({ name, status, state: body.status }).toEqual({ name, status: 200, state: states[state] });
      }
    });
});

test("a message names the required step", async () => {
  const { id } = await createDraft();
  const says = async (name: string) => (await go(id, name)).body.detail as string;
  expect(await says("archive")).toBe(
    "Experiment must be ended before it can be archived. Its status is draft.",
  );
  expect(await says("end")).toBe("Experiment must be launched before it can be ended. Its status is draft.");
  await go(id, "launch");
  expect((await go(id, "archive")).body.detail).toBe(
    "Experiment must be ended before it can be archived. Its status is running.",
  );
});

test("launch and ship change the flag once, and both are in the activity log", async () => {
  const created = await createDraft();
  const launched = (await go(created.id, "launch")).body;
  expect(launched.feature_flag).toMatchObject({ active: true, version: 2 });
  const shipped = (await go(created.id, "ship_variant")).body;
  expect(shipped).toMatchObject({ status: "stopped", feature_flag: { active: true, version: 3 } });
  expect(shipped.feature_flag.filters.groups[0]).toEqual({
    properties: [],
    rollout_percentage: 100,
    variant: "test",
  });
  expect(shipped.feature_flag.filters.groups).toHaveLength(2);
  const own = (await api(`/experiments/${created.id}/activity/`)).body.results;
  expect(own.map(({ activity }: { activity: string }) => activity)).toEqual([
    "updated",
    "updated",
    "created",
  ]);
  expect(own[1].detail.changes).toMatchObject([
    { type: "Experiment", field: "start_date", action: "created" },
  ]);
  const evaluated = await server.post("/flags?v=2", { token: server.token, distinct_id: "anyone" });
  const { flags } = (await evaluated.json()) as { flags: Record<string, { variant: string }> };
  expect(flags[created.feature_flag_key]!.variant).toBe("test");
});

test("two launches at the same time: one succeeds", async () => {
  const { id } = await createDraft();
  const answers = await Promise.all([go(id, "launch"), go(id, "launch"), go(id, "launch")]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
});

describe("links of the flag", () => {
  test("a flag in use is not deleted; a draft is deleted with it; a client may send back what it read", async () => {
    const created = await createDraft();
    await go(created.id, "launch");
    const path = `/feature_flags/${created.feature_flag.id}/`;
    const rejected = await patch(path, { deleted: true });
    expect(rejected).toMatchObject({ status: 400, body: { attr: "deleted" } });
    expect(rejected.body.detail).toContain(created.name);
    const read = (await api(path)).body;
    const back = await patch(path, { ...read, original_flag: read, name: "renamed" });
    expect(back).toMatchObject({ status: 200, body: { experiment_set: [created.id], name: "renamed" } });
    await go(created.id, "end");
    expect((await patch(path, { deleted: true })).status).toBe(200);

    const other = await createDraft();
    expect((await patch(`/feature_flags/${other.feature_flag.id}/`, { deleted: true })).status).toBe(200);
    expect((await api(`/experiments/${other.id}/`)).status).toBe(404);
  });

  test("a deleted experiment leaves its flag, without the link", async () => {
    const created = await createDraft();
    expect((await patch(`/experiments/${created.id}/`, { deleted: true })).body.deleted).toBeTrue();
    const { body } = await api(`/feature_flags/${created.feature_flag.id}/`);
    expect(body).toMatchObject({ deleted: false, experiment_set: [] });
    expect((await api(`/experiments/${created.id}/`, { method: "DELETE" })).status).toBe(405);
  });

  test("a deleted experiment is restored with the link to its flag, unless that is deleted", async () => {
    const created = await createDraft();
    const path = `/experiments/${created.id}/`;
    const flagPath = `/feature_flags/${created.feature_flag.id}/`;
    await patch(path, { deleted: true });
    expect((await patch(path, { name: "Gone" })).status).toBe(404);
    const { status, body } = await patch(path, { deleted: false });
    expect([status, body.deleted, body.status]).toEqual([200, false, "draft"]);
    expect((await api(flagPath)).body.experiment_set).toEqual([created.id]);
    await patch(path, { deleted: true });
    await patch(flagPath, { deleted: true });
    expect((await patch(path, { deleted: false })).status).toBe(400);
    expect((await patch("/experiments/999999/", { deleted: false })).status).toBe(404);
  });

  test("an existing flag needs 2 to 20 variants", async () => {
    await post("/feature_flags/", { key: "plain" });
    expect(await post("/experiments/", { name: "x", feature_flag_key: "plain" })).toMatchObject({
      status: 400,
      body: { code: "invalid_input", attr: "feature_flag_key" },
    });
  });
});

describe("rights", () => {
  const key = async (scopes: string[]) => {
    const response = await server.api("/api/personal_api_keys/", {
      method: "POST",
      body: { label: "k", scopes },
    });
    return ((await response.json()) as { value: string }).value;
  };

  test("the scope of experiments is enough for its own flag, not for one that existed before", async () => {
    const narrow = await key(["experiment:write"]);
    const own = (await post("/experiments/", { name: "Own flag" }, narrow)).body;
    expect((await post(`/experiments/${own.id}/launch/`, {}, narrow)).status).toBe(200);
    const variants = [
      { key: "a", rollout_percentage: 50 },
      { key: "b", rollout_percentage: 50 },
    ];
    await post("/feature_flags/", {
      key: "older",
      active: false,
      filters: { groups: [], multivariate: { variants } },
    });
    const linked = (await post("/experiments/", { name: "Linked", feature_flag_key: "older" }, narrow)).body;
    expect((await post(`/experiments/${linked.id}/launch/`, {}, narrow)).status).toBe(403);
    expect((await api(`/experiments/${linked.id}/`)).body).toMatchObject({
      status: "draft",
      feature_flag: { active: false },
    });
    const wide = await key(["experiment:write", "feature_flag:write"]);
    expect((await post(`/experiments/${linked.id}/launch/`, {}, wide)).status).toBe(200);
  });

  test("reading and writing need their scopes", async () => {
    const created = await createDraft();
    const reader = await key(["experiment:read"]);
    expect((await api(`/experiments/${created.id}/`, { key: reader })).status).toBe(200);
    expect((await patch(`/experiments/${created.id}/`, { name: "x" }, reader)).status).toBe(403);
    expect((await api("/experiments/", { key: await key(["feature_flag:read"]) })).status).toBe(403);
    expect((await api("/experiment_saved_metrics/", { key: reader })).status).toBe(403);
  });

  test("a protected flag needs approval, and nothing changes without it", async () => {
    const created = await createDraft();
    await patch(`/feature_flags/${created.feature_flag.id}/`, { tags: ["critical"] });
    await server.api("/api/projects/1/", { method: "PATCH", body: { approvals: "critical" } });
    const rejected = await go(created.id, "launch");
    expect(rejected).toMatchObject({ status: 403, body: { code: "approval_required" } });
    expect((await api(`/experiments/${created.id}/`)).body).toMatchObject({
      status: "draft",
      start_date: null,
    });
    await server.api("/api/projects/1/", { method: "PATCH", body: { approvals: "off" } });
  });
});

test("the flag of an ended experiment may be deleted; then nothing changes it", async () => {
  const created = await createDraft();
  await go(created.id, "launch", "end");
  expect((await patch(`/feature_flags/${created.feature_flag.id}/`, { deleted: true })).status).toBe(200);
  const shipped = await go(created.id, "ship_variant");
  expect(shipped).toMatchObject({ status: 400, body: { attr: "feature_flag" } });
  await go(created.id, "reset");
  expect(await go(created.id, "launch")).toMatchObject({ status: 400, body: { attr: "feature_flag" } });
});

test("dates, versions and invalid metrics", async () => {
  const created = await createDraft();
  const path = `/experiments/${created.id}/`;
  expect((await patch(path, { end_date: "2026-01-01T00:00:00Z" })).status).toBe(400);
  const launched = (await patch(path, { start_date: "2026-01-01T00:00:00Z" })).body;
  expect(launched).toMatchObject({ status: "running", start_date: "2026-01-01T00:00:00.000000Z" });
  expect((await patch(path, { name: "late", version: 1 })).status).toBe(409);
  const metric = (more: object) => ({
    kind: "ExperimentMetric",
    metric_type: "mean",
    source: { kind: "EventsNode", event: "x" },
    ...more,
  });
  for (const [bad, code] of [
    [metric({ source: { kind: "ActionsNode", id: 1 } }), "unsupported_metric"],
    [{ kind: "ExperimentTrendsQuery" }, "unsupported_metric"],
    [metric({ metric_type: "count" }), "invalid_input"],
    [metric({ source: { kind: "EventsNode", event: "x", math: "sum" } }), "invalid_input"],
    [metric({ source: { kind: "EventsNode", event: "x", math: "p90" } }), "unsupported_metric"],
    [metric({ goal: "up" }), "invalid_input"],
    ...[
      [{}, "invalid_input"],
      [{ key: 5 }, "invalid_input"],
      [{ key: "plan", operator: "constructor", value: 5 }, "invalid_operator"],
      [{ key: "plan", operator: "gt", value: "abc" }, "invalid_value"],
      [{ key: "plan", type: "group", value: "x" }, "invalid_input"],
    ].map(([filter, code]) => [
      metric({ source: { kind: "EventsNode", event: "x", properties: [filter] } }),
      code,
    ]),
    [metric({ upper_bound_percentile: 90 }), "invalid_input"],
    [metric({ conversion_window: -1 }), "invalid_input"],
    [{ kind: "ExperimentMetric", metric_type: "funnel", series: [] }, "invalid_input"],
  ] as const)
    expect(await patch(path, { metrics: [bad] })).toMatchObject({
      status: 400,
      body: { code, attr: "metrics" },
    });
  const criteria = {
    exposure_config: { event: "x", properties: [{ key: "plan", operator: "gt", value: "abc" }] },
  };
  expect(await patch(path, { exposure_criteria: criteria })).toMatchObject({
    status: 400,
    body: { attr: "exposure_criteria", code: "invalid_value" },
  });
  const many = await patch(path, { metrics: Array.from({ length: 21 }, () => metric({})) });
  expect(many).toMatchObject({ status: 400, body: { attr: "metrics" } });
  expect((await patch(path, { metrics: [metric({})] })).body.metrics[0].uuid).toBeString();
});

test("a restored experiment has its holdout in its flag as it is by then", async () => {
  const holdoutAt = async (percentage: number) => {
    const filters = [{ rollout_percentage: percentage }];
    return (await post("/experiment_holdouts/", { name: "Some", filters })).body;
  };
  const filters = async ({ feature_flag: { id } }: { feature_flag: { id: number } }) =>
    (await api(`/feature_flags/${id}/`)).body.filters;
  const deleteAndRestore = async ({ id }: { id: number }, meanwhile: () => Promise<unknown>) => {
    expect((await patch(`/experiments/${id}/`, { deleted: true })).status).toBe(200);
    await meanwhile();
    expect((await patch(`/experiments/${id}/`, { deleted: false })).status).toBe(200);
  };
  const holdout = await holdoutAt(5);
  const path = `/experiment_holdouts/${holdout.id}/`;
  const created = await createDraft({ holdout_id: holdout.id });
  await deleteAndRestore(created, () => patch(path, { filters: [{ rollout_percentage: 30 }] }));
  expect((await filters(created)).holdout).toEqual({ id: holdout.id, exclusion_percentage: 30 });
  await deleteAndRestore(created, () => api(path, { method: "DELETE" }));
  expect((await filters(created)).holdout ?? null).toBeNull();
  // A holdout of the flag itself stays.
  const other = await holdoutAt(7);
  const sent = { ...(await filters(created)), holdout: { id: other.id, exclusion_percentage: 7 } };
  await deleteAndRestore(created, () =>
    patch(`/feature_flags/${created.feature_flag.id}/`, { filters: sent }),
  );
  expect((await filters(created)).holdout).toEqual({ id: other.id, exclusion_percentage: 7 });
});

test("holdouts are written into the flags of their experiments", async () => {
  const { body: holdout } = await post("/experiment_holdouts/", {
    name: "Nobody sees it",
    filters: [{ properties: [], rollout_percentage: 5 }],
  });
  expect(holdout.filters).toEqual([
    { properties: [], rollout_percentage: 5, variant: `holdout-${holdout.id}` },
  ]);
  const created = await createDraft({ holdout_id: holdout.id });
  const filters = async () => (await api(`/feature_flags/${created.feature_flag.id}/`)).body.filters;
  expect((await filters()).holdout).toEqual({ id: holdout.id, exclusion_percentage: 5 });
  await patch(`/experiment_holdouts/${holdout.id}/`, {
    filters: [{ properties: [], rollout_percentage: 100 }],
  });
  expect((await filters()).holdout).toEqual({ id: holdout.id, exclusion_percentage: 100 });
  await go(created.id, "launch");
  expect(await patch(`/experiments/${created.id}/`, { holdout_id: null })).toMatchObject({
    status: 400,
    body: { code: "experiment_running" },
  });
  expect((await api(`/experiment_holdouts/${holdout.id}/`, { method: "DELETE" })).status).toBe(204);
  expect((await filters()).holdout ?? null).toBeNull();
});

test("saved metrics", async () => {
  const query = { kind: "ExperimentMetric", metric_type: "mean", source: { kind: "EventsNode", event: "x" } };
  const { body: saved } = await post("/experiment_saved_metrics/", { name: "Orders", query });
  const found = async (search: string) =>
    (await api(`/experiment_saved_metrics/?search=${search}`)).body.results.map(
      (one: { id: number }) => one.id,
    );
  expect([await found("RDER"), await found("other")]).toEqual([[saved.id], []]);
  const created = await createDraft({
    saved_metrics_ids: [{ id: saved.id, metadata: { type: "secondary" } }],
  });
  expect(created.saved_metrics).toMatchObject([
    { id: saved.id, name: "Orders", metadata: { type: "secondary" } },
  ]);
  await go(created.id, "launch");
  const results = (await api(`/experiments/${created.id}/results/`)).body;
  expect(results.metrics).toMatchObject([{ role: "secondary", name: "Orders", error: null }]);
  expect((await api(`/experiment_saved_metrics/${saved.id}/`, { method: "DELETE" })).status).toBe(204);
  expect((await api(`/experiments/${created.id}/`)).body.saved_metrics).toEqual([]);
});

test("lists: status, search, order, and what cannot be parsed", async () => {
  const names = async (query: string) =>
    (await api(`/experiments/?${query}`)).body.results.map(({ name }: { name: string }) => name);
  const one = await createDraft({ name: "aa list" });
  const two = await createDraft({ name: "bb list" });
  await go(two.id, "launch");
  expect(await names("search=list")).toEqual(["bb list", "aa list"]);
  expect(await names("search=list&order=name")).toEqual(["aa list", "bb list"]);
  expect(await names("search=list&status=running")).toEqual(["bb list"]);
  expect(await names(`search=${two.feature_flag_key.toUpperCase()}`)).toEqual(["bb list"]);
  await go(two.id, "end");
  await go(two.id, "archive");
  expect(await names("search=list")).toEqual(["aa list"]);
  expect(await names("search=list&status=stopped")).toEqual([]);
  expect(await names("search=list&archived=true")).toEqual(["bb list"]);
  expect(await names("search=list&archived=all")).toEqual(["bb list", "aa list"]);
  const env = { FLAGKEEP_DATA_DIR: server.dataDir };
  expect((await flagkeep(["experiments", "show", "bb list"], env)).stdout).toContain("stopped");
  const listed = await flagkeep(["experiments", "list", "--search", "list", "--archived", "--json"], env);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: "bb list" }]);
  expect(await names(`search=list&feature_flag_id=${one.feature_flag.id}`)).toEqual(["aa list"]);
  for (const query of ["status=zzz", "feature_flag_id=x", "created_by_id=x", "archived=x"])
    expect((await api(`/experiments/?${query}`)).status).toBe(400);
  expect((await api("/experiments/?archived=x")).body.detail).toBe("Must be true, false or all.");
});

test("commands do the same in the data directory and on a server", async () => {
  const env = { FLAGKEEP_DATA_DIR: server.dataDir };
  const created = JSON.parse(
    (await flagkeep(["experiments", "create", "From the shell", "--json"], env)).stdout,
  );
  expect(created.status).toBe("draft");
  const lists = ["--tags", "a", "--tags", "b", "--excluded-variants", "blue", "--minimum-exposures", "50"];
  const variants = ["control", "test", "blue", "red"].map((key) => ({ key, rollout_percentage: 25 }));
  const flag = ["--parameters", JSON.stringify({ feature_flag_variants: variants })];
  const tagged = await flagkeep(["experiments", "create", "Tagged", ...lists, ...flag, "--json"], env);
  expect(tagged.stderr).toBe("");
  expect(JSON.parse(tagged.stdout)).toMatchObject({
    tags: ["a", "b"],
    excluded_variants: ["blue"],
    minimum_exposures: 50,
  });
  const launched = await flagkeep(["experiments", "launch", "From the shell"], env);
  expect(launched.stdout).toContain("launched; flag from-the-shell is on.");
  const remote = ["--url", server.url, "--key", server.initialized.personal_api_key];
  const results = await flagkeep(["experiments", "results", String(created.id), "--json", ...remote]);
  expect(JSON.parse(results.stdout)).toMatchObject({ status: "running", metrics: [] });
  const local = await flagkeep(["experiments", "results", String(created.id)], env);
  expect(local.code).toBe(2);
  expect(local.stderr).toContain("--url");
  const shipped = await flagkeep(["experiments", "ship", String(created.id), "nope", ...remote]);
  expect(shipped.stderr).toContain('has no variant "nope"');
});

test("commands that create with a start date say what runs, instead of how to launch it", async () => {
  const env = { FLAGKEEP_DATA_DIR: server.dataDir };
  const dates = ["--start-date", "2026-01-05T08:00:00Z"];
  const experiment = ["experiments", "create", "Dated", "--feature-flag-key", "dated"];
  expect((await flagkeep([...experiment, ...dates], env)).stdout).toMatch(
    /^Experiment Dated \(\d+\) created with the flag dated; it is running\.\n$/,
  );
  const survey = [
    "surveys",
    "create",
    "Dated",
    "--type",
    "api",
    "--questions",
    '[{"type":"open","question":"?"}]',
  ];
  expect((await flagkeep([...survey, "--enable-partial-responses", ...dates], env)).stdout).toBe(
    "Survey Dated created; it is running.\n",
  );
});
