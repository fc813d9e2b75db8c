/** Personal keys over the API. */

import { describe, expect, test } from "bun:test";
import { flagsPath, TestServer } from "../support/management-server.ts";

const cohortsPath = "/api/projects/1/cohorts/";

describe("personal keys", () => {
  const PATH = "/api/personal_api_keys/";
  const INPUT = { label: "ci", scopes: ["feature_flag:read"], scoped_teams: [], scoped_organizations: [] };
  test("are shown in clear once, replaced, limited and revoked", async () => {
    using server = new TestServer();
    const made = await server.ask("POST", PATH, { body: INPUT });
    expect(made).toMatchObject({ status: 201, body: { label: "ci", scopes: ["feature_flag:read"] } });
    const key = made.body.value;
    expect(made.body.mask_value).toBe(`phx_...${key.slice(-4)}`);
    expect((await server.ask("GET", flagsPath, { key })).status).toBe(200);
    const one = `${PATH}${made.body.id}/`;
    expect((await server.ask("GET", one)).body.value).toBeNull();
    expect((await server.ask("GET", PATH)).body.map((entry: { value: unknown }) => entry.value)).toEqual([
      null,
      null,
    ]);
    const changed = await server.ask("PATCH", one, { body: { scopes: ["cohort:read"] } });
    expect(changed.body.scopes).toEqual(["cohort:read"]);
    expect((await server.ask("GET", flagsPath, { key })).status).toBe(403);
    const rolled = await server.ask("POST", `${one}roll/`);
    expect((await server.ask("GET", cohortsPath, { key })).status).toBe(401);
    expect((await server.ask("GET", cohortsPath, { key: rolled.body.value })).status).toBe(200);
    expect((await server.ask("DELETE", one)).status).toBe(204);
    expect((await server.ask("GET", cohortsPath, { key: rolled.body.value })).status).toBe(401);
    expect((await server.ask("GET", one)).status).toBe(404);
  });
  test("show themselves, and nothing else, to keys that may not do everything", async () => {
    using server = new TestServer();
    const { value: key, id } = (await server.ask("POST", PATH, { body: INPUT })).body;
    expect((await server.ask("GET", `${PATH}@current/`, { key })).body).toMatchObject({ id, value: null });
    for (const limited of [
      key,
      server.key(["*"], { projectIds: [1] }),
      server.key(["*"], { organizationIds: [server.first.organization.id] }),
    ]) {
      expect((await server.ask("GET", PATH, { key: limited })).status).toBe(403);
    }
    expect((await server.ask("GET", PATH, { key })).body.detail).toBe(
      "This action does not support personal API key access",
    );
  });
  for (const [body, code, attr, detail] of [
    [{ ...INPUT, label: undefined }, "required", "label", "This field is required."],
    [{ ...INPUT, scopes: undefined }, "required", "scopes", "This field is required."],
    [{ ...INPUT, scopes: ["all"] }, "invalid_input", "scopes", "Invalid scope: all"],
    [
      { ...INPUT, scoped_teams: [9] },
      "invalid_input",
      "scoped_teams",
      "You must be a member of all teams that you are scoping the key to.",
    ],
  ] as const) {
    test(`refused: ${detail}`, async () => {
      using server = new TestServer();
      expect(await server.ask("POST", PATH, { body })).toMatchObject({
        status: 400,
        body: { code, attr, detail },
      });
    });
  }
  test("at most ten, and empty scopes mean everything", async () => {
    using server = new TestServer();
    for (let n = 0; n < 9; n++) {
      const made = await server.ask("POST", PATH, { body: { ...INPUT, scopes: [] } });
      expect(made.body.scopes).toEqual(["*"]);
    }
    expect(await server.ask("POST", PATH, { body: INPUT })).toMatchObject({
      status: 400,
      body: {
        detail: "You can only have 10 personal API keys. Remove an existing key before creating a new one.",
        attr: null,
      },
    });
  });
});
