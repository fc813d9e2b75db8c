/**
 * Every route with every kind of key. A route that is not in the table fails the test, and so does a row
 * without a route.
 */

import { describe, expect, test } from "bun:test";
import { checkScopes } from "../../src/accounts/limits.ts";
import { insertOrganization } from "../../src/accounts/organizations.ts";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { createProject } from "../../src/accounts/projects.ts";
import { routeScopes } from "../../src/accounts/route-scopes.ts";
import { membership } from "../../src/accounts/schema.ts";
import { createUser, setUserActive } from "../../src/accounts/users.ts";
import { eventRoutes } from "../../src/events/api/events.ts";
import { LiveEvents, liveRoutes } from "../../src/events/api/live.ts";
import { queryRoutes } from "../../src/events/api/query.ts";
import type { Route } from "../../src/http/route.ts";
import { importUploadRoutes } from "../../src/import/api/imports.ts";
import { ImportUploads } from "../../src/import/uploads.ts";
import { type InstanceDeps, instanceRoutes } from "../../src/operate/api/instance.ts";
import { importOperations } from "../../src/operations/imports.ts";
import { operationRoutes } from "../../src/operations/routes.ts";
import { managementRoutes } from "../../src/serve/routes.ts";
import { TestServer } from "../support/management-server.ts";
import { expectedScopes, O, P } from "./expected-scopes.ts";

const allScopes = [...routeScopes, "survey:write"];

/** Routes that tell who you are, and what you may use, ignore the limits of a key. */
const ignoresLimits = new Set([
  "GET /api/projects",
  "GET /api/users",
  "GET /api/users/:uuid",
  "PATCH /api/users/:uuid",
  "GET /api/personal_api_keys/@current",
]);

function prepared() {
  const uploads = new ImportUploads({ dataDir: "/nowhere", executable: [], reserveBytes: 0 });
  const events = [
    ...eventRoutes({ engine: { ask: async () => ({ text: "[]", next: undefined }) } } as never),
    ...liveRoutes({ live: new LiveEvents(AbortSignal.abort()) }),
    ...operationRoutes(importOperations, { uploads }),
    ...importUploadRoutes({
      get metadata() {
        return server.metadata;
      },
      uploads,
    }),
    ...queryRoutes({ engine: { ask: async () => ({ columns: [], rows: [], truncated: false }) } } as never),
  ];
  const instance = instanceRoutes({
    get metadata() {
      return server.metadata;
    },
    ...({ backups: { destination: () => ({ list: async () => [] }) } } as unknown as InstanceDeps),
  });
  const server: TestServer = new TestServer({ routes: [...events, ...instance] });
  const guarded = instance.filter(({ access }) => access.on !== "public");
  const routes: Route[] = [...managementRoutes(server.deps), ...events, ...guarded];
  return { server, routes, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

const getName = (route: Route, path = route.path) => `${route.method} ${path}`;

function getAddress(path: string, projectId: number | string = 1): string {
  return path
    .replace(":project_id", String(projectId))
    .replace(":organization_id", "@current")
    .replace(":uuid", path.startsWith("/api/users") ? "@me" : "0193d1a2-7b1c-7c3e-9f60-9c0d1e2f3a4b")
    .replace(/:\w*id/g, "999");
}

function isEnough(held: string, wanted: string): boolean {
  if (wanted === "any") return true;
  if (wanted === "full" || wanted === "session" || wanted === "console") return false;
  const covers = (scope: string) => held === scope || held === scope.replace(":read", ":write");
  return wanted.split(" ").some((choice) => choice.split("+").every(covers));
}

test("every route is in the table, and every row is a route", () => {
  using it = prepared();
  expect(it.routes.map((route) => getName(route)).sort()).toEqual(Object.keys(expectedScopes).sort());
});

test("the form for a new key offers the scopes of routes, and nothing else", () => {
  using it = prepared();
  const asked = it.routes.flatMap(({ access }) => [
    ...("scopes" in access ? access.scopes : []),
    ...("alsoNeeds" in access ? (access.alsoNeeds ?? []) : []),
  ]);
  const offered: readonly string[] = routeScopes;
  expect(offered.toSorted()).toEqual([...new Set(asked)].toSorted());
  expect(checkScopes(routeScopes)).toEqual([...routeScopes]);
});

describe("every route, every alias", () => {
  test("answers 401 without a key, with a wrong, expired or revoked one, and for a deactivated user", async () => {
    using it = prepared();
    const { server, routes } = it;
    const expired = server.key(["*"], { expiresAt: new Date(server.now.getTime() + 1_000) });
    createUser(server.metadata, {
      email: "gone@example.com",
      organizationId: server.first.organization.id,
      level: "owner",
    });
    const deleted = createKey(
      server.metadata,
      { userEmail: "gone@example.com", label: "x", scopes: ["*"] },
      { now: server.now },
    ).value;
    setUserActive(server.metadata, "gone@example.com", false);
    server.now = new Date(server.now.getTime() + 2_000);
    const keys = {
      none: null,
      wrong: "phx_wrong",
      expired,
      deactivated: deleted,
      "public project key": server.first.project.api_key,
    };
    for (const route of routes) {
      for (const path of [route.path, ...route.aliases]) {
        for (const [kind, key] of Object.entries(keys)) {
          const { status, body } = await server.ask(route.method, getAddress(path), { key });
          const isForConsole = expectedScopes[getName(route)] === "console";
          expect([getName(route, path), kind, status]).toEqual([
            getName(route, path),
            kind,
            isForConsole ? 403 : 401,
          ]);
          if (isForConsole) continue;
          expect(body.code).toBe(kind === "none" ? "not_authenticated" : "authentication_failed");
        }
      }
    }
  });

  test("needs its scope and no other", async () => {
    using it = prepared();
    const { server, routes } = it;
    const keys = allScopes.map((scope) => ({ scope, key: server.key([scope]) }));
    for (const route of routes) {
      const name = getName(route);
      for (const { scope, key } of keys) {
        const { status, body } = await server.ask(route.method, getAddress(route.path), { key });
        const isAllowed = isEnough(scope, expectedScopes[name] ?? "");
        expect([name, scope, status === 403]).toEqual([name, scope, !isAllowed]);
        if (isAllowed) expect([name, scope, status]).not.toEqual([name, scope, 401]);
        else
          expect(body).toMatchObject({ type: "authentication_error", code: "permission_denied", attr: null });
      }
    }
  });

  test("keeps to the limits of a key", async () => {
    using it = prepared();
    const { server, routes } = it;
    const other = createProject(
      server.metadata,
      { organizationId: server.first.organization.id, name: "Other" },
      null,
    );
    const toOther = server.key(["*"], { projectIds: [other.id] });
    const strangers = server.metadata.change((t) => {
      const organization = insertOrganization(t, "Strangers", server.now);
      t.insert(membership)
        .values({
          id: "m",
          organizationId: organization.id,
          userId: 1,
          level: 15,
          joinedAt: server.now,
          updatedAt: server.now,
        })
        .run();
      return organization;
    });
    const toStrangers = server.key(["*"], { organizationIds: [strangers.id] });
    for (const route of routes.filter(({ path }) => path.startsWith(P) || path.startsWith(O))) {
      const { status, body } = await server.ask(route.method, getAddress(route.path), { key: toStrangers });
      expect([getName(route), status, body.detail]).toEqual([
        getName(route),
        403,
        `API key does not have access to the requested organization: ID ${server.first.organization.id}.`,
      ]);
    }
    for (const route of routes) {
      const name = getName(route);
      const { status, body } = await server.ask(route.method, getAddress(route.path), { key: toOther });
      if (ignoresLimits.has(name)) {
        expect([name, status]).not.toEqual([name, 403]);
        continue;
      }
      expect([name, status]).toEqual([name, 403]);
      if (expectedScopes[name] === "session" || expectedScopes[name] === "console") continue;
      expect(body.detail).toBe(
        route.path.startsWith(P)
          ? "API key does not have access to the requested project: ID 1."
          : "API keys with scoped projects are only supported on project-based endpoints.",
      );
    }
  });

  test("is closed to members of another organization, and to keys of another project", async () => {
    using it = prepared();
    const { server, routes } = it;
    const strangers = server.metadata.change((t) => insertOrganization(t, "Strangers", server.now));
    createUser(server.metadata, { email: "eve@example.com", organizationId: strangers.id, level: "owner" });
    const theirs = createProject(server.metadata, { organizationId: strangers.id, name: "Theirs" }, null);
    const eve = createKey(
      server.metadata,
      { userEmail: "eve@example.com", label: "x", scopes: ["*"] },
      { now: server.now },
    ).value;
    for (const route of routes.filter(({ path }) => path.startsWith(P))) {
      const name = getName(route);
      const foreign = await server.ask(route.method, getAddress(route.path), { key: eve });
      expect([name, foreign.status, foreign.body.detail]).toEqual([
        name,
        403,
        "You don't have access to the project.",
      ]);
      const secret = await server.ask(route.method, getAddress(route.path), { key: theirs.secretToken });
      expect([name, secret.status]).toEqual([name, expectedScopes[name]?.endsWith("secret") ? 403 : 401]);
      const missing = await server.ask(route.method, getAddress(route.path, 77));
      expect([name, missing.status, missing.body.detail]).toEqual([name, 404, "Project not found."]);
    }
    const path = getAddress(O).replace("@current", server.first.organization.id);
    for (const route of routes.filter((route) => route.path.startsWith(O))) {
      const foreign = await server.ask(route.method, getAddress(route.path).replace(getAddress(O), path), {
        key: eve,
      });
      expect([getName(route), foreign.status]).toEqual([getName(route), 403]);
    }
  });

  test("accepts the project's own secret key only where SDKs need it", async () => {
    using it = prepared();
    const { server, routes } = it;
    const key = server.first.project.secret_api_key;
    for (const route of routes) {
      const name = getName(route);
      const { status } = await server.ask(route.method, getAddress(route.path), { key });
      const isUsed = expectedScopes[name]?.endsWith("secret") === true;
      if (expectedScopes[name] === "console") expect([name, status]).toEqual([name, 403]);
      else expect([name, status === 401]).toEqual([name, !isUsed]);
    }
  });
});
