/** What was created with a credential ends with it (contract: management-api 2.7): every end, everything that is derived. */

import { describe, expect, test } from "bun:test";
import { projectRoute } from "../../src/accounts/api/routes.ts";
import { createKey, revokeKey, rollKey } from "../../src/accounts/personal-keys.ts";
import { setMemberLevel } from "../../src/accounts/sessions/members.ts";
import { createSetupLink } from "../../src/accounts/sessions/setup-links.ts";
import { createUser, findUserByEmail, setUserActive } from "../../src/accounts/users.ts";
import { sharedRoutes } from "../../src/dashboards/api/shared.ts";
import { bool, object } from "../../src/http/schemas.ts";
import { type InstanceDeps, instanceRoutes } from "../../src/operate/api/instance.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";
import { as, consoleHeader, getCookie, goodPassword, post, setUp } from "./sessions/support.ts";

const keysPath = "/api/personal_api_keys/";
const members = "/api/organizations/@current/members/";
const hour = 3_600_000;

/** Bob is an owner with a password and a key with `*`, from which all is derived. Ann is an owner, Carol a member. */
async function prepared() {
  let isStillAllowed = () => false;
  const destination = {
    list: async () => ["one.tar.zst"],
    open: async () => ({ bytes: 2, stream: twoParts }),
  };
  const instance = instanceRoutes({
    get metadata() {
      return server.metadata;
    },
    ...({ backups: { destination: () => destination } } as unknown as InstanceDeps),
  });
  const held = projectRoute("GET", "/held", "feature_flag:read", {
    summary: "Stays open, as streams do",
    tag: "Test",
    answers: { 200: { description: "Open.", schema: object({ ok: bool() }), example: { ok: true } } },
    handle: (call) => {
      ({ isStillAllowed } = call);
      return { ok: true };
    },
  });
  const shared = sharedRoutes({
    get metadata() {
      return server.metadata;
    },
  } as Parameters<typeof sharedRoutes>[0]);
  const server: TestServer = new TestServer({ routes: [...instance, ...shared, held] });
  const organizationId = server.first.organization.id;
  const bob = createUser(server.metadata, { email: "bob@example.com", organizationId, level: "owner" });
  const carol = createUser(server.metadata, { email: "carol@example.com", organizationId, level: "member" });
  await setUp(server);
  const { token } = createSetupLink(server.metadata, bob, null, server.now);
  const withPassword = await post(server, "/api/session/setup/", { token, password: goodPassword });
  const input = { userEmail: bob.email, label: "derives", scopes: ["*"] };
  const expiresAt = new Date(server.now.getTime() + hour);
  const { key, value } = createKey(server.metadata, { ...input, expiresAt }, { now: server.now });
  const manager = createKey(server.metadata, { ...input, label: "manages" }, { now: server.now }).value;
  return {
    server,
    organizationId,
    bob,
    carol,
    keyId: key.id,
    key: value,
    manager,
    bobsCookie: getCookie(withPassword.headers),
    isHeld: () => isStillAllowed(),
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}
async function* twoParts() {
  yield Buffer.from("a");
  yield Buffer.from("b");
}
type Prepared = Awaited<ReturnType<typeof prepared>>;

/** Creates something with the key; the result tells whether that still works. */
const derived: Record<string, (it: Prepared) => Promise<() => Promise<boolean>>> = {
  "a session": async ({ server, key }) => {
    const created = await post(server, "/api/session/", { personal_api_key: key });
    expect(created.status).toBe(201);
    const session = as(getCookie(created.headers));
    return async () => (await server.ask("GET", flagsPath, session)).status === 200;
  },
  "a link": async ({ server, key, carol }) => {
    const created = await server.ask("POST", `${members}${carol.uuid}/link/`, { key });
    expect(created.status).toBe(201);
    return async () => await isUsable(server, created.body.console_url);
  },
  "a link of a session": async ({ server, key, carol }) => {
    const { headers } = await post(server, "/api/session/", { personal_api_key: key });
    const session = as(getCookie(headers));
    const confirmed = { ...session, body: { personal_api_key: key } };
    expect((await server.ask("POST", "/api/session/confirm/", confirmed)).status).toBe(200);
    const created = await server.ask("POST", `${members}${carol.uuid}/link/`, session);
    expect(created.status).toBe(201);
    return async () => await isUsable(server, created.body.console_url);
  },
  "a link for a new member": async ({ server, key }) => {
    const created = await server.ask("POST", members, { key, body: { email: "dan@example.com" } });
    expect(created.status).toBe(201);
    return async () => await isUsable(server, created.body.console_url);
  },
  "an address of a backup": async ({ server, key }) => {
    const created = await server.ask("POST", "/api/instance/backups/one.tar.zst/ticket/", { key });
    expect(created.status).toBe(201);
    return async () => (await server.ask("GET", created.body.url, { key: null })).status === 200;
  },
  "a running download of a backup": async ({ server, key }) => {
    const path = "/api/instance/backups/one.tar.zst/download/";
    return await download(server, path, { authorization: `Bearer ${key}` });
  },
  "a running download by an address": async ({ server, key }) => {
    const created = await server.ask("POST", "/api/instance/backups/one.tar.zst/ticket/", { key });
    return await download(server, created.body.url);
  },
  "a share link": async ({ server, key }) => {
    const { id } = (await server.ask("POST", "/api/projects/1/dashboards/", { key, body: { name: "Wall" } }))
      .body;
    const created = await server.ask("POST", "/api/projects/1/share_links/", {
      key,
      body: { dashboard_id: id },
    });
    expect(created.status).toBe(201);
    return async () => (await server.ask("GET", "/api/shared/", { key: created.body.token })).status === 200;
  },
  "an open stream": async ({ server, key, isHeld }) => {
    expect((await server.ask("GET", "/api/projects/1/held/", { key })).status).toBe(200);
    return async () => isHeld();
  },
};

/** Reads the first part. The result reads the rest, and tells whether it came. */
async function download(server: TestServer, path: string, headers: Record<string, string> = {}) {
  const response = await server.app.handle(new Request(`http://localhost${path}`, { headers }));
  expect(response.status).toBe(200);
  const reader = response.body!.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("a");
  return async () => {
    try {
      return Buffer.from((await reader.read()).value ?? []).toString() === "b";
    } catch {
      return false;
    }
  };
}

async function isUsable(server: TestServer, link: string): Promise<boolean> {
  const token = link.split("#")[1];
  return (await post(server, "/api/session/setup/look/", { token })).status === 200;
}

const patchKey = async ({ server, keyId, manager }: Prepared, body: object) =>
  expect((await server.ask("PATCH", `${keysPath}${keyId}/`, { key: manager, body })).status).toBe(200);
const patchBob = async ({ server, bob }: Prepared, body: object) =>
  expect((await server.ask("PATCH", `${members}${bob.uuid}/`, { body })).status).toBe(200);

const downloads = ["a running download of a backup", "a running download by an address"];

/** How a credential ends, and what survives that. */
const ends: [name: string, end: (it: Prepared) => unknown, survives?: string[]][] = [
  ["nothing happens", () => undefined, Object.keys(derived)],
  [
    "another key of the user is revoked",
    ({ server, bob }) => {
      const other = createKey(server.metadata, { userEmail: bob.email, label: "o", scopes: ["*"] });
      revokeKey(server.metadata, other.key.id);
    },
    Object.keys(derived),
  ],
  [
    "the key gets another label",
    (it) => patchKey(it, { label: "other", scoped_teams: [] }),
    Object.keys(derived),
  ],
  [
    "the key is revoked",
    async ({ server, keyId, manager }) =>
      expect((await server.ask("DELETE", `${keysPath}${keyId}/`, { key: manager })).status).toBe(204),
  ],
  [
    "an admin revokes the key",
    async ({ server, bob, keyId }) => {
      const path = `${members}${bob.uuid}/personal_api_keys/${keyId}/`;
      expect((await server.ask("DELETE", path)).status).toBe(204);
    },
  ],
  ["the operator revokes the key", ({ server, keyId }) => revokeKey(server.metadata, keyId)],
  [
    "the key is rolled",
    async ({ server, keyId, manager }) =>
      expect((await server.ask("POST", `${keysPath}${keyId}/roll/`, { key: manager })).status).toBe(200),
  ],
  ["the operator rolls the key", ({ server, keyId }) => rollKey(server.metadata, keyId)],
  [
    "the key's scopes are narrowed",
    (it) => patchKey(it, { scopes: ["feature_flag:read", "event:read"] }),
    // The key itself still may.
    ["an open stream"],
  ],
  ["the key is restricted to a project", (it) => patchKey(it, { scoped_teams: [1] }), ["an open stream"]],
  [
    "the key is restricted to an organization",
    (it) => patchKey(it, { scoped_organizations: [it.organizationId] }),
    ["an open stream"],
  ],
  [
    "the key expires",
    ({ server }) => {
      server.now = new Date(server.now.getTime() + hour);
    },
  ],
  ["the user is deactivated", (it) => patchBob(it, { is_active: false })],
  [
    "the operator deactivates the user",
    ({ server, bob }) => setUserActive(server.metadata, bob.email, false),
  ],
  [
    "the user is deactivated and activated",
    (it) => patchBob(it, { is_active: false }).then(() => patchBob(it, { is_active: true })),
    // The key works again, and with it what asks for it.
    ["an address of a backup", ...downloads, "an open stream"],
  ],
  [
    "the user is removed from the organization",
    async ({ server, bob }) =>
      expect((await server.ask("DELETE", `${members}${bob.uuid}/`)).status).toBe(204),
  ],
  [
    "the user becomes a member",
    (it) => patchBob(it, { level: 1 }),
    // Members read flags.
    ["a session", "an open stream"],
  ],
  [
    "the user changes the password",
    async ({ server, bobsCookie }) => {
      const body = { current_password: goodPassword, password: "another few quiet words" };
      const { status } = await server.ask("POST", "/api/session/password/", { ...as(bobsCookie), body });
      expect(status).toBe(204);
    },
    ["an address of a backup", ...downloads, "an open stream"],
  ],
  [
    "the user sets a password with a link",
    async ({ server, bob }) => {
      const { token } = createSetupLink(server.metadata, bob, null, server.now);
      const body = { token, password: "another few quiet words" };
      expect((await post(server, "/api/session/setup/", body)).status).toBe(201);
    },
    ["an address of a backup", ...downloads, "an open stream"],
  ],
];

/** Share links do not depend on the key, but on their creator. */
const endsOfCreator = [
  "the user is deactivated",
  "the operator deactivates the user",
  "the user is removed from the organization",
];

describe.each(ends)("%s", (title, end, survives = []) => {
  test.each(Object.keys(derived))("%s", async (name) => {
    using it = await prepared();
    const works = await derived[name]!(it);
    await end(it);
    const isIndependent = name === "a share link" && !endsOfCreator.includes(title);
    expect(await works()).toBe(survives.includes(name) || isIndependent);
  });
});

test("a request whose body arrives after its key was revoked creates no credential", async () => {
  using it = await prepared();
  const { server, key, keyId } = it;
  let send: (text: string) => void = () => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      send = (text) => {
        controller.enqueue(new TextEncoder().encode(text));
        controller.close();
      };
    },
  });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const late = server.app.handle(
    new Request(`http://localhost${keysPath}`, {
      method: "POST",
      headers,
      body,
      duplex: "half",
    } as RequestInit),
  );
  // Its key is good so far.
  expect((await server.ask("GET", `${keysPath}@current/`, { key })).status).toBe(200);
  revokeKey(server.metadata, keyId);
  send(JSON.stringify({ label: "late", scopes: ["*"] }));
  expect((await late).status).toBe(401);
  const { body: keys } = await server.ask("GET", keysPath, { key: it.manager });
  expect(keys.map(({ label }: { label: string }) => label)).toEqual(["manages"]);
});

describe("a session that was created with a key", () => {
  const getSession = async (server: TestServer, personal_api_key: string) => {
    const { headers, body } = await post(server, "/api/session/", { personal_api_key });
    return { asking: as(getCookie(headers)), id: body.id as string };
  };

  test("has the key's current scopes", async () => {
    using server = new TestServer();
    const { body: key } = await server.ask("POST", keysPath, {
      body: { label: "grows", scopes: ["cohort:read"], scoped_teams: [1] },
    });
    const { asking } = await getSession(server, key.value);
    expect((await server.ask("GET", flagsPath, asking)).status).toBe(403);
    const body = { scopes: ["cohort:read", "feature_flag:read"], scoped_teams: null };
    expect((await server.ask("PATCH", `${keysPath}${key.id}/`, { body })).status).toBe(200);
    expect((await server.ask("GET", flagsPath, asking)).status).toBe(200);
    expect((await server.ask("POST", flagsPath, { ...asking, body: { key: "a" } })).status).toBe(403);
  });

  test("sees and ends only itself where the key is restricted", async () => {
    using server = new TestServer();
    const full = as(await setUp(server));
    const other = await getSession(server, server.key(["feature_flag:read"]));
    for (const key of [
      server.key(["feature_flag:write", "user:write"]),
      server.key(["*"], { projectIds: [1] }),
      server.key(["*"], { organizationIds: [server.first.organization.id] }),
    ]) {
      const { asking, id } = await getSession(server, key);
      const ids = async (asked: object) =>
        (await server.ask("GET", "/api/sessions/", asked)).body.map((one: { id: string }) => one.id);
      expect(await ids(asking)).toEqual([id]);
      expect(await ids(full)).toEqual(expect.arrayContaining([id, other.id]));
      expect((await server.ask("DELETE", `/api/sessions/${other.id}/`, asking)).status).toBe(404);
      expect((await server.ask("DELETE", "/api/sessions/", asking)).status).toBe(403);
      for (const alive of [full, other.asking, asking])
        expect((await server.ask("GET", "/api/sessions/", alive)).status).toBe(200);
      expect((await server.ask("DELETE", `/api/sessions/${id}/`, asking)).status).toBe(204);
      expect((await server.ask("GET", "/api/sessions/", asking)).status).toBe(401);
    }
    expect((await server.ask("DELETE", "/api/sessions/", full)).status).toBe(204);
    expect((await server.ask("GET", "/api/sessions/", other.asking)).status).toBe(401);
  });

  test("of an earlier version ends with the value that created it", async () => {
    using it = await prepared();
    const { server, keyId } = it;
    const works = await derived["a session"]!(it);
    const rolled = server.now.getTime() + 1;
    server.metadata.db.$client.run("UPDATE personal_key SET last_rolled_at = ? WHERE id = ?", [
      rolled,
      keyId,
    ]);
    expect(await works()).toBe(false);
  });

  test("of a key that has no scopes cannot be created, and the key opens nothing", async () => {
    using server = new TestServer();
    const key = server.key(["*"]);
    const { asking } = await getSession(server, key);
    const id = (await server.ask("GET", `${keysPath}@current/`, { key })).body.id;
    server.metadata.change(() =>
      server.metadata.db.$client.run("UPDATE personal_key SET scopes = '[]' WHERE id = ?", [id]),
    );
    server.metadata.changes.syncRows(true);
    for (const path of [flagsPath, "/api/projects/", "/api/users/@me/", `${keysPath}@current/`, keysPath]) {
      expect([path, (await server.ask("GET", path, { key })).status]).toEqual([path, 403]);
    }
    expect((await server.ask("GET", flagsPath, asking)).status).toBe(401);
    const rejected = await server.ask("POST", "/api/session/", {
      key: null,
      headers: consoleHeader,
      body: { personal_api_key: key },
    });
    expect(rejected.status).toBe(401);
  });
});

describe("a one-time link ends", () => {
  /** Ann's link for Carol works; what happens then? */
  async function linked() {
    const it = await prepared();
    const created = await it.server.ask("POST", `${members}${it.carol.uuid}/link/`, { key: it.manager });
    expect(created.status).toBe(201);
    return { ...it, works: () => isUsable(it.server, created.body.console_url) };
  }

  test("when its member gets a higher level than its creator", async () => {
    using it = await linked();
    const { server, organizationId, bob, carol } = it;
    const acting = { organizationId, by: null, now: server.now };
    setMemberLevel(server.metadata, acting, bob.email, "admin");
    expect(await it.works()).toBe(true);
    setMemberLevel(server.metadata, acting, carol.email, "owner");
    expect(await it.works()).toBe(false);
  });

  test("when its member joins an organization where its creator is no admin", async () => {
    using it = await linked();
    const { server, carol } = it;
    server.metadata.db.$client.run(
      "INSERT INTO organization (id, name, slug, created_at) VALUES ('o', 'Other', 'other', 1)",
    );
    server.metadata.db.$client.run(
      "INSERT INTO membership (id, organization_id, user_id, level, joined_at, updated_at) VALUES ('m', 'o', ?, 1, 1, 1)",
      [findUserByEmail(server.metadata.db, carol.email)!.id],
    );
    expect(await it.works()).toBe(false);
  });
});
