/**
 * PostHog's toolkit for agents against the compiled executable: its tools check each response by a schema of their own.
 * It has two hundred packages, so `make test-sdk` runs it.
 */

import { beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { until } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { preparedFolder } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";

const isLong = process.env.FLAGKEEP_TEST_SDKS === "1";
const version = "0.2.4";
const install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", "."];
const packages = isLong
  ? preparedFolder(`flagkeep-test-agent-toolkit-${version}`, [
      ...install,
      `@posthog/agent-toolkit@${version}`,
    ])
  : undefined;
const missing = isLong ? "no npm, or no network" : "make test-sdk runs it";
const toolkitTest = testWhen(packages !== undefined, "@posthog/agent-toolkit", missing);

interface Tool {
  execute(args: object, options: object): Promise<{ content: { text: string }[] }>;
}

let tools: Record<string, Tool>;
if (packages !== undefined) useServer();
beforeAll(async () => {
  if (packages === undefined) return;
  await server.batch([
    { event: "$pageview", distinct_id: "ann", properties: { plan: "pro" } },
    { event: "paid", distinct_id: "bob" },
  ]);
  await server.eventsWhenStored(2);
  const library = await import(join(packages, "node_modules/@posthog/agent-toolkit/dist/ai-sdk.mjs"));
  const toolkit = new library.PostHogAgentToolkit({
    posthogPersonalApiKey: server.initialized.personal_api_key,
    posthogApiBaseUrl: server.url,
  });
  tools = await toolkit.getTools();
}, 600_000);

/** The JSON of a call, which rejects when the tool cannot use the response. */
// biome-ignore lint/suspicious/noExplicitAny: results of every shape.
async function use(name: string, args: object = {}): Promise<any> {
  const { content } = await tools[name]!.execute(args, { toolCallId: "1", messages: [] });
  const { text } = content[0]!;
  return text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text;
}

const sql = {
  kind: "DataVisualizationNode",
  source: {
    kind: "HogQLQuery",
    query:
      "SELECT event, count() AS n FROM events WHERE properties.plan = 'pro' OR isNull(properties.plan) GROUP BY event ORDER BY event",
  },
};
const trends = {
  kind: "InsightVizNode",
  source: {
    kind: "TrendsQuery",
    interval: "day",
    dateRange: { date_from: "-7d" },
    properties: [],
    filterTestAccounts: false,
    series: [{ kind: "EventsNode", event: "paid", custom_name: "Paid", math: "total" }],
  },
};

describe("@posthog/agent-toolkit", () => {
  toolkitTest("organizations, projects, definitions", async () => {
    const [organization] = await use("organizations-get");
    expect(organization.id).toBe(server.initialized.organization.id);
    await use("switch-organization", { orgId: organization.id });
    expect(await use("projects-get")).toMatchObject([{ id: 1 }]);
    await use("switch-project", { projectId: 1 });
    await until(async () => (await use("event-definitions-list")).length === 2, "the names are kept");
    const properties = await use("properties-list", { type: "event", eventName: "$pageview" });
    expect(properties).toContainEqual({ name: "plan", property_type: "String" });
  });

  toolkitTest("flags", async () => {
    const filters = { groups: [{ properties: [], rollout_percentage: 50 }] };
    const fields = { name: "Agent's", description: "d", filters, active: true };
    expect(await use("create-feature-flag", { key: "agent", ...fields })).toMatchObject({
      key: "agent",
      filters,
    });
    expect(await use("feature-flag-get-all")).toMatchObject([{ key: "agent", active: true }]);
    const changed = await use("update-feature-flag", { flagKey: "agent", data: { active: false } });
    expect(changed).toMatchObject({ active: false, filters });
    expect(await use("feature-flag-get-definition", { flagKey: "agent" })).toMatchObject({ active: false });
    expect(await use("delete-feature-flag", { flagKey: "agent" })).toMatchObject({ success: true });
    expect(await use("feature-flag-get-all")).toEqual([]);
  });

  toolkitTest("queries", async () => {
    expect(await use("query-run", { query: sql })).toEqual([
      ["$pageview", 1],
      ["paid", 1],
    ]);
    expect(await use("query-run", { query: trends })).toMatchObject([{ label: "Paid", count: 1 }]);
  });

  toolkitTest("dashboards and insights", async () => {
    const dashboard = await use("dashboard-create", {
      data: { name: "Agent's", description: "d", pinned: false, tags: [] },
    });
    for (const query of [sql, trends]) {
      const created = await use("insight-create-from-query", {
        data: { name: "I", query, favorited: false },
      });
      const insightId = String(created.id);
      await use("add-insight-to-dashboard", { data: { insightId, dashboardId: dashboard.id } });
      expect(await use("insight-get", { insightId })).toMatchObject({ id: created.id, query });
      expect(await use("insight-query", { insightId })).toMatchObject({ insight: { id: created.id } });
      expect(await use("insight-update", { insightId, data: { name: "New" } })).toMatchObject({
        name: "New",
      });
      expect((await use("dashboard-get", { dashboardId: dashboard.id })).tiles).toHaveLength(1);
      expect(await use("insight-delete", { insightId })).toMatchObject({ success: true });
    }
    await use("dashboard-update", { dashboardId: dashboard.id, data: { name: "Renamed" } });
    expect(await use("dashboards-get-all")).toContainEqual(expect.objectContaining({ name: "Renamed" }));
    expect(await use("dashboard-delete", { dashboardId: dashboard.id })).toMatchObject({ success: true });
  });
});
