/**
 * MCP tools for flags and events: each tool is one request to the management API.
 *
 * The caller sends a personal key, and the API checks its scopes: a tool can do nothing else.
 */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";
import { columnsInWords } from "../events/export/columns.ts";
import { evaluationRuntimes } from "../flags/fields.ts";
import { keyOfReplaced } from "../flags/rules/key.ts";
import { version } from "../version.ts";
import { flagFilters } from "./flag-filters.ts";
import { registerOperations } from "./operation-tools.ts";
import type { SendRequest } from "./send-request.ts";

/** Longer responses would fill a model's context; truncation is reported. */
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
  .describe("Project id; default: the current project of the key's user");
const distinctId = z.string().min(1).describe("Distinct id of the person");
const tags = z.array(z.string());
const properties = z.record(z.string(), z.unknown());

/** Fields that creating and updating a flag share, by their API names. */
const flagFields = {
  name: z.string().optional().describe("Description of the flag"),
  rollout_percentage: z
    .number()
    .min(0)
    .max(100)
    .optional()
    .describe("Rollout percentage of a flag with one condition set"),
  filters: flagFilters.optional(),
  tags: tags.optional().describe("Replace all tags"),
  ensure_experience_continuity: z
    .boolean()
    .optional()
    .describe("Persist the flag's value across identification"),
  evaluation_runtime: z.enum(evaluationRuntimes).optional(),
  evaluation_contexts: tags
    .optional()
    .describe("The flag is evaluated only for requests with one of these tags"),
};

/** An MCP server for one caller. Unknown arguments of a tool are rejected by name (contract, management-api 8). */
export function mcpServer(ask: SendRequest): McpServer {
  const server = new McpServer({ name: "flagkeep", version });
  const flagsOf = (id: number | undefined) => `/api/projects/${id ?? "@current"}/feature_flags`;

  /** Finds a flag by its exact key; among deleted flags with that key, the one changed last. */
  const find = async (of: FlagName, isDeleted: boolean): Promise<number | undefined> => {
    // The search ignores letter case, so the exact key is matched below.
    const query = new URLSearchParams({ limit: "100", key: of.key, order: "-updated_at" });
    if (isDeleted) query.set("deleted", "true");
    const found = await ask("GET", `${flagsOf(of.project)}/?${query}`);
    if (!found.ok) throw new ToolError(await found.text());
    const { results } = (await found.json()) as { results: { id: number; key: string }[] };
    return results.find(({ id, key: has }) => has === of.key || has === keyOfReplaced(of.key, id))?.id;
  };
  /** Changes a flag among the existing or the deleted flags: the first of `among` that has it. */
  const change = (of: FlagName, changes: Record<string, unknown>, among: readonly Among[] = ["flags"]) =>
    answer(async () => {
      for (const each of among) {
        const id = await find(of, each === "deleted flags");
        if (id !== undefined)
          return await ask("PATCH", `${flagsOf(of.project)}/${id}/`, dropUndefined(changes));
      }
      throw new ToolError(`${among[0] === "flags" ? "Flag" : "Deleted flag"} ${of.key} does not exist.`);
    });

  server.registerTool(
    "list_projects",
    {
      description: "List the projects that the key has access to.",
      inputSchema: z.strictObject({}),
      annotations: { readOnlyHint: true },
    },
    () => answer(() => ask("GET", "/api/projects/")),
  );
  server.registerTool(
    "list_flags",
    {
      description: "List feature flags of a project with their release conditions. Scope feature_flag:read.",
      inputSchema: z.strictObject({
        project,
        search: z.string().optional().describe("Part of a key or description"),
        active: z.boolean().optional().describe("Only active or only inactive flags"),
        tags: tags.min(1).optional().describe("Only flags with any of these tags"),
        deleted: z.boolean().optional().describe("List deleted flags, which restore_flag restores, instead"),
        limit: z.number().int().min(1).max(flagsPerPageMax).default(20),
        offset: z.number().int().min(0).default(0),
      }),
      annotations: { readOnlyHint: true },
    },
    ({ project: id, search, active, tags: named, deleted, limit, offset }) => {
      const query = new URLSearchParams({ limit: String(limit), offset: String(offset) });
      if (search !== undefined) query.set("search", search);
      if (active !== undefined) query.set("active", String(active));
      if (named !== undefined) query.set("tags", JSON.stringify(named));
      if (deleted !== undefined) query.set("deleted", String(deleted));
      return answer(() => ask("GET", `${flagsOf(id)}/?${query}`));
    },
  );
  server.registerTool(
    "explain_flag",
    {
      description:
        "Explain step by step why a flag has its value for a user. Changes nothing. Scope feature_flag:read.",
      inputSchema: z.strictObject({
        ...{ project, key, distinct_id: distinctId },
        person_properties: properties.optional().describe("Override the stored properties"),
        groups: z.record(z.string(), z.string()).optional().describe("Group keys by type"),
        group_properties: z.record(z.string(), properties).optional().describe("Group properties by type"),
        device_id: z.string().optional().describe("For flags bucketed by device"),
      }),
      annotations: { readOnlyHint: true },
    },
    ({ project: id, key: flagKey, device_id, distinct_id, ...objects }) => {
      const query = new URLSearchParams({ distinct_id });
      if (device_id !== undefined) query.set("device_id", device_id);
      for (const [name, value] of Object.entries(objects)) {
        if (value !== undefined) query.set(name, JSON.stringify(value));
      }
      return answer(() => ask("GET", `${flagsOf(id)}/${encodeURIComponent(flagKey)}/explain/?${query}`));
    },
  );
  server.registerTool(
    "create_flag",
    {
      description:
        "Create a feature flag. Without rollout_percentage or filters it is off for everyone. Scope feature_flag:write.",
      inputSchema: z.strictObject({ project, key, active: z.boolean().default(true), ...flagFields }),
    },
    ({ project: id, ...flag }) => answer(() => ask("POST", `${flagsOf(id)}/`, dropUndefined(flag))),
  );
  server.registerTool(
    "update_flag",
    {
      description:
        "Update a flag: state, rollout, release conditions, tags or description. Scope feature_flag:write.",
      inputSchema: z.strictObject({
        ...{ project, key, active: z.boolean().optional(), ...flagFields },
        deleted: z
          .boolean()
          .optional()
          .describe("true deletes the flag, as delete_flag does; false restores it"),
        note: z.string().optional().describe("Reason, stored in the activity log"),
      }),
      annotations: { idempotentHint: true },
    },
    ({ project: id, key: flagKey, ...changes }) =>
      change(
        { project: id, key: flagKey },
        changes,
        changes.deleted === false ? ["flags", "deleted flags"] : undefined,
      ),
  );
  const oneFlag = z.strictObject({ project, key });
  server.registerTool(
    "delete_flag",
    {
      description: "Delete a flag; restore_flag restores it. Scope feature_flag:write.",
      inputSchema: oneFlag,
      annotations: { destructiveHint: true },
    },
    (of) => change(of, { deleted: true }),
  );
  server.registerTool(
    "restore_flag",
    {
      description:
        "Restore a deleted flag, under another key if its own is in use. Scope feature_flag:write.",
      inputSchema: oneFlag,
      annotations: { destructiveHint: false },
    },
    (of) => change(of, { deleted: false }, ["deleted flags"]),
  );
  server.registerTool(
    "query_events",
    {
      description:
        `Run one SELECT in DuckDB SQL over the views events (${columnsInWords("events")}), ` +
        `persons (${columnsInWords("persons")}) and groups (${columnsInWords("groups")}). properties is JSON: ` +
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

type Among = "flags" | "deleted flags";

interface FlagName {
  /** Default: the current project of the key. */
  project?: number;
  key: string;
}

/** The API rejected a request that precedes the intended one. */
class ToolError extends Error {}

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

/** Drops undefined members. */
const dropUndefined = (values: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
