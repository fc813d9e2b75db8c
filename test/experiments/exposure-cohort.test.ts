/** The cohort of exposed persons, and results by day. Source: contract, experiments 1. */

import { expect, test } from "bun:test";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();

async function api(path: string, init: { method?: string; body?: object; key?: string } = {}) {
  const response = await fetch(`${server.url}/api/projects/1${path}`, {
    method: init.method ?? (init.body ? "POST" : "GET"),
    headers: {
      Authorization: `Bearer ${init.key ?? server.initialized.personal_api_key}`,
      "Content-Type": "application/json",
    },
    body: init.body && JSON.stringify(init.body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  return { status: response.status, body: (await response.json()) as any };
}

const path = (id: number) => `/experiments/${id}/create_exposure_cohort_for_experiment/`;
const revenue = {
  kind: "ExperimentMetric",
  metric_type: "mean",
  name: "Revenue",
  source: { kind: "EventsNode", event: "order paid", math: "sum", math_property: "amount" },
};

async function launched(key: string, days = 0) {
  const { body } = await api("/experiments/", {
    body: { name: key, feature_flag_key: key, metrics: [revenue], minimum_exposures: 1 },
  });
  const start = new Date(Date.now() - days * 86_400_000 - 60_000).toISOString();
  const { body: after } = await api(`/experiments/${body.id}/`, {
    method: "PATCH",
    body: { start_date: start },
  });
  expect(after.status).toBe("running");
  return body.id as number;
}

test("a static cohort of everyone who was exposed, merged persons once", async () => {
  const id = await launched("exposed");
  const see = (distinct_id: string, variant: unknown) => ({
    event: "$feature_flag_called",
    distinct_id,
    properties: { $feature_flag: "exposed", $feature_flag_response: variant },
  });
  await server.batch([
    see("ann", "control"),
    see("ben", "test"),
    see("anon", "test"),
    see("off", false),
    { event: "$create_alias", distinct_id: "ann", properties: { distinct_id: "ann", alias: "anon" } },
    { event: "order paid", distinct_id: "other", properties: { amount: 1 } },
  ]);
  await server.eventsWhenStored(6);
  const { status, body } = await api(path(id), { body: {} });
  expect([status, body.cohort]).toEqual([201, expect.objectContaining({ is_static: true })]);
  expect(body.cohort.name).toStartWith("Users exposed to experiment exposed at ");
  const filled = await until(async () => {
    const cohort = (await api(`/cohorts/${body.cohort.id}/`)).body;
    return !cohort.is_calculating && cohort;
  }, "the cohort is filled");
  expect(filled.count).toBe(2);
  const { body: members } = await api(`/cohorts/${body.cohort.id}/persons/`);
  const ids = members.results.flatMap((one: { distinct_ids: string[] }) => one.distinct_ids);
  expect(ids.sort()).toEqual(["ann", "anon", "ben"]);
});

test("both scopes are needed, and a launch", async () => {
  const id = await launched("scopes");
  const { body: key } = await fetch(`${server.url}/api/personal_api_keys/`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${server.initialized.personal_api_key}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ label: "one scope", scopes: ["experiment:write"] }),
  }).then(async (response) => ({ body: (await response.json()) as { value: string } }));
  const denied = await api(path(id), { body: {}, key: key.value });
  expect([denied.status, denied.body.detail]).toEqual([403, expect.stringContaining("cohort:write")]);
  const { body: draft } = await api("/experiments/", { body: { name: "draft" } });
  const early = await api(path(draft.id), { body: {} });
  expect([early.status, early.body.detail]).toEqual([400, expect.stringContaining("not been launched")]);
});

test("results by day", async () => {
  const id = await launched("daily", 2);
  const { body } = await api(`/experiments/${id}/results/?series=true`);
  expect(Object.keys(body.metrics[0].timeseries).length).toBeGreaterThanOrEqual(2);
  const plain = await api(`/experiments/${id}/results/`);
  expect(plain.body.metrics[0]).not.toHaveProperty("timeseries");
  expect((await api(`/experiments/${id}/results/?series=maybe`)).status).toBe(400);
});
