/** Loads a history with the real posthog-node package, default batching; its clock may be wrong by a number of seconds. */

import { PostHog } from "posthog-node";

const [url, token, clockOff, time, prefix] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];

const TrueDate = Date;
globalThis.Date = class extends TrueDate {
  constructor(...parts: unknown[]) {
    if (parts.length === 0) super(TrueDate.now() + Number(clockOff) * 1_000);
    else super(...(parts as [number]));
  }
  static override now(): number {
    return TrueDate.now() + Number(clockOff) * 1_000;
  }
} as DateConstructor;

const failures: unknown[] = [];
const client = new PostHog(token, { host: url, historicalMigration: true, maxQueueSize: 10_000 });
client.on("error", (error: unknown) => failures.push(error));
for (let step = 0; step < 5; step++) {
  for (let user = 0; user < 200; user++) {
    client.capture({
      event: "$identify",
      distinctId: `${prefix}-${user}`,
      properties: { $set: { step, [`step_${step}`]: true } },
      timestamp: new Date(time),
    });
  }
}
await client.shutdown();
console.log(failures.map(String).join("\n"));
