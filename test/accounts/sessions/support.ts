/** People who sign in, in this process. */

import { expect } from "bun:test";
import { createSetupLink, ownerToSetUp } from "../../../src/accounts/sessions/setup-links.ts";
import { createUser } from "../../../src/accounts/users.ts";
import type { Asking, TestServer } from "../../support/management-server.ts";

export const goodPassword = "correct horse battery staple";
export const consoleHeader = { "x-flagkeep-console": "1" };

export const post = (
  server: TestServer,
  path: string,
  body: unknown,
  headers: Record<string, string> = consoleHeader,
) => server.ask("POST", path, { key: null, body, headers });

export const getCookie = (headers: Headers) => (headers.get("set-cookie") ?? "").split(";")[0]!;

export async function setUp(server: TestServer, email = "ann@example.com") {
  const user = ownerToSetUp(server.metadata.db)!;
  const { token } = createSetupLink(server.metadata, user, null, server.now);
  const answer = await post(server, "/api/session/setup/", {
    token,
    email,
    first_name: "Ann",
    password: goodPassword,
  });
  expect(answer.status).toBe(201);
  return getCookie(answer.headers);
}

export async function signIn(server: TestServer, email = "ann@example.com", password = goodPassword) {
  return await post(server, "/api/session/", { email, password });
}

export const as = (cookie: string, more: Record<string, string> = {}): Asking => ({
  key: null,
  headers: { ...consoleHeader, cookie, ...more },
});

/** Another user of the organization, with the same password. */
export async function colleague(
  server: TestServer,
  level: "member" | "admin" = "member",
  email = "bob@example.com",
) {
  const user = createUser(server.metadata, { email, organizationId: server.first.organization.id, level });
  const { token } = createSetupLink(server.metadata, user, 1, server.now);
  const { headers, status } = await post(server, "/api/session/setup/", { token, password: goodPassword });
  expect(status).toBe(201);
  return { user, cookie: getCookie(headers) };
}
