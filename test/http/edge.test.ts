/** One edge for every route: what must hold alike for capture, flag requests, OpenFeature and management. */

import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import type { ServerProcess } from "../support/server.ts";
import { expectWithin } from "../support/times.ts";
import { server, useServer } from "../support/use-server.ts";

useServer({ args: ["--body-limit", "64KiB"] });

interface Kind {
  path: string;
  /** A request that succeeds; `padding` makes it longer. */
  body: (token: string, padding?: string) => Record<string, unknown>;
  headers?: (server: ServerProcess) => Record<string, string>;
  status?: number;
}

let names = 0;
const kinds: Record<string, Kind> = {
  capture: {
    path: "/capture/",
    body: (api_key, x = "") => ({ api_key, event: "e", distinct_id: "d", properties: { x } }),
  },
  batch: {
    path: "/batch/",
    body: (api_key, x = "") => ({ api_key, batch: [{ event: "e", distinct_id: "d", properties: { x } }] }),
  },
  "newer capture": {
    path: "/i/v1/analytics/events",
    body: (_, x = "") => ({ batch: [{ event: "e", distinct_id: "d", properties: { x } }] }),
    headers: ({ token }) => ({ Authorization: `Bearer ${token}` }),
  },
  flags: { path: "/flags/?v=2", body: (token, x = "") => ({ token, distinct_id: "d", x }) },
  decide: { path: "/decide/?v=3", body: (token, x = "") => ({ token, distinct_id: "d", x }) },
  OpenFeature: {
    path: "/ofrep/v1/evaluate/flags",
    body: (_, x = "") => ({ context: { targetingKey: "d", x } }),
    headers: ({ token }) => ({ Authorization: `Bearer ${token}` }),
  },
  management: {
    path: "/api/projects/1/feature_flags/",
    body: (_, x = "") => ({ key: `flag-${++names}`, name: x.slice(0, 10), filters: { groups: [], x } }),
    headers: ({ initialized }) => ({ Authorization: `Bearer ${initialized.personal_api_key}` }),
    status: 201,
  },
};

async function send(kind: Kind, body: string | Uint8Array, headers: Record<string, string> = {}) {
  return await fetch(server.url + kind.path, {
    method: "POST",
    body: body as never,
    headers: { "Content-Type": "application/json", ...kind.headers?.(server), ...headers },
  });
}

const encodings: Record<string, (text: string) => Uint8Array> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};

describe.each(Object.entries(kinds))("%s", (_, kind) => {
  const text = (padding?: string) => JSON.stringify(kind.body(server.token, padding));

  test("accepts a body, plain and in every encoding", async () => {
    expect((await send(kind, text())).status).toBe(kind.status ?? 200);
    for (const [coding, pack] of Object.entries(encodings)) {
      const answer = await send(kind, pack(text()), { "Content-Encoding": coding });
      expect([coding, answer.status]).toEqual([coding, kind.status ?? 200]);
    }
  });

  test("has the limit of size that was set, as sent and unpacked", async () => {
    const large = text("x".repeat(200_000));
    expect((await send(kind, large)).status).toBe(413);
    for (const [coding, pack] of Object.entries(encodings)) {
      const answer = await send(kind, pack(large), { "Content-Encoding": coding });
      expect([coding, answer.status]).toEqual([coding, 413]);
    }
    expect((await send(kind, text("x".repeat(50_000)))).status).toBe(kind.status ?? 200);
  });

  test("gives every response an id, the client's if valid, and forbids content sniffing", async () => {
    for (const [body, headers] of [
      [text(), {}],
      ["{", {}],
      [text(), { Authorization: "Bearer nobody" }],
      ["x".repeat(200_000), {}],
    ] as const) {
      const answer = await send(kind, body, headers);
      expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      const named = await send(kind, body, { ...headers, "X-Request-Id": "my-id" });
      expect(named.headers.get("x-request-id")).toBe("my-id");
    }
    const path = kind.path.split("?")[0]!;
    for (const method of ["PUT", "DELETE", "OPTIONS", "PROPFIND"]) {
      const answer = await fetch(server.url + path, { method });
      expect(answer.headers.get("x-request-id")).toMatch(/./);
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      if (method !== "OPTIONS") expect([401, 405]).toContain(answer.status);
    }
  });

  test("allows pages to read every response", async () => {
    const origin = "https://shop.example";
    for (const body of [text(), "{", "x".repeat(200_000)]) {
      const answer = await send(kind, body, { Origin: origin });
      expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
      expect(answer.headers.get("vary")).toContain("Origin");
      expect(answer.headers.get("access-control-expose-headers")).toContain("X-Request-Id");
    }
    const question = await fetch(server.url + kind.path, {
      method: "OPTIONS",
      headers: { Origin: origin, "Access-Control-Request-Method": "POST" },
    });
    expect(question.status).toBeLessThan(300);
    expect(question.headers.get("access-control-allow-methods")).toContain("POST");
  });

  test("is in the documentation", async () => {
    const document = (await (await fetch(`${server.url}/api/schema/`)).json()) as {
      paths: Record<string, Record<string, unknown>>;
    };
    const path = kind.path.split("?")[0]!.replace("/1/", "/{project_id}/").replace(/\/?$/, "/");
    expect(document.paths[path]).toHaveProperty("post");
  });
});

/** What comes back for bytes. */
function exchange(bytes: string): Promise<string> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let answer = "";
    const end = setTimeout(() => socket.destroy(), 5_000);
    socket.on("data", (chunk) => {
      answer += chunk;
      socket.end();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(end);
      resolve(answer);
    });
  });
}

describe("an invalid address", () => {
  const hosts = [
    "",
    " ",
    "%%%",
    "a:99999999",
    "a:-1",
    "a:b",
    "[::1",
    "[",
    "]",
    "::1",
    "a b",
    "a@b",
    "x/y",
    "x?y",
    "x#y",
    "http://x",
    "a,b",
    "<script>",
    "\u00e4",
    "a:",
    ":80",
    ".".repeat(300),
    "a\\b",
    "^",
    "|",
    "{}",
    "\t",
  ];
  for (const path of [
    "/",
    "/capture/",
    "/flags/?v=2",
    "/api/projects/1/feature_flags/",
    "/_liveness",
    "/nothing",
  ]) {
    test(path, async () => {
      for (const host of hosts) {
        const answer = await exchange(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
        const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
        expect([host, status < 500, answer.length < 2_000]).toEqual([host, true, true]);
        expect(answer).not.toMatch(/<html|\bat .*:\d+:\d+|node_modules|\.ts\b/);
      }
    });
  }

  const bad = [
    "%%%",
    "a:99999999",
    "xn--",
    "XN--",
    "xn--.a.test",
    "a.xn--",
    "xn--:80",
    "999.1.1.1",
    "1.2.3.4.5",
  ];
  for (const head of [
    "HTTP/1.0\r\n",
    ...[...bad, "0xffffffffff", "a,b"].map((host) => `HTTP/1.1\r\nHost: ${host}\r\n`),
    "HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
    "HTTP/1.1\r\nHost: a\r\nhost: a\r\n",
  ])
    test(`is rejected as invalid: ${JSON.stringify(head)}`, async () => {
      for (const path of ["/", "/docs", "/_liveness", "/batch/", "/api/projects/", "/nothing"]) {
        const answer = await exchange(`GET ${path} ${head}Connection: close\r\n\r\n`);
        expect(answer).toStartWith("HTTP/1.1 400");
        expect(answer).toContain("invalid_host");
        expect(answer).toContain("nosniff");
      }
    });

  test("valid hosts are accepted", async () => {
    for (const host of ["xn--mnchen-3ya.de", "localhost:8000", "127.0.0.1", "[::1]:80", "a_b.test"]) {
      const answer = await exchange(`GET /_liveness HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect([host, answer.slice(0, 12)]).toEqual([host, "HTTP/1.1 200"]);
    }
  });
});

test("responses of the management API are not cached, unless they declare it", async () => {
  const headers = { Authorization: `Bearer ${server.initialized.personal_api_key}` };
  const getCaching = async (path: string, init: RequestInit = { headers }) =>
    (await fetch(server.url + path, init)).headers.get("cache-control");
  const paths = [
    "projects/1/feature_flags/",
    "projects/1/persons/",
    "projects/1/events/",
    "projects/1/nothing/",
    "users/@me/",
    "personal_api_keys/",
    "instance/status/",
    "organizations/@current/members/",
  ];
  for (const path of paths) {
    for (const method of ["GET", "HEAD"])
      expect([path, await getCaching(`/api/${path}`, { headers, method })]).toEqual([path, "no-store"]);
    expect([path, await getCaching(`/api/${path}`, {})]).toEqual([path, "no-store"]);
  }
  const query = JSON.stringify({ query: "SELECT 1" });
  for (const accept of ["application/json", "text/csv"]) {
    const asked = { ...headers, Accept: accept, "Content-Type": "application/json" };
    const path = "/api/projects/1/query/";
    expect(await getCaching(path, { method: "POST", headers: asked, body: query })).toBe("no-store");
  }
  expect(await getCaching("/api/projects/1/feature_flags/local_evaluation/")).toBe(
    "private, must-revalidate",
  );
  expect(await getCaching("/static/array.js")).toStartWith("public");
});

describe.each(Object.entries(kinds))("%s with a repeated length", (_, kind) => {
  const request = (lengths: readonly number[]) => {
    const body = JSON.stringify(kind.body(server.token));
    const headers = { "Content-Type": "application/json", ...kind.headers?.(server) };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const said = lengths.map((more) => `Content-Length: ${body.length + more}\r\n`);
    return `POST ${kind.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${head.join("")}${said.join("")}\r\n${body}`;
  };

  test("equal ones are accepted, different ones rejected", async () => {
    expect(await exchange(request([0, 0]))).toStartWith(`HTTP/1.1 ${kind.status ?? 200}`);
    expect(await exchange(request([0, 0, 0]))).toStartWith(`HTTP/1.1 ${kind.status ?? 200}`);
    expect(await exchange(request([0, -1]))).toStartWith("HTTP/1.1 400");
  });
});

test("parts of a path that are no text are the names of nothing", async () => {
  const key = server.initialized.personal_api_key;
  const paths = [
    "/array/*/config",
    "/array/*/config.js",
    "/array/*/array.js",
    "/static/*",
    "/api/instance/downloads/*",
    "/api/projects/*/",
    "/api/projects/*/feature_flags/",
    "/api/projects/1/feature_flags/*/",
    "/api/organizations/*/",
    "/api/organizations/*/projects/1/",
    "/api/personal_api_keys/*/",
    "/api/projects/1/events/*/",
    "/api/projects/1/persons/*/",
    "/api/projects/1/imports/*/",
  ];
  for (const path of paths) {
    for (const part of ["%ff", "%", "%zz", "%c0%80", "%e0%a4%a", "%ed%a0%80"]) {
      const address = path.replace("*", part);
      const head = `Host: x\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`;
      const answer = await exchange(`GET ${address} HTTP/1.1\r\n${head}`);
      expect([address, answer.slice(0, 12)]).toEqual([address, "HTTP/1.1 404"]);
    }
  }
  const openFeature = await fetch(`${server.url}/ofrep/v1/evaluate/flags/%ff`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${server.token}` },
    body: JSON.stringify({ context: { targetingKey: "d" } }),
  });
  expect(openFeature.status).toBe(404);
});

test("unknown methods are rejected, on existing and missing paths", async () => {
  for (const path of ["/capture/", "/flags/", "/static/array.js", "/api/projects/", "/nothing/at/all"]) {
    for (const method of ["PROPFIND", "TRACE", "LINK", "QUERY", "M-SEARCH", "PURGE", "SUBSCRIBE"]) {
      const answer = await exchange(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect([method, path, answer.slice(0, 12)]).toEqual([
        method,
        path,
        expect.stringMatching(/^HTTP\/1\.1 (?:401|404|405)/) as unknown as string,
      ]);
    }
  }
});

test("JSON that is nested a million times is rejected before it is parsed", async () => {
  for (const kind of Object.values(kinds)) {
    for (const part of ["[", '{"a":', '[{"a":', '"\\"[",[']) {
      const body = `{"x":${part.repeat(Math.floor(60_000 / part.length))}`;
      await expectWithin(1_000, async () => {
        const answer = await send(kind, body);
        expect([kind.path, answer.status]).toEqual([kind.path, 400]);
      });
    }
  }
});
