/** The official OpenFeature provider of Python against the compiled executable; `python/use_openfeature.py` calls it. */

import { beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { testWhen } from "../support/skipped.ts";
import { pythonPackage } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";
import { createOpenFeatureFlags } from "./project-flags.ts";

const packages = pythonPackage("openfeature-provider-ofrep", "0.3.0");
const pythonTest = testWhen(
  packages !== undefined,
  "OpenFeature for Python",
  "no Python with pip, or no network",
);

interface Details {
  value: unknown;
  variant: string | null;
  reason: string | null;
  error: string | null;
  metadata: Record<string, unknown>;
}

let seen: Record<string, Details> & { variants: Details[] };
let ids: Record<string, number>;
if (packages !== undefined) useServer();
beforeAll(async () => {
  if (packages === undefined) return;
  ids = await createOpenFeatureFlags(server);
  const child = Bun.spawn(
    ["python3", join(import.meta.dir, "python/use_openfeature.py"), server.url, server.token],
    { stdout: "pipe", stderr: "inherit", env: { ...process.env, PYTHONPATH: packages } },
  );
  seen = JSON.parse(await new Response(child.stdout).text()) as typeof seen;
}, 120_000);

describe("openfeature-provider-ofrep", () => {
  pythonTest("flags that are only on or off, with their details", () => {
    expect(seen.always).toEqual({
      value: true,
      variant: "true",
      reason: "STATIC",
      error: null,
      metadata: {
        id: ids.always,
        version: 1,
        reason: "condition_match",
        description: expect.any(String),
        payload: '{"color":"red","sizes":[1,2]}',
      },
    });
    expect(seen.never).toMatchObject({ value: false, variant: "false", error: null });
    expect(seen.off).toMatchObject({ value: false, variant: "false", reason: "DISABLED", error: null });
    expect(seen.pro).toMatchObject({ value: true, reason: "TARGETING_MATCH" });
    expect(seen.free).toMatchObject({ value: false, reason: "UNKNOWN", error: null });
    expect(seen.group).toMatchObject({ value: true });
  });

  pythonTest("a provider on a server gets flags for servers", () => {
    expect(seen["for servers"]).toMatchObject({ value: true, reason: "STATIC", error: null });
    expect(seen["for browsers"]).toMatchObject({ error: "FLAG_NOT_FOUND" });
  });

  pythonTest("variants agree with the posthog answer; off is the default", async () => {
    const values = new Set<unknown>();
    for (const [i, details] of seen.variants.entries()) {
      const answer = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: `u${i}` });
      const { flags } = (await answer.json()) as { flags: Record<string, { variant: string | null }> };
      const { variant } = flags.variants!;
      expect(details.value).toBe(variant ?? "default");
      if (variant !== null) expect(details).toMatchObject({ variant, reason: "SPLIT", error: null });
      values.add(details.value);
    }
    expect([...values].sort()).toEqual(["default", "first", "second", "third"]);
  });

  pythonTest("errors are told by their codes", () => {
    expect(seen.unknown).toMatchObject({ value: true, error: "FLAG_NOT_FOUND" });
    expect(seen["wrong type"]).toMatchObject({ value: "x", error: "TYPE_MISMATCH" });
  });
});
