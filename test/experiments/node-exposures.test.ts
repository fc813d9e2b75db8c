/** Exposures of the real posthog-node count in the results of an experiment. */

import { describe, expect, test } from "bun:test";
import { PostHog } from "posthog-node";
import type { ServerProcess } from "../support/server.ts";
import { checkExposures, type Exposed, type Place, places } from "./server-exposures.ts";

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

describe.each(places)("evaluating %s, each person is exposed once", (place) => {
  test("posthog-node", async () => await checkExposures(exposeWithNode, place));
});
