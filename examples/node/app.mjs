// Usage: node app.mjs <server> <project key> [<project secret key>]

import { PostHog } from "posthog-node";

const [server = "http://127.0.0.1:8000", key = "phc_...", secret] = process.argv.slice(2);
const posthog = new PostHog(key, {
  host: server,
  // With the secret key, definitions are fetched and flags are evaluated locally, without a request for each.
  // `flagkeep projects show-key` prints it (phs_...).
  ...(secret === undefined ? {} : { personalApiKey: secret }),
});

const user = "user-1";
posthog.identify({ distinctId: user, properties: { email: "ann@example.com", plan: "pro" } });
posthog.groupIdentify({ groupType: "company", groupKey: "acme", properties: { seats: 40 } });

if (secret !== undefined) await posthog.waitForLocalEvaluationReady();
const checkout = await posthog.isFeatureEnabled("new-checkout", user, {
  // Properties are sent along; the server need not have received the events yet.
  personProperties: { plan: "pro" },
  groups: { company: "acme" },
});
console.log(`checkout: ${checkout ? "new" : "old"}`);

posthog.capture({
  distinctId: user,
  event: "bought",
  properties: { price: 12.5 },
  groups: { company: "acme" },
});
// Sends pending events. A long-running server calls it when it stops.
await posthog.shutdown();
