/** Every way in which a client library asks for flags, and every rejection it may get. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { when } from "../../make.ts";
import { TestEvaluation } from "../support.ts";

let server: TestEvaluation;
beforeAll(() => {
  server = new TestEvaluation();
  server.flag("on", { ...when([]), payloads: { true: '{"a":1}' } }, { name: "For everybody" });
  server.flag("off", when([], 0));
  server.flag("split", {
    ...when([]),
    multivariate: {
      variants: [
        { key: "control", rollout_percentage: 0 },
        { key: "test", rollout_percentage: 100 },
      ],
    },
    payloads: { test: '"x"' },
  });
  server.flag("inactive", when([]), { active: false });
  server.flag("plan", when([{ key: "plan", type: "person", operator: "exact", value: "pro" }]));
});
afterAll(() => server[Symbol.dispose]());

const asked = () => ({ token: server.token, distinct_id: "u1", person_properties: { plan: "pro" } });
const askedText = () => JSON.stringify(asked());
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString("base64");
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
const formType = "application/x-www-form-urlencoded";

/** The values of a detailed answer. */
async function getValues(response: Response): Promise<Record<string, unknown>> {
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/json");
  const { flags } = (await response.json()) as {
    flags: Record<string, { enabled: boolean; variant: string | null }>;
  };
  return Object.fromEntries(Object.entries(flags).map(([key, flag]) => [key, flag.variant ?? flag.enabled]));
}
const someValues = { on: true, off: false, split: "test", plan: true };

describe("encodings", () => {
  const encodings: {
    name: string;
    body: () => string | Uint8Array;
    query?: string;
    headers?: Record<string, string>;
  }[] = [
    { name: "JSON", body: askedText, headers: { "content-type": "application/json" } },
    {
      name: "JSON with a charset",
      body: askedText,
      headers: { "content-type": "application/json; charset=utf-8" },
    },
    { name: "JSON without a content type", body: () => Buffer.from(askedText()) },
    { name: "JSON as text/plain", body: askedText, headers: { "content-type": "text/plain" } },
    { name: "JSON under the content type of a form", body: askedText, headers: { "content-type": formType } },
    {
      name: "gzip told by its first bytes only",
      body: () => gzipSync(askedText()),
      headers: { "content-type": "text/plain" },
    },
    {
      name: "gzip with Content-Encoding",
      body: () => gzipSync(askedText()),
      headers: { "content-encoding": "gzip", "content-type": "application/json" },
    },
    {
      name: "gzip with compression=gzip-js",
      body: () => gzipSync(askedText()),
      query: "&compression=gzip-js",
      headers: { "content-type": "text/plain" },
    },
    { name: "plain JSON with compression=gzip", body: askedText, query: "&compression=gzip" },
    {
      name: "plain JSON with Content-Encoding: gzip",
      body: askedText,
      headers: { "content-encoding": "gzip" },
    },
    { name: "deflate", body: () => deflateSync(askedText()), headers: { "content-encoding": "deflate" } },
    { name: "br", body: () => brotliCompressSync(askedText()), headers: { "content-encoding": "br" } },
    { name: "zstd", body: () => zstdCompressSync(askedText()), headers: { "content-encoding": "zstd" } },
    {
      name: "base64 form",
      body: () => form({ data: base64(askedText()) }),
      headers: { "content-type": formType },
      query: "&compression=base64",
    },
    {
      name: "base64 form with plus signs that became spaces",
      body: () => `data=${base64(JSON.stringify({ ...asked(), x: "~~~>>>???" })).replaceAll("+", " ")}`,
      headers: { "content-type": formType },
    },
    {
      name: "base64 form that is not escaped",
      body: () => `data=${base64(askedText())}`,
      headers: { "content-type": formType },
    },
    {
      name: "JSON form",
      body: () => form({ data: askedText() }),
      headers: { "content-type": formType },
    },
    { name: "bare base64", body: () => base64(askedText()), query: "&compression=base64" },
    { name: "bare base64 without a hint", body: () => base64(askedText().padEnd(300)) },
    {
      name: "gzip inside of a base64 form",
      body: () => form({ data: base64(gzipSync(askedText())) }),
      headers: { "content-type": formType },
    },
  ];
  for (const { name, body, query = "", headers = {} } of encodings) {
    for (const path of ["/flags/", "/flags"]) {
      test(`${name} to ${path}`, async () => {
        const response = await server.send(`${path}?v=2${query}`, {
          body: body() as never,
          headers: { "user-agent": "posthog-node/5", ...headers },
        });
        expect(await getValues(response)).toEqual(someValues);
      });
    }
  }

  test("a body in chunks, without a length", async () => {
    const text = askedText();
    const stream = new ReadableStream({
      start(controller) {
        for (const part of [text.slice(0, 10), text.slice(10)]) controller.enqueue(Buffer.from(part));
        controller.close();
      },
    });
    expect(await getValues(await server.send("/flags/?v=2", { body: stream }))).toEqual(someValues);
  });

  test("bare NaN and Infinity count as null", async () => {
    const text = `{"token":"${server.token}","distinct_id":"NaN","groups":NaN,"person_properties":{"plan":"pro","n":-Infinity,"m":[NaN,Infinity]}}`;
    expect(await getValues(await server.send("/flags/?v=2", { body: text }))).toEqual(someValues);
  });

  test("white space and a byte order mark around the JSON", async () => {
    const body = `\n ${askedText()} \n`;
    expect(await getValues(await server.send("/flags/?v=2", { body }))).toEqual(someValues);
  });
});

describe("fields", () => {
  const requests: { name: string; body: (token: string) => Record<string, unknown>; plan?: boolean }[] = [
    { name: "token", body: (token) => ({ token, distinct_id: "a" }), plan: false },
    { name: "api_key", body: (token) => ({ api_key: token, distinct_id: "a" }), plan: false },
    { name: "$token", body: (token) => ({ $token: token, distinct_id: "a" }), plan: false },
    { name: "$distinct_id", body: (token) => ({ token, $distinct_id: "a" }), plan: false },
    { name: "a number as distinct id", body: (token) => ({ token, distinct_id: 12 }), plan: false },
    {
      name: "$properties",
      body: (token) => ({ token, distinct_id: "a", $properties: { plan: "pro" } }),
      plan: true,
    },
    {
      name: "null everywhere",
      body: (token) => ({
        token,
        distinct_id: "a",
        groups: null,
        person_properties: null,
        group_properties: null,
        $anon_distinct_id: null,
        device_id: null,
        $device_id: null,
        geoip_disable: null,
        flag_keys: null,
        flag_keys_to_evaluate: null,
        evaluation_contexts: null,
        evaluation_runtime: null,
        disable_flags: null,
        timezone: null,
        sent_at: null,
      }),
      plan: false,
    },
    {
      name: "empty lists in place of objects, as PHP writes them",
      body: (token) => ({
        token,
        distinct_id: "a",
        groups: [],
        person_properties: [],
        group_properties: [],
        flag_keys: [],
        evaluation_contexts: [],
      }),
      plan: false,
    },
    {
      name: "unknown fields",
      body: (token) => ({ token, distinct_id: "a", properties: { x: 1 }, timestamp: "now", x: {} }),
      plan: false,
    },
    {
      name: "null aliases beside the real ones",
      body: (token) => ({ token: null, api_key: token, distinct_id: null, $distinct_id: "a" }),
      plan: false,
    },
  ];
  for (const { name, body, plan } of requests) {
    test(name, async () => {
      const response = await server.send("/flags/?v=2", {
        body: JSON.stringify(body(server.token)),
      });
      expect(await getValues(response)).toEqual({ ...someValues, plan });
    });
  }

  test("an empty distinct id is accepted, and is within every rollout", async () => {
    expect(await server.values({ distinct_id: "" })).toEqual({ ...someValues, off: true, plan: false });
  });

  test("disable_flags: no flags, no distinct id needed", async () => {
    for (const disable_flags of [true, "true", 1]) {
      expect(await server.ask({ disable_flags })).toEqual({
        errorsWhileComputingFlags: false,
        flags: {},
        requestId: expect.any(String),
        evaluatedAt: Date.parse("2026-03-01T12:00:00Z"),
      });
    }
    const withConfig = await server.ask({ disable_flags: true }, "/flags/?v=2&config=true");
    expect(withConfig).toMatchObject({ flags: {}, hasFeatureFlags: true });
  });

  test("flag_keys and its alias: these and nothing else; unknown keys are ignored", async () => {
    for (const name of ["flag_keys", "flag_keys_to_evaluate"]) {
      expect(await server.values({ distinct_id: "a", [name]: ["on", "no such flag", 7] })).toEqual({
        on: true,
      });
      expect(await server.values({ distinct_id: "a", [name]: [] })).toEqual({ ...someValues, plan: false });
    }
  });

  test("a distinct id counts whole, however long", async () => {
    const long = "x".repeat(5_000);
    const flag = server.flag("half", when([], 50));
    const values = [];
    for (let n = 0; n < 20; n++) values.push((await server.values({ distinct_id: `${long}${n}` })).half);
    expect(new Set(values).size).toBe(2);
    server.change(flag, { deleted: true });
  });

  test("a number is hashed in the spelling it was sent in", async () => {
    const flag = server.flag("half", when([], 50));
    const seen: unknown[][] = [];
    for (const digits of ["12345678901234567891", "12345678901234567892", "98765432109876543210", "7.0"]) {
      const number = await server.send("/flags/?v=2", {
        body: `{"token":"${server.token}","distinct_id":${digits}}`,
      });
      const text = await server.values({ distinct_id: digits });
      seen.push([((await getValues(number)) as Record<string, unknown>).half, text.half]);
    }
    for (const [number, text] of seen) expect(number).toBe(text as boolean);
    server.change(flag, { deleted: true });
  });
});

describe("refusals", () => {
  const NO_TOKEN = {
    type: "authentication_error",
    code: "not_authenticated",
    detail: "No API token provided. Please include a valid API token in your request.",
    attr: null,
  };
  const BAD_TOKEN = {
    type: "authentication_error",
    code: "authentication_failed",
    detail: "The provided API key is invalid or has expired. Please check your API key and try again.",
    attr: null,
  };
  const tokens: { name: string; body: () => Record<string, unknown>; answer: object }[] = [
    { name: "no key", body: () => ({ distinct_id: "a" }), answer: NO_TOKEN },
    { name: "no key and no id", body: () => ({}), answer: NO_TOKEN },
    { name: "an empty key", body: () => ({ token: "", distinct_id: "a" }), answer: NO_TOKEN },
    { name: "a key that is no text", body: () => ({ token: 5, distinct_id: "a" }), answer: NO_TOKEN },
    { name: "an unknown key", body: () => ({ token: "phc_nobody", distinct_id: "a" }), answer: BAD_TOKEN },
    { name: "an unknown key and no id", body: () => ({ token: "phc_nobody" }), answer: BAD_TOKEN },
    {
      name: "a personal key",
      body: () => ({ token: server.initialized.personal_api_key, distinct_id: "a" }),
      answer: BAD_TOKEN,
    },
    {
      name: "the project's secret key",
      body: () => ({ token: server.initialized.project.secret_api_key, distinct_id: "a" }),
      answer: BAD_TOKEN,
    },
  ];
  for (const { name, body, answer } of tokens) {
    for (const path of ["/flags/?v=2", "/decide/?v=3"]) {
      test(`${name} on ${path}: 401`, async () => {
        const response = await server.send(path, {
          body: JSON.stringify(body()),
          headers: { origin: "https://shop.example" },
        });
        expect(response.status).toBe(401);
        expect(await response.json()).toEqual(answer);
        expect(response.headers.get("access-control-allow-origin")).toBe("https://shop.example");
      });
    }
  }

  const bodies: { name: string; body: string | Uint8Array; contentType?: string; says: RegExp }[] = [
    {
      name: "an empty body",
      body: "",
      says: /^Failed to decode request: the body is empty: send a JSON object\. Please check your request format and try again\.$/,
    },
    { name: "no JSON", body: "hello {", says: /^Failed to decode request: the body is not JSON: \w/ },
    { name: "a list", body: "[]", says: /^Failed to decode request: / },
    { name: "a text", body: '"x"', says: /^Failed to decode request: / },
    { name: "null", body: "null", says: /^Failed to decode request: / },
    {
      name: "half an object",
      body: '{"token":',
      says: /^Failed to decode request: the body is not JSON: Unexpected EOF\. /,
    },
    {
      name: "corrupt gzip",
      body: new Uint8Array([0x1f, 0x8b, 8, 0, 1]),
      says: /^Failed to decode request: /,
    },
    { name: "XML", body: "{}", contentType: "application/xml", says: /unsupported content type/ },
    { name: "an upload", body: "{}", contentType: "multipart/form-data; boundary=x", says: /unsupported/ },
  ];
  for (const { name, body, contentType, says } of bodies) {
    test(`${name}: 400 in words`, async () => {
      const response = await server.send("/flags/?v=2", {
        body: body as never,
        headers: { origin: "https://shop.example", ...(contentType ? { "content-type": contentType } : {}) },
      });
      expect(response.status).toBe(400);
      expect(response.headers.get("content-type")).toContain("text/plain");
      expect(await response.text()).toMatch(says);
      expect(response.headers.get("access-control-allow-origin")).toBe("https://shop.example");
    });
  }

  test("no distinct id: 400 in words", async () => {
    for (const distinct_id of [undefined, null]) {
      const response = await server.send("/flags/", {
        body: JSON.stringify({ token: server.token, distinct_id }),
      });
      expect(response.status).toBe(400);
      expect(await response.text()).toBe(
        "The distinct_id field is missing from the request. Please include a valid identifier.",
      );
    }
  });

  test("a body over the limit, as sent or unpacked: 413", async () => {
    const large = JSON.stringify({ ...asked(), x: "x".repeat(1024 * 1024) });
    for (const body of [large, gzipSync(large)]) {
      const response = await server.send("/flags/?v=2", { body: body as never });
      expect(response.status).toBe(413);
      const { detail } = (await response.json()) as { detail: string };
      expect(detail).toMatch(/^the request is larger than \d+ bytes$/);
    }
  });

  test("none of these was a defect", () => expect(server.errors).toEqual([]));
});

describe("methods", () => {
  const paths = ["/flags", "/flags/", "/decide", "/decide/"];
  const origin = "https://shop.example";

  for (const path of paths) {
    test(`GET ${path} has no distinct id and returns no flags`, async () => {
      const response = await server.send(path, { method: "GET", headers: { origin } });
      expect(response.status).toBe(200);
      expect(response.headers.get("access-control-allow-origin")).toBe(origin);
      const body = (await response.json()) as Record<string, unknown>;
      expect(body).toMatchObject({
        supportedCompression: ["gzip", "gzip-js"],
        config: { enable_collect_everything: true },
        toolbarParams: {},
        isAuthenticated: false,
        sessionRecording: false,
      });
      expect(body.flags ?? body.featureFlags).toEqual(path.startsWith("/flags") ? {} : []);
    });

    test(`HEAD ${path}`, async () => {
      const response = await server.send(path, { method: "HEAD" });
      expect([response.status, await response.text()]).toEqual([200, ""]);
    });

    for (const method of ["PUT", "PATCH", "DELETE"]) {
      test(`${method} ${path} is rejected`, async () => {
        const response = await server.send(path, { method, headers: { origin } });
        expect(response.status).toBe(405);
        expect(response.headers.get("allow")).toBe("GET, POST, HEAD, OPTIONS");
        expect(response.headers.get("access-control-allow-origin")).toBe(origin);
      });
    }

    test(`a browser's question before POST ${path}`, async () => {
      const response = await server.send(`${path}?v=2`, {
        method: "OPTIONS",
        headers: {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "content-encoding,content-type,x-anything",
        },
      });
      expect([response.status, await response.text()]).toEqual([204, ""]);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        allow: "GET, POST, HEAD, OPTIONS",
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "access-control-allow-headers": "content-encoding,content-type,x-anything",
        "access-control-allow-methods": expect.stringContaining("POST"),
      });
    });
  }

  test("a page on another origin may read the response", async () => {
    const response = await server.send("/flags/?v=2", { body: askedText(), headers: { origin } });
    expect(response.headers.get("access-control-allow-origin")).toBe(origin);
    expect(response.headers.get("access-control-allow-credentials")).toBe("true");
    expect(response.headers.get("vary")).toContain("Origin");
  });
});
