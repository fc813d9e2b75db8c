/** Tools derived from the table of operations: each is one request to the operation's route. */

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
} from "../operations/operation.ts";
import { toolOperations } from "../operations/table.ts";
import type { SendRequest } from "./send-request.ts";

type Answer = (request: () => Promise<Response>) => Promise<CallToolResult>;

/** Page sizes of tools: longer answers would fill a model's context. */
const [limitDefault, limitMax] = [20, 100];

const project = {
  ...{ type: "integer", minimum: 1 },
  description: "Project id; default: the current project of the key's user",
};
const page = {
  limit: { type: "integer", minimum: 1, maximum: limitMax, default: limitDefault },
  offset: { type: "integer", minimum: 0, default: 0 },
};

/** Registers the tools of all operations that have one, and the transitions of experiments as one tool. */
export function registerOperations(server: McpServer, answer: Answer, ask: SendRequest): void {
  for (const of of toolOperations) {
    server.registerTool(
      of.mcp!.name,
      {
        description: `${of.mcp!.description ?? `${of.summary}.`} Scope ${of.scope}.`,
        inputSchema: inputSchema(of),
        annotations: of.http.method === "GET" ? { readOnlyHint: true } : {},
      },
      (members: Members) => answer(() => send(of, members, ask)),
    );
  }
  registerLifecycle(server, answer, ask);
}

/** Unknown arguments are rejected by name. */
function inputSchema(of: Operation) {
  const schema = {
    type: "object",
    properties: { project, ...of.input.properties, ...(of.isList ? page : {}) },
    required: of.input.required ?? [],
    additionalProperties: false,
  };
  return z.fromJSONSchema(schema as never) as z.ZodObject;
}

function send(of: Operation, { project: id, ...members }: Members, ask: SendRequest): Promise<Response> {
  const inPath = pathMembers(of);
  const path = of.http.path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(members[name])),
  );
  const address = `/api/projects/${id ?? "@current"}${path}/`;
  const names = [...otherMembers(of).map(([name]) => name), ...(of.isList ? Object.keys(page) : [])];
  const others = Object.fromEntries(
    names
      .filter((name) => !inPath.includes(name) && members[name] !== undefined)
      .map((name) => [name, members[name]]),
  );
  const { method } = of.http;
  if (sendsQuery(of)) return ask(method as "GET", `${address}?${getQuery(others)}`);
  return ask(method as "POST" | "PATCH", address, others);
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
        project: z.number().int().positive().optional().describe(project.description),
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
