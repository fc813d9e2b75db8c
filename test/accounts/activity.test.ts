/** The log of what was done to a project and an organization. */

import { describe, expect, test } from "bun:test";
import { flagsPath, TestServer } from "../support/management-server.ts";

const cohortsPath = "/api/projects/1/cohorts/";

describe("the log of everything", () => {
  test("covers role access, cohorts, the project and flags, and contains no secret", async () => {
    using server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "a" } });
    await server.ask("POST", cohortsPath, { body: { name: "C", is_static: true } });
    await server.ask("PATCH", "/api/projects/1/", { body: { timezone: "Europe/Berlin" } });
    const secret = await server.ask("POST", "/api/projects/1/rotate_secret_token/");
    const { body } = await server.ask("GET", "/api/projects/1/activity_log/");
    const lines = body.results.map(
      (entry: { scope: string; activity: string; detail: { changes: { field: string }[] } }) =>
        [entry.scope, entry.activity, ...entry.detail.changes.map(({ field }) => field)].join(" "),
    );
    expect(lines).toEqual([
      "Team updated secret_api_token",
      "Team updated timezone",
      "Cohort created",
      "FeatureFlag created",
      "Team created",
    ]);
    expect(JSON.stringify(body)).not.toContain(secret.body.secret_api_token);
    expect(
      (await server.ask("GET", "/api/projects/1/activity_log/?scope=Cohort&item_id=1")).body.total_count,
    ).toBe(1);
  });
  test("describes changes of roles, organizations and keys, without values of keys", async () => {
    using server = new TestServer();
    const role = await server.ask("POST", "/api/organizations/@current/roles/", { body: { name: "R" } });
    await server.ask("PATCH", `/api/organizations/@current/roles/${role.body.id}/`, { body: { name: "S" } });
    await server.ask("PATCH", "/api/organizations/@current/", { body: { feature_flags_access_level: 21 } });
    await server.ask("PATCH", "/api/organizations/@current/", { body: { feature_flags_access_level: 21 } });
    const key = await server.ask("POST", "/api/personal_api_keys/", {
      body: { label: "ci", scopes: ["*"] },
    });
    await server.ask("PATCH", `/api/personal_api_keys/${key.body.id}/`, { body: { scopes: ["flag:read"] } });
    await server.ask("PATCH", `/api/personal_api_keys/${key.body.id}/`, {
      body: { scopes: ["cohort:read"] },
    });
    const log = "/api/organizations/@current/activity_log/";
    const { body } = await server.ask("GET", log);
    const lines = body.results.map(
      (entry: { scope: string; activity: string; detail: { changes: { field: string }[] } }) =>
        [entry.scope, entry.activity, ...entry.detail.changes.map(({ field }) => field)].join(" "),
    );
    expect(lines).toEqual([
      "PersonalAPIKey updated scopes",
      "PersonalAPIKey created",
      "Organization updated feature_flags_access_level",
      "Role updated name",
      "Role created",
      "PersonalAPIKey created",
      "Team created",
    ]);
    expect(body.results[0].detail.changes[0]).toMatchObject({ before: ["*"], after: ["cohort:read"] });
    expect(JSON.stringify(body)).not.toContain(key.body.value);
    const roles = await server.ask("GET", `${log}?scope=Role&item_id=${role.body.id}&limit=1`);
    expect(roles.body).toMatchObject({
      total_count: 2,
      next: `http://localhost${log}?scope=Role&item_id=${role.body.id}&limit=1&page=2`,
    });
  });
});
