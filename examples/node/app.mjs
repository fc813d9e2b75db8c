// Usage: node app.mjs <server> <project key> [<project secret key>]

import { PostHog } from "posthog-node";

const [server = "http://127.0.0.1:8000", key = "phc_...", secret] = process.argv.slice(2);
const posthog = new PostHog(key, {
  host: server,
  // With it, definitions are fetched and flags decided in this process, without a request for each.
  // `flagkeep projects show-key` prints it (phs_...).
  ...(secret === undefined ? {} : { personalApiKey: secret }),
});

const user = "user-1";
posthog.identify({ distinctId: user, properties: { email: "ann@example.com", plan: "pro" } });
posthog.groupIdentify({ groupType: "company", groupKey: "acme", properties: { seats: 40 } });

if (secret !== undefined) await posthog.waitForLocalEvaluationReady();
const checkout = await posthog.isFeatureEnabled("new-checkout", user, {
  // What is known here goes along; the server need not have seen the events yet.
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
// Sends what waits. A server that goes on running calls it when it ends.
await posthog.shutdown();
