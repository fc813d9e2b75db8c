/** Filters of lists, all that the OpenAPI document names: a value that cannot be parsed is never ignored. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openApiDocument } from "../../src/http/openapi.ts";
import { TestServer } from "../support/management-server.ts";
import { ServerProcess } from "../support/server.ts";

const server = new TestServer();
beforeAll(async () => {
  await server.ask("POST", "/api/projects/1/feature_flags/", { body: { key: "pay" } });
});
afterAll(() => server[Symbol.dispose]());

interface Parameter {
  name: string;
  in: string;
  schema: { type?: string; format?: string; enum?: string[]; anyOf?: { type?: string }[] };
}

/** Pages fall back to their default, an unknown order to the usual one; an unknown activity has no entries. */
const exceptions = new Set(["limit", "offset", "page", "order", "activity", "refresh"]);
/** Parameters of text with a form of their own. */
const ofOwnForm = new Set([
  "after",
  "cursor",
  "properties",
  "groups",
  "date_from",
  "date_to",
  "cohort",
  "ids",
]);

interface Filter {
  path: string;
  name: string;
}

/** The filters that a document names, of which a value may be wrong. */
function getFilters(document: {
  paths: Record<string, { get?: { parameters?: unknown[] } | undefined }>;
}): Filter[] {
  return Object.entries(document.paths).flatMap(([path, methods]) => {
    const parameters = (methods.get?.parameters ?? []) as Parameter[];
    return parameters
      .filter(({ in: place, name }) => place === "query" && !exceptions.has(name))
      .filter(({ name, schema: { type, format, enum: values, anyOf } }) => {
        const types = [type, ...(anyOf ?? []).map((each) => each.type)];
        const isParsed = types.some((each) => each === "integer" || each === "boolean");
        return isParsed || values !== undefined || format !== undefined || ofOwnForm.has(name);
      })
      .map(({ name }) => ({ path, name }));
  });
}

const filters = getFilters(openApiDocument(server.routes, "/"));

describe("a filter that cannot be parsed", () => {
  test("exists in many lists", () => {
    expect(filters.length).toBeGreaterThan(40);
  });

  test.each(filters.map(({ path, name }) => [path, name] as const))("%s rejects %s", async (path, name) => {
    const organization = server.first.organization.id;
    const at = path
      .replace("{project_id}", "1")
      .replace("{organization_id}", organization)
      .replaceAll(/\{\w+\}/g, "1");
    // A list of a part that does not exist is none; one that needs another parameter says so.
    const { status, body } = await server.ask("GET", `${at}?${name}=zzz`);
    expect([400, 404]).toContain(status);
    if (status === 400) expect(body.attr).toEqual(expect.any(String));
  });

  test("of persons and definitions is rejected where another filter does not use it", async () => {
    const project = "/api/projects/1";
    for (const path of [
      "persons/?after=zzz",
      "persons/?after=5",
      "property_definitions/?group_type_index=zzz",
    ])
      expect((await server.ask("GET", `${project}/${path}`)).status).toBe(400);
    expect((await server.ask("GET", `${project}/property_definitions/?group_type_index=0`)).status).toBe(200);
  });
});

test("the executable rejects a value that cannot be parsed in every filter of its document", async () => {
  await using started = await ServerProcess.start();
  const answer = async (path: string) => await started.api(path);
  const document = (await (await answer("/api/schema/")).json()) as Parameters<typeof getFilters>[0];
  const all = getFilters(document).filter(({ path }) => path.startsWith("/api/projects/"));
  expect(all.length).toBeGreaterThan(filters.length / 2);
  const project = String(started.initialized.project.id);
  const ignored: string[] = [];
  for (const { path, name } of all) {
    const at = path.replace("{project_id}", project).replaceAll(/\{\w+\}/g, "1");
    const { status } = await answer(`${at}?${name}=zzz`);
    if (status !== 400 && status !== 404) ignored.push(`${path}?${name}: ${status}`);
  }
  expect(ignored).toEqual([]);
}, 60_000);
