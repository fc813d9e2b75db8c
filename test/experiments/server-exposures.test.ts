/** Exposures of the real posthog-node and posthog-python count in the results of an experiment. Source: contract, experiments 2.1. */

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { PostHog } from "posthog-node";
import { ServerProcess, until } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { pythonPackage } from "../support/toolchains.ts";

const pythonPath = pythonPackage("posthog", "7.91.1");
const pythonTest = testWhen(
  pythonPath !== undefined,
  "posthog-python exposures",
  "no Python with pip, or no network",
);
const places = ["remotely", "locally"] as const;
type Place = (typeof places)[number];
type ByVariant = Record<"control" | "test", number>;
/** How many of 40 persons got each variant, and how many of those then paid. */
interface Exposed {
  seen: ByVariant;
  paid: ByVariant;
}

async function exposeWithNode(server: ServerProcess, flag: string, place: Place): Promise<Exposed> {
  const posthog = new PostHog(server.token, {
    host: server.url,
    fetchRetryCount: 0,
    ...(place === "locally"
      ? { personalApiKey: server.initialized.personal_api_key, featureFlagsPollingInterval: 600_000 }
      : {}),
  });
  const seen = { control: 0, test: 0 };
  const paid = { control: 0, test: 0 };
  for (let n = 0; n < 40; n++) {
    const variant = (await posthog.getFeatureFlag(flag, `p${n}`)) as "control" | "test";
    // A second evaluation exposes no one again.
    expect(await posthog.getFeatureFlag(flag, `p${n}`)).toBe(variant);
    seen[variant] += 1;
    if (n % 3 > 0) continue;
    paid[variant] += 1;
    posthog.capture({ distinctId: `p${n}`, event: "paid" });
  }
  await posthog.shutdown();
  return { seen, paid };
}

async function exposeWithPython(server: ServerProcess, flag: string, place: Place): Promise<Exposed> {
  const script = join(import.meta.dir, "../sdk/python/expose_persons.py");
  const personalKey = place === "locally" ? server.initialized.personal_api_key : "";
  const child = Bun.spawn(["python3", script, server.url, server.token, personalKey, flag], {
    stdout: "pipe",
    stderr: "inherit",
    env: { ...process.env, PYTHONPATH: pythonPath },
  });
  const { changed, ...exposed } = JSON.parse(await new Response(child.stdout).text());
  expect(changed).toEqual([]);
  return exposed;
}

async function checkExposures(expose: typeof exposeWithNode, place: Place): Promise<void> {
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

describe.each(places)("evaluating %s, each person is exposed once", (place) => {
  test("posthog-node", async () => await checkExposures(exposeWithNode, place));
  pythonTest("posthog-python", async () => await checkExposures(exposeWithPython, place));
});
