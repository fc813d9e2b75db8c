/** The real posthog package of Python against the compiled executable; `python/use_posthog.py` does the calls. */

import { beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { testWhen } from "../support/skipped.ts";
import { pythonPackage } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";
import { createFlagsWithCohort, createSdkFlags } from "./project-flags.ts";

const packages = pythonPackage("posthog", "7.91.1");
const pythonTest = testWhen(packages !== undefined, "posthog-python", "no Python with pip, or no network");

interface Seen {
  version: string;
  remote: Record<string, unknown> & { all: Record<string, unknown> };
  differences: unknown[];
  local_payload: unknown;
  remote_config: unknown;
  problems: string[];
  with_wrong_key: unknown;
  problems_with_wrong_key: string[];
}

let seen: Seen;
if (packages !== undefined) useServer();
beforeAll(async () => {
  if (packages === undefined) return;
  await createSdkFlags(server);
  await createFlagsWithCohort(server);
  const child = Bun.spawn(
    [
      "python3",
      "-W",
      "ignore",
      join(import.meta.dir, "python/use_posthog.py"),
      server.url,
      server.token,
      server.initialized.personal_api_key,
    ],
    { stdout: "pipe", stderr: "inherit", env: { ...process.env, PYTHONPATH: packages } },
  );
  seen = JSON.parse(await new Response(child.stdout).text()) as Seen;
}, 120_000);

describe("posthog-python", () => {
  pythonTest("no call failed, was repeated or refused", () => {
    expect(seen.problems).toEqual([]);
  });

  pythonTest("events are stored once, with their times to the microsecond", async () => {
    const [captured] = await server.eventsWhenStored(1, "event=python+capture");
    expect(captured).toMatchObject({
      distinct_id: "py",
      properties: { nested: { a: [1, null] }, $groups: { company: "py-co" }, $lib: "posthog-python" },
    });
    const [timed] = await server.eventsWhenStored(1, "event=python+timestamp&after=2026-01-01T00:00:00Z");
    // The client's clock and this one are the same, so nothing is shifted but by the way of the request.
    expect(Math.abs(Date.parse(timed!.timestamp) - Date.parse("2026-01-02T01:04:05.678Z"))).toBeLessThan(
      2_000,
    );
    const packed = await server.eventsWhenStored(50, "order=seq&event=python+packed");
    expect(packed.map(({ properties }) => properties.number)).toEqual(
      Array.from({ length: 50 }, (_, i) => i),
    );
  });

  pythonTest("a historical migration keeps order and times", async () => {
    const events = await server.eventsWhenStored(
      20,
      "order=seq&event=python+history&after=2021-01-01T00:00:00Z",
    );
    expect(events.every(({ historical }) => historical)).toBe(true);
    expect(events.map(({ properties }) => properties.number)).toEqual(
      Array.from({ length: 20 }, (_, i) => i),
    );
    const start = Date.parse("2021-05-06T07:08:09Z");
    for (const [i, { timestamp }] of events.entries()) {
      expect(Math.abs(Date.parse(timestamp) - start - i * 60_000)).toBeLessThan(2_000);
    }
  });

  pythonTest("set, set_once, alias and groups", async () => {
    await server.eventsWhenStored(1, "event=python+timestamp&after=2026-01-01T00:00:00Z");
    const response = await server.api("/api/projects/1/persons/?distinct_id=py-alias");
    const { results } = (await response.json()) as {
      results: { distinct_ids: string[]; properties: Record<string, unknown> }[];
    };
    expect(results[0]!.distinct_ids.toSorted()).toEqual(["py", "py-alias"]);
    expect(results[0]!.properties).toMatchObject({ plan: "pro", seen: 2, first: 1 });
    const group = await server.api("/api/projects/1/groups/find/?group_type_index=0&group_key=py-co");
    expect(await group.json()).toMatchObject({ group_properties: { size: 7 } });
  });

  pythonTest("flags, remotely", async () => {
    const answer = await server.post("/flags/?v=2", { token: server.token, distinct_id: "py-flags" });
    const { flags } = (await answer.json()) as {
      flags: Record<string, { enabled: boolean; variant: string | null }>;
    };
    const variant = flags.variants!.enabled && flags.variants!.variant;
    expect(seen.remote).toMatchObject({
      enabled: true,
      disabled: false,
      variant,
      property: true,
      group: true,
      payload: { color: "red", sizes: [1, 2] },
    });
    expect(seen.remote.unknown).toBeFalsy();
    expect(seen.remote.all).toMatchObject({ always: true, never: false, variants: variant, settings: true });
  });

  pythonTest("60 ids, every flag: local and remote agree; payloads are read", () => {
    expect(seen.differences).toEqual([]);
    expect(seen.local_payload).toEqual({ color: "red", sizes: [1, 2] });
    expect(seen.remote_config).toBe('{"limit":10}');
  });

  pythonTest("a wrong personal key is told, and remote answers go on", () => {
    expect(seen.problems_with_wrong_key.join("\n")).toContain("Personal API key found in request");
    expect(seen.with_wrong_key).toBe(true);
  });
});
