/** The remote evaluation protocol of OpenFeature, request by request. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { revokePreviousKey, rotateProjectKey } from "../../../../src/accounts/projects.ts";
import { FlagEvents } from "../../../../src/flags/sdk/ofrep-events.ts";
import { createApp } from "../../../../src/http/app.ts";
import { TrustedProxies } from "../../../../src/http/trusted-proxies.ts";
import { set } from "../../../persons/support.ts";
import { until } from "../../../support/server.ts";
import { inCohort, person, when } from "../../make.ts";
import { TestEvaluation } from "../support.ts";

let server: TestEvaluation;
beforeAll(() => {
  server = new TestEvaluation();
  server.people.apply(set("ann", { plan: "pro" }));
  server.flag("always", { ...when([]), payloads: { true: '{"a":[1]}' } });
  server.flag("never", when([], 0));
  server.flag("most", when([], 99.999));
  server.flag("pro", when([person("plan", "exact", "pro")]));
  server.flag("split", {
    ...when([]),
    multivariate: {
      variants: [
        { key: "blue", rollout_percentage: 100 },
        { key: "green", rollout_percentage: 0 },
      ],
    },
    payloads: { blue: "7" },
  });
  server.flag("off-split", {
    ...when([], 0),
    multivariate: { variants: [{ key: "blue", rollout_percentage: 100 }] },
  });
  server.flag("company", {
    aggregation_group_type_index: 0,
    groups: [{ properties: [], rollout_percentage: 100 }],
  });
  server.flag("inactive", when([]), { active: false });
  server.flag("page", when([]), { evaluationRuntime: "client" });
  server.flag("backend", when([]), { evaluationRuntime: "server" });
  server.people.db.$client.run("INSERT INTO group_type VALUES (1, 0, 'company', 0)");
});
afterAll(() => server[Symbol.dispose]());

const ofrepPath = "/ofrep/v1/evaluate/flags";
const origin = "https://shop.example";

async function ask(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await server.send(path, {
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json", ...headers },
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
    body: text === "" ? undefined : (JSON.parse(text) as any),
  };
}
const bodyFor = (targetingKey: unknown, more: object = {}) => ({ context: { targetingKey, ...more } });

describe("one flag", () => {
  const flags: [key: string, context: object, answer: object][] = [
    [
      "always",
      bodyFor("bob"),
      { value: true, reason: "STATIC", metadata: { payload: '{"a":[1]}', reason: "condition_match" } },
    ],
    [
      "never",
      bodyFor("bob"),
      { value: false, reason: "SPLIT", metadata: { reason: "out_of_rollout_bound" } },
    ],
    ["most", bodyFor("bob"), { value: true, reason: "SPLIT" }],
    ["pro", bodyFor("bob"), { value: false, reason: "UNKNOWN", metadata: { reason: "no_condition_match" } }],
    ["pro", bodyFor("ann"), { value: true, reason: "TARGETING_MATCH" }],
    ["pro", bodyFor("bob", { plan: "pro" }), { value: true, reason: "TARGETING_MATCH" }],
    ["pro", bodyFor("ann", { plan: "free" }), { value: false }],
    [
      "split",
      bodyFor("bob"),
      { value: "blue", variant: "blue", reason: "SPLIT", metadata: { payload: "7" } },
    ],
    ["off-split", bodyFor("bob"), { value: false, reason: "SPLIT" }],
    ["company", bodyFor("bob"), { value: false, reason: "UNKNOWN", metadata: { reason: "no_group_type" } }],
    ["company", bodyFor("bob", { groups: { company: "acme" } }), { value: true, reason: "STATIC" }],
    ["inactive", bodyFor("bob"), { value: false, reason: "DISABLED" }],
    ["backend", bodyFor("bob"), { value: true }],
  ];
  for (const [key, context, answer] of flags) {
    test(`${key} for ${JSON.stringify(context)}`, async () => {
      for (const path of [`${ofrepPath}/${key}`, `${ofrepPath}/${key}/`]) {
        const { status, body, headers } = await ask(path, context);
        expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
        expect(body).toMatchObject({ key, ...answer });
        // Of a flag without variants, and of one that is off, the value stands for the variant.
        expect(body.variant).toBe(String(body.value));
        expect(Number.isInteger(body.metadata.id) && Number.isInteger(body.metadata.version)).toBe(true);
      }
    });
  }

  const rejections: [name: string, key: string, body: unknown, status: number, errorCode: string][] = [
    ["an unknown flag", "nothing", bodyFor("bob"), 404, "FLAG_NOT_FOUND"],
    ["a flag for another runtime", "page", bodyFor("bob"), 404, "FLAG_NOT_FOUND"],
    ["no targeting key", "always", { context: { plan: "pro" } }, 400, "TARGETING_KEY_MISSING"],
    ["an empty targeting key", "always", bodyFor(""), 400, "TARGETING_KEY_MISSING"],
    ["no context", "always", {}, 400, "TARGETING_KEY_MISSING"],
    ["a targeting key that is no text", "always", bodyFor(7), 400, "INVALID_CONTEXT"],
    ["a context that is no object", "always", { context: [] }, 400, "INVALID_CONTEXT"],
    ["groups that are no object", "always", bodyFor("bob", { groups: "acme" }), 400, "INVALID_CONTEXT"],
    ["no JSON", "always", "{", 400, "PARSE_ERROR"],
    ["a list", "always", "[]", 400, "PARSE_ERROR"],
    ["nothing", "always", "", 400, "PARSE_ERROR"],
  ];
  test("an unreadable body is reported with a message about it", async () => {
    const said = async (sent: string) => (await ask(`${ofrepPath}/always`, sent)).body.errorDetails;
    expect(await said("")).toBe("the body is empty: send a JSON object");
    expect(await said('{"context":')).toBe("the body is not JSON: Unexpected EOF");
  });
  for (const [name, key, sent, expected, errorCode] of rejections) {
    test(`${name}: ${expected} ${errorCode}`, async () => {
      const { status, body } = await ask(`${ofrepPath}/${key}`, sent);
      expect(status).toBe(expected);
      expect(body).toEqual({ key, errorCode, errorDetails: expect.stringMatching(/./) });
    });
  }

  test("a flag that cannot be computed", async () => {
    using own = new TestEvaluation();
    const cohort = own.cohort({ name: "c", isStatic: true });
    own.flag("broken", when([inCohort(cohort)]));
    own.flag("whole", when([]));
    own.metadata.change((t) => t.run("UPDATE cohort SET deleted = 1"));
    own.metadata.db.$client.run("UPDATE revision SET value = value + 1");
    own.metadata.changes.expect();
    const send = (path: string) =>
      own.send(path, { body: JSON.stringify(bodyFor("bob")), headers: { "x-api-key": own.token } });
    const one = await send(`${ofrepPath}/broken`);
    expect([one.status, await one.json()]).toEqual([
      400,
      { key: "broken", errorCode: "GENERAL", errorDetails: expect.stringContaining("ohort") },
    ]);
    const all = await send(ofrepPath);
    expect(all.status).toBe(200);
    expect(((await all.json()) as { flags: object[] }).flags).toMatchObject([
      { key: "broken", errorCode: "GENERAL" },
      { key: "whole", value: true },
    ]);
  });
});

describe("all flags", () => {
  test("each as if evaluated alone, with a tag for which the next response is a 304", async () => {
    const { status, body, headers } = await ask(ofrepPath, bodyFor("ann"));
    expect(status).toBe(200);
    const keys = body.flags.map(({ key }: { key: string }) => key).sort();
    expect(keys).toEqual([
      "always",
      "backend",
      "company",
      "inactive",
      "most",
      "never",
      "off-split",
      "pro",
      "split",
    ]);
    for (const flag of body.flags)
      expect((await ask(`${ofrepPath}/${flag.key}`, bodyFor("ann"))).body).toEqual(flag);
    const etag = headers.get("etag")!;
    expect(etag).toMatch(/^(W\/)?"[^"]+"$/);
    for (const tag of [etag, etag.replace("W/", "")]) {
      const again = await ask(ofrepPath, bodyFor("ann"), { "if-none-match": tag });
      expect([again.status, again.body, again.headers.get("etag")]).toEqual([304, undefined, etag]);
    }
    // Another user's answer differs, and so does a later one.
    expect((await ask(ofrepPath, bodyFor("ann", { plan: "free" }), { "if-none-match": etag })).status).toBe(
      200,
    );
    server.flag("new", when([]));
    expect((await ask(ofrepPath, bodyFor("ann"), { "if-none-match": etag })).status).toBe(200);
  });

  test("pages get flags for pages", async () => {
    const { body, headers } = await ask(ofrepPath, bodyFor("ann"), { origin });
    const keys = body.flags.map(({ key }: { key: string }) => key);
    expect(keys).toContain("page");
    expect(keys).not.toContain("backend");
    expect(headers.get("access-control-allow-origin")).toBe(origin);
  });

  const node = { "user-agent": "node", "sec-fetch-mode": "cors" };
  const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36";
  const callers: [name: string, headers: Record<string, string>, sees: "page" | "backend"][] = [
    ["nothing that names the caller", {}, "backend"],
    ["Node's fetch", node, "backend"],
    ["an agent like a browser's", { "user-agent": chrome }, "backend"],
    ["a mobile library's agent", { "user-agent": "posthog-android/3.20.0" }, "backend"],
    [
      "the other headers of fetch metadata",
      { "sec-fetch-mode": "cors", "sec-fetch-dest": "empty", "sec-fetch-user": "?1" },
      "backend",
    ],
    ["Origin", { origin }, "page"],
    ["Origin of a page without one", { ...node, origin: "null" }, "page"],
    ["Referer", { referer: `${origin}/cart` }, "page"],
    ["Sec-Fetch-Site", { "sec-fetch-site": "cross-site" }, "page"],
    ["Origin with a server library's agent", { origin, "user-agent": "curl/8.5.0" }, "page"],
  ];
  for (const [name, headers, sees] of callers) {
    test(`the runtime by ${name}: ${sees === "page" ? "client" : "server"}`, async () => {
      const hidden = sees === "page" ? "backend" : "page";
      const keys = (await ask(ofrepPath, bodyFor("ann"), headers)).body.flags.map(
        ({ key }: { key: string }) => key,
      );
      expect([keys.includes(sees), keys.includes(hidden)]).toEqual([true, false]);
      expect((await ask(`${ofrepPath}/${sees}`, bodyFor("ann"), headers)).status).toBe(200);
      expect((await ask(`${ofrepPath}/${hidden}`, bodyFor("ann"), headers)).status).toBe(404);
    });
  }

  test("each reason is one of the protocol's schema", async () => {
    const known = ["STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED", "UNKNOWN"];
    for (const context of [bodyFor("ann"), bodyFor("bob"), bodyFor("bob", { groups: { company: "acme" } })]) {
      const { body } = await ask(ofrepPath, context);
      for (const { key, reason } of body.flags) expect([key, known.includes(reason)]).toEqual([key, true]);
    }
  });

  test("rejections name no flag", async () => {
    const { status, body } = await ask(ofrepPath, { context: {} });
    expect([status, body]).toEqual([
      400,
      { errorCode: "TARGETING_KEY_MISSING", errorDetails: expect.stringMatching(/./) },
    ]);
  });
});

describe("changes", () => {
  const EVENTS = "/ofrep/v1/events";

  /** Reads a stream up to a text; fails when it ends before. */
  async function readUntil(reader: { read(): Promise<{ done: boolean; value?: Uint8Array }> }, end: string) {
    let text = "";
    while (!text.includes(end)) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`The stream ended after ${JSON.stringify(text)}.`);
      text += new TextDecoder().decode(value);
    }
    return text;
  }
  const serving = (events: FlagEvents) =>
    createApp({
      guard: undefined as never,
      log: { error: () => {} },
      origins: new TrustedProxies([]),
      routes: events.routes(),
    });
  const open = (own: TestEvaluation, headers: Record<string, string> = {}, path?: string) =>
    own.send(path ?? `${EVENTS}?key=${own.token}`, { method: "GET", headers });

  test("the response with all flags names the event stream, and each change is sent once", async () => {
    using own = new TestEvaluation();
    const flag = own.flag("a", when([]));
    const all = await own.send(ofrepPath, {
      body: JSON.stringify(bodyFor("bob")),
      headers: { "x-api-key": own.token },
    });
    const { eventStreams } = (await all.json()) as { eventStreams: { endpoint: { requestUri: string } }[] };
    expect(eventStreams).toMatchObject([{ type: "sse", inactivityDelaySec: 120 }]);
    const response = await open(own, { origin }, eventStreams[0]!.endpoint.requestUri);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    const reader = response.body!.getReader();
    expect(await readUntil(reader, "\n\n")).not.toContain("data:");
    own.change(flag, { active: false });
    const reported = await readUntil(reader, "data: ");
    const data = JSON.parse(/data: (.*)/.exec(reported)![1]!) as { type: string; etag: string };
    expect(data).toEqual({ type: "refetchEvaluation", etag: `"${/^id: (.*)$/m.exec(reported)![1]!}"` });
    own.flag("b", when([]));
    expect(/^id: (.*)$/m.exec(await readUntil(reader, "data: "))![1]).not.toBe(data.etag);
    await reader.cancel();
  });

  test("a reconnecting client gets what it missed, and nothing if it missed nothing", async () => {
    using own = new TestEvaluation();
    const flag = own.flag("a", when([]));
    const first = (await open(own)).body!.getReader();
    const id = /^id: (.*)$/m.exec(await readUntil(first, "\n\n"))![1]!;
    await first.cancel();
    const same = (await open(own, { "last-event-id": id })).body!.getReader();
    expect(await readUntil(same, "\n\n")).not.toContain("data:");
    await same.cancel();
    own.change(flag, { active: false });
    const missed = (await open(own, { "last-event-id": id })).body!.getReader();
    expect(await readUntil(missed, "data: ")).toContain("event: message");
    await missed.cancel();
  });

  test("a wrong key, a wrong method, and streams beyond the limit", async () => {
    using own = new TestEvaluation();
    expect((await open(own, {}, EVENTS)).status).toBe(401);
    expect((await open(own, {}, `${EVENTS}?key=phc_nobody`)).status).toBe(401);
    expect((await own.send(`${EVENTS}?key=${own.token}`)).status).toBe(405);
    const project = own.metadata.projects.findByToken(own.token)!;
    const events = new FlagEvents({
      projects: own.metadata.projects,
      configurationOf: () => "1.0",
      publicUrl: "https://flags.example/keep/",
      streamsMax: 2,
    });
    const app = serving(events);
    const ask = () => app.handle(new Request(`http://localhost${EVENTS}?key=${own.token}`));
    expect(events.connections(project, "http://localhost")).toEqual([
      {
        type: "sse",
        url: `https://flags.example/keep/ofrep/v1/events?key=${own.token}`,
        inactivityDelaySec: 120,
      },
    ]);
    const streams = [await ask(), await ask()];
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    const rejected = await ask();
    expect([rejected.status, rejected.headers.get("retry-after")]).toEqual([503, "60"]);
    // No one is sent to where there is no place.
    expect(events.connections(project, "http://localhost")).toBeUndefined();
    for (const { body } of streams) await body!.cancel();
    expect(events.connections(project, "http://localhost")).toBeDefined();
  });

  test("a stream ends with the key that it was opened with", async () => {
    using own = new TestEvaluation();
    const former = (await open(own)).body!.getReader();
    const { apiToken } = rotateProjectKey(own.metadata, 1, null, { graceSeconds: 60 });
    const inGrace = (await open(own)).body!.getReader();
    const present = (await open(own, {}, `${EVENTS}?key=${apiToken}`)).body!.getReader();
    for (const reader of [former, inGrace, present]) await readUntil(reader, "\n\n");
    revokePreviousKey(own.metadata, 1, "public", null);
    let ended = 0;
    for (const reader of [former, inGrace]) void readUntil(reader, "never").catch(() => ended++);
    await until(() => ended === 2, "the streams of the former key have ended");
    own.flag("a", when([]));
    expect(await readUntil(present, "data: ")).toContain("refetchEvaluation");
    await present.cancel();
  });

  test("streams end when the server stops", async () => {
    using own = new TestEvaluation();
    const stopping = new AbortController();
    const events = new FlagEvents({
      projects: own.metadata.projects,
      configurationOf: () => "1.0",
      stopping: stopping.signal,
    });
    const response = await serving(events).handle(new Request(`http://localhost${EVENTS}?key=${own.token}`));
    stopping.abort();
    expect(await response.text()).toContain("id: 1.0");
  });
});

describe("keys, methods, encodings", () => {
  test("the project's key as a Bearer token or as X-API-Key; nothing else", async () => {
    const status = async (headers: Record<string, string>) =>
      (await server.send(ofrepPath, { body: JSON.stringify(bodyFor("a")), headers: { origin, ...headers } }))
        .status;
    expect(await status({ authorization: `Bearer ${server.token}` })).toBe(200);
    expect(await status({ "x-api-key": server.token })).toBe(200);
    expect(await status({})).toBe(401);
    expect(await status({ authorization: "Bearer phc_nobody" })).toBe(401);
    expect(await status({ authorization: `Basic ${server.token}` })).toBe(401);
    expect(await status({ "x-api-key": server.initialized.personal_api_key })).toBe(401);
    expect(await status({ authorization: `Bearer ${server.initialized.project.secret_api_key}` })).toBe(401);
  });

  test("a browser's question, and methods that are not there", async () => {
    for (const path of [ofrepPath, `${ofrepPath}/always`]) {
      const question = await server.send(path, {
        method: "OPTIONS",
        headers: {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "x-api-key",
        },
      });
      expect(question.status).toBe(204);
      expect(question.headers.get("access-control-allow-headers")).toBe("x-api-key");
      expect((await server.send(path, { method: "GET" })).status).toBe(405);
    }
  });

  test("gzip", async () => {
    const response = await server.send(`${ofrepPath}/always`, {
      body: gzipSync(JSON.stringify(bodyFor("a"))) as never,
      headers: { "x-api-key": server.token, "content-encoding": "gzip" },
    });
    expect(await response.json()).toMatchObject({ key: "always", value: true });
  });

  test("none of these was a defect", () => expect(server.errors).toEqual([]));
});
