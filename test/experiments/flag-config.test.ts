/** An experiment configures its flag. Source: contract, experiments 1.2 and 1.3. */

import { expect, test } from "bun:test";
import { useServer } from "../support/use-server.ts";
import { createDraft, patch, post } from "./support.ts";

useServer();

const go = (id: number, transition: string) => post(`/experiments/${id}/${transition}/`);

test("variants of a launched experiment do not change through it", async () => {
  const created = await createDraft();
  const variants = [
    { key: "control", rollout_percentage: 20 },
    { key: "test", rollout_percentage: 80 },
  ];
  const changed = await patch(`/experiments/${created.id}/`, {
    parameters: { feature_flag_variants: variants },
  });
  expect(changed.body.feature_flag.filters.multivariate.variants).toEqual(variants);
  await go(created.id, "launch");
  const again = await patch(`/experiments/${created.id}/`, { parameters: changed.body.parameters });
  expect(again.status).toBe(200);
  const rejected = await patch(`/experiments/${created.id}/`, {
    parameters: { feature_flag_variants: [variants[0], { key: "new", rollout_percentage: 80 }] },
  });
  expect(rejected).toMatchObject({ status: 400, body: { code: "experiment_running" } });
});

test("`feature_flag` configures the flag of a draft; on a launched one, only the percentages on request", async () => {
  const created = await createDraft();
  const path = `/experiments/${created.id}/`;
  const variants = (...shares: [string, number][]) => ({
    feature_flag: {
      filters: {
        multivariate: { variants: shares.map(([key, share]) => ({ key, rollout_percentage: share })) },
      },
    },
  });
  const groups = [{ properties: [], rollout_percentage: 40 }];
  const three = variants(["control", 20], ["test", 30], ["third", 50]).feature_flag.filters;
  const changed = await patch(path, {
    feature_flag: { filters: { ...three, groups }, ensure_experience_continuity: true },
  });
  expect(changed.body.feature_flag).toMatchObject({
    ensure_experience_continuity: true,
    filters: { groups: [{ rollout_percentage: 40 }], ...three },
  });
  expect(changed.body.parameters.feature_flag_variants).toHaveLength(3);
  expect(await patch(path, variants(["control", 100]))).toMatchObject({ status: 400 });
  const { body: launched } = await go(created.id, "launch");
  const shares: [string, number][] = [
    ["control", 50],
    ["test", 25],
    ["third", 25],
  ];
  expect(await patch(path, variants(...shares))).toMatchObject({
    status: 400,
    body: { code: "experiment_running", attr: "feature_flag" },
  });
  // What was read changes nothing.
  const same = await patch(path, { feature_flag: launched.feature_flag, parameters: launched.parameters });
  expect(same).toMatchObject({
    status: 200,
    body: { feature_flag: { version: launched.feature_flag.version } },
  });
  const wanted = { update_feature_flag_params: true };
  const moved = await patch(path, { ...variants(...shares), ...wanted });
  expect(moved.body.feature_flag.filters).toMatchObject({
    ...variants(...shares).feature_flag.filters,
    groups: [{ rollout_percentage: 40 }],
  });
  const renamed = variants(["control", 50], ["test", 25], ["other", 25]);
  expect(await patch(path, { ...renamed, ...wanted })).toMatchObject({
    status: 400,
    body: { code: "experiment_running", detail: expect.stringContaining("added, removed or renamed") },
  });
});

test("archiving switches the flag off on request", async () => {
  const created = await createDraft();
  for (const name of ["launch", "end"]) await go(created.id, name);
  expect(await post(`/experiments/${created.id}/archive/`, { disable_feature_flag: true })).toMatchObject({
    status: 200,
    body: { archived: true, feature_flag: { active: false } },
  });
});
