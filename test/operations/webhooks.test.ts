/** Webhooks over the API: what is checked when one is saved, who may, and what is shown. */

import { describe, expect, test } from "bun:test";
import { insertOrganization } from "../../src/accounts/organizations.ts";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { createProject } from "../../src/accounts/projects.ts";
import { createUser } from "../../src/accounts/users.ts";
import { getIdentity } from "../../src/accounts/webhooks.ts";
import { TestServer } from "../support/management-server.ts";

const path = "/api/projects/1/webhooks/";
const url = "https://hooks.slack.com/services/T0/B0/abcdefghijklmnopqrstuvwx";

test("is created, listed, changed and deleted; the secret and the URL's secret part are shown once or never", async () => {
  using server = new TestServer();
  const created = await server.ask("POST", path, { body: { url, name: " Releases " } });
  expect(created.status).toBe(201);
  const { secret, ...hook } = created.body;
  expect(secret).toMatch(/^whsec_\w{40,}$/);
  expect(hook).toMatchObject({
    name: "Releases",
    url: "https://hooks.slack.com/services/T0/B0/…uvwx",
    format: "slack",
    active: true,
    events: ["flag_changed", "change_request_opened", "change_request_decided", "spike", "backup_failed"],
    created_by: { email: "ann@example.com" },
  });
  const one = `${path}${hook.id}/`;
  expect((await server.ask("GET", `/api/environments/1/webhooks/${hook.id}/`)).body).toEqual(hook);
  expect((await server.ask("GET", path)).body.results).toEqual([hook]);
  // A client sends back what it read.
  const same = await server.ask("PATCH", one, { body: { ...hook, created_by: undefined } });
  expect(same.body).toMatchObject({ url: hook.url, format: "slack" });
  const stored = server.metadata.db.$client.query("SELECT url, secret FROM webhook").get() as Record<
    string,
    string
  >;
  expect(server.deps.secrets.open(getIdentity({ projectId: 1 }, "URL"), stored.url!)).toBe(url);
  expect(server.deps.secrets.open(getIdentity({ projectId: 1 }, "secret"), stored.secret!)).toBe(secret);
  const rotated = await server.ask("POST", `${one}rotate_secret/`);
  expect([rotated.status, rotated.body.secret === secret]).toEqual([200, false]);
  const moved = await server.ask("PATCH", one, {
    body: { url: "https://example.com/x", format: "json", events: ["spike"] },
  });
  expect(moved.body).toMatchObject({ url: "https://example.com/x", format: "json", events: ["spike"] });
  expect((await server.ask("DELETE", one)).status).toBe(204);
  expect((await server.ask("GET", one)).status).toBe(404);
  const { body: log } = await server.ask("GET", "/api/projects/1/activity_log/?scope=Webhook&limit=50");
  const entries = log.results.map(
    ({ activity, detail }: { activity: string; detail: { changes: { field: string }[] } }) => [
      activity,
      detail.changes.map(({ field }) => field).sort(),
    ],
  );
  expect(entries).toEqual([
    ["deleted", []],
    ["updated", ["events", "format", "url"]],
    ["updated", ["secret"]],
    ["created", []],
  ]);
  const texts =
    JSON.stringify(log) + JSON.stringify(server.metadata.db.$client.query("SELECT * FROM activity").all());
  for (const hidden of [secret, rotated.body.secret, "abcdefghijklmnop"]) expect(texts).not.toContain(hidden);
});

describe("rejected", () => {
  test.each([
    [{}, "url", "required"],
    [{ url: "" }, "url", undefined],
    [{ url: 5 }, "url", undefined],
    [{ url: "nothing" }, "url", "invalid_input"],
    [{ url: "http://169.254.169.254/latest" }, "url", "address_not_allowed"],
    [{ url, events: [] }, "events", "invalid_input"],
    [{ url, events: ["unknown"] }, "events", undefined],
    [{ url, format: "xml" }, "format", undefined],
    [{ url, format: "custom" }, "template", "invalid_input"],
    [{ url, format: "custom", template: { a: "{{secret}}" } }, "template", "invalid_input"],
    [{ url, format: "custom", template: { a: "x".repeat(10_001) } }, "template", "max_length"],
    [{ url, format: "slack", template: {} }, "template", "invalid_input"],
    [{ url, name: "x".repeat(201) }, "name", "max_length"],
    [{ url, active: "maybe" }, "active", undefined],
  ])("%j", async (body, attr, code) => {
    using server = new TestServer();
    const answer = await server.ask("POST", path, { body });
    expect([answer.status, answer.body.attr.replace(/__.*/, "")]).toEqual([400, attr]);
    if (code !== undefined) expect(answer.body.code).toBe(code);
    expect((await server.ask("GET", path)).body.count).toBe(0);
  });

  test("the same on PATCH, which changes nothing then", async () => {
    using server = new TestServer();
    const { id } = (await server.ask("POST", path, { body: { url } })).body;
    for (const body of [
      { url: "http://[::1]/" },
      { events: [] },
      { format: "custom" },
      { template: { a: 1 } },
    ]) {
      const answer = await server.ask("PATCH", `${path}${id}/`, { body });
      expect([body, answer.status]).toEqual([body, 400]);
    }
    expect((await server.ask("GET", `${path}${id}/`)).body).toMatchObject({
      format: "slack",
      template: null,
    });
  });

  test("more than 20 webhooks", async () => {
    using server = new TestServer();
    for (let count = 0; count < 20; count++) await server.ask("POST", path, { body: { url } });
    const answer = await server.ask("POST", path, { body: { url } });
    expect([answer.status, answer.body.code]).toEqual([400, "limit_reached"]);
  });

  test("backup_failed outside of the first organization", async () => {
    using server = new TestServer();
    const organization = server.metadata.change((t) =>
      insertOrganization(t, "Other", new Date(server.now.getTime() + 1_000)),
    );
    createUser(server.metadata, {
      email: "eve@example.com",
      organizationId: organization.id,
      level: "owner",
    });
    const project = createProject(
      server.metadata,
      { organizationId: organization.id, name: "Theirs", timezone: "UTC" },
      null,
    );
    const key = createKey(
      server.metadata,
      { userEmail: "eve@example.com", label: "x", scopes: ["*"] },
      { now: server.now },
    ).value;
    const theirs = `/api/projects/${project.id}/webhooks/`;
    const answer = await server.ask("POST", theirs, { key, body: { url, events: ["backup_failed"] } });
    expect([answer.status, answer.body.attr]).toEqual([400, "events"]);
    const standard = await server.ask("POST", theirs, { key, body: { url } });
    expect(standard.body.events).not.toContain("backup_failed");
    expect((await server.ask("GET", theirs)).status).toBe(403);
    expect((await server.ask("GET", `${path}${standard.body.id}/`)).status).toBe(404);
  });
});

describe("who may", () => {
  test("members list webhooks; only admins and owners change them", async () => {
    using server = new TestServer();
    const { id } = (await server.ask("POST", path, { body: { url } })).body;
    const organizationId = server.first.organization.id;
    createUser(server.metadata, { email: "bob@example.com", organizationId, level: "member" });
    const key = createKey(
      server.metadata,
      { userEmail: "bob@example.com", label: "x", scopes: ["*"] },
      { now: server.now },
    ).value;
    expect((await server.ask("GET", path, { key })).status).toBe(200);
    for (const [method, rest, body] of [
      ["POST", "", { url }],
      ["PATCH", `${id}/`, { active: false }],
      ["DELETE", `${id}/`, undefined],
      ["POST", `${id}/test/`, undefined],
      ["POST", `${id}/rotate_secret/`, undefined],
    ] as const)
      expect([rest, (await server.ask(method, path + rest, { key, body })).status]).toEqual([rest, 403]);
  });

  test("a narrow key cannot have sent elsewhere what it may not read", async () => {
    using server = new TestServer();
    const { id } = (await server.ask("POST", path, { body: { url, events: ["spike"] } })).body;
    const narrow = server.key(["webhook:write"]);
    const enough = server.key(["webhook:write", "feature_flag:read", "event:read"]);
    const patch = async (body: object, key: string) =>
      (await server.ask("PATCH", `${path}${id}/`, { key, body })).status;
    expect(await patch({ active: false }, narrow)).toBe(200);
    expect(await patch({ active: true, name: "x" }, narrow)).toBe(200);
    expect(await patch({ events: ["spike", "flag_changed"] }, narrow)).toBe(403);
    expect(await patch({ url: "https://elsewhere.example/" }, narrow)).toBe(403);
    expect(await patch({ events: ["spike", "flag_changed"] }, enough)).toBe(200);
    expect(await patch({ url: "https://elsewhere.example/" }, enough)).toBe(200);
    expect(await patch({ url: "https://again.example/" }, narrow)).toBe(403);
  });
});

test("a test is queued for a webhook that is on", async () => {
  using server = new TestServer();
  const { id } = (await server.ask("POST", path, { body: { url } })).body;
  const queued = await server.ask("POST", `${path}${id}/test/`);
  expect(queued).toMatchObject({ status: 202, body: { event: "test", state: "pending", attempts: 0 } });
  const one = `${path}${id}/deliveries/${queued.body.id}/`;
  expect((await server.ask("GET", one)).body).toEqual(queued.body);
  expect((await server.ask("GET", `${path}${id}/deliveries/99/`)).status).toBe(404);
  await server.ask("PATCH", `${path}${id}/`, { body: { active: false } });
  const off = await server.ask("POST", `${path}${id}/test/`);
  expect([off.status, off.body.code]).toEqual([400, "webhook_off"]);
});
