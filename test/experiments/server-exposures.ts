/** Exposures of the real server SDKs count in the results of an experiment. Source: contract, experiments 2.1. */

import { expect } from "bun:test";
import { ServerProcess, until } from "../support/server.ts";

export const places = ["remotely", "locally"] as const;
export type Place = (typeof places)[number];
type ByVariant = Record<"control" | "test", number>;
/** How many of 40 persons got each variant, and how many of those then paid. */
export interface Exposed {
  seen: ByVariant;
  paid: ByVariant;
}

type Expose = (server: ServerProcess, flag: string, place: Place) => Promise<Exposed>;

/** @param expose evaluates the flag for 40 persons, and captures `paid` for some */
export async function checkExposures(expose: Expose, place: Place): Promise<void> {
  await using server = await ServerProcess.start();
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  const api = async (path: string, body?: object): Promise<any> =>
    await (
      await server.api(`/api/projects/1/experiments/${path}`, body ? { method: "POST", body } : {})
    ).json();
  const metric = {
    kind: "ExperimentMetric",
    metric_type: "funnel",
    series: [{ kind: "EventsNode", event: "paid" }],
  };
  const { id } = await api("", { name: "Server side", metrics: [metric], minimum_exposures: 1 });
  await api(`${id}/launch/`, {});
  const { seen, paid } = await expose(server, "server-side", place);
  expect(seen.control + seen.test).toBe(40);
  const results = await until(async () => {
    const found = await api(`${id}/results/?refresh=force_blocking`);
    return found.exposures.total === 40 && found.metrics[0].baseline.sum === paid.control && found;
  }, "the exposures are stored");
  const persons = results.exposures.variants.map((one: { key: string; persons: number }) => [
    one.key,
    one.persons,
  ]);
  expect(Object.fromEntries(persons)).toEqual(seen);
  expect(results.exposures.$multiple).toBe(0);
  const [
    {
      baseline,
      variant_results: [row],
    },
  ] = results.metrics;
  expect([baseline.sum, row.sum]).toEqual([paid.control, paid.test]);
  expect(row.detectable_effect).toBeGreaterThan(0);
  const exposures = (await server.events("order=seq&event=$feature_flag_called")).filter(
    ({ properties }) => properties.$feature_flag === "server-side",
  );
  expect(exposures).toHaveLength(40);
}
