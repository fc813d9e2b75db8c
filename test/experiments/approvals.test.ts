/** Experiments, early access features and surveys in a project that requires approval. Source: contract, experiments 1.1. */

import { beforeAll, expect, test } from "bun:test";
import { server, useServer } from "../support/use-server.ts";
import { api, patch, post } from "./support.ts";

useServer();
beforeAll(async () => {
  await server.api("/api/projects/1/", { method: "PATCH", body: { approvals: "all" } });
});

const required = (key: string) => ({
  status: 403,
  body: {
    code: "approval_required",
    detail: expect.stringContaining(`Changes of the flag "${key}" need approval`),
  },
});
/** Changes a flag as an approved request does. */
async function approved(flagId: number, changes: object): Promise<void> {
  await server.api("/api/projects/1/", { method: "PATCH", body: { approvals: "off" } });
  expect((await patch(`/feature_flags/${flagId}/`, changes)).status).toBe(200);
  await server.api("/api/projects/1/", { method: "PATCH", body: { approvals: "all" } });
}

test("an experiment is launched and shipped once its flag was changed by an approved request", async () => {
  const { body: holdout } = await post("/experiment_holdouts/", {
    name: "5 %",
    filters: [{ rollout_percentage: 5 }],
  });
  const created = await post("/experiments/", { name: "Approved", holdout_id: holdout.id });
  expect(created).toMatchObject({ status: 201, body: { holdout_id: holdout.id } });
  const { id, feature_flag: flag } = created.body;
  expect(await post(`/experiments/${id}/launch/`)).toMatchObject(required("approved"));
  const launched = { start_date: "2026-01-05T00:00:00Z", description: "Not alone." };
  expect(await patch(`/experiments/${id}/`, launched)).toMatchObject(required("approved"));
  expect((await api(`/experiments/${id}/`)).body).toMatchObject({ status: "draft", description: "" });
  await approved(flag.id, { active: true });
  expect(await post(`/experiments/${id}/launch/`)).toMatchObject({
    status: 200,
    body: { status: "running" },
  });
  expect(await post(`/experiments/${id}/pause/`)).toMatchObject(required("approved"));
  const shipping = { variant_key: "test", conclusion: "won" };
  expect(await post(`/experiments/${id}/ship_variant/`, shipping)).toMatchObject(required("approved"));
  expect((await api(`/experiments/${id}/`)).body).toMatchObject({ status: "running", conclusion: null });
  const everyone = { properties: [], rollout_percentage: 100, variant: "test" };
  await approved(flag.id, { filters: { groups: [everyone, ...flag.filters.groups] } });
  const shipped = await post(`/experiments/${id}/ship_variant/`, shipping);
  expect(shipped).toMatchObject({ status: 200, body: { status: "stopped", conclusion: "won" } });
  expect(shipped.body.feature_flag.filters.groups).toEqual([everyone, ...flag.filters.groups]);
});

test("ending needs no approval", async () => {
  const { body } = await post("/experiments/", { name: "Ended" });
  await approved(body.feature_flag.id, { active: true });
  await post(`/experiments/${body.id}/launch/`);
  expect(await post(`/experiments/${body.id}/end/`)).toMatchObject({
    status: 200,
    body: { status: "stopped" },
  });
});

test("a stage of an early access feature needs approval, its texts do not", async () => {
  const { body } = await post("/early_access_feature/", { name: "Editor", stage: "draft" });
  const path = `/early_access_feature/${body.id}/`;
  expect(await patch(path, { stage: "beta", name: "New editor" })).toMatchObject(required("editor"));
  expect((await api(path)).body).toMatchObject({ stage: "draft", name: "Editor" });
  expect(await patch(path, { name: "New editor" })).toMatchObject({ status: 200 });
});

test("a survey runs without approval: its flags are its own, and no one could request their change", async () => {
  const questions = [{ type: "open", question: "Why?" }];
  const { body } = await post("/surveys/", { name: "Why", type: "popover", questions });
  const path = `/surveys/${body.id}/`;
  const running = await patch(path, { start_date: "2026-01-05T00:00:00Z" });
  expect(running).toMatchObject({ status: 200, body: { status: "running" } });
  const waiting = await patch(path, { conditions: { seenSurveyWaitPeriodInDays: 3 } });
  expect(waiting.status).toBe(200);
  // Not through the flag itself.
  const internal = `/feature_flags/${running.body.internal_targeting_flag.id}/`;
  expect(await patch(internal, { active: false })).toMatchObject({ status: 403 });
  expect((await api(path, { method: "DELETE" })).status).toBe(204);
});
