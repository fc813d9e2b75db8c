/** What is seen of requests, and who may see it. */

import { describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { flagkeep, ServerProcess, until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer({ args: ["--trusted-proxies", "127.0.0.1", "--log-level", "debug"] });

const metrics = (serverProcess: ServerProcess, headers: Record<string, string> = {}) =>
  fetch(`${serverProcess.url}/metrics`, { headers });

test("operators see the latest rejected event requests, with the reason and never a key", async () => {
  await using own = await ServerProcess.start();
  const rejections = async () => {
    const answer = await own.api("/api/instance/refusals/");
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { results: Record<string, unknown>[] }).results;
  };
  expect(await rejections()).toEqual([]);
  await own.post("/capture/?api_key=phc_secret", {
    event: "e",
    distinct_id: "d",
    api_key: "phc_nobody",
  });
  expect(await rejections()).toEqual([
    {
      at: expect.any(String),
      method: "POST",
      path: "/capture/",
      status: 401,
      reason: expect.stringContaining("API key"),
      client: "127.0.0.1",
    },
  ]);
  for (let number = 0; number < 25; number++) await own.post(`/batch/?n=${number}`, "{");
  const latest = await rejections();
  expect(latest).toHaveLength(20);
  expect(latest.every(({ path }) => path === "/batch/")).toBe(true);
  expect(JSON.stringify(latest)).not.toContain("phc_");
});

describe("the figures", () => {
  test("count requests by route and status, and how long they took", async () => {
    await server.capture({ event: "e", distinct_id: "d" });
    await server.post("/flags/?v=2", { token: "phc_nobody", distinct_id: "d" });
    await server.api("/api/projects/1/feature_flags/77/");
    await fetch(`${server.url}/no/such/path`);
    const text = await (await metrics(server)).text();
    for (const line of [
      'flagkeep_http_requests_total{route="/capture",status="200"} 1',
      'flagkeep_http_requests_total{route="/flags",status="401"} 1',
      'flagkeep_http_requests_total{route="/api/projects/:project_id/feature_flags/:id",status="404"} 1',
      'flagkeep_http_requests_total{route="other",status="404"} 1',
      'flagkeep_http_request_duration_seconds_count{route="/capture"} 1',
    ]) {
      expect(text.split("\n")).toContain(line);
    }
  });

  test("are for this machine only, also behind a proxy that is trusted", async () => {
    expect((await metrics(server)).status).toBe(200);
    expect((await metrics(server, { "x-forwarded-for": "127.0.0.1" })).status).toBe(200);
    for (const headers of [
      { "x-forwarded-for": "203.0.113.9" },
      { "x-forwarded-for": "127.0.0.1, 203.0.113.9" },
      { forwarded: "for=203.0.113.9" },
    ] as Record<string, string>[]) {
      expect((await metrics(server, headers)).status).toBe(403);
    }
  });

  test("can be opened, closed, and asked a token for; a proxy that is not trusted vouches for no one", async () => {
    await using plain = await ServerProcess.start();
    expect((await metrics(plain)).status).toBe(200);
    expect((await metrics(plain, { "x-forwarded-for": "127.0.0.1" })).status).toBe(403);
    await using open = await ServerProcess.start({
      args: ["--metrics", "open", "--metrics-token", "secret"],
    });
    const bearer = (token: string) => ({
      authorization: `Bearer ${token}`,
      "x-forwarded-for": "203.0.113.9",
    });
    expect((await metrics(open, bearer("secret"))).status).toBe(200);
    for (const headers of [{}, bearer("secre"), bearer("secret2"), { authorization: "Basic secret" }]) {
      expect((await metrics(open, headers as Record<string, string>)).status).toBe(401);
    }
    await using off = await ServerProcess.start({ args: ["--metrics", "off"] });
    expect((await metrics(off)).status).toBe(404);
  });

  test("the token may be in a file, which takes precedence over the setting", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "flagkeep-token-")), "token");
    writeFileSync(file, "from-file\r\n");
    await using both = await ServerProcess.start({
      args: ["--metrics-token", "given", "--metrics-token-file", file],
    });
    const ask = async (token: string) => (await metrics(both, { authorization: `Bearer ${token}` })).status;
    expect([await ask("from-file"), await ask("given"), await ask("")]).toEqual([200, 401, 401]);
  });

  test.each([
    ["", "must contain one token without spaces"],
    [" \n", "must contain one token without spaces"],
    ["two tokens\n", "must contain one token without spaces"],
    ["one\ntwo\n", "must contain one token without spaces"],
    [null, "cannot be read"],
  ])("a file with %j is an error at the start: it opens nothing", async (content, error) => {
    const folder = mkdtempSync(join(tmpdir(), "flagkeep-token-"));
    const file = join(folder, "token");
    if (content !== null) writeFileSync(file, content);
    const args = ["serve", "--port", "0", "--data-dir", join(folder, "data"), "--metrics-token-file", file];
    const { code, stderr } = await flagkeep(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`--metrics-token-file ${error}`)]);
  });
});

describe("the log", () => {
  test("logs rejected event requests, a few per second, and never a key", async () => {
    const secret = "phc_secretsecretsecretsecret";
    const rejected = () => server.logs.filter(({ msg }) => msg === "event request rejected");
    const answers = await Promise.all(
      Array.from({ length: 60 }, () =>
        server.post(`/batch/?api_key=${secret}`, {
          api_key: secret,
          batch: [{ event: "e", distinct_id: "d" }],
        }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    await until(() => rejected().length > 0, "a refusal is logged");
    expect(rejected()[0]).toMatchObject({
      level: "warn",
      route: "/batch",
      status: 401,
      reason: "API key is not valid: no project has this key",
      client: "127.0.0.1",
    });
    expect(rejected().length).toBeLessThan(40);
    expect(JSON.stringify(server.logs)).not.toContain(secret);
  });

  test("at debug has every request", async () => {
    await fetch(`${server.url}/_liveness`, { headers: { "x-request-id": "look-for-me" } });
    const line = await until(
      () => server.logs.find(({ requestId, msg }) => msg === "request" && requestId === "look-for-me"),
      "the request is logged",
    );
    expect(line).toMatchObject({ level: "debug", method: "GET", path: "/_liveness", status: 200 });
  });
});

test("long JSON is compressed for clients that accept it", async () => {
  const ask = (accept: string) =>
    fetch(`${server.url}/api/schema/`, { headers: { "accept-encoding": accept }, decompress: false });
  const packed = await ask("br, gzip");
  expect(packed.headers.get("content-encoding")).toBe("gzip");
  expect(packed.headers.get("vary")).toContain("Accept-Encoding");
  const plain = await ask("gzip;q=0");
  expect(plain.headers.get("content-encoding")).toBeNull();
  expect(gunzipSync(await packed.bytes()).toString()).toBe(await plain.text());
  const short = await fetch(`${server.url}/_liveness`, { headers: { "accept-encoding": "gzip" } });
  expect(short.headers.get("content-encoding")).toBeNull();
});

test("links use the address that a trusted proxy reports", async () => {
  for (const key of ["a", "b"]) {
    const body = { key, filters: { groups: [] } };
    expect((await server.api("/api/projects/1/feature_flags/", { method: "POST", body })).status).toBe(201);
  }
  const response = await fetch(`${server.url}/api/projects/1/feature_flags/?limit=1`, {
    headers: {
      authorization: `Bearer ${server.initialized.personal_api_key}`,
      "x-forwarded-proto": "https",
      "x-forwarded-host": "flags.example.com",
      "x-forwarded-prefix": "/keep",
    },
  });
  expect(((await response.json()) as { next: string }).next).toBe(
    "https://flags.example.com/keep/api/projects/1/feature_flags/?limit=1&offset=1",
  );
});
