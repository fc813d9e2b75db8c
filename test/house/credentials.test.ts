/**
 * A route whose answer has a credential says so in its declaration (`makesCredential`): the answers' schemas and examples
 * are searched for names and values of credentials.
 */

import { expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import type { Route } from "../../src/http/route.ts";
import { instanceRoutes } from "../../src/operate/api/instance.ts";
import { managementRoutes } from "../../src/serve/routes.ts";
import { TestServer } from "../support/management-server.ts";

/** Names of texts that may be credentials. */
const suspicious =
  /(^|_)(value|values|token|tokens|secret|secrets|password|passwords|link|links|url|urls|ticket|key_value)(_backup)?$/;

/** Texts of such names that are none, by name or by path, with the reason. */
const harmless: Record<string, string> = {
  api_token: "the public project key",
  api_token_backup: "the public project key before it",
  documentation_url: "a public page about a feature",
  mask_value: "the last four characters of a key",
  "GET /api/projects/:project_id/feature_flags/usage: 200.results[].values[].value": "the value of a flag",
  "GET /api/projects/:project_id/surveys/:id/stats: 200.questions[].distribution[].value":
    "a choice or a rating",
  "GET /api/projects/:project_id/webhooks: 200.results[].url": "an address without its secret parts",
  "GET /api/projects/:project_id/webhooks/:id: 200.url": "the same",
  "PATCH /api/projects/:project_id/webhooks/:id: 200.url": "the same",
  "GET /api/instance/status: 200.url": "the address of the server",
};

/** A personal key, a secret project key, a one-time link, the address of a download. */
const credentials = /\b(?:ph[xsl]|whsec)_[0-9A-Za-z]{20}|\/setup#|\/downloads\/\w/;

/** The texts of a schema with suspicious names, as paths. */
function suspects(schema: TSchema, path = ""): string[] {
  const name = path.slice(path.lastIndexOf(".") + 1).replaceAll("[]", "");
  const parts = [
    ...((schema.anyOf as TSchema[] | undefined) ?? []).flatMap((branch) => suspects(branch, path)),
    ...(schema.items === undefined ? [] : suspects(schema.items as TSchema, `${path}[]`)),
    ...Object.entries((schema.properties as Record<string, TSchema> | undefined) ?? {}).flatMap(
      ([member, part]) => suspects(part, `${path}.${member}`),
    ),
  ];
  const isText = schema.type === "string" && schema.enum === undefined && schema.format === undefined;
  return isText && suspicious.test(name) && harmless[name] === undefined ? [path, ...parts] : parts;
}

/** What a route's answers may give away. */
function givenAway(route: Route): string[] {
  return Object.entries(route.answers).flatMap(([status, { schema, example }]) => [
    ...(schema === undefined ? [] : suspects(schema).map((path) => `${status}${path}`)),
    ...(credentials.test(JSON.stringify(example) ?? "") ? [`${status} example`] : []),
  ]);
}

function allRoutes(server: TestServer): Route[] {
  const instance = instanceRoutes({ metadata: server.metadata, backups: {} } as never);
  return [...managementRoutes(server.deps), ...instance];
}

test("no response contains a credential unless the route is marked", () => {
  using server = new TestServer();
  const unmarked = allRoutes(server)
    .filter(({ makesCredential }) => makesCredential === undefined)
    .flatMap((route) => givenAway(route).map((what) => `${route.method} ${route.path}: ${what}`))
    .filter((path) => harmless[path] === undefined);
  expect(unmarked).toEqual([]);
});

test("the search finds what it is for", () => {
  using server = new TestServer();
  const found = allRoutes(server).filter((route) => givenAway(route).length > 0);
  for (const name of [
    "POST /api/personal_api_keys",
    "POST /api/personal_api_keys/:id/roll",
    "POST /api/organizations/:organization_id/members",
    "POST /api/organizations/:organization_id/members/:uuid/link",
    "POST /api/projects/:project_id/rotate_secret_token",
    "GET /api/projects/:project_id",
    "POST /api/instance/backups/:name/ticket",
  ])
    expect(found.map(({ method, path }) => `${method} ${path}`)).toContain(name);
});
