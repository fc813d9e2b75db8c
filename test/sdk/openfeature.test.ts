/** The real OpenFeature SDK with its remote evaluation provider against the compiled executable. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { type Client, OpenFeature } from "@openfeature/server-sdk";
import { ServerProcess } from "../support/server.ts";
import { expectWithin } from "../support/times.ts";
import { server, useServer } from "../support/use-server.ts";
import { changeFlag, createOpenFeatureFlags, createSdkFlags } from "./project-flags.ts";

let ids: Record<string, number>;
let client: Client;
useServer();
beforeAll(async () => {
  ids = await createOpenFeatureFlags(server);
  const headers: [string, string][] = [["Authorization", `Bearer ${server.token}`]];
  await OpenFeature.setProviderAndWait("bearer", new OFREPProvider({ baseUrl: server.url, headers }));
  client = OpenFeature.getClient("bearer");
});
afterAll(async () => await OpenFeature.close());

const ann = { targetingKey: "ann" };

describe("OpenFeature", () => {
  test("booleans, by the context", async () => {
    expect(await client.getBooleanValue("always", false, ann)).toBe(true);
    expect(await client.getBooleanValue("never", true, ann)).toBe(false);
    expect(await client.getBooleanValue("pro-plan", true, ann)).toBe(false);
    expect(await client.getBooleanValue("pro-plan", false, { ...ann, plan: "pro" })).toBe(true);
    expect(
      await client.getBooleanValue("large-company", false, { ...ann, groups: { company: "acme" } }),
    ).toBe(true);
    expect(await client.getBooleanValue("switched-off", true, ann)).toBe(false);
  });

  test("details: reason, metadata, payload", async () => {
    expect(await client.getBooleanDetails("always", false, ann)).toMatchObject({
      value: true,
      reason: "STATIC",
      flagMetadata: { id: ids.always!, version: 1, payload: '{"color":"red","sizes":[1,2]}' },
    });
    expect(await client.getBooleanDetails("switched-off", true, ann)).toMatchObject({ reason: "DISABLED" });
  });

  test("a provider on a server gets flags for servers, though Node's fetch names a mode", async () => {
    const fetchImplementation = ((address: string | Request, init?: RequestInit) => {
      const request = new Request(address, init);
      // As Node's fetch, and as a program that wraps a browser's engine.
      request.headers.set("sec-fetch-mode", "cors");
      request.headers.set("user-agent", "Mozilla/5.0 (X11; Linux x64) Chrome/140.0 Electron/38.1");
      return fetch(request);
    }) as typeof fetch;
    const headers: [string, string][] = [["Authorization", `Bearer ${server.token}`]];
    const provider = new OFREPProvider({ baseUrl: server.url, headers, fetchImplementation });
    await OpenFeature.setProviderAndWait("node", provider);
    for (const each of [client, OpenFeature.getClient("node")]) {
      expect(await each.getBooleanValue("for-servers", false, ann)).toBe(true);
      expect(await each.getBooleanDetails("for-browsers", false, ann)).toMatchObject({
        errorCode: "FLAG_NOT_FOUND",
      });
    }
  });

  test("no matching condition set is a reason of the protocol", async () => {
    expect(await client.getBooleanDetails("pro-plan", true, ann)).toMatchObject({
      value: false,
      reason: "UNKNOWN",
    });
  });

  test("variants are strings, and agree with the PostHog response", async () => {
    const seen = new Set<string>();
    for (let i = 0; i < 40; i++) {
      const id = `u${i}`;
      const answer = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: id });
      const { flags } = (await answer.json()) as { flags: Record<string, { variant: string | null }> };
      const details = await client.getStringDetails("variants", "default", { targetingKey: id });
      const { variant } = flags.variants!;
      expect(details.value).toBe(variant ?? "default");
      if (variant !== null) expect(details).toMatchObject({ variant, reason: "SPLIT" });
      seen.add(details.value);
    }
    expect([...seen].sort()).toEqual(["default", "first", "second", "third"]);
  });

  test("errors are reported by their codes, and the default is used", async () => {
    expect(await client.getBooleanDetails("nothing", true, ann)).toMatchObject({
      value: true,
      errorCode: "FLAG_NOT_FOUND",
    });
    expect(await client.getBooleanDetails("always", false, {})).toMatchObject({
      value: false,
      errorCode: "TARGETING_KEY_MISSING",
    });
    expect(await client.getNumberDetails("always", 3, ann)).toMatchObject({
      value: 3,
      errorCode: "TYPE_MISMATCH",
    });
  });

  test("X-API-Key, and a wrong key", async () => {
    for (const [domain, key, value] of [
      ["right", server.token, true],
      ["wrong", "phc_nobody", false],
    ] as const) {
      const headers: [string, string][] = [["X-API-Key", key]];
      await OpenFeature.setProviderAndWait(domain, new OFREPProvider({ baseUrl: server.url, headers }));
      expect(await OpenFeature.getClient(domain).getBooleanValue("always", false, ann)).toBe(value);
    }
  });

  // Of several fronts the others have it within a second.
  test.skipIf(process.env.FLAGKEEP_TEST_FRONTS !== undefined)(
    "a change is in the next response",
    async () => {
      await changeFlag(server, ids.never!, {
        filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
      });
      expect(await client.getBooleanValue("never", false, ann)).toBe(true);
    },
  );
});

describe("changes, over a real connection", () => {
  test("are sent within a second; an open stream does not delay the server's stop", async () => {
    await using own = await ServerProcess.start();
    const created = await createSdkFlags(own);
    const answer = await own.post(
      "/ofrep/v1/evaluate/flags",
      { context: ann },
      { authorization: `Bearer ${own.token}` },
    );
    const { eventStreams } = (await answer.json()) as {
      eventStreams: { endpoint: { requestUri: string } }[];
    };
    const stream = await fetch(own.url + eventStreams[0]!.endpoint.requestUri);
    const reader = stream.body!.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader.read()).value);
    await changeFlag(own, created.never!, { active: false });
    const changedAt = performance.now();
    while (!text.includes("refetchEvaluation")) text += decoder.decode((await reader.read()).value);
    expect(performance.now() - changedAt).toBeLessThan(5_000);
    expect(await own.stop()).toBe(0);
    // Requests in flight are waited for up to two seconds: a stream is none.
    await expectWithin(1_900, async (restartClock) => {
      await using again = await ServerProcess.start({ directory: own.directory });
      const open = await fetch(again.url + eventStreams[0]!.endpoint.requestUri);
      await open.body!.getReader().read();
      restartClock();
      expect(await again.stop()).toBe(0);
    });
  });
});
