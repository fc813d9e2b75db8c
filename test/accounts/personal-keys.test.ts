/** Personal keys over the API. */

import { describe, expect, test } from "bun:test";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";
import { as, goodPassword, setUp } from "./sessions/support.ts";

const cohortsPath = "/api/projects/1/cohorts/";

describe("personal keys", () => {
  const PATH = "/api/personal_api_keys/";
  const INPUT = { label: "ci", scopes: ["feature_flag:read"] };
  test("are shown in clear once, replaced, limited and revoked", async () => {
    using server = new TestServer();
    const created = await server.ask("POST", PATH, { body: INPUT });
    expect(created).toMatchObject({ status: 201, body: { label: "ci", scopes: ["feature_flag:read"] } });
    const key = created.body.value;
    expect(created.body.mask_value).toBe(`phx_...${key.slice(-4)}`);
    expect((await server.ask("GET", flagsPath, { key })).status).toBe(200);
    const one = `${PATH}${created.body.id}/`;
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
  test("at most ten", async () => {
    using server = new TestServer();
    for (let n = 0; n < 9; n++) expect((await server.ask("POST", PATH, { body: INPUT })).status).toBe(201);
    expect(await server.ask("POST", PATH, { body: INPUT })).toMatchObject({
      status: 400,
      body: {
        detail: "You can only have 10 personal API keys. Remove an existing key before creating a new one.",
        attr: null,
      },
    });
  });

  describe("empty lists", () => {
    const needsScope = [400, "scopes", "A key needs at least one scope."];
    const emptyTeams = "The list is empty. Send at least one project, or null for no restriction.";
    const emptyOrganizations =
      "The list is empty. Send at least one organization, or null for no restriction.";
    const reported = ({ status, body }: { status: number; body: { attr?: string; detail?: string } }) => [
      status,
      body.attr,
      body.detail,
    ];

    test("are rejected when a key is created; absent and null are no restriction", async () => {
      using server = new TestServer();
      const make = (more: object) => server.ask("POST", PATH, { body: { ...INPUT, ...more } });
      expect(reported(await make({ scopes: [] }))).toEqual(needsScope);
      expect(reported(await make({ scoped_teams: [] }))).toEqual([400, "scoped_teams", emptyTeams]);
      expect(reported(await make({ scoped_organizations: [] }))).toEqual([
        400,
        "scoped_organizations",
        emptyOrganizations,
      ]);
      expect((await server.ask("GET", PATH)).body).toHaveLength(1);
      for (const none of [{}, { scoped_teams: null, scoped_organizations: null }]) {
        const created = await make(none);
        expect([created.status, created.body.scoped_teams, created.body.scoped_organizations]).toEqual([
          201,
          [],
          [],
        ]);
      }
      expect(reported(await make({ scopes: null })).slice(0, 2)).toEqual([400, "scopes"]);
      expect(reported(await make({ scopes: [""] })).slice(0, 1)).toEqual([400]);
      expect(reported(await make({ scopes: "*" })).slice(0, 2)).toEqual([400, "scopes"]);
      expect(reported(await make({ scoped_teams: "1" })).slice(0, 2)).toEqual([400, "scoped_teams"]);
    });

    test("change nothing in a key without restrictions, and are rejected in one that has some", async () => {
      using server = new TestServer();
      const organization = server.first.organization.id;
      const change = async (id: string, body: object) => await server.ask("PATCH", `${PATH}${id}/`, { body });
      const { body: free } = await server.ask("POST", PATH, { body: INPUT });
      expect((await change(free.id, free)).body).toEqual({ ...free, value: null });
      expect(reported(await change(free.id, { ...free, scopes: [] }))).toEqual(needsScope);
      expect((await change(free.id, { scoped_teams: [], scoped_organizations: [] })).status).toBe(200);
      for (const [field, ids, detail] of [
        ["scoped_teams", [1], emptyTeams],
        ["scoped_organizations", [organization], emptyOrganizations],
      ] as const) {
        const { body: bound } = await server.ask("POST", PATH, { body: { ...INPUT, [field]: ids } });
        expect(bound[field]).toEqual(ids);
        expect(reported(await change(bound.id, { label: "x", [field]: [] }))).toEqual([400, field, detail]);
        expect((await server.ask("GET", `${PATH}${bound.id}/`)).body).toEqual({ ...bound, value: null });
        expect((await change(bound.id, { ...bound, value: null })).status).toBe(200);
        expect((await change(bound.id, { [field]: null })).body[field]).toEqual([]);
      }
    });

    test("null removes a restriction only after re-authentication, like creating such a key", async () => {
      using server = new TestServer();
      const session = as(await setUp(server));
      const { body: bound } = await server.ask("POST", PATH, { body: { ...INPUT, scoped_teams: [1] } });
      const change = (body: object) => server.ask("PATCH", `${PATH}${bound.id}/`, { ...session, body });
      expect((await change({ label: "other", scoped_teams: [1] })).status).toBe(200);
      for (const wider of [{ scoped_teams: null }, { scopes: ["cohort:write"] }, { scoped_teams: [] }]) {
        expect(await change(wider)).toMatchObject({ status: 403, body: { code: "confirmation_required" } });
      }
      await server.ask("POST", "/api/session/confirm/", { ...session, body: { password: goodPassword } });
      expect((await change({ scoped_teams: null })).body.scoped_teams).toEqual([]);
    });

    test("of the command line are rejected too", () => {
      using server = new TestServer();
      const input = { userEmail: "ann@example.com", label: "x" };
      for (const lists of [
        { scopes: [] },
        { scopes: ["*"], projectIds: [] },
        { scopes: ["*"], organizationIds: [] },
      ])
        expect(() => createKey(server.metadata, { ...input, ...lists })).toThrow(InvalidFieldError);
    });
  });
});
