/**
 * The MCP server: each tool is one request to the management API.
 *
 * The caller sends a personal key, and the API checks its scopes: a tool can do nothing else.
 */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";
import { columnsDescription } from "../events/export/columns.ts";
import { version } from "../version.ts";
import { projectArgument as project, registerOperations, type SendRequest } from "./operation-tools.ts";

/** Longer responses would fill a model's context; truncation is reported. */
const answerLengthMax = 60_000;
const rowsDefault = 100;
const rowsMax = 1_000;

/** An MCP server for one caller. Unknown arguments of a tool are rejected by name (contract, management-api 8). */
export function mcpServer(ask: SendRequest): McpServer {
  const server = new McpServer({ name: "flagkeep", version });
  server.registerTool(
    "query_events",
    {
      description:
        `Run one SELECT in DuckDB SQL over the views events (${columnsDescription("events")}), ` +
        `persons (${columnsDescription("persons")}) and groups (${columnsDescription("groups")}). properties is JSON: ` +
        "properties->>'plan'. Scope query:read.",
      inputSchema: z.strictObject({
        project,
        sql: z.string().min(1).describe("One SELECT statement"),
        limit: z.number().int().min(1).max(rowsMax).default(rowsDefault),
      }),
      annotations: { readOnlyHint: true },
    },
    ({ project: id, sql, limit }, { signal }) =>
      answer(() => ask("POST", `/api/projects/${id ?? "@current"}/query/`, { query: sql, limit }, signal)),
  );
  registerOperations(server, (request) => answer(request), ask);
  return server;
}

/** Converts an API response to a tool result; a rejection is a result flagged as an error, readable by the model. */
async function answer(request: () => Promise<Response>) {
  try {
    const response = await request();
    const text = await response.text();
    const shown =
      text.length <= answerLengthMax
        ? text
        : `${text.slice(0, answerLengthMax)}\n… truncated: the result has ${text.length} characters. Request less.`;
    return { content: [{ type: "text" as const, text: shown }], isError: !response.ok };
  } catch (error) {
    return { content: [{ type: "text" as const, text: (error as Error).message }], isError: true };
  }
}
