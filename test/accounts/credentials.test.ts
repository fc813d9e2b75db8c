/** Operations whose result is a credential (contract: management-api 2.7): each marked route, every kind of caller. */

import { describe, expect, test } from "bun:test";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { routeScopes } from "../../src/accounts/route-scopes.ts";
import { createUser } from "../../src/accounts/users.ts";
import { createWebhook } from "../../src/accounts/webhooks.ts";
import { createDashboard } from "../../src/dashboards/store.ts";
import type { Route } from "../../src/http/route.ts";
import { type InstanceDeps, instanceRoutes } from "../../src/operate/api/instance.ts";
import { managementRoutes } from "../../src/serve/routes.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";
import { as, colleague, getCookie, goodPassword, post, setUp } from "./sessions/support.ts";

const organization = "/api/organizations/@current/";
const members = `${organization}members/`;
const keysPath = "/api/personal_api_keys/";
const projectPath = "/api/projects/1/";

type Level = "member" | "admin" | "owner";

/** A server with Ann, an owner; Bob, an admin; Carol, a member. */
function prepared() {
  const destination = {
    list: async () => ["one.tar.zst"],
    open: async () => ({ bytes: 1, stream: () => new Blob(["x"]).stream() }),
  };
  const instance = instanceRoutes({
    get metadata() {
      return server.metadata;
    },
    ...({ backups: { destination: () => destination } } as unknown as InstanceDeps),
  });
  const server: TestServer = new TestServer({ routes: instance });
  const organizationId = server.first.organization.id;
  const add = (email: string, level: Level) => createUser(server.metadata, { email, organizationId, level });
  const getKey = (userEmail: string, scopes: readonly string[] = ["*"]) =>
    createKey(server.metadata, { userEmail, label: "x", scopes }, { now: server.now });
  const carol = add("carol@example.com", "member");
  const owner = server.first.user.id;
  const dashboard = createDashboard(
    server.metadata,
    { projectId: 1, by: owner, fields: { name: "Orders" } },
    server.now,
  );
  const { webhook } = createWebhook(
    server.deps,
    { projectId: 1, by: null, now: server.now },
    {
      name: "",
      url: "https://hooks.example.com/",
      format: "json",
      template: null,
      events: ["flag_changed"],
      active: true,
    },
  );
  const reader = getKey("ann@example.com", ["feature_flag:read"]).key;
  return {
    server,
    add,
    keyOf: getKey,
    organizationId,
    carol,
    reader,
    webhook,
    dashboard,
    routes: [...managementRoutes(server.deps), ...instance] as Route[],
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}
type Prepared = ReturnType<typeof prepared>;

/** The routes that create a credential, with a request of each that would succeed. */
const creating: Record<string, (it: Prepared) => { path: string; body?: object }> = {
  "POST /api/organizations/:organization_id/members": () => ({
    path: members,
    body: { email: "new@example.com" },
  }),
  "PATCH /api/organizations/:organization_id/members/:uuid": ({ carol }) => ({
    path: `${members}${carol.uuid}/`,
    body: { level: 8 },
  }),
  "POST /api/organizations/:organization_id/members/:uuid/link": ({ carol }) => ({
    path: `${members}${carol.uuid}/link/`,
  }),
  "POST /api/personal_api_keys": () => ({
    path: keysPath,
    body: { label: "made", scopes: ["feature_flag:read"] },
  }),
  "PATCH /api/personal_api_keys/:id": ({ reader }) => ({
    path: `${keysPath}${reader.id}/`,
    body: { scopes: ["feature_flag:write"] },
  }),
  "POST /api/personal_api_keys/:id/roll": ({ reader }) => ({ path: `${keysPath}${reader.id}/roll/` }),
  "PATCH /api/projects/:project_id/rotate_secret_token": () => ({
    path: `${projectPath}rotate_secret_token/`,
  }),
  "POST /api/projects/:project_id/rotate_secret_token": () => ({
    path: `${projectPath}rotate_secret_token/`,
  }),
  "POST /api/projects/:project_id/share_links": ({ dashboard }) => ({
    path: `${projectPath}share_links/`,
    body: { dashboard_id: dashboard.id },
  }),
  "POST /api/projects/:project_id/webhooks": () => ({
    path: `${projectPath}webhooks/`,
    body: { url: "https://hooks.example.com/" },
  }),
  "POST /api/projects/:project_id/webhooks/:id/rotate_secret": ({ webhook }) => ({
    path: `${projectPath}webhooks/${webhook.id}/rotate_secret/`,
  }),
  "GET /api/instance/backups/:name/download": () => ({ path: "/api/instance/backups/one.tar.zst/download/" }),
  "POST /api/instance/backups/:name/ticket": () => ({ path: "/api/instance/backups/one.tar.zst/ticket/" }),
};

/** Those that show the secret key of a project, where the caller may see it. */
const showing = [
  "GET /api/projects/:project_id",
  "PATCH /api/projects/:project_id",
  "POST /api/projects",
  "POST /api/organizations/:organization_id/projects",
  ...["PATCH", "POST"].flatMap((method) =>
    ["reset_token", "delete_token_backup", "delete_secret_token_backup"].map(
      (name) => `${method} /api/projects/:project_id/${name}`,
    ),
  ),
];

/** Those whose body is the proof. */
const proven = [
  "POST /api/session",
  "POST /api/session/setup",
  "POST /api/session/confirm",
  "POST /api/session/password",
];

const getName = ({ method, path }: Route) => `${method} ${path}`;

test("the marked routes are these, and the threat model lists each", async () => {
  using it = prepared();
  const marked = (is: (marker: Route["makesCredential"]) => boolean) =>
    it.routes
      .filter(({ makesCredential }) => is(makesCredential))
      .map(getName)
      .sort();
  expect(marked((marker) => marker === true || typeof marker === "function")).toEqual(
    Object.keys(creating).sort(),
  );
  expect(marked((marker) => marker === "shown")).toEqual(showing.toSorted());
  expect(marked((marker) => marker === "proven")).toEqual(proven.toSorted());
  const page = await Bun.file("docs/threat-model.md").text();
  const listed = [...page.matchAll(/`((?:GET|POST|PATCH|PUT|DELETE) \/api\/\S+)`/g)].map(([, name]) => name);
  expect(listed.toSorted()).toEqual([...Object.keys(creating), ...showing, ...proven].toSorted());
});

describe.each(Object.entries(creating))("%s", (name, request) => {
  const method = name.split(" ")[0]!;

  test("is closed to every scope, restricted keys, and sessions that were created with them", async () => {
    using it = prepared();
    const { server, organizationId } = it;
    const keys = {
      ...Object.fromEntries([...routeScopes, "survey:write"].map((scope) => [scope, server.key([scope])])),
      "all scopes": server.key(routeScopes),
      "* of a project": server.key(["*"], { projectIds: [1] }),
      "* of an organization": server.key(["*"], { organizationIds: [organizationId] }),
    };
    const { path, body } = request(it);
    const activity = async () => (await server.ask("GET", `${organization}activity_log/`)).body.count;
    const before = await activity();
    for (const [kind, key] of Object.entries(keys)) {
      const withKey = await server.ask(method, path, { key, body });
      expect([kind, withKey.status, withKey.body.code]).toEqual([kind, 403, "permission_denied"]);
      const { headers } = await post(server, "/api/session/", { personal_api_key: key });
      const session = as(getCookie(headers));
      const confirming = { ...session, body: { personal_api_key: key } };
      expect((await server.ask("POST", "/api/session/confirm/", confirming)).status).toBe(200);
      const inSession = await server.ask(method, path, { ...session, body });
      expect([kind, inSession.status, inSession.body.code]).toEqual([kind, 403, "permission_denied"]);
    }
    expect(await activity()).toBe(before);
  });

  test("is open to a key with * and no restriction, and to a session after re-authentication", async () => {
    using it = prepared();
    const { server } = it;
    const { path, body } = request(it);
    const session = as(await setUp(server));
    const unconfirmed = await server.ask(method, path, { ...session, body });
    expect([unconfirmed.status, unconfirmed.body.code]).toEqual([403, "confirmation_required"]);
    const confirming = { ...session, body: { password: goodPassword } };
    expect((await server.ask("POST", "/api/session/confirm/", confirming)).status).toBe(200);
    expect((await server.ask(method, path, { ...session, body })).status).toBeLessThan(300);
    using another = prepared();
    const again = request(another);
    expect((await another.server.ask(method, again.path, { body: again.body })).status).toBeLessThan(300);
  });
});

describe("a restricted key can still do what grants nothing", () => {
  test("it lowers levels, deactivates, removes, and sends back what it read", async () => {
    using it = prepared();
    const { server, add } = it;
    const key = server.key(["organization_member:write"]);
    const dan = `${members}${add("dan@example.com", "admin").uuid}/`;
    const patch = async (body: object) => (await server.ask("PATCH", dan, { key, body })).status;
    expect(await patch({ level: 8, is_active: true })).toBe(200);
    expect(await patch({ level: 15 })).toBe(403);
    expect(await patch({ level: 1 })).toBe(200);
    expect(await patch({ level: 8 })).toBe(403);
    expect(await patch({ is_active: false })).toBe(200);
    expect(await patch({ is_active: true })).toBe(403);
    expect((await server.ask("GET", dan)).body).toMatchObject({ level: 1, is_active: false });
    expect((await server.ask("DELETE", dan, { key })).status).toBe(204);
  });
});

describe("no user grants a level above their own", () => {
  test.each([
    ["admin", 8, 201],
    ["admin", 15, 403],
    ["member", 1, 403],
    ["owner", 15, 201],
  ] as const)("%s, level %d: %d", async (by, level, status) => {
    using it = prepared();
    const { server, add, keyOf: getKey } = it;
    add("by@example.com", by);
    const key = getKey("by@example.com").value;
    const body = { email: "new@example.com", level };
    expect((await server.ask("POST", members, { key, body })).status).toBe(status);
  });

  test("an admin's session creates links for admins and members", async () => {
    using server = new TestServer();
    await setUp(server);
    const { user, cookie } = await colleague(server, "admin");
    const ask = (path: string, body?: object) => server.ask("POST", path, { ...as(cookie), body });
    expect((await ask("/api/session/confirm/", { password: goodPassword })).status).toBe(200);
    expect((await ask(members, { email: "new@example.com", level: 8 })).status).toBe(201);
    expect((await ask(`${members}${user.uuid}/link/`)).status).toBe(201);
    const { results } = (await server.ask("GET", members)).body;
    const owner = results.find(({ level }: { level: number }) => level === 15).user.uuid;
    expect((await ask(`${members}${owner}/link/`)).status).toBe(403);
  });
});

describe("the secret key of a project", () => {
  const shown = (body: { secret_api_token: string | null; secret_api_token_backup: string | null }) => [
    body.secret_api_token !== null,
    body.secret_api_token_backup !== null,
  ];

  test.each([
    ["owner", ["*"], true],
    ["admin", ["*"], true],
    ["member", ["*"], false],
    ["owner", ["project:read"], false],
    ["owner", ["project:write"], false],
    ["owner", [...routeScopes], false],
  ] as const)("is shown to a key of an %s with %j: %s", async (level, scopes, isShown) => {
    using it = prepared();
    const { server, add, keyOf: getKey } = it;
    const rotated = await server.ask("POST", `${projectPath}rotate_secret_token/`, {
      body: { grace_seconds: 60 },
    });
    expect(shown(rotated.body)).toEqual([true, true]);
    add("by@example.com", level);
    const key = getKey("by@example.com", scopes).value;
    expect(shown((await server.ask("GET", projectPath, { key })).body)).toEqual([isShown, isShown]);
  });

  test("is hidden from restricted keys in every response with a project", async () => {
    using it = prepared();
    const { server } = it;
    for (const limits of [{}, { organizationIds: [it.organizationId] }]) {
      const key = server.key(["project:write", "organization:write", "user:read"], limits);
      const answers = [
        await server.ask("GET", projectPath, { key }),
        await server.ask("PATCH", projectPath, { key, body: { name: "Shop" } }),
        await server.ask("POST", `${projectPath}reset_token/`, { key }),
        await server.ask("PATCH", `${projectPath}delete_secret_token_backup/`, { key }),
        await server.ask("POST", `${organization}projects/`, { key, body: { name: "Second" } }),
        await server.ask("POST", "/api/projects/", {
          key,
          body: { name: "Third", organization: it.organizationId },
        }),
        await server.ask("GET", "/api/projects/", { key }),
      ];
      for (const { status, body } of answers) {
        if (status === 403) continue;
        expect(status).toBeLessThan(300);
        expect(JSON.stringify(body)).not.toContain("phs_");
      }
      expect(answers.filter(({ status }) => status < 300).length).toBeGreaterThan(5);
    }
  });

  test("is shown in an owner's session, not in an admin's, after re-authentication", async () => {
    using server = new TestServer();
    const owner = await setUp(server);
    const { cookie: admin } = await colleague(server, "admin");
    for (const [cookie, isShown] of [
      [owner, true],
      [admin, false],
    ] as const) {
      const session = as(cookie);
      const read = async () => (await server.ask("GET", projectPath, session)).body.secret_api_token !== null;
      expect(await read()).toBe(false);
      await server.ask("POST", "/api/session/confirm/", { ...session, body: { password: goodPassword } });
      expect(await read()).toBe(isShown);
      const rotated = await server.ask("POST", `${projectPath}rotate_secret_token/`, session);
      expect([rotated.status, rotated.body.secret_api_token !== null]).toEqual([200, isShown]);
    }
  });
});

describe("access to flags is granted by keys that have it", () => {
  const roles = `${organization}roles/`;

  test("approvals of a project", async () => {
    using it = prepared();
    const { server } = it;
    const narrow = server.key(["project:write"]);
    const enough = server.key(["project:write", "feature_flag:write"]);
    const change = async (approvals: string, key: string) =>
      (await server.ask("PATCH", projectPath, { key, body: { approvals } })).status;
    expect(await change("critical", narrow)).toBe(200);
    expect(await change("all", narrow)).toBe(200);
    for (const looser of ["critical", "off"]) expect(await change(looser, narrow)).toBe(403);
    expect(await change("all", narrow)).toBe(200);
    expect(await change("critical", enough)).toBe(200);
    expect(await change("off", narrow)).toBe(403);
    expect(await change("off", enough)).toBe(200);
  });

  test("roles, their members, and the organization", async () => {
    using it = prepared();
    const { server, carol } = it;
    await server.ask("PATCH", organization, { body: { feature_flags_access_level: 21 } });
    const narrow = server.key(["organization:write"]);
    const enough = server.key(["organization:write", "feature_flag:write"]);
    const created = await server.ask("POST", roles, { key: narrow, body: { name: "Release" } });
    expect(created.body).toMatchObject({ feature_flags_access_level: 21 });
    const role = `${roles}${created.body.id}/`;
    const edit = { feature_flags_access_level: 37 };
    const view = { feature_flags_access_level: 21 };
    const asks = (key: string) =>
      [
        ["PATCH", role, edit],
        ["PUT", role, { name: "Release", ...edit }],
        ["POST", `${role}role_memberships/`, { user_uuid: carol.uuid }],
        ["PATCH", organization, edit],
      ].map(([method, path, body]) => server.ask(method as string, path as string, { key, body }));
    for (const { status, body } of await Promise.all(asks(narrow))) {
      expect([status, body.detail]).toEqual([403, "API key missing required scope 'feature_flag:write'"]);
    }
    expect((await server.ask("PATCH", role, { key: narrow, body: { name: "R", ...view } })).status).toBe(200);
    expect((await server.ask("PATCH", organization, { key: narrow, body: view })).status).toBe(200);
    expect(
      (await server.ask("POST", flagsPath, { key: it.keyOf(carol.email).value, body: { key: "a" } })).status,
    ).toBe(201);
    for (const answer of asks(enough)) expect((await answer).status).toBeLessThan(300);
    // Back to viewing needs nothing.
    expect((await server.ask("PATCH", role, { key: narrow, body: view })).status).toBe(200);
    expect((await server.ask("PATCH", organization, { key: narrow, body: view })).status).toBe(200);
  });
});
