/** Property columns of launched experiments. Source: contract, experiments 2.12. */

import { test } from "bun:test";
import { flagkeep, ServerProcess, until } from "../support/server.ts";

test("a launched experiment has columns for the properties that its results read", async () => {
  await using server = await ServerProcess.start();
  const api = async (path: string, body: object = {}, method = "POST") =>
    // biome-ignore lint/suspicious/noExplicitAny: responses of any route
    (await (await server.api(`/api/projects/1/experiments/${path}`, { method, body })).json()) as any;
  const columns = async (): Promise<string[]> => {
    const { stdout } = await flagkeep(["status", "--data-dir", server.dataDir, "--json"]);
    const { properties } = JSON.parse(stdout).engine;
    return properties
      .filter(({ filled }: { filled: number }) => filled === 1)
      .map(({ name }: { name: string }) => name);
  };
  const filter = { key: "plan", value: ["pro"], operator: "exact", type: "event" };
  const metric = {
    kind: "ExperimentMetric",
    metric_type: "mean",
    source: {
      kind: "EventsNode",
      event: "order paid",
      math: "sum",
      math_property: "amount",
      properties: [filter],
    },
  };
  const { id } = await api("", { name: "Pins", metrics: [metric] });
  await api(`${id}/launch/`);
  await until(async () => {
    return (await columns()).sort().join() === "$feature_flag,$feature_flag_response,amount,plan";
  }, "the columns exist");
});
