/** The dashboard and the alert rules name metrics that a running server has. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { parse } from "yaml";
import { ServerProcess } from "../support/server.ts";

const folder = join(import.meta.dir, "../../deploy/monitoring");
const read = (name: string) => Bun.file(join(folder, name)).text();

test("every metric of the dashboard and of the alert rules is there", async () => {
  const rules = parse(await read("alerts.yaml")) as {
    groups: { rules: { alert: string; expr: string; annotations: { summary: string; action: string } }[] }[];
  };
  const dashboard = JSON.parse(await read("grafana-dashboard.json")) as {
    panels: { title: string; targets: { expr: string }[] }[];
  };
  const alerts = rules.groups.flatMap((group) => group.rules);
  const expressions = [
    ...alerts.map(({ expr }) => expr),
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
  const named = new Set(expressions.flatMap((expr) => expr.match(/flagkeep_\w+/g) ?? []));
  expect(named.size).toBeGreaterThan(12);
  await using server = await ServerProcess.start();
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const known = new Set([...metrics.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!));
  expect([...named].filter((name) => !known.has(name.replace(/_bucket$/, "")))).toEqual([]);
  for (const { annotations } of alerts)
    expect(annotations).toEqual({ summary: expect.stringMatching(/./), action: expect.stringMatching(/./) });
  expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
});
