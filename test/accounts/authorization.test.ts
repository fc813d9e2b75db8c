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

const F = "/api/projects/:project_id/feature_flags";
const P = "/api/projects/:project_id";
const O = "/api/organizations/:organization_id";

/**
 * `any`: every key; `full`: only one that may do everything; several scopes: one is enough; `+`: all. `session`: only
 * a user signed in; `console`: only the console's page, without a key.
 */
const expectedScopes: Record<string, string> = {
  [`GET ${F}`]: "feature_flag:read",
  [`POST ${F}`]: "feature_flag:write",
  [`GET ${F}/:id`]: "feature_flag:read",
  [`PATCH ${F}/:id`]: "feature_flag:write",
  [`DELETE ${F}/:id`]: "feature_flag:write",
  [`GET ${F}/activity`]: "activity_log:read",
  [`GET ${F}/:id/activity`]: "activity_log:read",
  [`GET ${F}/:id/status`]: "feature_flag:read",
  [`GET ${F}/:id/dependent_flags`]: "feature_flag:read",
  [`GET ${F}/evaluation_reasons`]: "feature_flag:read",
  [`GET ${F}/by_cohort`]: "feature_flag:read",
  [`GET ${F}/my_flags`]: "feature_flag:read",
  [`GET ${F}/local_evaluation`]: "feature_flag:read secret",
  [`GET ${F}/:id/remote_config`]: "feature_flag:read secret",
  [`POST ${F}/:id/dashboard`]: "feature_flag:write",
  [`POST ${F}/:id/enrich_usage_dashboard`]: "feature_flag:write",
  [`POST ${F}/:id/create_static_cohort_for_flag`]: "feature_flag:write",
  [`POST ${F}/user_blast_radius`]: "feature_flag:write",
  [`GET ${F}/usage`]: "feature_flag:read",
  [`GET ${P}/scheduled_changes`]: "feature_flag:read",
  [`POST ${P}/scheduled_changes`]: "feature_flag:write",
  [`GET ${P}/scheduled_changes/:id`]: "feature_flag:read",
  [`PATCH ${P}/scheduled_changes/:id`]: "feature_flag:write",
  [`DELETE ${P}/scheduled_changes/:id`]: "feature_flag:write",
  [`GET ${P}/change_requests`]: "feature_flag:read",
  [`POST ${P}/change_requests`]: "feature_flag:write",
  [`POST ${P}/change_requests/:id/approve`]: "feature_flag:write",
  [`POST ${P}/change_requests/:id/reject`]: "feature_flag:write",
  [`POST ${F}/:id/revert`]: "feature_flag:write",
  [`POST ${F}/explain`]: "feature_flag:read",
  [`POST ${F}/reach`]: "feature_flag:read",
  [`GET ${F}/matching_ids`]: "feature_flag:read",
  [`POST ${F}/bulk_keys`]: "feature_flag:read",
  [`GET ${F}/:feature_flag_id/role_access`]: "feature_flag:read",
  [`POST ${F}/:feature_flag_id/role_access`]: "feature_flag:write",
  [`GET ${F}/:feature_flag_id/role_access/:id`]: "feature_flag:read",
  [`DELETE ${F}/:feature_flag_id/role_access/:id`]: "feature_flag:write",
  [`GET ${P}/activity_log`]: "activity_log:read",
  "GET /api/projects": "any",
  "POST /api/projects": "project:write",
  [`GET ${P}`]: "project:read",
  [`PATCH ${P}`]: "project:write",
  [`DELETE ${P}`]: "project:write",
  [`PATCH ${P}/reset_token`]: "project:write",
  [`POST ${P}/reset_token`]: "project:write",
  [`PATCH ${P}/delete_token_backup`]: "project:write",
  [`POST ${P}/delete_token_backup`]: "project:write",
  [`PATCH ${P}/delete_secret_token_backup`]: "project:write",
  [`POST ${P}/delete_secret_token_backup`]: "project:write",
  [`PATCH ${P}/rotate_secret_token`]: "full",
  [`POST ${P}/rotate_secret_token`]: "full",
  [`GET ${P}/surveys`]: "survey:read",
  [`POST ${P}/surveys`]: "survey:write",
  [`GET ${P}/surveys/:id`]: "survey:read",
  [`PATCH ${P}/surveys/:id`]: "survey:write",
  [`PUT ${P}/surveys/:id`]: "survey:write",
  [`DELETE ${P}/surveys/:id`]: "survey:write",
  [`POST ${P}/surveys/:id/launch`]: "survey:write",
  [`POST ${P}/surveys/:id/stop`]: "survey:write",
  [`GET ${P}/early_access_feature`]: "early_access_feature:read",
  [`POST ${P}/early_access_feature`]: "early_access_feature:write",
  [`GET ${P}/early_access_feature/:id`]: "early_access_feature:read",
  [`PATCH ${P}/early_access_feature/:id`]: "early_access_feature:write",
  [`DELETE ${P}/early_access_feature/:id`]: "early_access_feature:write",
  [`GET ${P}/early_access_feature/:id/enrollment`]: "early_access_feature:read",
  [`POST ${P}/early_access_feature/:id/enroll`]: "early_access_feature:write",
  [`GET ${P}/surveys/stats`]: "survey:read",
  [`GET ${P}/surveys/responses_count`]: "survey:read",
  [`GET ${P}/surveys/:id/stats`]: "survey:read",
  [`GET ${P}/surveys/:id/responses`]: "survey:read",
  [`GET ${P}/surveys/activity`]: "activity_log:read",
  [`GET ${P}/surveys/:id/activity`]: "activity_log:read",
  [`GET ${P}/experiment_holdouts`]: "experiment:read",
  [`POST ${P}/experiment_holdouts`]: "experiment:write",
  [`GET ${P}/experiment_holdouts/:id`]: "experiment:read",
  [`PATCH ${P}/experiment_holdouts/:id`]: "experiment:write",
  [`DELETE ${P}/experiment_holdouts/:id`]: "experiment:write",
  [`GET ${P}/experiment_saved_metrics`]: "experiment_saved_metric:read",
  [`POST ${P}/experiment_saved_metrics`]: "experiment_saved_metric:write",
  [`GET ${P}/experiment_saved_metrics/:id`]: "experiment_saved_metric:read",
  [`PATCH ${P}/experiment_saved_metrics/:id`]: "experiment_saved_metric:write",
  [`DELETE ${P}/experiment_saved_metrics/:id`]: "experiment_saved_metric:write",
  [`GET ${P}/experiments`]: "experiment:read",
  [`POST ${P}/experiments`]: "experiment:write",
  [`GET ${P}/experiments/:id`]: "experiment:read",
  [`PATCH ${P}/experiments/:id`]: "experiment:write",
  [`DELETE ${P}/experiments/:id`]: "experiment:write",
  [`GET ${P}/experiments/:id/activity`]: "activity_log:read",
  [`GET ${P}/experiments/activity`]: "activity_log:read",
  [`GET ${P}/experiments/:id/results`]: "experiment:read",
  [`GET ${P}/experiments/:id/timeseries_results`]: "experiment:read",
  [`GET ${P}/experiments/eligible_feature_flags`]: "feature_flag:read",
  [`GET ${P}/experiments/stats`]: "experiment:read",
  [`POST ${P}/experiments/:id/archive`]: "experiment:write",
  [`POST ${P}/experiments/:id/create_exposure_cohort_for_experiment`]: "experiment:write+cohort:write",
  [`POST ${P}/experiments/:id/duplicate`]: "experiment:write",
  [`POST ${P}/experiments/:id/end`]: "experiment:write",
  [`POST ${P}/experiments/:id/launch`]: "experiment:write",
  [`POST ${P}/experiments/:id/pause`]: "experiment:write",
  [`POST ${P}/experiments/:id/reset`]: "experiment:write",
  [`POST ${P}/experiments/:id/resume`]: "experiment:write",
  [`POST ${P}/experiments/:id/ship_variant`]: "experiment:write",
  [`POST ${P}/experiments/:id/unarchive`]: "experiment:write",
  [`GET ${P}/web_experiments`]: "web_experiment:read",
  [`POST ${P}/web_experiments`]: "web_experiment:write",
  [`GET ${P}/web_experiments/:id`]: "web_experiment:read",
  [`PATCH ${P}/web_experiments/:id`]: "web_experiment:write",
  [`DELETE ${P}/web_experiments/:id`]: "web_experiment:write",
  [`POST ${P}/experiments/calculate_running_time`]: "experiment:read",
  [`GET ${P}/annotations`]: "annotation:read",
  [`POST ${P}/annotations`]: "annotation:write",
  [`GET ${P}/annotations/:id`]: "annotation:read",
  [`PATCH ${P}/annotations/:id`]: "annotation:write",
  [`DELETE ${P}/annotations/:id`]: "annotation:write",
  [`GET ${P}/share_links`]: "sharing_configuration:read",
  [`POST ${P}/share_links`]: "full",
  [`DELETE ${P}/share_links/:id`]: "sharing_configuration:write",
  [`GET ${P}/webhooks`]: "webhook:read",
  [`POST ${P}/webhooks`]: "full",
  [`GET ${P}/webhooks/:id`]: "webhook:read",
  [`PATCH ${P}/webhooks/:id`]: "webhook:write",
  [`DELETE ${P}/webhooks/:id`]: "webhook:write",
  [`POST ${P}/webhooks/:id/rotate_secret`]: "full",
  [`POST ${P}/webhooks/:id/test`]: "webhook:write",
  [`GET ${P}/webhooks/:id/deliveries`]: "webhook:read",
  [`GET ${P}/webhooks/:id/deliveries/:delivery_id`]: "webhook:read",
  [`GET ${P}/cohorts`]: "cohort:read",
  [`POST ${P}/cohorts`]: "cohort:write",
  [`GET ${P}/cohorts/:id`]: "cohort:read",
  [`PATCH ${P}/cohorts/:id`]: "cohort:write",
  [`PUT ${P}/cohorts/:id`]: "cohort:write",
  [`DELETE ${P}/cohorts/:id`]: "cohort:write",
  [`GET ${P}/cohorts/:id/persons`]: "cohort:read+person:read",
  [`GET ${P}/cohorts/:id/sizes`]: "cohort:read",
  [`GET ${P}/dashboards`]: "dashboard:read",
  [`POST ${P}/dashboards`]: "dashboard:write",
  [`GET ${P}/dashboards/:id`]: "dashboard:read",
  [`PATCH ${P}/dashboards/:id`]: "dashboard:write",
  [`GET ${P}/insights`]: "insight:read",
  [`POST ${P}/insights`]: "insight:write",
  [`POST ${P}/insights/sql`]: "query:read",
  [`GET ${P}/insights/:id`]: "insight:read",
  [`PATCH ${P}/insights/:id`]: "insight:write",
  [`GET ${P}/persons`]: "person:read",
  [`GET ${P}/persons/:uuid`]: "person:read",
  [`DELETE ${P}/persons/:uuid`]: "person:write",
  [`GET ${P}/groups`]: "group:read",
  [`GET ${P}/groups/find`]: "group:read",
  [`GET ${P}/groups_types`]: "group:read",
  [`GET ${P}/event_definitions`]: "event_definition:read",
  [`GET ${P}/property_definitions`]: "property_definition:read",
  [`GET ${P}/events/values`]: "event:read query:read",
  [`GET ${P}/persons/values`]: "person:read",
  [`GET ${P}/ingestion_warnings`]: "ingestion_warning:read project:read",
  [`GET ${P}/usage`]: "project:read",
  [`GET ${P}/spikes`]: "project:read",
  [`GET ${P}/events`]: "event:read query:read",
  [`GET ${P}/events/stream`]: "event:read query:read",
  [`GET ${P}/events/:id`]: "event:read query:read",
  [`POST ${P}/query`]: "query:read",
  [`DELETE ${P}/query/:client_query_id`]: "query:read",
  [`GET ${P}/imports`]: "event:read",
  [`POST ${P}/imports`]: "event:write",
  [`GET ${P}/imports/:import_id`]: "event:read",
  [`POST ${P}/imports/:import_id/parts`]: "event:write",
  [`POST ${P}/imports/:import_id/start`]: "event:write",
  [`POST ${P}/imports/:import_id/cancel`]: "event:write",
  [`GET ${P}/imports/:import_id/rejects`]: "event:read",
  [`DELETE ${P}/imports/:import_id`]: "event:write",
  "GET /api/organizations": "organization:read",
  [`GET ${O}`]: "organization:read",
  [`PATCH ${O}`]: "organization:write",
  [`GET ${O}/members`]: "organization_member:read",
  [`POST ${O}/members`]: "full",
  [`GET ${O}/members/:uuid`]: "organization_member:read",
  [`PATCH ${O}/members/:uuid`]: "organization_member:write",
  [`DELETE ${O}/members/:uuid`]: "organization_member:write",
  [`GET ${O}/members/:uuid/personal_api_keys`]: "organization_member:read",
  [`DELETE ${O}/members/:uuid/personal_api_keys/:id`]: "organization_member:write",
  [`POST ${O}/members/:uuid/link`]: "full",
  [`GET ${O}/projects`]: "project:read",
  [`POST ${O}/projects`]: "project:write",
  [`GET ${O}/roles`]: "organization:read",
  [`POST ${O}/roles`]: "organization:write",
  [`GET ${O}/roles/:id`]: "organization:read",
  [`PATCH ${O}/roles/:id`]: "organization:write",
  [`PUT ${O}/roles/:id`]: "organization:write",
  [`DELETE ${O}/roles/:id`]: "organization:write",
  [`GET ${O}/activity_log`]: "activity_log:read",
  [`GET ${O}/roles/:role_id/role_memberships`]: "organization:read",
  [`POST ${O}/roles/:role_id/role_memberships`]: "organization:write",
  [`GET ${O}/roles/:role_id/role_memberships/:id`]: "organization:read",
  [`DELETE ${O}/roles/:role_id/role_memberships/:id`]: "organization:write",
  "GET /api/users/:uuid": "user:read",
  "PATCH /api/users/:uuid": "user:write",
  "GET /api/personal_api_keys": "full",
  "POST /api/personal_api_keys": "full",
  "GET /api/personal_api_keys/@current": "any",
  "GET /api/personal_api_keys/:id": "full",
  "PATCH /api/personal_api_keys/:id": "full",
  "DELETE /api/personal_api_keys/:id": "full",
  "POST /api/personal_api_keys/:id/roll": "full",
  "POST /api/session": "console",
  "GET /api/session": "console",
  "DELETE /api/session": "console",
  "POST /api/session/setup": "console",
  "POST /api/session/setup/look": "console",
  "POST /api/session/confirm": "session",
  "POST /api/session/password": "session",
  "GET /api/sessions": "session",
  "DELETE /api/sessions": "session",
  "DELETE /api/sessions/:id": "session",
  "GET /api/instance/status": "full",
  "GET /api/instance/history": "full",
  "GET /api/instance/doctor": "full",
  "GET /api/instance/imports": "full",
  "GET /api/instance/refusals": "full",
  "GET /api/instance/backups": "full",
  "POST /api/instance/backups": "full",
  "GET /api/instance/backups/jobs/:id": "full",
  "POST /api/instance/backups/:name/verify": "full",
  "GET /api/instance/backups/:name/download": "full",
  "POST /api/instance/backups/:name/ticket": "full",
  "DELETE /api/instance/backups/:name": "full",
};

/** Every one that opens something, and one that does not. */
const allScopes = [...routeScopes, "survey:write"];

/** Routes that tell who you are, and what you may use, ignore the limits of a key. */
const ignoresLimits = new Set([
  "GET /api/projects",
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
    ...("alsoNeeds" in access && access.alsoNeeds ? [access.alsoNeeds] : []),
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

  test("takes the project's own secret key only where SDKs need it", async () => {
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
