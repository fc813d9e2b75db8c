/** The real posthog-go package against the compiled executable; `go/main.go` does the calls. */

import { beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { testWhen } from "../support/skipped.ts";
import { goProgram } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";
import { createFlagsWithCohort, createSdkFlags } from "./project-flags.ts";

const program = goProgram(join(import.meta.dir, "go"), "flagkeep-test-posthog-go-1.23.0");
const goTest = testWhen(program !== undefined, "posthog-go", "no Go, or no network");

interface Seen {
  enabled: unknown;
  variant: unknown;
  payload: unknown;
  differences: string[];
  remote_config: unknown;
  problems: string[];
}

let seen: Seen;
if (program !== undefined) useServer();
beforeAll(async () => {
  if (program === undefined) return;
  await createSdkFlags(server);
  await createFlagsWithCohort(server);
  const child = Bun.spawn([program, server.url, server.token, server.initialized.personal_api_key], {
    stdout: "pipe",
    stderr: "ignore",
  });
  seen = JSON.parse(await new Response(child.stdout).text()) as Seen;
}, 60_000);

describe("posthog-go", () => {
  goTest("no call failed", () => expect(seen.problems).toEqual([]));

  goTest("events, with their times", async () => {
    const [captured] = await server.eventsWhenStored(1, "event=go+capture");
    expect(captured).toMatchObject({
      distinct_id: "go",
      properties: { number: 1, $groups: { company: "go-co" }, $lib: "posthog-go" },
    });
    const [timed] = await server.eventsWhenStored(1, "event=go+timestamp&after=2026-01-01T00:00:00Z");
    expect(timed!.timestamp).toBe("2026-01-02T03:04:05.678901Z");
  });

  goTest("identify, alias and groups", async () => {
    await server.eventsWhenStored(1, "event=go+timestamp&after=2026-01-01T00:00:00Z");
    const response = await server.api("/api/projects/1/persons/?distinct_id=go-alias");
    const { results } = (await response.json()) as {
      results: { distinct_ids: string[]; properties: Record<string, unknown> }[];
    };
    expect(results[0]!.distinct_ids.toSorted()).toEqual(["go", "go-alias"]);
    expect(results[0]!.properties).toMatchObject({ plan: "pro" });
    const group = await server.api("/api/projects/1/groups/find/?group_type_index=0&group_key=go-co");
    expect(await group.json()).toMatchObject({ group_properties: { size: 7 } });
  });

  goTest("flags, remotely; payloads are texts that hold JSON", async () => {
    const answer = await server.post("/flags/?v=2", { token: server.token, distinct_id: "go-flags" });
    const { flags } = (await answer.json()) as {
      flags: Record<string, { enabled: boolean; variant: string | null }>;
    };
    const { enabled, variant } = flags.variants!;
    expect(seen).toMatchObject({ enabled: true, variant: enabled && variant });
    expect(seen.payload).toBe('{"color":"red","sizes":[1,2]}');
    expect(seen.remote_config).toBe('{"limit":10}');
  });

  goTest("60 ids, every flag: local and remote agree", () => expect(seen.differences).toEqual([]));
});
