import { describe, expect, test } from "bun:test";
import { type OpenApiDocument, openApiDocument } from "../../src/http/openapi.ts";
import { captureRoutes } from "../../src/ingestion/routes.ts";
import { managementRoutes } from "../../src/serve/routes.ts";
import { TestEvaluation } from "../flags/api/support.ts";
import { FakeJournal, projects } from "../ingestion/support.ts";
import { TestServer } from "../support/management-server.ts";
import { getError } from "./json-schema.ts";

async function read() {
  using server = new TestServer();
  const answer = await server.ask("GET", "/api/schema/", { key: null });
  expect(answer.status).toBe(200);
  const document: OpenApiDocument = answer.body;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, path, operation })),
  );
  return { document, operations, routes: managementRoutes(server.deps) };
}

describe("the OpenAPI document", () => {
  test("has every route, with summary, tag, responses and scope", async () => {
    const { document, operations, routes } = await read();
    expect(document.openapi).toBe("3.1.0");
    const names = new Set(operations.map(({ name }) => name));
    for (const { method, path } of routes) {
      const name = `${method.toLowerCase()} ${path.replace(/:(\w+)/g, "{$1}")}/`;
      expect([name, names.has(name)]).toEqual([name, true]);
    }
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { name, path, operation } of operations) {
      expect([name, operation.summary.length > 5, operation.tags.length]).toEqual([name, true, 1]);
      expect(Object.keys(operation.responses).length).toBeGreaterThan(0);
      const isPublic = /^\/($|_|docs|api\/schema|api\/session\/(setup\/(look\/)?)?$)/.test(path);
      expect([name, operation.security.length > 0]).toEqual([name, !isPublic]);
      if (!isPublic)
        expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(["401", "403", "429"]));
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
      const declared = operation.parameters.filter((parameter) => parameter.in === "path");
      expect(declared.map((parameter) => parameter.name)).toEqual(inPath);
    }
  });

  test("declares the maximum length of every text of a management body", async () => {
    const { document, operations } = await read();
    const unbounded: string[] = [];
    const walk = (schema: Record<string, unknown>, path: string): void => {
      const name = (schema.$ref as string | undefined)?.split("/").at(-1);
      if (name !== undefined) walk(document.components.schemas[name] as never, path);
      if (schema.readOnly === true) return;
      for (const branch of (schema.anyOf ?? []) as never[]) walk(branch, path);
      const isFree = ["maxLength", "enum", "format", "const"].every((word) => schema[word] === undefined);
      if (schema.type === "string" && isFree) unbounded.push(path);
      if (schema.items !== undefined) walk(schema.items as never, `${path}[]`);
      for (const [member, part] of Object.entries(schema.properties ?? {})) walk(part, `${path}.${member}`);
    };
    for (const { name, operation } of operations) {
      const content =
        (operation.requestBody as { content?: Record<string, { schema: never }> })?.content ?? {};
      for (const { schema } of Object.values(content)) walk(schema, name);
    }
    expect(unbounded).toEqual([]);
  });

  test("has an example for every body and every response with a schema, and each example is valid", async () => {
    const { document, operations } = await read();
    const schemas = document.components.schemas;
    let count = 0;
    for (const { name, operation } of operations) {
      const holders = [["body", operation.requestBody] as const, ...Object.entries(operation.responses)];
      for (const [part, holder] of holders) {
        const content = (
          holder?.content as Record<string, { schema: never; example?: unknown }> | undefined
        )?.["application/json"];
        if (!content) continue;
        count++;
        const isLoose = part === "409" || part === "405";
        if (content.example === undefined && isLoose) continue;
        expect([name, part, getError(content.example, content.schema, schemas)]).toEqual([
          name,
          part,
          undefined,
        ]);
      }
    }
    expect(count).toBeGreaterThan(300);
  });

  test("declares 400 wherever a body or a parameter can be invalid", async () => {
    const { operations } = await read();
    for (const { name, operation } of operations) {
      const canBeWrong =
        operation.requestBody || operation.parameters.some(({ in: place }) => place === "query");
      if (canBeWrong)
        expect([name, Object.keys(operation.responses)]).toEqual([name, expect.arrayContaining(["400"])]);
    }
  });

  test("names the scope where one is needed", async () => {
    const { document } = await read();
    const flags = document.paths["/api/projects/{project_id}/feature_flags/"];
    expect(flags?.post?.security).toEqual([{ personalApiKey: ["feature_flag:write"] }]);
    expect(flags?.get?.description).toContain("`feature_flag:read`");
    const local = document.paths["/api/projects/{project_id}/feature_flags/local_evaluation/"]?.get;
    expect(local?.security).toEqual([{ personalApiKey: ["feature_flag:read"] }, { projectSecretKey: [] }]);
  });
});

test("the routes of client libraries are described, with right examples and without a scope", () => {
  using evaluation = new TestEvaluation();
  const capture = captureRoutes({ journal: new FakeJournal(), projects });
  const document = openApiDocument([...capture, ...evaluation.routes], "/");
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const operation of Object.values(methods)) {
      expect(operation.security).toEqual([]);
      for (const holder of [operation.requestBody, operation.responses["200"]]) {
        const content = (
          holder?.content as Record<string, { schema: never; example: unknown }> | undefined
        )?.["application/json"];
        if (!content) continue;
        const problem = getError(content.example, content.schema, document.components.schemas);
        expect([path, problem]).toEqual([path, undefined]);
      }
    }
  }
  expect(Object.keys(document.paths)).toContain("/array/{token}/config/");
});

describe("the documentation page", () => {
  test("shows every operation and needs nothing from elsewhere", async () => {
    using server = new TestServer();
    const page = await server.ask("GET", "/docs", { key: null });
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toContain("text/html");
    // Examples have addresses as text.
    expect(page.body).not.toMatch(/<script|<link|src=|url\(|="https?:\/\//);
    const { operations } = await read();
    expect((page.body as string).split("<summary><b").length - 1).toBe(operations.length);
  });
});
