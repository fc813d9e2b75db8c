import type { TObject, TSchema } from "@sinclair/typebox";
import {
  type OrganizationCall,
  organizationRoute,
  type ProjectCall,
  projectRoute,
  type UserCall,
  userRoute,
} from "../accounts/api/routes.ts";
import type { Scope } from "../accounts/route-scopes.ts";
import { pageAnswer, readPage } from "../http/pagination.ts";
import { readId, readUuid } from "../http/params.ts";
import { csvResponse, getFileFormat } from "../http/result-files.ts";
import { type ResponseSpec, type Route, RouteResponse } from "../http/route.ts";
import { object, pageExample, withPage } from "../http/schemas.ts";
import {
  type CursorPage,
  type Members,
  type Operation,
  otherMembers,
  pathMembers,
  type Run,
  sendsQuery,
} from "./operation.ts";

type AnyCall = UserCall & Partial<Pick<OrganizationCall & ProjectCall, "organization" | "project">>;

/** One route per operation, in order. @param stores what they read and write. */
export function operationRoutes(operations: readonly Operation[], stores: object): Route[] {
  return operations.map((operation) => getRoute(operation, stores));
}

function getRoute(operation: Operation, stores: object): Route {
  const { method, path } = operation.http;
  const others = object(Object.fromEntries(otherMembers(operation)));
  const spec = {
    summary: operation.summary,
    description: operation.description,
    tag: operation.tag,
    ...(sendsQuery(operation) ? getQuery(operation, others) : getBody(operation, others)),
    answers: { [getStatus(operation)]: getAnswer(operation), ...operation.http.errors },
    takesRawBody: operation.http.takesRawBody,
    requiresReauthentication: operation.http.requiresReauthentication,
    isLongRunning: operation.http.isLongRunning,
    makesCredential: getMakesCredential(operation, stores),
    handle: (call: AnyCall) => handle(operation, stores, call),
  };
  switch (operation.on) {
    case "organization":
      return organizationRoute(method, path, operation.scope as Scope, spec);
    case "project":
      return projectRoute(method, path, operation.scope!, {
        ...spec,
        alsoNeeds: operation.http.alsoNeeds,
        takesArchived: operation.http.takesArchived,
        aliases: operation.http.aliases,
      });
    case "user":
      return userRoute(method, path, [operation.scope ?? []].flat(), {
        ...spec,
        allowsScopedKeys: operation.http.allowsScopedKeys,
        needsFullAccess: operation.http.needsFullAccess,
      });
  }
}

function getQuery({ isList }: Operation, others: TObject): { query?: TObject } {
  if (isList) return { query: withPage(others) };
  return Object.keys(others.properties).length === 0 ? {} : { query: others };
}

function getBody({ inputExample }: Operation, others: TObject): { body?: TObject; bodyExample?: unknown } {
  if (Object.keys(others.properties).length === 0) return {};
  return { body: others, bodyExample: inputExample };
}

function getStatus({ http, output: schema }: Operation, output?: unknown): number {
  const { status = schema === undefined ? 204 : 200 } = http;
  if (typeof status === "number") return status;
  return output === undefined ? 200 : status(output as never);
}

function getAnswer(operation: Operation): ResponseSpec {
  const { http, output, example } = operation;
  if (output === undefined) return { description: http.answer ?? "Gone." };
  const description = http.answer ?? "The result.";
  if (operation.isCursorList) {
    const results = example === undefined ? [] : [example];
    const count = "total_count" in output.properties ? { total_count: results.length } : {};
    const page = { next: null, previous: null, results, ...count };
    return { description, schema: output, example: page };
  }
  return operation.isList
    ? pageExample(description, output, example)
    : { description, schema: output, example };
}

function getMakesCredential(operation: Operation, stores: object) {
  const { makesCredential } = operation.http;
  if (typeof makesCredential !== "function") return makesCredential;
  const decide = makesCredential as (context: object, input: Members) => boolean;
  return (call: AnyCall) => decide(getContext(stores, call), getInput(operation, call));
}

function getContext(stores: object, call: AnyCall) {
  const { user, limits, key, session, seesCredentials, organization, project, now } = call;
  return {
    stores,
    actor: { kind: "user", user, limits, key, keyId: key?.id ?? session?.keyId ?? null, seesCredentials },
    organization,
    project,
    now,
    baseUrl: () => call.baseUrl,
  };
}

function getInput(operation: Operation, call: AnyCall): Members {
  const input: Members = operation.http.takesRawBody
    ? { body: call.body }
    : { ...(call.body as Members | undefined) };
  if (operation.readQuery !== undefined) Object.assign(input, operation.readQuery(call.query));
  for (const name of pathMembers(operation)) {
    input[name] = pathValue(operation.input.properties[name]!, call.params, name);
  }
  return input;
}

async function handle(operation: Operation, stores: object, call: AnyCall): Promise<unknown> {
  const context = getContext(stores, call);
  const input = getInput(operation, call);
  if (operation.csv !== undefined && getFileFormat(call.request) === "csv")
    return csvResponse(
      operation.csv.fileName,
      operation.csv.rows(context as never, input as never),
      call.isStillAllowed,
    );
  if (operation.isList) {
    const page = readPage(call.query, operation.pageSizeMax);
    const output = await (operation.run as Run)(context, { ...input, ...page });
    const { count, results } = output as { count: number; results: unknown[] };
    return pageAnswer(call.url, page, count, results);
  }
  const output = await (operation.run as Run)(context, input);
  if (operation.isCursorList) return withLinks(call.url, output as CursorPage<unknown>);
  const status = getStatus(operation, output);
  return status === 200 ? output : new RouteResponse(status, output);
}

/** A page with links to its neighbors. @param url of this page */
function withLinks(url: string, { next, previous, ...page }: CursorPage<unknown>): object {
  const link = (change: Members | null) => change && withQuery(url, change);
  return { next: link(next), previous: link(previous), ...page };
}

function withQuery(url: string, change: Members): string {
  const target = new URL(url);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) target.searchParams.delete(name);
    else target.searchParams.set(name, String(value));
  }
  return target.href;
}

function pathValue(schema: TSchema, params: Record<string, string>, name: string): unknown {
  if (schema.type === "integer") return readId(params, name);
  return schema.format === "uuid" ? readUuid(params, name) : (params[name] ?? "");
}
