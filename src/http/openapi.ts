/**
 * Generates the OpenAPI 3.1 document from the route records, so that it always matches the served routes.
 *
 * Pure.
 */

import type { TObject, TSchema } from "@sinclair/typebox";
import { version } from "../version.ts";
import type { Access, ResponseSpec, Route } from "./route.ts";
import { ApiFailure } from "./schemas.ts";

export type JsonSchema = { [name: string]: unknown };

export interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters: JsonSchema[];
  requestBody?: JsonSchema;
  responses: Record<string, JsonSchema>;
}

export interface OpenApiDocument {
  openapi: "3.1.0";
  info: { title: string; version: string; description: string };
  servers: { url: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, JsonSchema> };
}

const apiDescription =
  "The trailing slash of every path is optional. `/api/environments/…` is an alias of `/api/projects/…`. " +
  "`@current` instead of a project id selects the user's current project; `?token=` with a project's public key selects that project. " +
  "UUIDs are case-insensitive, with or without hyphens. " +
  "All errors have the same envelope unless a response documents another.";

/** The document of all routes. */
export function openApiDocument(routes: readonly Route[], serverUrl: string): OpenApiDocument {
  const schemas: Record<string, JsonSchema> = {};
  const paths: OpenApiDocument["paths"] = {};
  for (const route of routes) {
    const path = `${route.path.replace(/:(\w+)/g, "{$1}").replace(/\/$/, "")}/`;
    const operations = paths[path] ?? {};
    paths[path] = operations;
    operations[route.method.toLowerCase()] = getOperation(route, schemas);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Flagkeep", version, description: apiDescription },
    servers: [{ url: serverUrl }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas, securitySchemes: securitySchemeTable },
  };
}

const securitySchemeTable = {
  personalApiKey: {
    type: "http",
    scheme: "bearer",
    description: "A personal key (`phx_…`). `X:write` includes `X:read`; `*` includes everything.",
  },
  session: {
    type: "apiKey",
    in: "cookie",
    name: "flagkeep-ID",
    description:
      "The cookie of the console, over https `__Host-flagkeep-ID`. Valid only with the header `X-Flagkeep-Console: 1` from a page of this server, wherever a personal key is valid.",
  },
  projectSecretKey: { type: "http", scheme: "bearer", description: "The secret key of a project (`phs_…`)." },
};

function getOperation(route: Route, schemas: Record<string, JsonSchema>): Operation {
  const access = route.access;
  const answers = { ...commonFailures(route, access), ...route.answers };
  return {
    operationId: getOperationId(route),
    summary: route.summary,
    description: [route.description, scopeSentence(route)].filter(Boolean).join("\n\n") || undefined,
    tags: [route.tag],
    security: getSecurity(route),
    parameters: [...pathParameters(route.path), ...queryParameters(route.query, schemas)],
    ...(route.body ? { requestBody: getRequestBody(route, schemas) } : {}),
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, answer]) => [status, getResponse(answer, schemas)]),
    ),
  };
}

function getOperationId({ method, path }: Route): string {
  const words = path.split(/[/_:.@-]+/).filter((word) => word !== "" && word !== "api");
  return method.toLowerCase() + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("");
}

function scopeSentence({ access, makesCredential }: Route): string {
  if (access.on === "public") return "";
  if (access.on === "console")
    return "Only for the console's page (`X-Flagkeep-Console: 1`); no key is read.";
  if (access.on === "session") return "Requires a session; keys are not accepted.";
  if (makesCredential === true)
    return "Creates a credential: requires a personal key with `*` and no restriction, or a session with password re-authentication that was not created with a restricted key.";
  if (access.on === "user" && access.needsFullAccess)
    return "Requires a personal key with the scope `*` and no restriction.";
  const wanted = access.scopes.map((scope) => `\`${scope}\``).join(" or ");
  const others = access.on === "project" ? (access.alsoNeeds ?? []) : [];
  const also = others.map((scope) => ` and \`${scope}\``).join("");
  return wanted === "" ? "Requires any personal key." : `Requires the scope ${wanted}${also}.`;
}

function getSecurity({ access, makesCredential }: Route): Record<string, string[]>[] {
  if (access.on === "public" || access.on === "console") return [];
  if (access.on === "session") return [{ session: [] }];
  if (makesCredential === true) return [{ personalApiKey: ["*"] }];
  const also = access.on === "project" ? (access.alsoNeeds ?? []) : [];
  const full = access.on === "user" && access.needsFullAccess ? ["*"] : [];
  const scopes = access.scopes.length > 0 ? access.scopes : [undefined];
  const personal = scopes.map((scope) => ({
    personalApiKey: [...(scope ? [scope] : []), ...also, ...full],
  }));
  const secret = access.on === "project" && access.takesSecretKey ? [{ projectSecretKey: [] }] : [];
  return [...personal, ...secret];
}

function pathParameters(path: string): JsonSchema[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
    ...(currentParameters.has(name!) ? { description: "The id, or `@current`." } : {}),
  }));
}

const currentParameters = new Set(["project_id", "organization_id"]);

function queryParameters(query: TObject | undefined, schemas: Record<string, JsonSchema>): JsonSchema[] {
  if (!query) return [];
  const required = new Set(query.required ?? []);
  return Object.entries(query.properties).map(([name, schema]) => {
    const { description, ...rest } = referenced(schema, schemas);
    return { name, in: "query", required: required.has(name), description, schema: rest };
  });
}

function getRequestBody(route: Route, schemas: Record<string, JsonSchema>): JsonSchema {
  const isPartial = route.method === "PATCH";
  const { required, ...schema } = referenced(route.body!, schemas);
  const shown = isPartial || required === undefined ? schema : { ...schema, required };
  return {
    required: true,
    content: { "application/json": { schema: shown, example: route.bodyExample } },
  };
}

function getResponse(answer: ResponseSpec, schemas: Record<string, JsonSchema>): JsonSchema {
  if (!answer.schema) return { description: answer.description };
  return {
    description: answer.description,
    content: { "application/json": { schema: referenced(answer.schema, schemas), example: answer.example } },
  };
}

/** A plain copy of a schema; named ones are listed under `components` and referenced. */
function referenced(schema: TSchema, schemas: Record<string, JsonSchema>): JsonSchema {
  return copied(schema as unknown, schemas) as JsonSchema;
}

function copied(value: unknown, schemas: Record<string, JsonSchema>): unknown {
  if (Array.isArray(value)) return value.map((item) => copied(item, schemas));
  if (typeof value !== "object" || value === null) return value;
  const { $id: name, ...rest } = value as JsonSchema;
  const copy = Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, copied(inner, schemas)]));
  if (typeof name !== "string") return copy;
  schemas[name] = copy;
  return { $ref: `#/components/schemas/${name}` };
}

function commonFailures(route: Route, access: Access): Record<number, ResponseSpec> {
  const failures: Record<number, ResponseSpec> = {};
  const add = (status: number, description: string, type: string, code: string, detail: string) => {
    failures[status] = { description, schema: ApiFailure, example: { type, code, detail, attr: null } };
  };
  if (route.query && !route.body) {
    const detail = "A valid integer is required.";
    add(400, "Invalid parameter.", "validation_error", "invalid_input", detail);
  }
  if (route.body) {
    add(400, "Invalid body.", "invalid_request", "parse_error", "JSON parse error - …");
    add(
      413,
      "The body is too large.",
      "invalid_request",
      "request_too_large",
      "The request body is larger …",
    );
  }
  if (access.on !== "public") {
    const credentials = "Authentication credentials were not provided.";
    add(401, "The key is missing or invalid.", "authentication_error", "not_authenticated", credentials);
    const scope = "scopes" in access ? access.scopes[0] : undefined;
    const denied = scope ? `API key missing required scope '${scope}'` : "You do not have permission.";
    add(403, "The key or its user lacks permission.", "authentication_error", "permission_denied", denied);
    add(429, "Too many requests, if rate limits are enabled.", "throttled_error", "throttled", "…");
  }
  if (route.path.includes(":")) {
    add(404, "Not found.", "invalid_request", "not_found", "Not found.");
  }
  return failures;
}
