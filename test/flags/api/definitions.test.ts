/** Flag definitions for SDKs that evaluate flags themselves: every spelling of the route, every type that SDKs insist on. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";

let server: TestServer;
let token: string;
beforeAll(async () => {
  server = new TestServer();
  token = server.first.project.api_key;
  const cohort = await server.ask("POST", "/api/projects/1/cohorts/", {
    body: {
      name: "Set and unset",
      filters: {
        properties: {
          type: "OR",
          values: [
            { type: "AND", values: [{ key: "email", type: "person", operator: "is_set", value: "is_set" }] },
          ],
        },
      },
    },
  });
  const flags: JsonObject[] = [
    { key: "plain" },
    { key: "inactive", active: false },
    {
      key: "filters",
      name: "",
      filters: {
        groups: [
          {
            properties: [
              { key: "email", type: "person", operator: "is_set" },
              { key: "email", type: "person", operator: "is_not_set", value: "is_not_set" },
              { key: "id", type: "cohort", operator: "in", value: cohort.body.id },
            ],
            rollout_percentage: 33.3,
          },
          { rollout_percentage: 10 },
        ],
        payloads: { true: '{"a":1}' },
      },
    },
    {
      key: "variants",
      ensure_experience_continuity: true,
      filters: {
        groups: [{ properties: [], rollout_percentage: 50, variant: "b" }],
        multivariate: {
          variants: [
            { key: "a", name: "A", rollout_percentage: 50 },
            { key: "b", rollout_percentage: 50 },
          ],
        },
        payloads: { a: "1", b: '"x"' },
      },
    },
  ];
  for (const flag of flags) {
    const { status, body } = await server.ask("POST", flagsPath, { body: flag });
    if (status !== 201) throw new Error(JSON.stringify(body));
  }
});
afterAll(() => server[Symbol.dispose]());

const spellings: { path: (token: string) => string; header?: boolean }[] = [
  { path: (key) => `/flags/definitions?token=${key}&send_cohorts` },
  { path: (key) => `/flags/definitions?send_cohorts=true&token=${key}` },
  { path: (key) => `/flags/definitions/?token=${key}` },
  { path: () => "/flags/definitions/?send_cohorts", header: true },
  { path: () => "/flags/definitions" },
  { path: (key) => `/api/feature_flag/local_evaluation/?token=${key}&send_cohorts` },
  { path: (key) => `/api/feature_flag/local_evaluation?token=${key}&send_cohorts` },
  { path: () => "/api/projects/1/feature_flags/local_evaluation/?send_cohorts" },
  { path: () => "/api/projects/@current/feature_flags/local_evaluation?send_cohorts=1" },
];

describe("every spelling of the route", () => {
  for (const { path, header } of spellings) {
    const headers = () => (header ? { "X-PostHog-Project-Api-Key": token } : {}) as Record<string, string>;
    test(`GET ${path("phc_…")}${header ? " with the header" : ""}`, async () => {
      const {
        status,
        body,
        headers: answered,
      } = await server.ask("GET", path(token), {
        headers: headers(),
      });
      expect(status).toBe(200);
      expect(body.flags.map(({ key }: JsonObject) => key)).toEqual([
        "filters",
        "inactive",
        "plain",
        "variants",
      ]);
      expect(Object.keys(body.cohorts)).toHaveLength(1);
      expect(body).not.toHaveProperty("detail");
      const etag = answered.get("etag")!;
      expect(etag).toMatch(/^(W\/)?"[^"]+"$/);
      for (const tag of [etag, etag.replace(/^W\//, "")]) {
        const again = await server.ask("GET", path(token), {
          headers: { ...headers(), "If-None-Match": tag },
        });
        expect([again.status, again.body]).toEqual([304, ""]);
        expect(again.headers.get("etag")).toBe(etag);
      }
    });

    test(`${path("phc_…")}: keys`, async () => {
      const ask = async (key: string | null) =>
        (await server.ask("GET", path(token), { key, headers: headers() })).status;
      expect(await ask(null)).toBe(401);
      expect(await ask("phx_wrong")).toBe(401);
      expect(await ask(token)).toBe(401);
      expect(await ask(server.key(["cohort:read"]))).toBe(403);
      expect(await ask(server.key(["feature_flag:read"]))).toBe(200);
      expect(await ask(server.first.project.secret_api_key)).toBe(200);
    });
  }
});

test("types that SDKs insist on", async () => {
  const { body } = await server.ask("GET", "/flags/definitions");
  expect(body.group_type_mapping).toEqual({});
  for (const flag of body.flags as JsonObject[]) {
    for (const name of ["ensure_experience_continuity", "active", "deleted"]) {
      expect(flag[name]).toBeBoolean();
    }
    expect(flag.name).toBeString();
    expect(Number.isInteger(flag.id)).toBe(true);
    expect(Number.isInteger(flag.version)).toBe(true);
    const filters = flag.filters as JsonObject;
    for (const payload of Object.values((filters.payloads ?? {}) as JsonObject)) expect(payload).toBeString();
    for (const group of filters.groups as JsonObject[]) {
      expect(group.properties).toBeArray();
      for (const property of group.properties as JsonObject[]) expect(property).toHaveProperty("value");
    }
  }
  const [definition] = Object.values(body.cohorts) as JsonObject[];
  expect(JSON.stringify(definition)).toContain('"value":"is_set"');
  const unsaid = (body.flags as JsonObject[]).find(({ key }) => key === "inactive")!;
  expect(unsaid).toMatchObject({ active: false, name: "", ensure_experience_continuity: false });
});

test("a change is in the next answer, with another tag", async () => {
  const before = await server.ask("GET", "/flags/definitions");
  const { body: list } = await server.ask("GET", `${flagsPath}?search=plain`);
  await server.ask("PATCH", `${flagsPath}${list.results[0].id}/`, { body: { active: false } });
  const after = await server.ask("GET", "/flags/definitions", {
    headers: { "If-None-Match": before.headers.get("etag")! },
  });
  expect(after.status).toBe(200);
  expect(after.headers.get("etag")).not.toBe(before.headers.get("etag"));
  expect(after.body.flags.find(({ key }: JsonObject) => key === "plain").active).toBe(false);
});
