/** Tools derived from the table of operations: each is a request to the operation's route. */

import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
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
import { toArguments } from "./argument-schema.ts";

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
  for (const { of, form } of tools) {
    const { description = `${of.summary}.`, hints } = form;
    server.registerTool(
      form.name,
      {
        description:
          of.scope === undefined ? description : `${description} Scope ${[of.scope].flat().join(" or ")}.`,
        inputSchema: inputSchema(of, form),
        annotations: of.http.method === "GET" ? { readOnlyHint: true } : (hints ?? {}),
      },
      (given: Members) => answer(() => call(of, form, given, ask)),
    );
  }
  registerLifecycle(server, answer, ask);
}

/** Unknown arguments are rejected by name. */
function inputSchema(of: Operation, form: ToolForm): z.ZodObject {
  return z.strictObject({
    ...(of.on === "project" ? { project: projectArgument } : {}),
    ...toArguments(form.arguments ?? of.input.properties),
    ...(of.isList ? pageOf(form) : {}),
  });
}

async function call(
  of: Operation,
  { target, fixed }: ToolForm,
  { project: id, ...given }: Members,
  ask: SendRequest,
): Promise<Response> {
  const address = `/api/projects/${id ?? "@current"}`;
  if (target === undefined) return send(of, address, { ...given, ...fixed }, ask);
  const { [target.argument]: named, ...others } = given;
  const value = target.lookup === undefined ? named : await find(target.lookup, address, given, ask);
  return send(of, address, { ...others, ...fixed, [target.member]: value }, ask);
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
function send(of: Operation, address: string, members: Members, ask: SendRequest): Promise<Response> {
  const inPath = pathMembers(of);
  const path = of.http.path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(members[name])),
  );
  const target = `${of.on === "project" ? address : ""}${path}/`;
  const names = [...otherMembers(of).map(([name]) => name), ...(of.isList ? ["limit", "offset"] : [])];
  const others = Object.fromEntries(
    names
      .filter((name) => !inPath.includes(name) && members[name] !== undefined)
      .map((name) => [name, members[name]]),
  );
  const method = of.http.method as "GET" | "POST" | "PATCH" | "DELETE";
  return sendsQuery(of) ? ask(method, `${target}?${getQuery(others)}`) : ask(method, target, others);
}

const actions = [
  "launch",
  "pause",
  "resume",
  "end",
  "ship_variant",
  "reset",
  "archive",
  "unarchive",
] as const;

function registerLifecycle(server: McpServer, answer: Answer, ask: SendRequest): void {
  server.registerTool(
    "experiment_lifecycle",
    {
      description:
        "Launch, pause, resume, end, reset, archive or unarchive an experiment, or ship one of its variants to everyone. Scope experiment:write.",
      inputSchema: z.strictObject({
        project: projectArgument,
        id: z.number().int().describe("Id of the experiment"),
        action: z.enum(actions),
        variant_key: z.string().optional().describe("ship_variant: the variant"),
        release_to_everyone: z
          .boolean()
          .optional()
          .describe("ship_variant: false keeps the present condition sets"),
        conclusion: z.enum(["won", "lost", "inconclusive", "stopped_early", "invalid"]).optional(),
        conclusion_comment: z.string().max(3_000).optional(),
      }),
    },
    ({ project: of, id, action, ...members }) =>
      answer(() => ask("POST", `/api/projects/${of ?? "@current"}/experiments/${id}/${action}/`, members)),
  );
}
