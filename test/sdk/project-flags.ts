/** The flags with which every SDK is tested, made through the API. */

import type { ServerProcess } from "../support/server.ts";

const flagsTag = "/api/projects/1/feature_flags/";

const everyone = (rollout_percentage: number) => ({ groups: [{ properties: [], rollout_percentage }] });

/** Flags by key; what a flag gives to whom follows from its name. */
export const sdkFlags: Record<string, Record<string, unknown>> = {
  never: { filters: everyone(0) },
  half: { filters: everyone(50) },
  always: { filters: { ...everyone(100), payloads: { true: '{"color":"red","sizes":[1,2]}' } } },
  variants: {
    filters: {
      ...everyone(80),
      multivariate: {
        variants: [
          { key: "first", rollout_percentage: 50 },
          { key: "second", rollout_percentage: 30 },
          { key: "third", rollout_percentage: 20 },
        ],
      },
      payloads: { first: '"one"', second: "2", third: '{"n":3}' },
    },
  },
  "pro-plan": {
    filters: {
      groups: [
        {
          properties: [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }],
          rollout_percentage: 100,
        },
      ],
    },
  },
  "large-company": {
    filters: {
      aggregation_group_type_index: 0,
      groups: [
        {
          properties: [{ key: "size", type: "group", group_type_index: 0, operator: "gt", value: "100" }],
          rollout_percentage: 100,
        },
      ],
    },
  },
  "switched-off": { active: false, filters: everyone(100) },
  settings: {
    is_remote_configuration: true,
    filters: { ...everyone(100), payloads: { true: '{"limit":10}' } },
  },
};

/** Makes the group type `company` with the group `acme`, then the flags; answers the flags' ids by key. */
export async function createSdkFlags(server: ServerProcess): Promise<Record<string, number>> {
  await server.capture({
    event: "$groupidentify",
    distinct_id: "setup",
    properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 500 } },
  });
  await server.eventsWhenStored(1, "event=$groupidentify");
  const ids: Record<string, number> = {};
  for (const [key, fields] of Object.entries(sdkFlags)) {
    ids[key] = (await post(server, flagsTag, { key, ...fields })).id;
  }
  return ids;
}

/** Creates the flags of `createSdkFlags`, and one for each runtime; answers the flags' ids by key. */
export async function createOpenFeatureFlags(server: ServerProcess): Promise<Record<string, number>> {
  const ids = await createSdkFlags(server);
  for (const [key, evaluation_runtime] of [
    ["for-browsers", "client"],
    ["for-servers", "server"],
  ] as const) {
    ids[key] = (await post(server, flagsTag, { key, evaluation_runtime, filters: everyone(100) })).id;
  }
  return ids;
}

/**
 * Makes flags about who is in a cohort and who is not, one of whose groups is empty, and a flag in which a client wrote null
 * for what it has not: for SDKs that evaluate flags themselves.
 */
export async function createFlagsWithCohort(server: ServerProcess): Promise<void> {
  const isPro = { key: "plan", type: "person", operator: "exact", value: ["pro"] };
  const created = await post(server, "/api/projects/1/cohorts/", {
    name: "pro people",
    filters: {
      properties: {
        type: "OR",
        values: [
          { type: "AND", values: [] },
          { type: "AND", values: [isPro] },
        ],
      },
    },
  });
  const membership = (operator: string) => ({
    groups: [
      { properties: [{ key: "id", type: "cohort", operator, value: created.id }], rollout_percentage: 100 },
    ],
  });
  await post(server, flagsTag, { key: "inside", filters: membership("in") });
  await post(server, flagsTag, { key: "outside", filters: membership("not_in") });
  const groups = [{ properties: [{ ...isPro, negation: null }], rollout_percentage: null, variant: null }];
  await post(server, flagsTag, {
    key: "with-nulls",
    filters: { groups, multivariate: { variants: null }, payloads: null, early_exit: null },
  });
}

async function post(server: ServerProcess, path: string, fields: object): Promise<{ id: number }> {
  const response = await server.api(path, { method: "POST", body: fields });
  const body = (await response.json()) as { id: number };
  if (response.status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

/** Changes a flag through the API. */
export async function changeFlag(server: ServerProcess, id: number, body: object): Promise<void> {
  const response = await server.api(`${flagsTag}${id}/`, { method: "PATCH", body });
  if (response.status !== 200) throw new Error(await response.text());
}
