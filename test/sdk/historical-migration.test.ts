/** Historical migrations with the real SDKs, as people do them: default batching, and a clock that may be wrong. */

import { describe, expect } from "bun:test";
import { join } from "node:path";
import { until } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { pythonPackage } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";

const packages = pythonPackage("posthog", "7.91.1");
const sdks = [
  {
    sdk: "posthog-node",
    command: [process.execPath, join(import.meta.dir, "migrate-history.ts")],
    isThere: true,
  },
  {
    sdk: "posthog-python",
    command: ["python3", "-W", "ignore", join(import.meta.dir, "python/migrate_history.py")],
    isThere: packages !== undefined,
  },
];
const time = "2024-02-03T04:05:06.789000+00:00";

useServer();

async function load(command: string[], clockOff: number, prefix: string): Promise<string> {
  const child = Bun.spawn([...command, server.url, server.token, String(clockOff), time, prefix], {
    stdout: "pipe",
    stderr: "inherit",
    env: { ...process.env, PYTHONPATH: packages ?? "" },
  });
  return await new Response(child.stdout).text();
}

for (const { sdk, command, isThere } of sdks) {
  describe(`${sdk}: 200 users, five $identify each in order, all with one time`, () => {
    for (const [name, clockOff] of [
      ["its clock is right", 0],
      ["its clock is an hour slow", -3_600],
      ["its clock is an hour fast", 3_600],
      ["its clock is a year slow", -365 * 86_400],
    ] as const) {
      testWhen(isThere, sdk, `no ${sdk} here`)(
        name,
        async () => {
          const prefix = `${sdk}${clockOff}`;
          expect((await load(command, clockOff, prefix)).trim()).toBe("");
          const query = `SELECT count(*) AS n, count(DISTINCT timestamp) AS times, min(timestamp) AS first
            FROM events WHERE starts_with(distinct_id, '${prefix}-') AND historical`;
          await until(async () => (await server.query(query))[0]!.n === 1_000, "all is readable");
          expect(await server.query(query)).toEqual([
            { n: 1_000, times: 1, first: "2024-02-03T04:05:06.789000Z" },
          ]);
          const persons = await server.query(
            `SELECT properties->>'step' AS step, count(*) AS n
             FROM persons WHERE starts_with(distinct_ids[1], '${prefix}-') GROUP BY ALL`,
          );
          expect(persons).toEqual([{ step: "4", n: 200 }]);
        },
        120_000,
      );
    }
  });
}
