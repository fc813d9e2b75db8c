/** Tools derived from the table of operations: each is a request to the operation's route. */

import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type TProperties, Type } from "@sinclair/typebox";
import { z } from "zod";
import { experimentTransitions } from "../operations/experiment-transitions.ts";
import {
  getQuery,
  type Members,
  type Operation,
  otherMembers,
  pathMembers,
  sendsQuery,
  type ToolForm,
  type ToolTarget,
} from "../operations/operation.ts";
import { tools } from "../operations/table.ts";

/**
 * Sends a request to the management API with the caller's key.
 *
 * @param path   starts with `/api/`.
 * @param signal aborted when the caller cancels.
 */
export type SendRequest = (
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  body?: object,
  signal?: AbortSignal,
) => Promise<Response>;

type Answer = (request: () => Promise<Response>) => Promise<CallToolResult>;

/** Page sizes of tools: longer answers would fill a model's context. */
const limitDefault = 20;
const limitMax = 100;

/** The argument of tools that work in a project. */
export const projectArgument = z
  .int()
  .positive()
  .optional()
  .describe("Project id; default: the current project of the key's user");
const pageOf = (form: ToolForm) => ({
  limit: z
    .int()
    .min(1)
    .max(limitMax)
    .default(form.limitDefault ?? limitDefault),
  offset: z.int().min(0).default(0),
});

/** The API rejected a request that precedes the intended one. */
class ToolError extends Error {}

/** Registers the tools of all operations that have one, and the transitions of experiments as one tool. */
export function registerOperations(server: McpServer, answer: Answer, ask: SendRequest): void {
  for (const { operation, form } of tools) {
    const { summary, scope, http } = operation;
    const { description = `${summary}.`, hints } = form;
    server.registerTool(
      form.name,
      {
        description:
          scope === undefined ? description : `${description} Scope ${[scope].flat().join(" or ")}.`,
        inputSchema: inputSchema(operation, form),
        annotations: http.method === "GET" ? { readOnlyHint: true } : (hints ?? {}),
      },
      (given: Members) => answer(() => call(operation, form, given, ask)),
    );
  }
  registerLifecycle(server, answer, ask);
}

/** Unknown arguments are rejected by name. */
function inputSchema(operation: Operation, form: ToolForm): z.ZodObject {
  return z.strictObject({
    ...(operation.on === "project" ? { project: projectArgument } : {}),
    ...toArguments(form.arguments ?? operation.input.properties),
    ...(operation.isList ? pageOf(form) : {}),
  });
}

async function call(
  operation: Operation,
  { target, fixed }: ToolForm,
  { project: id, ...given }: Members,
  ask: SendRequest,
): Promise<Response> {
  const address = `/api/projects/${id ?? "@current"}`;
  if (target === undefined) return send(operation, address, { ...given, ...fixed }, ask);
  const { [target.argument]: named, ...others } = given;
  const value = target.lookup === undefined ? named : await find(target.lookup, address, given, ask);
  return send(operation, address, { ...others, ...fixed, [target.member]: value }, ask);
}

/** The value of the first record that the arguments name. @throws {ToolError} */
async function find(
  lookup: NonNullable<ToolTarget["lookup"]>,
  address: string,
  given: Members,
  ask: SendRequest,
): Promise<unknown> {
  for (const search of lookup.searches(given)) {
    const found = await send(lookup.in(), address, { ...search, limit: limitMax }, ask);
    if (!found.ok) throw new ToolError(await found.text());
    const { results } = (await found.json()) as { results: unknown[] };
    const record = results.find((each) => lookup.matches(each as never, given));
    if (record !== undefined) return lookup.value(record as never);
  }
  throw new ToolError(lookup.missing(given));
}

/** @param address of the project, for operations of projects */
function send(operation: Operation, address: string, members: Members, ask: SendRequest): Promise<Response> {
  const inPath = pathMembers(operation);
  const path = operation.http.path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(members[name])),
  );
  const target = `${operation.on === "project" ? address : ""}${path}/`;
  const names = [
    ...otherMembers(operation).map(([name]) => name),
    ...(operation.isList ? ["limit", "offset"] : []),
  ];
  const others = Object.fromEntries(
    names
      .filter((name) => !inPath.includes(name) && members[name] !== undefined)
      .map((name) => [name, members[name]]),
  );
  const method = operation.http.method as "GET" | "POST" | "PATCH" | "DELETE";
  return sendsQuery(operation) ? ask(method, `${target}?${getQuery(others)}`) : ask(method, target, others);
}

/** What any transition takes. */
const transitionMembers = Object.assign({}, ...experimentTransitions.map(({ input }) => input.properties));
const actions = experimentTransitions.map(({ http }) => http.path.split("/").at(-1)!);

function registerLifecycle(server: McpServer, answer: Answer, ask: SendRequest): void {
  server.registerTool(
    "experiment_lifecycle",
    {
      description:
        "Launch, pause, resume, end, reset, archive or unarchive an experiment, or ship one of its variants to everyone. Scope experiment:write.",
      inputSchema: z.strictObject({
        project: projectArgument,
        ...toMembers({ properties: transitionMembers }),
        id: z.int().describe("Id of the experiment"),
        action: z.enum(actions),
      }),
    },
    ({ project = "@current", id, action, ...members }: Members) =>
      answer(() => ask("POST", `/api/projects/${project}/experiments/${id}/${action}/`, members)),
  );
}

/*
 * The arguments of tools as zod schemas, which the library of MCP wants, from the TypeBox schemas of operations.
 *
 * Not `z.fromJSONSchema`: it makes a union of a nullable object, whose error hides which member is unknown.
 */

/** The parts of a JSON schema that inputs of operations use. */
interface Shape {
  type?: string;
  enum?: readonly (string | number)[];
  format?: string;
  anyOf?: readonly Shape[];
  items?: Shape;
  properties?: Record<string, Shape>;
  patternProperties?: Record<string, Shape>;
  required?: readonly string[];
  additionalProperties?: unknown;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  description?: string;
  default?: unknown;
}

/** Arguments of a tool, by name. */
function toArguments(properties: TProperties): z.ZodRawShape {
  return toMembers(Type.Object(properties) as Shape);
}

function toMembers({ properties = {}, required = [] }: Shape): z.ZodRawShape {
  return Object.fromEntries(
    Object.entries(properties).map(([name, shape]) => {
      const member = toZod(shape);
      return [name, required.includes(name) ? member : describe(member.optional(), shape)];
    }),
  );
}

function toZod(shape: Shape): z.ZodType {
  return describe(shape.anyOf === undefined ? toPlain(shape) : toUnion(shape.anyOf), shape);
}

/** Keeps the default as documentation: the API applies it. */
function describe(schema: z.ZodType, { description, default: byApi }: Shape): z.ZodType {
  return schema.meta({
    ...(description === undefined ? {} : { description }),
    ...(byApi === undefined ? {} : { default: byApi }),
  });
}

function toUnion(branches: readonly Shape[]): z.ZodType {
  const others = branches.filter(({ type }) => type !== "null").map(toZod);
  const schema = others.length === 1 ? others[0]! : z.union(others);
  return others.length === branches.length ? schema : schema.nullable();
}

/** Clients send a choice between "true" and "false" as a boolean too. */
function toChoice(choices: readonly (string | number)[]): z.ZodType {
  const literal = z.literal([...choices]);
  return choices.includes("true") && choices.includes("false") ? z.union([literal, z.boolean()]) : literal;
}

function toPlain(shape: Shape): z.ZodType {
  if (shape.enum !== undefined) return toChoice(shape.enum);
  switch (shape.type) {
    case "string":
      return toText(shape);
    case "integer":
      return withinRange(z.int(), shape);
    case "number":
      return withinRange(z.number(), shape);
    case "boolean":
      return z.boolean();
    case "array":
      return toList(shape);
    case "object":
      return toObject(shape);
    default:
      return z.unknown();
  }
}

function toText({ minLength, maxLength, pattern }: Shape): z.ZodType {
  let schema = z.string();
  if (minLength !== undefined) schema = schema.min(minLength);
  if (maxLength !== undefined) schema = schema.max(maxLength);
  return pattern === undefined ? schema : schema.regex(new RegExp(pattern));
}

function withinRange(schema: z.ZodNumber, { minimum, maximum }: Shape): z.ZodType {
  let limited = schema;
  if (minimum !== undefined) limited = limited.min(minimum);
  if (maximum !== undefined) limited = limited.max(maximum);
  return limited;
}

function toList({ items, minItems, maxItems }: Shape): z.ZodType {
  let schema = z.array(items === undefined ? z.unknown() : toZod(items));
  if (minItems !== undefined) schema = schema.min(minItems);
  if (maxItems !== undefined) schema = schema.max(maxItems);
  return schema;
}

function toObject(shape: Shape): z.ZodType {
  const [values] = Object.values(shape.patternProperties ?? {});
  if (values !== undefined) return z.record(z.string(), toZod(values));
  if (shape.properties === undefined) return z.record(z.string(), z.unknown());
  const members = toMembers(shape);
  return shape.additionalProperties === false ? z.strictObject(members) : z.looseObject(members);
}
