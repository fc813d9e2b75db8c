/** Exposures of the real posthog-node count in the results of an experiment. Source: contract, experiments 2.1. */

import { expect, test } from "bun:test";
import { PostHog } from "posthog-node";
import { ServerProcess, until } from "../support/server.ts";

test.each(["remotely", "locally"])(
  "posthog-node, evaluating %s: each person is exposed once",
  async (where) => {
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
    const posthog = new PostHog(server.token, {
      host: server.url,
      fetchRetryCount: 0,
      ...(where === "locally"
        ? { personalApiKey: server.initialized.personal_api_key, featureFlagsPollingInterval: 600_000 }
        : {}),
    });
    const seen = { control: 0, test: 0 };
    const paid = { control: 0, test: 0 };
    for (let n = 0; n < 40; n++) {
      const variant = (await posthog.getFeatureFlag("server-side", `p${n}`)) as "control" | "test";
      // A second request exposes no one again.
      expect(await posthog.getFeatureFlag("server-side", `p${n}`)).toBe(variant);
      seen[variant] += 1;
      if (n % 3 > 0) continue;
      paid[variant] += 1;
      posthog.capture({ distinctId: `p${n}`, event: "paid" });
    }
    await posthog.shutdown();
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
  },
);
