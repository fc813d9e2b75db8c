/** Which requests may use the cookie of a session. */

import { describe, expect, test } from "bun:test";
import { createSetupLink, ownerToSetUp } from "../../../src/accounts/sessions/setup-links.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";
import { as, consoleHeader, getCookie, goodPassword, post, setUp } from "./support.ts";

describe("a cookie counts only", () => {
  const rejectedHeaders: [string, Record<string, string>][] = [
    ["with the header", { "x-flagkeep-console": "" }],
    ["with the header as it is", { "x-flagkeep-console": "true" }],
    ["from this origin", { origin: "http://evil.example" }],
    ["from this port", { origin: "http://localhost:9999" }],
    ["from this host", { origin: "http://localhost.evil.example" }],
    ["from an origin that is one", { origin: "null" }],
    ["from the same site, not a neighbor", { "sec-fetch-site": "same-site" }],
    ["from the same site", { "sec-fetch-site": "cross-site" }],
    ["from a page", { "sec-fetch-site": "none" }],
    ["without a key beside it", { authorization: "Bearer phx_wrong" }],
    ["without anything else that proves who one is", { authorization: "" }],
  ];
  test.each(rejectedHeaders)("%s", async (_, headers) => {
    using server = new TestServer();
    const cookie = await setUp(server);
    const good = await server.ask("GET", flagsPath, as(cookie, { origin: "http://localhost" }));
    expect(good.status).toBe(200);
    expect((await server.ask("GET", flagsPath, as(cookie, { "sec-fetch-site": "same-origin" }))).status).toBe(
      200,
    );
    for (const [method, body] of [["GET"], ["POST", { key: "forged" }]] as const) {
      const { status } = await server.ask(method, flagsPath, { ...as(cookie, headers), body });
      expect([method, status]).toEqual([method, 401]);
    }
    expect((await server.ask("GET", flagsPath)).body.count).toBe(0);
    if (headers.authorization !== undefined) return;
    const credentials = { email: "ann@example.com", password: goodPassword };
    expect((await post(server, "/api/session/", credentials, { ...consoleHeader, ...headers })).status).toBe(
      403,
    );
    const out = await server.ask("DELETE", "/api/session/", as(cookie, headers));
    expect(out.status).toBe(403);
    expect((await server.ask("GET", flagsPath, as(cookie))).status).toBe(200);
  });

  test("from the public address, where a proxy hides it; then with the prefix of https", async () => {
    using server = new TestServer({ publicUrl: "https://flags.example.com" });
    const user = ownerToSetUp(server.metadata.db)!;
    const { token } = createSetupLink(server.metadata, user, null, server.now);
    const created = await post(
      server,
      "/api/session/setup/",
      { token, password: goodPassword },
      { ...consoleHeader, origin: "https://flags.example.com" },
    );
    expect(created.headers.get("set-cookie")).toMatch(/^__Host-flagkeep-[0-9a-f]{6}=.*; Secure$/);
    const cookie = getCookie(created.headers);
    expect((await server.ask("GET", flagsPath, as(cookie))).status).toBe(200);
    // Anybody on a neighboring name could set it without the prefix.
    expect((await server.ask("GET", flagsPath, as(cookie.replace("__Host-", "")))).status).toBe(401);
  });

  test("on routes that are not for keys' eyes, and no key there", async () => {
    using server = new TestServer();
    for (const [method, path] of [
      ["GET", "/api/sessions/"],
      ["DELETE", "/api/sessions/"],
      ["POST", "/api/session/confirm/"],
      ["POST", "/api/session/password/"],
    ] as const) {
      expect([path, (await server.ask(method, path)).status]).toEqual([path, 403]);
      expect([path, (await server.ask(method, path, { key: null })).status]).toEqual([path, 401]);
    }
    expect((await server.ask("GET", "/api/session/")).status).toBe(403);
    const signedOut = await server.ask("GET", "/api/session/", { key: null, headers: consoleHeader });
    expect([signedOut.status, signedOut.body]).toEqual([200, { session: null }]);
  });

  test("never together with Access-Control-Allow-Credentials", async () => {
    using server = new TestServer();
    for (const route of server.routes) {
      const path = route.path.replace(/:\w+/g, "1");
      for (const method of [route.method, "OPTIONS"]) {
        const { headers } = await server.ask(method, path, {
          key: null,
          headers: {
            origin: "http://evil.example",
            "access-control-request-method": route.method,
            "access-control-request-headers": "x-flagkeep-console",
          },
        });
        expect([path, headers.get("access-control-allow-credentials")]).toEqual([path, null]);
      }
    }
  });
});
