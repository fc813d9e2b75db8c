/** Sessions in this process: how they begin, what they may, how they end. */

import { describe, expect, test } from "bun:test";
import { revokeKey } from "../../../src/accounts/personal-keys.ts";
import { hashPassword } from "../../../src/accounts/sessions/passwords.ts";
import { changePassword, createSetupLink, ownerToSetUp } from "../../../src/accounts/sessions/setup-links.ts";
import { createUser, setUserActive } from "../../../src/accounts/users.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";
import { as, colleague, getCookie, goodPassword, post, setUp, signIn } from "./support.ts";

/** No other 401 means that no one is signed in but `not_authenticated`: the console tells them apart by it. */
const wrongPassword = { code: "authentication_failed", detail: "The password is wrong." };

describe("a one-time link", () => {
  test("sets the password of the first owner once, who may correct the address", async () => {
    using server = new TestServer();
    const user = ownerToSetUp(server.metadata.db)!;
    const { token } = createSetupLink(server.metadata, user, null, server.now);
    const look = await post(server, "/api/session/setup/look/", { token });
    expect(look.body).toMatchObject({ email: "ann@example.com", organization: "Acme", is_first: true });
    const wanted = { token, email: "ann.larsson@example.com", first_name: "Ann", password: goodPassword };
    expect((await post(server, "/api/session/setup/", { ...wanted, password: "short" })).body).toMatchObject({
      attr: "password",
    });
    const done = await post(server, "/api/session/setup/", wanted);
    expect([done.status, done.body.email]).toEqual([201, "ann.larsson@example.com"]);
    expect(done.headers.get("set-cookie")).toMatch(
      /^flagkeep-[0-9a-f]{6}=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=2592000$/,
    );
    expect((await post(server, "/api/session/setup/", wanted)).status).toBe(401);
    expect((await post(server, "/api/session/setup/look/", { token })).status).toBe(401);
    expect(ownerToSetUp(server.metadata.db)).toBeUndefined();
    expect((await signIn(server, "Ann.Larsson@EXAMPLE.com")).status).toBe(201);
  });

  test("of a colleague keeps the address; of a user with a password it ends sessions and the old password", async () => {
    using server = new TestServer();
    await setUp(server);
    const bob = createUser(server.metadata, {
      email: "bob@example.com",
      organizationId: server.first.organization.id,
      level: "member",
    });
    const { token } = createSetupLink(server.metadata, bob, 1, server.now);
    const look = await post(server, "/api/session/setup/look/", { token });
    expect(look.body).toMatchObject({ email: "bob@example.com", is_first: false });
    const other = await post(server, "/api/session/setup/", {
      token,
      email: "eve@example.com",
      password: goodPassword,
    });
    expect([other.status, other.body.attr]).toEqual([400, "email"]);
    const first = await post(server, "/api/session/setup/", { token, password: goodPassword });
    const cookie = getCookie(first.headers);
    expect((await server.ask("GET", "/api/users/@me/", as(cookie))).status).toBe(200);
    const again = createSetupLink(server.metadata, bob, 1, server.now);
    await post(server, "/api/session/setup/", { token: again.token, password: "another few quiet words" });
    expect((await server.ask("GET", "/api/users/@me/", as(cookie))).status).toBe(401);
    expect((await signIn(server, "bob@example.com")).status).toBe(401);
    expect((await signIn(server, "bob@example.com", "another few quiet words")).status).toBe(201);
  });

  test("works for 24 hours, not for a user switched off, and only the newest one", async () => {
    using server = new TestServer();
    const user = ownerToSetUp(server.metadata.db)!;
    const old = createSetupLink(server.metadata, user, null, server.now);
    const fresh = createSetupLink(server.metadata, user, null, server.now);
    const look = async (token: string) => (await post(server, "/api/session/setup/look/", { token })).status;
    expect([await look(old.token), await look(fresh.token), await look("x")]).toEqual([401, 200, 401]);
    server.now = new Date(server.now.getTime() + 24 * 3_600_000);
    expect(await look(fresh.token)).toBe(401);
    const late = createSetupLink(server.metadata, user, null, server.now);
    setUserActive(server.metadata, user.email, false);
    expect(await look(late.token)).toBe(401);
    setUserActive(server.metadata, user.email, true);
    expect(await look(late.token)).toBe(401);
  });

  test("is stored as a hash, and so are cookie and password", async () => {
    using server = new TestServer();
    const user = ownerToSetUp(server.metadata.db)!;
    const { token } = createSetupLink(server.metadata, user, null, server.now);
    const retained = () => JSON.stringify(server.metadata.db.$client.query("SELECT * FROM setup_link").all());
    expect(retained()).not.toContain(token);
    const { headers } = await post(server, "/api/session/setup/", { token, password: goodPassword });
    const stored = ["session", "user_password", "activity"].flatMap((table) =>
      server.metadata.db.$client.query(`SELECT * FROM ${table}`).all(),
    );
    const text = JSON.stringify(stored);
    expect(text).toContain("$argon2id$");
    expect(text).not.toContain(goodPassword);
    expect(text).not.toContain(getCookie(headers).split("=")[1]!);
  });
});

describe("signing in", () => {
  test("fails with the same message for a wrong password, an unknown address, a user without password and a deactivated user", async () => {
    using server = new TestServer();
    await setUp(server);
    const { user } = await colleague(server);
    createUser(server.metadata, {
      email: "new@example.com",
      organizationId: server.first.organization.id,
      level: "member",
    });
    setUserActive(server.metadata, user.email, false);
    const answers = await Promise.all([
      signIn(server, "ann@example.com", "wrong horse battery staple"),
      signIn(server, "nobody@example.com"),
      signIn(server, "new@example.com"),
      signIn(server, "bob@example.com"),
    ]);
    for (const { status, body, headers } of answers) {
      expect([status, body.code, body.detail]).toEqual([
        401,
        "authentication_failed",
        "E-mail address or password is wrong.",
      ]);
      expect(headers.get("set-cookie")).toBeNull();
    }
  });

  test("waits after the fifth failure, reports failures afterwards, and records them once a minute", async () => {
    using server = new TestServer();
    await setUp(server);
    for (let n = 0; n < 5; n++) expect((await signIn(server, "ann@example.com", "wrong")).status).toBe(401);
    const rejected = await signIn(server);
    expect([rejected.status, rejected.headers.get("retry-after")]).toEqual([429, "1"]);
    server.now = new Date(server.now.getTime() + 1_000);
    const done = await signIn(server);
    expect([done.status, done.body.failed_sign_ins]).toEqual([201, 5]);
    expect((await signIn(server)).body.failed_sign_ins).toBe(0);
    const log = await server.ask("GET", "/api/organizations/@current/activity_log/?scope=User");
    const failed = log.body.results.filter(
      ({ activity }: { activity: string }) => activity === "sign_in_failed",
    );
    expect(failed).toHaveLength(1);
  });

  test("accepts a personal key: the session has its limits and ends with it", async () => {
    using server = new TestServer();
    const key = server.key(["feature_flag:read"], { projectIds: [1] });
    const wrong = await post(server, "/api/session/", { personal_api_key: "phx_wrong" });
    expect(wrong.status).toBe(401);
    const created = await post(server, "/api/session/", { personal_api_key: key });
    expect(created.body).toMatchObject({ is_from_key: true, scopes: ["feature_flag:read"] });
    const cookie = getCookie(created.headers);
    const status = async (method: string, path: string) =>
      (await server.ask(method, path, as(cookie))).status;
    expect(await status("GET", flagsPath)).toBe(200);
    expect(await status("POST", flagsPath)).toBe(403);
    expect(await status("GET", "/api/organizations/@current/")).toBe(403);
    expect(await status("GET", "/api/personal_api_keys/")).toBe(403);
    const { id } = (await server.ask("GET", "/api/personal_api_keys/")).body.find(
      ({ scopes }: { scopes: string[] }) => scopes[0] === "feature_flag:read",
    );
    revokeKey(server.metadata, id);
    expect(await status("GET", flagsPath)).toBe(401);
  });

  test("with a password that is changed while it is verified opens nothing", async () => {
    using server = new TestServer();
    const cookie = await setUp(server);
    const own = as(cookie);
    const hash = await hashPassword("another few quiet words");
    const attempts = [
      signIn(server),
      server.ask("POST", "/api/session/password/", {
        ...own,
        body: { current_password: goodPassword, password: "yet another few words" },
      }),
      server.ask("POST", "/api/session/confirm/", { ...own, body: { password: goodPassword } }),
    ];
    // A request later they have begun, and wait for their hashes.
    await server.ask("POST", "/api/session/setup/look/", { ...own, body: { token: "none" } });
    server.metadata.change((t) => changePassword(t, 1, hash, server.now));
    expect((await Promise.all(attempts)).map(({ status }) => status)).toEqual([401, 401, 401]);
    const again = await signIn(server, undefined, "another few quiet words");
    const { body } = await server.ask("GET", "/api/sessions/", as(getCookie(again.headers)));
    expect(body).toHaveLength(1);
  });

  test("rehashes a password once for concurrent sign-ins", async () => {
    using server = new TestServer();
    await setUp(server);
    const old = await Bun.password.hash(goodPassword, {
      ...({ algorithm: "argon2id", memoryCost: 8192, timeCost: 1 } as const),
    });
    server.metadata.db.$client.run("UPDATE user_password SET hash = ?", [old]);
    const answers = await Promise.all([signIn(server), signIn(server), signIn(server)]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  });

  test("rehashes a password whose hash has other parameters", async () => {
    using server = new TestServer();
    await setUp(server);
    const old = await Bun.password.hash(goodPassword, {
      algorithm: "argon2id",
      memoryCost: 8192,
      timeCost: 1,
    });
    const hash = () =>
      (server.metadata.db.$client.query("SELECT hash FROM user_password").get() as { hash: string }).hash;
    server.metadata.db.$client.run("UPDATE user_password SET hash = ?", [old]);
    expect((await signIn(server)).status).toBe(201);
    expect(hash()).toStartWith("$argon2id$v=19$m=19456,t=2,");
    expect((await signIn(server)).status).toBe(201);
  });
});

describe("a session", () => {
  test("has the permissions of its user: a member may not do what an owner may", async () => {
    using server = new TestServer();
    const owner = await setUp(server);
    const { cookie } = await colleague(server);
    const me = async (of: string) => (await server.ask("GET", "/api/users/@me/", as(of))).body;
    expect([(await me(owner)).is_staff, (await me(cookie)).is_staff]).toEqual([true, false]);
    const rename = { ...as(cookie), body: { name: "Mine" } };
    expect((await server.ask("PATCH", "/api/organizations/@current/", rename)).status).toBe(403);
    expect((await server.ask("GET", "/api/organizations/@current/activity_log/", as(cookie))).status).toBe(
      403,
    );
    const flag = { ...as(cookie), body: { key: "mine" } };
    expect((await server.ask("POST", flagsPath, flag)).status).toBe(201);
    expect((await server.ask("GET", "/api/personal_api_keys/@current/", as(cookie))).status).toBe(404);
  });

  test("ends after seven idle days, after thirty days, by signing out, and alone or with all others by its user", async () => {
    using server = new TestServer();
    await setUp(server);
    const day = 86_400_000;
    const start = server.now.getTime();
    const isIn = async (cookie: string) =>
      (await server.ask("GET", "/api/sessions/", as(cookie))).status === 200;
    const fresh = async () => getCookie((await signIn(server)).headers);
    const idle = await fresh();
    const busy = await fresh();
    for (let days = 6; days < 30; days += 6) {
      server.now = new Date(start + days * day);
      expect([days, await isIn(busy)]).toEqual([days, true]);
    }
    expect(await isIn(idle)).toBe(false);
    server.now = new Date(start + 30 * day);
    expect(await isIn(busy)).toBe(false);
    const one = await fresh();
    const two = await fresh();
    const three = await fresh();
    const four = await fresh();
    const deleted = await server.ask("DELETE", "/api/session/", as(one));
    expect([deleted.status, deleted.headers.get("set-cookie")]).toEqual([
      204,
      expect.stringContaining("Max-Age=0"),
    ]);
    expect(await isIn(one)).toBe(false);
    const { body } = await server.ask("GET", "/api/sessions/", as(two));
    expect(body).toHaveLength(3);
    const other = body.find(({ is_current }: { is_current: boolean }) => !is_current).id;
    expect((await server.ask("DELETE", `/api/sessions/${other}/`, as(two))).status).toBe(204);
    expect((await server.ask("DELETE", `/api/sessions/${other}/`, as(two))).status).toBe(404);
    expect([await isIn(three), await isIn(four)].filter(Boolean)).toHaveLength(1);
    expect((await server.ask("DELETE", "/api/sessions/", as(two))).status).toBe(204);
    expect([await isIn(two), await isIn(three), await isIn(four)]).toEqual([true, false, false]);
  });

  test("of another person cannot be ended", async () => {
    using server = new TestServer();
    const owner = await setUp(server);
    const { cookie } = await colleague(server);
    const [{ id }] = (await server.ask("GET", "/api/sessions/", as(owner))).body;
    expect((await server.ask("DELETE", `/api/sessions/${id}/`, as(cookie))).status).toBe(404);
    expect((await server.ask("GET", "/api/sessions/", as(owner))).status).toBe(200);
  });

  test("ends when its user is deactivated, and is not restored by reactivation", async () => {
    using server = new TestServer();
    await setUp(server);
    const { cookie, user } = await colleague(server);
    setUserActive(server.metadata, user.email, false);
    expect((await server.ask("GET", flagsPath, as(cookie))).status).toBe(401);
    setUserActive(server.metadata, user.email, true);
    expect((await server.ask("GET", flagsPath, as(cookie))).status).toBe(401);
    expect((await signIn(server, user.email)).status).toBe(201);
  });

  test("changes its password, which ends the others", async () => {
    using server = new TestServer();
    const cookie = await setUp(server);
    const other = getCookie((await signIn(server)).headers);
    const change = async (current_password: string, password: string) =>
      await server.ask("POST", "/api/session/password/", {
        ...as(cookie),
        body: { current_password, password },
      });
    expect(await change("wrong", "another few quiet words")).toMatchObject({
      status: 401,
      body: { ...wrongPassword, attr: "current_password" },
    });
    expect((await change(goodPassword, "123456789012")).status).toBe(400);
    expect((await change(goodPassword, "another few quiet words")).status).toBe(204);
    expect((await server.ask("GET", flagsPath, as(cookie))).status).toBe(200);
    expect((await server.ask("GET", flagsPath, as(other))).status).toBe(401);
    expect((await signIn(server)).status).toBe(401);
  });

  test("is one of at most 50 of the password and of each key; the least recently used one ends", async () => {
    using server = new TestServer();
    const status = async (cookie: string) => (await server.ask("GET", flagsPath, as(cookie))).status;
    const withKey = async (personal_api_key: string) =>
      getCookie((await post(server, "/api/session/", { personal_api_key })).headers);
    const first = await setUp(server);
    const key = server.key(["feature_flag:read"]);
    const ofKey = await withKey(key);
    const ofOther = await withKey(server.first.personal_api_key);
    server.now = new Date(server.now.getTime() + 1_000);
    for (let n = 0; n < 50; n++) await withKey(key);
    // A key ends no sessions but its own.
    expect([await status(ofKey), await status(ofOther), await status(first)]).toEqual([401, 200, 200]);
    server.now = new Date(server.now.getTime() + 1_000);
    for (let n = 0; n < 50; n++) await signIn(server);
    expect([await status(ofOther), await status(first)]).toEqual([200, 401]);
  });

  test("requires the password again for dangerous actions, valid for ten minutes", async () => {
    using server = new TestServer();
    const cookie = await setUp(server);
    const ask = async (method: string, path: string, body?: unknown) =>
      await server.ask(method, path, { ...as(cookie), body });
    const everything = { label: "all", scopes: ["*"] };
    const narrow = { ...everything, scopes: ["feature_flag:read"] };
    const dangerous = [
      ["POST", "/api/projects/1/rotate_secret_token/", undefined],
      ["POST", "/api/personal_api_keys/", everything],
      ["POST", "/api/personal_api_keys/", narrow],
    ] as const;
    for (const [method, path, body] of dangerous) {
      const { status, body: answer } = await ask(method, path, body);
      expect([path, status, answer.code]).toEqual([path, 403, "confirmation_required"]);
    }
    expect((await ask("GET", "/api/projects/1/")).body.secret_api_token).toBeNull();
    expect(await ask("POST", "/api/session/confirm/", { password: "wrong" })).toMatchObject({
      status: 401,
      body: { ...wrongPassword, attr: "password" },
    });
    expect((await ask("POST", "/api/session/confirm/", {})).status).toBe(400);
    const confirmed = await ask("POST", "/api/session/confirm/", { password: goodPassword });
    expect([confirmed.status, typeof confirmed.body.confirmed_until]).toEqual([200, "string"]);
    expect((await ask("GET", "/api/projects/1/")).body.secret_api_token).toStartWith("phs_");
    expect((await ask("POST", "/api/personal_api_keys/", everything)).status).toBe(201);
    server.now = new Date(server.now.getTime() + 10 * 60_000);
    expect((await ask("POST", "/api/personal_api_keys/", everything)).status).toBe(403);
    // A key has no one who could be asked.
    expect((await server.ask("POST", "/api/projects/1/rotate_secret_token/")).status).toBe(200);
  });
});
