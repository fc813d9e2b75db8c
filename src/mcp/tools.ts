/**
 * Flags and events for programs that speak the Model Context Protocol: each tool is one request to the management API.
 *
 * Whoever calls brings a personal key, and the API checks its scopes as for everybody: a tool can do nothing else.
 */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";
import { columnsInWords } from "../events/export/columns.ts";
import { version } from "../version.ts";

/**
 * Sends a request to the management API with the caller's key.
 *
 * @param path   from `/api/` on.
 * @param signal aborted when the caller gives up what takes long.
 */
export type Ask = (
  method: "GET" | "POST" | "PATCH",
  path: string,
  body?: object,
  signal?: AbortSignal,
) => Promise<Response>;

/** Longer answers would fill a model's memory; what was cut is said. */
const answerLengthMax = 60_000;
const rowsDefault = 100;
const rowsMax = 1_000;
const flagsPerPageMax = 100;

const key = z.string().min(1).max(400).describe("The flag's key");
const project = z
  .number()
  .int()
  .positive()
  .optional()
  .describe("Id of the project; left out: the one the key works in");
const rollout = z.number().min(0).max(100).describe("Share of persons in percent");
const filters = z
  .record(z.string(), z.unknown())
  .describe("Whole filters as in the API: groups, multivariate, payloads");
const distinctId = z.string().min(1).describe("Whose value is asked for");

/** A server for one caller. */
export function mcpServer(ask: Ask): McpServer {
  const server = new McpServer({ name: "flagkeep", version });
  const flagsOf = (id: number | undefined) => `/api/projects/${id ?? "@current"}/feature_flags`;
  const flagId = async (projectId: number | undefined, flagKey: string): Promise<number> => {
    // Keys that differ in the case of letters are found, too.
    const found = await ask("GET", `${flagsOf(projectId)}/?limit=100&key=${encodeURIComponent(flagKey)}`);
    if (!found.ok) throw new Refused(await found.text());
    const { results } = (await found.json()) as { results: { id: number; key: string }[] };
    const flag = results.find((each) => each.key === flagKey);
    if (flag === undefined) throw new Refused(`There is no flag ${flagKey}.`);
    return flag.id;
  };

  server.registerTool(
    "list_projects",
    { description: "List the projects that the key may use.", annotations: { readOnlyHint: true } },
    () => answer(() => ask("GET", "/api/projects/")),
  );
  server.registerTool(
    "list_flags",
    {
      description: "List feature flags of a project with their rules. Scope feature_flag:read.",
      inputSchema: {
        project,
        search: z.string().optional().describe("Part of a key or description"),
        active: z.boolean().optional().describe("Only those that are on, or off"),
        limit: z.number().int().min(1).max(flagsPerPageMax).default(20),
        offset: z.number().int().min(0).default(0),
      },
      annotations: { readOnlyHint: true },
    },
    ({ project: id, search, active, limit, offset }) => {
      const query = new URLSearchParams({ limit: String(limit), offset: String(offset) });
      if (search !== undefined) query.set("search", search);
      if (active !== undefined) query.set("active", String(active));
      return answer(() => ask("GET", `${flagsOf(id)}/?${query}`));
    },
  );
  server.registerTool(
    "explain_flag",
    {
      description:
        "Tell step by step why a flag has its value for somebody. Changes nothing. Scope feature_flag:read.",
      inputSchema: {
        ...{ project, key, distinct_id: distinctId },
        person_properties: z
          .record(z.string(), z.unknown())
          .optional()
          .describe("Count before the stored ones"),
        groups: z.record(z.string(), z.string()).optional().describe("Group keys by type"),
      },
      annotations: { readOnlyHint: true },
    },
    ({ project: id, key: flagKey, distinct_id, person_properties, groups }) => {
      const query = new URLSearchParams({ distinct_id });
      if (person_properties !== undefined) query.set("person_properties", JSON.stringify(person_properties));
      if (groups !== undefined) query.set("groups", JSON.stringify(groups));
      return answer(() => ask("GET", `${flagsOf(id)}/${encodeURIComponent(flagKey)}/explain/?${query}`));
    },
  );
  server.registerTool(
    "create_flag",
    {
      description: "Create a feature flag, on for everybody unless told otherwise. Scope feature_flag:write.",
      inputSchema: {
        ...{ project, key },
        name: z.string().optional().describe("What the flag is for"),
        active: z.boolean().default(true),
        rollout_percentage: rollout.optional(),
        filters: filters.optional(),
      },
    },
    ({ project: id, ...flag }) => answer(() => ask("POST", `${flagsOf(id)}/`, given(flag))),
  );
  server.registerTool(
    "update_flag",
    {
      description:
        "Switch a flag on or off, or change its rollout, rules or description. Scope feature_flag:write.",
      inputSchema: {
        ...{ project, key },
        name: z.string().optional(),
        active: z.boolean().optional(),
        rollout_percentage: rollout.optional().describe("Of a flag with one condition set"),
        filters: filters.optional(),
      },
      annotations: { idempotentHint: true },
    },
    ({ project: id, key: flagKey, ...changes }) =>
      answer(async () => ask("PATCH", `${flagsOf(id)}/${await flagId(id, flagKey)}/`, given(changes))),
  );
  server.registerTool(
    "query_events",
    {
      description:
        `Run one SELECT of DuckDB's SQL over the views events (${columnsInWords("events")}), ` +
        `persons (${columnsInWords("persons")}) and groups (${columnsInWords("groups")}). properties is JSON: ` +
        "properties->>'plan'. Scope query:read.",
      inputSchema: {
        project,
        sql: z.string().min(1).describe("One SELECT statement"),
        limit: z.number().int().min(1).max(rowsMax).default(rowsDefault),
      },
      annotations: { readOnlyHint: true },
    },
    ({ project: id, sql, limit }, { signal }) =>
      answer(() => ask("POST", `/api/projects/${id ?? "@current"}/query/`, { query: sql, limit }, signal)),
  );
  return server;
}

/** The API said no before the request that was meant. */
class Refused extends Error {}

/** A tool's result: what the API answered; a refusal is a result that says so, for the model to read. */
async function answer(request: () => Promise<Response>) {
  try {
    const response = await request();
    const text = await response.text();
    const shown =
      text.length <= answerLengthMax
        ? text
        : `${text.slice(0, answerLengthMax)}\n… cut: the answer has ${text.length} characters; ask for less.`;
    return { content: [{ type: "text" as const, text: shown }], isError: !response.ok };
  } catch (error) {
    return { content: [{ type: "text" as const, text: (error as Error).message }], isError: true };
  }
}

/** Without what was left out. */
const given = (values: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
