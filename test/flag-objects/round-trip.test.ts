/**
 * Experiments, holdouts, saved metrics, early access features and surveys in documents of flags, and copied from another
 * server. Source: contract, experiments 1.8.
 */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
let source: ServerProcess;
const from = "2026-01-05T08:00:00.000000Z";
const metric = {
  kind: "ExperimentMetric",
  metric_type: "mean",
  source: { kind: "EventsNode", event: "order paid", math: "sum", math_property: "amount" },
};

// biome-ignore lint/suspicious/noExplicitAny: responses of any route
async function post(path: string, body: object, method = "POST"): Promise<any> {
  const response = await source.api(`/api/projects/1${path}`, { method, body });
  const answer = await response.json();
  expect({ path, status: response.status, answer }).toMatchObject({
    status: method === "POST" ? expect.any(Number) : 200,
  });
  expect(response.status).toBeLessThan(300);
  return answer;
}

beforeAll(async () => {
  source = await ServerProcess.start();
  // Another holdout first: those of the copies would otherwise have the same IDs by chance.
  const first = await post("/experiment_holdouts/", {
    name: "gone",
    filters: [{ properties: [], rollout_percentage: 1 }],
  });
  const holdout = await post("/experiment_holdouts/", {
    name: "5 % of all",
    filters: [{ properties: [], rollout_percentage: 5 }],
  });
  await source.api(`/api/projects/1/experiment_holdouts/${first.id}/`, { method: "DELETE" });
  const saved = await post("/experiment_saved_metrics/", { name: "Revenue", query: metric, tags: ["money"] });
  const experiment = await post("/experiments/", {
    name: "One-click payment",
    feature_flag_key: "one-click",
    description: "If it is easier, then more pay.",
    metrics: [{ ...metric, name: "Orders", guardrail: { tolerance: 0.1, action: "warn" } }],
    saved_metrics_ids: [{ id: saved.id, metadata: { type: "secondary" } }],
    holdout_id: holdout.id,
    primary_metrics_ordered_uuids: ["b", "a"],
    stats_config: { method: "frequentist", frequentist: { alpha: 0.01 } },
    tags: ["checkout"],
  });
  await post(`/experiments/${experiment.id}/`, { start_date: from }, "PATCH");
  // Paused: an import must not switch the flag on.
  await post(`/experiments/${experiment.id}/pause/`, {});
  const old = await post("/experiments/", { name: "Tried before", feature_flag_key: "tried-before" });
  await post(`/experiments/${old.id}/`, { start_date: from }, "PATCH");
  await post(`/experiments/${old.id}/end/`, {});
  // Hidden from lists.
  await post(`/experiments/${old.id}/archive/`, {});
  await post("/web_experiments/", {
    name: "Headline",
    variants: {
      control: { rollout_percentage: 50 },
      test: { rollout_percentage: 50, transforms: [{ selector: "h1", text: "Buy now" }] },
    },
  });
  await post("/early_access_feature/", {
    name: "New editor",
    stage: "beta",
    description: "Write with others.",
  });
  const cohort = await post("/cohorts/", {
    name: "customers",
    filters: {
      properties: {
        type: "AND",
        values: [
          { type: "AND", values: [{ key: "plan", type: "person", value: ["pro"], operator: "exact" }] },
        ],
      },
    },
  });
  const targeting = {
    groups: [{ properties: [{ key: "id", type: "cohort", value: cohort.id }], rollout_percentage: 100 }],
  };
  const survey = await post("/surveys/", {
    name: "Satisfaction",
    type: "popover",
    questions: [
      {
        type: "rating",
        question: "How likely?",
        display: "number",
        scale: 10,
        lowerBoundLabel: "no",
        upperBoundLabel: "yes",
      },
    ],
    targeting_flag_filters: targeting,
    linked_flag_id: experiment.feature_flag.id,
    responses_limit: 500,
  });
  await post(`/surveys/${survey.id}/`, { start_date: from }, "PATCH");
}, 60_000);
afterAll(async () => {
  await source[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function exported(dataDir: string) {
  const { stdout, stderr } = await flagkeep(["flags", "export", "--json", "--data-dir", dataDir]);
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

test("a document has the objects, and another project gets them; a second import changes nothing", async () => {
  const document = await exported(source.dataDir);
  expect(document).toMatchObject({
    holdouts: [{ name: "5 % of all", id: 2, filters: [{ rollout_percentage: 5 }] }],
    saved_metrics: [{ name: "Revenue", tags: ["money"] }],
    experiments: [
      { name: "Headline", type: "web", variants: { test: { transforms: [{ selector: "h1" }] } } },
      {
        name: "One-click payment",
        feature_flag_key: "one-click",
        holdout: "5 % of all",
        primary_metrics_ordered_uuids: ["b", "a"],
        saved_metrics: [{ name: "Revenue", metadata: { type: "secondary" } }],
        start_date: from,
      },
      { name: "Tried before", archived: true },
    ],
    early_access_features: [{ name: "New editor", stage: "beta" }],
    surveys: [{ name: "Satisfaction", linked_flag_key: "one-click", start_date: from }],
  });
  expect(JSON.stringify(document.surveys)).toContain(`"cohort":"customers"`);
  const file = join(folder, "flags.json");
  writeFileSync(file, JSON.stringify(document));
  const { dataDir } = await initializedDirectory();
  const importing = (...more: string[]) =>
    flagkeep(["flags", "import", file, "--data-dir", dataDir, ...more]);
  const dry = await importing("--dry-run");
  expect(dry).toMatchObject({ code: 0, stderr: "" });
  expect((await exported(dataDir)).experiments).toBeUndefined();
  const { stdout, stderr, code } = await importing();
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  expect(stdout).toContain("+ survey Satisfaction");
  expect(await exported(dataDir)).toEqual(document);
  expect((await importing()).stdout).toBe("No differences.\n");
  document.experiments[1].description = "Changed.";
  document.early_access_features[0].stage = "general-availability";
  writeFileSync(file, JSON.stringify(document));
  expect((await importing("--json")).stdout).toContain(`"change":"updated"`);
  expect(await exported(dataDir)).toEqual(document);
}, 60_000);

test("unsupported parts are reported, and the rest is imported", async () => {
  const file = join(folder, "wrong.json");
  const { dataDir } = await initializedDirectory();
  for (const [index, [part, reason]] of (
    [
      [{ experiments: [{ name: "x", feature_flag_key: "none" }] }, `flag "none"`],
      [{ experiments: [{ name: "x", feature_flag_key: "new0" }] }, "2 to 20 variants"],
      [{ experiments: [{ name: "x" }] }, "`feature_flag_key`"],
      [{ surveys: [{ name: "x", type: "popover", questions: [], colour: 1 }] }, "`colour`"],
      [{ surveys: [{ name: "x", type: "popover", questions: [] }] }, `Survey "x"`],
      [{ surveys: [7] }, "The survey 1 must be a map"],
      [{ holdouts: [{ name: "x", filters: [{ rollout_percentage: 500 }] }] }, "between 0 and 100"],
      [{ saved_metrics: [{ name: "x", query: { kind: "odd" } }] }, "not supported"],
    ] as const
  ).entries()) {
    writeFileSync(
      file,
      JSON.stringify({
        flagkeep_flags: 1,
        ...part,
        flags: [{ key: `new${index}`, filters: { groups: [] } }],
      }),
    );
    const { code, stderr } = await flagkeep(["flags", "import", file, "--data-dir", dataDir]);
    expect({ part, code, stderr }).toEqual({ part, code: 0, stderr: expect.stringContaining(reason) });
    expect(stderr).toStartWith("Not taken over: ");
  }
  const { flags, ...document } = await exported(dataDir);
  expect(flags).toHaveLength(8);
  expect(document).toEqual({ flagkeep_flags: 1, group_types: {}, cohorts: [] });
  writeFileSync(file, JSON.stringify({ flagkeep_flags: 1, saved_metrics: {} }));
  const { code, stderr } = await flagkeep(["flags", "import", file, "--data-dir", dataDir]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("must be a list") });
}, 60_000);

test("a project is copied with them, and copying it again changes nothing", async () => {
  const { dataDir } = await initializedDirectory();
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, source.initialized.personal_api_key);
  const copy = async () => {
    const { stdout, stderr, code } = await flagkeep([
      "import",
      source.url,
      "--key-file",
      keyFile,
      "--json",
      "--data-dir",
      dataDir,
    ]);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return JSON.parse(stdout).flags;
  };
  expect(await copy()).toMatchObject({ created: 12, updated: 0, remarks: [] });
  const { flags, ...document } = await exported(source.dataDir);
  expect(await exported(dataDir)).toMatchObject(document);
  expect(await copy()).toMatchObject({ created: 0, updated: 0, remarks: [] });
}, 120_000);
