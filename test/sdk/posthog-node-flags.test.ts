/** Flags through the real posthog-node package: remotely, locally, payloads, and the identity calls beside them. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PostHog } from "posthog-node";
import { rolloutPosition, variantAt, variantPosition } from "../../src/flags/evaluate/bucketing.ts";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";
import { changeFlag, createSdkFlags } from "./project-flags.ts";

let ids: Record<string, number>;
const open: PostHog[] = [];
useServer();
beforeAll(async () => {
  ids = await createSdkFlags(server);
});
afterAll(async () => await Promise.all(open.map((posthog) => posthog.shutdown())));

/** A client that notes its requests and errors. */
function client(options: Record<string, unknown> = {}) {
  const errors: unknown[] = [];
  const requests: { url: string; status: number; headers: Headers }[] = [];
  const posthog = new PostHog(server.token, {
    host: server.url,
    fetchRetryCount: 0,
    flushAt: 1_000,
    fetch: async (url: string, init: RequestInit) => {
      const response = await fetch(url, { ...init, redirect: "error" });
      requests.push({
        url: url.slice(server.url.length),
        status: response.status,
        headers: new Headers(init.headers),
      });
      return response;
    },
    ...options,
  } as never);
  posthog.on("error", (error: unknown) => errors.push(error));
  open.push(posthog);
  return { posthog, errors, requests };
}
const local = () =>
  client({ personalApiKey: server.initialized.personal_api_key, featureFlagsPollingInterval: 600_000 });

/** What the published formula says, without anything of ours but the hash. */
function byFormula(key: string, id: string): boolean | string {
  const variants = [
    { key: "first", rolloutPercentage: 50 },
    { key: "second", rolloutPercentage: 30 },
    { key: "third", rolloutPercentage: 20 },
  ];
  if (key === "half") return rolloutPosition(key, id) <= 0.5;
  if (key === "variants")
    return rolloutPosition(key, id) <= 0.8 && variantAt(variantPosition(key, id), variants)!;
  return key === "always" || key === "settings";
}

describe("remotely", () => {
  test("every way of asking", async () => {
    const { posthog, errors } = client();
    expect(await posthog.isFeatureEnabled("always", "u1")).toBe(true);
    expect(await posthog.isFeatureEnabled("never", "u1")).toBe(false);
    expect(await posthog.isFeatureEnabled("no such flag", "u1")).toBeFalsy();
    expect(await posthog.getFeatureFlag("switched-off", "u1")).toBeFalsy();
    expect(await posthog.getFeatureFlag("variants", "u1")).toBe(byFormula("variants", "u1"));
    expect(await posthog.getFeatureFlagPayload("always", "u1")).toEqual({ color: "red", sizes: [1, 2] });
    expect(await posthog.getFeatureFlagPayload("never", "u1")).toBeFalsy();
    expect(await posthog.getFeatureFlag("pro-plan", "u1", { personProperties: { plan: "pro" } })).toBe(true);
    expect(await posthog.getFeatureFlag("pro-plan", "u1", { personProperties: { plan: "free" } })).toBe(
      false,
    );
    expect(await posthog.getFeatureFlag("large-company", "u1", { groups: { company: "acme" } })).toBe(true);
    expect(await posthog.getFeatureFlag("large-company", "u1", { groups: { company: "tiny" } })).toBe(false);
    const sent = { groups: { company: "tiny" }, groupProperties: { company: { size: "900" } } };
    expect(await posthog.getFeatureFlag("large-company", "u1", sent)).toBe(true);
    expect(await posthog.getAllFlags("u1")).toEqual({
      never: false,
      half: byFormula("half", "u1"),
      always: true,
      variants: byFormula("variants", "u1"),
      "pro-plan": false,
      "large-company": false,
      settings: true,
    });
    expect(await posthog.getAllFlags("u1", { flagKeys: ["half", "always"] })).toEqual({
      half: byFormula("half", "u1"),
      always: true,
    });
    expect(errors).toEqual([]);
  });

  test("payloads of variants", async () => {
    const { posthog } = client();
    const payloads = { first: "one", second: 2, third: { n: 3 } };
    const seen = new Set<string>();
    for (let i = 0; seen.size < 3; i++) {
      const variant = await posthog.getFeatureFlag("variants", `p${i}`);
      if (typeof variant !== "string") continue;
      seen.add(variant);
      expect(await posthog.getFeatureFlagPayload("variants", `p${i}`)).toEqual(
        payloads[variant as keyof typeof payloads],
      );
    }
  });

  test("properties that were identified count without being sent", async () => {
    const { posthog, errors } = client();
    posthog.identify({ distinctId: "stored-pro", properties: { plan: "pro" } });
    await posthog.flush();
    await until(() => posthog.getFeatureFlag("pro-plan", "stored-pro"), "the property counts");
    expect(errors).toEqual([]);
  });

  test("evaluations are reported to the server, with id, version and request id", async () => {
    const { posthog, errors } = client();
    await posthog.getFeatureFlag("always", "teller");
    await posthog.flush();
    const [called] = await server.eventsWhenStored(1, "event=$feature_flag_called&distinct_id=teller");
    expect(called!.properties).toMatchObject({
      $feature_flag: "always",
      $feature_flag_response: true,
      $feature_flag_id: ids.always,
      $feature_flag_version: 1,
      $feature_flag_request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      $feature_flag_reason: "Matched condition set 1",
    });
    posthog.capture({ distinctId: "teller", event: "bought", sendFeatureFlags: true });
    await posthog.flush();
    const [bought] = await server.eventsWhenStored(1, "event=bought");
    expect(bought!.properties).toMatchObject({ "$feature/always": true, "$feature/never": false });
    expect(errors).toEqual([]);
  });
});

test("one snapshot for a whole request, remotely and locally", async () => {
  for (const { posthog } of [client(), local()]) {
    await posthog.waitForLocalEvaluationReady().catch(() => {});
    const flags = await posthog.evaluateFlags("snapshot", { personProperties: { plan: "pro" } });
    expect(flags.isEnabled("pro-plan")).toBe(true);
    expect(flags.getFlag("variants")).toBe(byFormula("variants", "snapshot"));
    expect(flags.getFlagPayload("always")).toEqual({ color: "red", sizes: [1, 2] });
  }
});

describe("locally", () => {
  test("60 ids, every flag: local and remote and the formula agree", async () => {
    const { posthog: near, errors, requests } = local();
    await near.waitForLocalEvaluationReady();
    expect(near.isLocalEvaluationReady()).toBe(true);
    const { posthog: far } = client();
    const groups = { company: "acme" };
    const groupProperties = { company: { size: "500" } };
    for (let i = 0; i < 60; i++) {
      const id = `person-${i}`;
      const personProperties = { plan: i % 2 === 0 ? "pro" : "free" };
      const options = { groups, groupProperties, personProperties };
      const ours = await near.getAllFlags(id, { ...options, onlyEvaluateLocally: true });
      const theirs = await far.getAllFlags(id, options);
      const { "switched-off": off, ...active } = ours;
      expect(off).toBe(false);
      expect(active).toEqual(theirs);
      expect(theirs).toEqual({
        never: false,
        half: byFormula("half", id),
        always: true,
        variants: byFormula("variants", id),
        settings: true,
        "pro-plan": i % 2 === 0,
        "large-company": true,
      });
      expect(await near.getFeatureFlagPayload("always", id, true, { onlyEvaluateLocally: true })).toEqual({
        color: "red",
        sizes: [1, 2],
      });
    }
    expect(requests.filter(({ url }) => url.startsWith("/flags/?"))).toEqual([]);
    expect(errors).toEqual([]);
  }, 60_000);

  test("an unchanged poll costs a 304; a change and a deletion are seen at the next poll", async () => {
    const { posthog, errors, requests } = local();
    const polls = () => requests.filter(({ url }) => url.startsWith("/flags/definitions"));
    await posthog.waitForLocalEvaluationReady();
    // A poll that is asked for while another runs joins it.
    await until(async () => {
      await posthog.reloadFeatureFlags();
      return polls().length >= 2;
    }, "it polled again");
    expect(polls().map(({ status }) => status)).toEqual([200, 304]);
    expect(polls()[1]!.headers.get("if-none-match")).toMatch(/^(W\/)?"/);
    const value = () => posthog.getFeatureFlag("never", "u1", { onlyEvaluateLocally: true });
    const everyone = (rollout_percentage: number) => ({
      filters: { groups: [{ properties: [], rollout_percentage }] },
    });
    await changeFlag(server, ids.never!, everyone(100));
    await posthog.reloadFeatureFlags();
    expect(await value()).toBe(true);
    await changeFlag(server, ids.never!, { deleted: true });
    await posthog.reloadFeatureFlags();
    expect(await value()).toBeUndefined();
    await changeFlag(server, ids.never!, { deleted: false, ...everyone(0) });
    await posthog.reloadFeatureFlags();
    expect(await value()).toBe(false);
    expect(errors).toEqual([]);
  });

  test("the secret key of the project is as good as a personal one; a wrong key leaves remote answers", async () => {
    const { posthog: secret } = client({
      personalApiKey: server.initialized.project.secret_api_key,
      featureFlagsPollingInterval: 600_000,
    });
    expect(await secret.waitForLocalEvaluationReady()).toBe(true);
    const { posthog: wrong, requests } = client({
      personalApiKey: "phx_wrong",
      featureFlagsPollingInterval: 600_000,
    });
    expect(await wrong.getFeatureFlag("always", "u1")).toBe(true);
    await until(() => requests.some(({ url }) => url.startsWith("/flags/definitions")), "it polled");
    const poll = requests.find(({ url }) => url.startsWith("/flags/definitions"))!;
    expect(poll.status).toBe(401);
  });

  test("the payload of a remote-configuration flag", async () => {
    const { posthog } = local();
    expect(await posthog.getRemoteConfigPayload("settings")).toEqual({ limit: 10 });
    const raw = await server.api(
      `/api/projects/@current/feature_flags/settings/remote_config?token=${server.token}`,
    );
    expect(await raw.json()).toBe('{"limit":10}');
  });
});

describe("events", () => {
  test("uncompressed, immediate, with its own uuid twice: one request each, one event each", async () => {
    const { posthog, errors, requests } = client({ disableCompression: true });
    const uuid = Bun.randomUUIDv7();
    posthog.capture({ distinctId: "c", event: "plainly sent", uuid });
    await posthog.flush();
    posthog.capture({ distinctId: "c", event: "plainly sent", uuid });
    await posthog.flush();
    await posthog.captureImmediate({ distinctId: "c", event: "sent at once" });
    expect(requests.map(({ url, status }) => `${url} ${status}`)).toEqual(Array(3).fill("/batch/ 200"));
    const [event] = await server.eventsWhenStored(1, "event=sent+at+once");
    expect(event!.distinct_id).toBe("c");
    const [plain] = await server.eventsWhenStored(1, "event=plainly+sent");
    expect(plain!.uuid).toBe(uuid);
    expect(errors).toEqual([]);
  });

  test("250 events in batches of 100 are all stored once", async () => {
    const { posthog, errors, requests } = client({ flushAt: 100 });
    for (let i = 0; i < 250; i++)
      posthog.capture({ distinctId: "many", event: "counted", properties: { i } });
    await posthog.flush();
    const events = await server.eventsWhenStored(250, "event=counted");
    expect(new Set(events.map(({ properties }) => properties.i)).size).toBe(250);
    expect(requests.every(({ status }) => status === 200)).toBe(true);
    expect(errors).toEqual([]);
  });
});

describe("identity", () => {
  const getPerson = async (distinctId: string) => {
    const response = await server.api(
      `/api/projects/1/persons/?distinct_id=${encodeURIComponent(distinctId)}`,
    );
    const { results } = (await response.json()) as {
      results: { distinct_ids: string[]; properties: Record<string, unknown> }[];
    };
    return results[0];
  };

  test("identify sets, and sets once only once", async () => {
    const { posthog, errors } = client();
    posthog.identify({ distinctId: "ida", properties: { $set: { a: 1 }, $set_once: { b: 1 } } });
    posthog.identify({ distinctId: "ida", properties: { $set: { a: 2 }, $set_once: { b: 2 } } });
    await posthog.flush();
    const person = await until(async () => {
      const found = await getPerson("ida");
      return found?.properties.a === 2 && found;
    }, "the properties are stored");
    expect(person.properties).toMatchObject({ a: 2, b: 1 });
    expect(errors).toEqual([]);
  });

  test("alias joins two ids", async () => {
    const { posthog } = client();
    posthog.capture({ distinctId: "account-1", event: "seen" });
    posthog.alias({ distinctId: "account-1", alias: "device-1" });
    await posthog.flush();
    const person = await until(async () => {
      const found = await getPerson("device-1");
      return found?.distinct_ids.length === 2 && found;
    }, "the ids are joined");
    expect(person.distinct_ids.toSorted()).toEqual(["account-1", "device-1"]);
  });

  test("an anonymous event makes no person", async () => {
    const { posthog } = client();
    posthog.capture({
      distinctId: "ghost",
      event: "seen anonymously",
      properties: { $process_person_profile: false },
    });
    await posthog.flush();
    await server.eventsWhenStored(1, "event=seen+anonymously");
    expect(await getPerson("ghost")).toBeUndefined();
  });

  test("groupIdentify makes a group, an event that names one does not", async () => {
    const { posthog } = client();
    posthog.groupIdentify({ groupType: "company", groupKey: "globex", properties: { size: 3 } });
    posthog.capture({ distinctId: "u1", event: "worked", groups: { company: "initech" } });
    await posthog.flush();
    await server.eventsWhenStored(1, "event=worked");
    const find = (key: string) =>
      server.api(`/api/projects/1/groups/find/?group_type_index=0&group_key=${key}`);
    const found = await find("globex");
    expect(found.status).toBe(200);
    expect(await found.json()).toMatchObject({ group_key: "globex", group_properties: { size: 3 } });
    expect((await find("initech")).status).toBe(404);
  });
});
