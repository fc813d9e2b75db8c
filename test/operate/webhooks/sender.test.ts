/** Deliveries: signed, retried for a day, each listed, never twice at once, across crashes. */

import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { finishedMax, pendingMax } from "../../../src/accounts/webhook-outbox.ts";
import { updateWebhook } from "../../../src/accounts/webhooks.ts";
import { concurrentMax } from "../../../src/operate/webhooks/sender.ts";
import { flagsPath } from "../../support/management-server.ts";
import { isSigned, SenderSetup } from "./support.ts";

test("a flag change is queued with the change, and sent with a signature", async () => {
  using it = new SenderSetup();
  const { secret } = it.hook();
  const created = await it.server.ask("POST", flagsPath, { body: { key: "checkout" } });
  expect(created.status).toBe(201);
  expect(await it.deliveries()).toMatchObject([
    { event: "flag_changed", item: "checkout", state: "pending", attempts: 0 },
  ]);
  await it.send(it.sender());
  const [request] = it.receiver.received;
  expect(isSigned(request!, secret)).toBe(true);
  expect(isSigned({ ...request!, text: `${request!.text} ` }, secret)).toBe(false);
  const [delivery] = await it.deliveries();
  expect(delivery).toMatchObject({
    state: "delivered",
    attempts: 1,
    status: 200,
    error: null,
    next_attempt_at: null,
  });
  expect(request!.headers.get("x-flagkeep-event")).toBe("flag_changed");
  expect(request!.headers.get("x-flagkeep-delivery")).toBe(delivery.uuid);
  expect(request!.body).toMatchObject({
    id: delivery.uuid,
    event: "flag_changed",
    project: { id: 1, name: "Shop" },
    text: "ann created checkout in Shop.",
    url: `https://flags.example.com/console/flags/${created.body.id}`,
    data: { flag: { key: "checkout", version: 1 }, activity: { activity: "created", scope: "FeatureFlag" } },
  });
});

test("a change that is rolled back queues nothing", async () => {
  using it = new SenderSetup();
  it.hook();
  expect(() =>
    it.server.metadata.change(() => {
      it.queue();
      throw new Error("undone");
    }),
  ).toThrow("undone");
  expect(await it.deliveries()).toEqual([]);
});

test("only subscribed events of the same project are queued", async () => {
  using it = new SenderSetup();
  it.hook({ events: ["spike"] });
  it.hook({ events: ["flag_changed"], active: false });
  await it.server.ask("POST", flagsPath, { body: { key: "checkout" } });
  it.queue({ projectId: 2 });
  expect([await it.deliveries(1), await it.deliveries(2)]).toEqual([[], []]);
});

describe("a receiver that fails", () => {
  test("is tried again after 10 s, then twice as long up to an hour, for a day", async () => {
    using it = new SenderSetup();
    it.hook();
    it.receiver.answer = () => new Response("no", { status: 500 });
    it.queue();
    const sender = it.sender();
    const waits: number[] = [];
    for (;;) {
      await it.send(sender);
      const [delivery] = await it.deliveries();
      if (delivery.state !== "pending") break;
      const wait = (Date.parse(delivery.next_attempt_at) - it.server.now.getTime()) / 1_000;
      waits.push(wait);
      it.pass(wait - 0.001);
      await it.send(sender);
      expect(it.receiver.received.length).toBe(waits.length);
      it.pass(0.001);
    }
    expect(waits.slice(0, 10)).toEqual([10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
    expect(waits.reduce((sum, wait) => sum + wait)).toBe(86_400);
    expect(await it.deliveries()).toMatchObject([
      { state: "failed", attempts: waits.length + 1, status: 500, error: "The receiver answered 500." },
    ]);
    const uuids = new Set(it.receiver.received.map(({ headers }) => headers.get("x-flagkeep-delivery")));
    expect(uuids.size).toBe(1);
  });

  test("is delivered to once it works, and the signature has the present time", async () => {
    using it = new SenderSetup();
    const { secret } = it.hook();
    it.receiver.answer = () => new Response("no", { status: 503, headers: { "Retry-After": "120" } });
    it.queue();
    const sender = it.sender();
    await it.send(sender);
    it.pass(119);
    await it.send(sender);
    expect(it.receiver.received.length).toBe(1);
    it.receiver.answer = () => new Response(null, { status: 204 });
    it.pass(1);
    await it.send(sender);
    expect(await it.deliveries()).toMatchObject([
      { state: "delivered", attempts: 2, status: 204, error: null },
    ]);
    const times = it.receiver.received.map(
      ({ headers }) => /t=(\d+)/.exec(headers.get("x-flagkeep-signature")!)![1],
    );
    expect(Number(times[1]) - Number(times[0])).toBe(120);
    expect(it.receiver.received.every((request) => isSigned(request, secret))).toBe(true);
  });

  test("410 ends the delivery; redirects are not followed", async () => {
    using it = new SenderSetup();
    it.hook();
    it.receiver.answer = () => new Response(null, { status: 410 });
    it.queue();
    const sender = it.sender();
    await it.send(sender);
    expect(await it.deliveries()).toMatchObject([{ state: "failed", status: 410, attempts: 1 }]);
    it.receiver.answer = ({ path }) =>
      path === "/hook" ? Response.redirect(`${it.receiver.url}/elsewhere`, 307) : new Response("reached");
    it.queue();
    await it.send(sender);
    const [delivery] = await it.deliveries();
    expect(delivery).toMatchObject({ state: "pending", status: 307 });
    expect(delivery.error).toBe("The receiver answered 307. Redirects are not followed.");
    expect(it.receiver.received.every(({ path }) => path === "/hook")).toBe(true);
  });

  test("no connection, no HTTP, endless headers", async () => {
    using it = new SenderSetup();
    const answers = ["hello\r\n\r\n", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}`];
    for (const answer of answers) {
      const invalid = Bun.listen({
        hostname: "127.0.0.1",
        port: 0,
        socket: { data: (socket) => void socket.write(answer) },
      });
      it.hook({ url: `http://127.0.0.1:${invalid.port}/`, events: ["spike"] });
    }
    it.hook({ url: "http://127.0.0.1:1/", events: ["spike"] });
    it.queue();
    await it.send(it.sender({ timeoutMs: 3_000 }));
    for (const [id, error] of [
      [1, "The response is not HTTP."],
      [2, "The headers of the response are too long."],
      [3, "connect ECONNREFUSED 127.0.0.1:1"],
    ] as const)
      expect(await it.deliveries(id)).toMatchObject([{ state: "pending", status: null, error }]);
  });
});

test("a receiver that hangs delays neither the change nor other webhooks, and has one request at a time", async () => {
  using it = new SenderSetup();
  const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  it.hook({ url: `http://127.0.0.1:${silent.port}/` });
  it.hook();
  it.queue();
  it.queue();
  const sender = it.sender({ timeoutMs: 400 });
  sender.check();
  while (it.receiver.received.length < 2) {
    await Bun.sleep(1);
    sender.check();
  }
  expect(await it.deliveries(1)).toMatchObject([{ attempts: 0 }, { attempts: 0 }]);
  await sender.idle();
  const [second, first] = await it.deliveries(1);
  expect(first).toMatchObject({ state: "pending", attempts: 1, error: "No response within 0.4 seconds." });
  expect(second).toMatchObject({ state: "pending", attempts: 0 });
});

test("at most a fixed number of requests run at the same time", async () => {
  using it = new SenderSetup();
  for (let index = 0; index < concurrentMax + 3; index++) it.hook();
  it.queue();
  let running = 0;
  let most = 0;
  const release = Promise.withResolvers<void>();
  it.receiver.answer = async () => {
    most = Math.max(most, ++running);
    if (running === concurrentMax) release.resolve();
    await release.promise;
    running--;
    return new Response("ok");
  };
  const sender = it.sender();
  sender.check();
  sender.check();
  await sender.idle();
  expect([most, it.receiver.received.length]).toEqual([concurrentMax, concurrentMax]);
  await it.send(sender);
  expect(it.receiver.received.length).toBe(concurrentMax + 3);
});

describe("crashes and stops", () => {
  test("deliveries queued before a crash are sent by the next start; finished ones are not", async () => {
    using it = new SenderSetup();
    it.hook();
    it.queue();
    await it.send(it.sender());
    it.queue();
    // Neither stopped nor idle: its memory is gone.
    const next = it.sender();
    await it.send(next);
    await it.send(next);
    expect(it.receiver.received.length).toBe(2);
  });

  test("a crash after the request repeats it with the same id", async () => {
    using it = new SenderSetup();
    it.hook();
    it.queue();
    await it.send(it.sender({ together: () => Promise.reject(new Error("crash")) }));
    expect(await it.deliveries()).toMatchObject([{ state: "pending", attempts: 0 }]);
    await it.send(it.sender());
    const uuids = it.receiver.received.map(({ headers }) => headers.get("x-flagkeep-delivery"));
    expect([uuids.length, new Set(uuids).size]).toEqual([2, 1]);
  });

  test("a result that cannot be stored does not repeat the request immediately", async () => {
    using it = new SenderSetup();
    it.hook();
    it.queue();
    const sender = it.sender({ together: () => Promise.reject(new Error("database is locked")) });
    await it.send(sender);
    await it.send(sender);
    expect(it.receiver.received.length).toBe(1);
    it.pass(10);
    await it.send(sender);
    expect(it.receiver.received.length).toBe(2);
  });

  test("a stop ends requests under way; they stay pending", async () => {
    using it = new SenderSetup();
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
    it.hook({ url: `http://127.0.0.1:${silent.port}/` });
    it.queue();
    const sender = it.sender();
    sender.check();
    await sender.stop();
    expect(await it.deliveries()).toMatchObject([{ state: "pending", attempts: 0 }]);
  });

  test("a node that is not the sender sends nothing", async () => {
    using it = new SenderSetup();
    it.hook();
    it.queue();
    await it.send(it.sender({ isActive: () => false }));
    expect(it.receiver.received).toEqual([]);
  });

  test("events older than a day, from a restored backup, are not sent", async () => {
    using it = new SenderSetup();
    it.hook();
    it.queue();
    it.pass(26 * 3_600);
    await it.send(it.sender());
    expect(it.receiver.received).toEqual([]);
    expect(await it.deliveries()).toMatchObject([
      { state: "failed", error: "The event is older than a day." },
    ]);
  });
});

test("HTTPS certificates are checked for the name of the URL", async () => {
  using it = new SenderSetup();
  const folder = mkdtempSync(join(tmpdir(), "webhook-certificate-"));
  const created = Bun.spawnSync(
    [
      "openssl",
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-keyout",
      "key.pem",
      "-out",
      "cert.pem",
    ].concat(["-days", "2", "-subj", "/CN=hooks.example", "-addext", "subjectAltName=DNS:hooks.example"]),
    { cwd: folder },
  );
  expect(created.exitCode).toBe(0);
  const ca = await Bun.file(join(folder, "cert.pem")).text();
  using receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response("ok"),
    tls: { key: await Bun.file(join(folder, "key.pem")).text(), cert: ca },
  });
  rmSync(folder, { recursive: true });
  const rules = { allowed: ["127.0.0.1"], resolve: async () => ["127.0.0.1"] };
  it.hook({ url: `https://hooks.example:${receiver.port}/` });
  it.hook({ url: `https://other.example:${receiver.port}/` });
  it.queue();
  await it.send(it.sender({ rules, ca }));
  expect(await it.deliveries(1)).toMatchObject([{ state: "delivered", status: 200 }]);
  const [wrong] = await it.deliveries(2);
  expect([wrong.state, wrong.status]).toEqual(["pending", null]);
  expect(wrong.error).toMatch(/altnames|certificate/i);
  it.hook({ url: `https://hooks.example:${receiver.port}/` });
  it.queue();
  await it.send(it.sender({ rules }));
  expect((await it.deliveries(3))[0].error).toMatch(/self.signed|certificate/i);
});

describe("addresses are checked again for each attempt", () => {
  test("a name that leads to this machine now is not called", async () => {
    using it = new SenderSetup();
    const port = new URL(it.receiver.url).port;
    it.hook({ url: `http://rebinding.example:${port}/hook` });
    it.queue();
    await it.send(it.sender({ rules: { allowed: [], resolve: async () => ["127.0.0.1"] } }));
    expect(it.receiver.received).toEqual([]);
    const [delivery] = await it.deliveries();
    expect([delivery.state, delivery.status]).toEqual(["failed", null]);
    expect(delivery.error).toContain("rebinding.example (127.0.0.1) is an address of this machine");
  });

  test("the request goes to the address that was checked, with the name in Host", async () => {
    using it = new SenderSetup();
    const port = new URL(it.receiver.url).port;
    it.hook({ url: `http://hooks.example:${port}/hook?x=1` });
    it.queue();
    let calls = 0;
    const resolve = async () => (calls++ === 0 ? ["127.0.0.1"] : ["127.0.0.2"]);
    await it.send(it.sender({ rules: { allowed: ["127.0.0.1"], resolve } }));
    expect(calls).toBe(1);
    expect(it.receiver.received[0]!.headers.get("host")).toBe(`hooks.example:${port}`);
  });

  test("a name without an address is retried", async () => {
    using it = new SenderSetup();
    it.hook({ url: "https://missing.example/" });
    it.queue();
    await it.send(it.sender({ rules: { allowed: [], resolve: async () => [] } }));
    expect(await it.deliveries()).toMatchObject([
      { state: "pending", error: "The host name missing.example cannot be resolved." },
    ]);
  });
});

describe("bounds", () => {
  test("finished deliveries are listed up to a number and an age", async () => {
    using it = new SenderSetup();
    it.hook();
    const sender = it.sender();
    for (let index = 0; index < finishedMax + 5; index++) {
      it.queue({ item: String(index) });
      await it.send(sender);
    }
    const listed = await it.deliveries();
    expect([listed.length, listed[0].item, listed.at(-1).item]).toEqual([
      finishedMax,
      String(finishedMax + 4),
      "5",
    ]);
    it.pass(31 * 86_400);
    it.queue({ item: "new" });
    await it.send(sender);
    expect((await it.deliveries()).map(({ item }: { item: string }) => item)).toEqual(["new"]);
  });

  test("further events are skipped and counted while too many are pending", async () => {
    using it = new SenderSetup();
    it.hook();
    it.server.metadata.db.$client.run(
      `INSERT INTO webhook_delivery (uuid, webhook_id, event, subject, created_at, next_attempt_at)
       WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${pendingMax})
       SELECT '${crypto.randomUUID()}', 1, 'spike', '{}', 0, 100000000000000 FROM n`,
    );
    it.queue();
    it.queue();
    const { body } = await it.server.ask("GET", "/api/projects/1/webhooks/1/");
    expect(body.skipped_events).toBe(2);
    expect((await it.deliveries()).length).toBe(pendingMax);
  });

  test("turning a webhook off ends pending deliveries", async () => {
    using it = new SenderSetup();
    it.hook();
    it.queue();
    const of = { projectId: 1, id: 1, by: null, now: it.server.now };
    updateWebhook(it.server.deps, of, { active: false });
    await it.send(it.sender());
    expect(it.receiver.received).toEqual([]);
    expect(await it.deliveries()).toMatchObject([{ state: "failed", error: "The webhook was turned off." }]);
  });
});
