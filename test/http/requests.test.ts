/** What holds for every management route: addresses, methods, bodies, failures, pages, origins, limits. */

import { describe, expect, test } from "bun:test";
import { InvalidFlagError } from "../../src/flags/rules/errors.ts";
import { defaultRateLimits, RateLimiter } from "../../src/http/rate-limit.ts";
import { publicRoute } from "../../src/http/route.ts";
import {
  AppError,
  EditConflictError,
  InvalidFieldError,
  NotFoundError,
  PermissionDeniedError,
} from "../../src/lib/errors.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";

const failing = publicRoute("GET", "/api/boom", {
  summary: "Fail",
  tag: "Test",
  answers: {},
  handle: () => {
    throw new Error("the secret reason");
  },
});

describe("addresses", () => {
  test("respond with and without the last slash, through every alias, and never redirect", async () => {
    using server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "a" } });
    const token = server.first.project.api_key;
    for (const path of [
      "/api/projects/1/feature_flags",
      "/api/projects/1/feature_flags/",
      "/api/projects/1/feature_flags/?",
      "/api/projects/@current/feature_flags/",
      "/api/projects/%40current/feature_flags/",
      "/api/environments/1/feature_flags/",
      "/api/feature_flag/",
      `/api/feature_flag/?token=${token}`,
      `/api/projects/77/feature_flags/?token=${token}`,
    ]) {
      const answer = await server.ask("GET", path);
      expect([path, answer.status, answer.body.count]).toEqual([path, 200, 1]);
    }
  });
  for (const [path, detail] of [
    ["/api/nothing/", "Not found."],
    ["/api/projects/77/feature_flags/", "Project not found."],
    ["/api/projects/abc/feature_flags/", "Project not found."],
    ["/api/projects/1/feature_flags/77/", "Not found."],
    ["/api/projects/1/feature_flags/abc/", "Not found."],
    ["/api/projects/1/feature_flags/1.5/", "Not found."],
    ["/api/organizations/abc/roles/", "Organization not found."],
    ["/api/projects/1/feature_flags/77/role_access/", "Feature flag not found."],
  ] as const) {
    test(`404 for ${path}`, async () => {
      using server = new TestServer();
      const answer = await server.ask("GET", path);
      expect(answer).toMatchObject({
        status: 404,
        body: { type: "invalid_request", code: "not_found", detail, attr: null },
      });
    });
  }
  test("an unknown project key in the query is 401", async () => {
    using server = new TestServer();
    const answer = await server.ask("GET", `${flagsPath}?token=phc_unknown`);
    expect(answer).toMatchObject({ status: 401, body: { code: "authentication_failed" } });
  });
});

describe("methods", () => {
  for (const [method, path, allow] of [
    ["PUT", flagsPath, "GET, POST, HEAD, OPTIONS"],
    ["DELETE", flagsPath, "GET, POST, HEAD, OPTIONS"],
    ["GET", `${flagsPath}user_blast_radius/`, "POST, OPTIONS"],
    ["PATCH", `${flagsPath}activity/`, "GET, HEAD, OPTIONS"],
    ["PATCH", `${flagsPath}1/role_access/1/`, "GET, DELETE, HEAD, OPTIONS"],
  ] as const) {
    test(`405 for ${method} ${path}`, async () => {
      using server = new TestServer();
      const answer = await server.ask(method, path);
      expect(answer).toMatchObject({
        status: 405,
        body: { code: "method_not_allowed", detail: `Method "${method}" not allowed.` },
      });
      expect(answer.headers.get("allow")).toBe(allow);
      expect((await server.ask(method, path, { key: null })).status).toBe(401);
    });
  }
  test("HEAD is GET without a body", async () => {
    using server = new TestServer();
    expect(await server.ask("HEAD", flagsPath)).toMatchObject({ status: 200, body: "" });
    expect(await server.ask("HEAD", `${flagsPath}77/`)).toMatchObject({ status: 404, body: "" });
  });
  test("OPTIONS returns the methods to allowed origins", async () => {
    using server = new TestServer();
    const answer = await server.ask("OPTIONS", flagsPath);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("allow")).toBe("GET, POST, HEAD, OPTIONS");
    expect((await server.ask("OPTIONS", flagsPath, { key: null })).status).toBe(401);
    expect((await server.ask("OPTIONS", flagsPath, { key: server.key(["cohort:read"]) })).status).toBe(403);
    const reader = server.key(["feature_flag:read"]);
    expect((await server.ask("OPTIONS", `${flagsPath}1/dashboard/`, { key: reader })).status).toBe(200);
  });
});

describe("places of the key", () => {
  test("in the Authorization header only: a body and an address end in logs", async () => {
    using server = new TestServer();
    const key = server.first.personal_api_key;
    const body = { key: "a", personal_api_key: key, secret_api_key: server.first.project.secret_api_key };
    const query = `personal_api_key=${key}&secret_api_key=${server.first.project.secret_api_key}`;
    for (const [method, path] of [
      ["GET", `${flagsPath}?${query}`],
      ["POST", `${flagsPath}?${query}`],
      ["PATCH", `${flagsPath}1/?${query}`],
      ["GET", `${flagsPath}local_evaluation/?${query}`],
      ["GET", `/api/projects/?${query}`],
    ] as const) {
      const sent = method === "GET" ? {} : { body };
      expect(await server.ask(method, path, { key: null, ...sent })).toMatchObject({
        status: 401,
        body: { code: "not_authenticated", detail: "Authentication credentials were not provided." },
      });
    }
    expect((await server.ask("GET", flagsPath)).body.count).toBe(0);
    expect(await server.ask("POST", `${flagsPath}?${query}`, { key: "phx_no", body })).toMatchObject({
      status: 401,
      body: {
        type: "authentication_error",
        code: "authentication_failed",
        detail: "Personal API key found in request Authorization header is invalid.",
        attr: null,
      },
    });
  });
  test("no key asks for one", async () => {
    using server = new TestServer();
    const answer = await server.ask("GET", flagsPath, { key: null });
    expect(answer.body).toEqual({
      type: "authentication_error",
      code: "not_authenticated",
      detail: "Authentication credentials were not provided.",
      attr: null,
    });
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(
      (await server.ask("GET", flagsPath, { key: null, headers: { authorization: "Basic eDp5" } })).status,
    ).toBe(401);
  });
});

describe("bodies", () => {
  for (const [name, body, headers, status, code] of [
    ["broken JSON", "{", {}, 400, "parse_error"],
    ["nested too deep", `{"key":"a","filters":${"[".repeat(300)}${"]".repeat(300)}}`, {}, 400, "parse_error"],
    ["plain text", "x", { "content-type": "text/plain" }, 415, "unsupported_media_type"],
    ["a number", "3", {}, 400, "invalid_input"],
    ["an empty body", "", {}, 400, "required"],
    ["over 1 MiB", `{"key":"a","name":"${"x".repeat(1024 * 1024)}"}`, {}, 413, "request_too_large"],
  ] as const) {
    test(`${name}: ${status}`, async () => {
      using server = new TestServer();
      const answer = await server.ask("POST", flagsPath, { body, headers });
      expect(answer).toMatchObject({ status, body: { code } });
      expect((await server.ask("GET", flagsPath)).body.count).toBe(0);
    });
  }
  for (const type of ["application/json", "application/x-www-form-urlencoded"])
    test(`text of another encoding as ${type} is rejected, not stored with other characters`, async () => {
      using server = new TestServer();
      const body = Buffer.from('{"key":"a","name":"caf\u00e9"}', "latin1");
      const answer = await server.ask("POST", flagsPath, { body, headers: { "content-type": type } });
      const detail = "JSON parse error - the body is not UTF-8";
      expect(answer).toMatchObject({ status: 400, body: { code: "parse_error", detail } });
      expect((await server.ask("GET", flagsPath)).body.count).toBe(0);
    });
  test("a bad key is reported before a bad body", async () => {
    using server = new TestServer();
    expect((await server.ask("POST", flagsPath, { key: "phx_no", body: "{" })).status).toBe(401);
  });
  for (const [name, body] of [
    ["form fields", "key=a&name=x"],
    ["JSON under the type of a form", '{"key":"a","name":"x"}'],
  ] as const) {
    test(`${name} are accepted`, async () => {
      using server = new TestServer();
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const answer = await server.ask("POST", flagsPath, { body, headers });
      expect(answer).toMatchObject({ status: 201, body: { key: "a", name: "x" } });
    });
  }
  test("a member called __proto__ changes no prototype", async () => {
    using server = new TestServer();
    const body =
      '{"key":"a","filters":{"groups":[{"properties":[]}],"__proto__":{"polluted":1}},"__proto__":{"polluted":1}}';
    expect((await server.ask("POST", flagsPath, { body })).status).toBe(201);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe("an unexpected error", () => {
  test("is logged under the id in the response, which contains no details", async () => {
    using server = new TestServer({ routes: [failing] });
    const answer = await server.ask("GET", "/api/boom/?personal_api_key=phx_secret", {
      headers: { "x-request-id": "my-id" },
    });
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({
      type: "server_error",
      code: "error",
      detail: "A server error occurred.",
      attr: null,
      extra: { request_id: "my-id" },
    });
    expect(answer.headers.get("x-request-id")).toBe("my-id");
    expect(server.logged).toHaveLength(1);
    expect(server.logged[0]).toMatchObject({ requestId: "my-id", path: "/api/boom/", status: 500 });
    expect(JSON.stringify(server.logged)).toContain("the secret reason");
    expect(JSON.stringify(server.logged)).not.toContain("phx_secret");
  });
});

describe("errors of other subjects", () => {
  class RejectedError extends AppError {
    constructor(readonly code: string) {
      super("Not now.");
    }
  }
  for (const [name, error, status, type, code, isLogged] of [
    ["a field", new InvalidFieldError("a__0", "blank", "Empty."), 400, "validation_error", "blank", false],
    [
      "a flag",
      new InvalidFlagError("invalid_key", "Odd.", "key"),
      400,
      "validation_error",
      "invalid_key",
      false,
    ],
    ["permission", new PermissionDeniedError(), 403, "authentication_error", "permission_denied", false],
    ["nothing there", new NotFoundError(), 404, "invalid_request", "not_found", false],
    ["a conflict", new EditConflictError("a@b"), 409, "server_error", "conflict", false],
    ["the engine", new RejectedError("engine_unavailable"), 503, "server_error", "engine_unavailable", false],
    [
      "the journal",
      new RejectedError("journal_unavailable"),
      503,
      "server_error",
      "journal_unavailable",
      false,
    ],
    [
      "a busy store",
      Object.assign(new Error(), { code: "SQLITE_BUSY" }),
      503,
      "server_error",
      "store_busy",
      false,
    ],
    [
      "a full disk",
      Object.assign(new Error(), { code: "SQLITE_FULL" }),
      503,
      "server_error",
      "store_full",
      false,
    ],
    ["any other of ours", new RejectedError("strange"), 500, "server_error", "error", true],
    ["a thrown text", "text", 500, "server_error", "error", true],
  ] as const) {
    test(`${name}: ${status}`, async () => {
      const throwing = publicRoute("GET", "/api/boom", {
        summary: "Fail",
        tag: "Test",
        answers: { [status]: { description: "As thrown." } },
        handle: () => {
          throw error;
        },
      });
      using server = new TestServer({ routes: [throwing] });
      const answer = await server.ask("GET", "/api/boom");
      expect(answer).toMatchObject({ status, body: { type, code } });
      expect(answer.headers.get("retry-after")).toBe(status === 503 ? "5" : null);
      expect(server.logged.length).toBe(isLogged ? 1 : 0);
    });
  }
});

describe("pages", () => {
  async function withFlags(count: number, publicUrl?: string) {
    const server = new TestServer(publicUrl ? { publicUrl } : {});
    for (let n = 1; n <= count; n++) await server.ask("POST", flagsPath, { body: { key: `f${n}` } });
    return server;
  }
  test("lead from one to the next and keep the other parameters", async () => {
    using server = await withFlags(5);
    const page = async (path: string) => (await server.ask("GET", path)).body;
    const first = await page(`${flagsPath}?limit=2&search=f`);
    expect(first).toMatchObject({
      count: 5,
      next: `http://localhost${flagsPath}?limit=2&search=f&offset=2`,
      previous: null,
    });
    expect(first.results.map((flag: { key: string }) => flag.key)).toEqual(["f5", "f4"]);
    const second = await page(first.next.replace("http://localhost", ""));
    expect(second.previous).toBe(`http://localhost${flagsPath}?limit=2&search=f`);
    const last = await page(second.next.replace("http://localhost", ""));
    expect(last).toMatchObject({
      next: null,
      previous: `http://localhost${flagsPath}?limit=2&search=f&offset=2`,
    });
    expect(last.results.map((flag: { key: string }) => flag.key)).toEqual(["f1"]);
    expect(await page(`${flagsPath}?limit=2&offset=50`)).toMatchObject({ count: 5, next: null, results: [] });
  });
  test("of a repeated parameter the last one counts", async () => {
    using server = await withFlags(3);
    const { body } = await server.ask("GET", `${flagsPath}?limit=3&limit=1&offset=2&offset=1`);
    expect(body.results.map((flag: { key: string }) => flag.key)).toEqual(["f2"]);
    expect(body.next).toBe(`http://localhost${flagsPath}?limit=1&offset=2`);
  });
  test("a limit or offset without sense is the default", async () => {
    using server = await withFlags(3);
    for (const query of ["limit=0", "limit=-1", "limit=x", "offset=-1", "offset=x", "limit=&offset="]) {
      const answer = await server.ask("GET", `${flagsPath}?${query}`);
      expect([query, answer.status, answer.body.results.length]).toEqual([query, 200, 3]);
    }
  });
  test("addresses start with the public address when one is set", async () => {
    using server = await withFlags(2, "https://flags.example.com");
    expect((await server.ask("GET", `${flagsPath}?limit=1`)).body.next).toBe(
      `https://flags.example.com${flagsPath}?limit=1&offset=1`,
    );
  });
});

describe("other origins", () => {
  test("may read responses, rejections included", async () => {
    using server = new TestServer();
    for (const key of [undefined, null]) {
      const answer = await server.ask("GET", flagsPath, { key, headers: { origin: "https://app.example" } });
      expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example");
      expect(answer.headers.get("vary")).toContain("Origin");
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
    }
    expect((await server.ask("GET", flagsPath)).headers.get("access-control-allow-origin")).toBeNull();
  });
  test("a preflight needs no key and mirrors the requested headers", async () => {
    using server = new TestServer();
    const answer = await server.ask("OPTIONS", `${flagsPath}1/`, {
      key: null,
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "authorization, x-own",
      },
    });
    expect(answer).toMatchObject({ status: 204, body: "" });
    expect(answer.headers.get("access-control-allow-methods")).toContain("PATCH");
    expect(answer.headers.get("access-control-allow-headers")).toBe("authorization, x-own");
    expect(answer.headers.get("access-control-max-age")).toBe("86400");
  });
  test.each([
    ["x-flagkeep-console", ""],
    ["authorization, X-Flagkeep-Console", "authorization"],
    ["X-FLAGKEEP-CONSOLE ,x-own,x-flagkeep-console", "x-own"],
    ["x-flagkeep-console-2", "x-flagkeep-console-2"],
    [",,", ""],
  ])("a preflight for %s does not allow the console's own header", async (asked, allowed) => {
    using server = new TestServer();
    for (const path of [flagsPath, "/api/session/", "/api/organizations/@current/"]) {
      const { headers } = await server.ask("OPTIONS", path, {
        key: null,
        headers: {
          origin: "https://app.example",
          "access-control-request-method": "POST",
          "access-control-request-headers": asked,
        },
      });
      const found = headers.get("access-control-allow-headers") ?? "";
      if (allowed === "") expect(found).toContain("authorization, content-type");
      else expect(found).toBe(allowed);
      expect(found.toLowerCase().split(/\s*,\s*/)).not.toContain("x-flagkeep-console");
    }
  });
});

describe("rate limits", () => {
  const limitNamed = (name: string) => [{ name, requestsMax: 2, windowMs: 60_000 }];
  test("are counted per key and group, return the waiting time, and end", async () => {
    const rateLimiter = new RateLimiter({
      management: limitNamed("burst"),
      local_evaluation: limitNamed("local"),
      remote_config: limitNamed("remote"),
    });
    using server = new TestServer({ rateLimiter });
    const ask = async (path: string, key?: string) => (await server.ask("GET", path, { key })).status;
    const other = server.key(["*"]);
    expect([await ask(flagsPath), await ask(flagsPath), await ask(flagsPath)]).toEqual([200, 200, 429]);
    expect(await ask(flagsPath, other)).toBe(200);
    expect(await ask(`${flagsPath}local_evaluation`)).toBe(200);
    server.now = new Date(server.now.getTime() + 48_000);
    const rejected = await server.ask("GET", flagsPath);
    expect(rejected.body).toEqual({
      type: "throttled_error",
      code: "throttled",
      detail: "Request was throttled. Expected available in 12 seconds.",
      attr: null,
    });
    expect(rejected.headers.get("retry-after")).toBe("12");
    server.now = new Date(server.now.getTime() + 12_000);
    expect(await ask(flagsPath)).toBe(200);
  });
  test("the numbers of the contract", () => {
    const numbers = Object.values(defaultRateLimits).flat();
    expect(numbers.map(({ requestsMax, windowMs }) => [requestsMax, windowMs])).toEqual([
      [480, 60_000],
      [4_800, 3_600_000],
      [600, 60_000],
      [600, 60_000],
    ]);
  });
});

describe("probes", () => {
  test("alive immediately, ready when reported so", async () => {
    using server = new TestServer();
    server.isReady = false;
    expect(await server.ask("GET", "/_liveness", { key: null })).toMatchObject({ status: 200 });
    expect(await server.ask("GET", "/_readiness", { key: null })).toMatchObject({
      status: 503,
      body: { status: "not_ready", roles: [{ role: "query", ready: false, reason: "starting" }] },
    });
    expect(await server.ask("GET", "/_readiness?role=flags", { key: null })).toMatchObject({ status: 200 });
    expect(await server.ask("GET", "/_readiness?role=query", { key: null })).toMatchObject({ status: 503 });
    expect(await server.ask("GET", "/_readiness?role=all", { key: null })).toMatchObject({ status: 400 });
    server.isReady = true;
    expect(await server.ask("GET", "/_readiness/", { key: null })).toMatchObject({ status: 200 });
  });
});
