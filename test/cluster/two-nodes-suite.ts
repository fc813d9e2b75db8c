/** What two nodes on one PostgreSQL promise to SDKs, people and programs, as tests for each way of storing persons. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { SQL } from "bun";
import { PostHog } from "posthog-node";
import { rolloutPosition } from "../../src/flags/evaluate/bucketing.ts";
import { canRunCluster, startBalancer, TestCluster, testWithCluster } from "../support/cluster.ts";
import { type ServerProcess, until } from "../support/server.ts";
import { expectWithin } from "../support/times.ts";

/** @param layout how persons are stored @param loading which nodes load events */
export function twoNodes(layout: "replica" | "rows", loading: "single" | "partitions" = "single"): void {
  const test = testWithCluster(`two nodes, persons as ${layout}, loading ${loading}`);
  const flagsPath = "/api/projects/1/feature_flags/";

  let cluster: TestCluster;
  let one: ServerProcess;
  let other: ServerProcess;
  beforeAll(async () => {
    if (!canRunCluster) return;
    cluster = await TestCluster.start(2, {
      args: ["--cluster-persons", layout, "--cluster-loading", loading],
    });
    [one, other] = cluster.nodes as [ServerProcess, ServerProcess];
  }, 60_000);
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const event = (name: string, more: Record<string, unknown> = {}) => ({
    event: name,
    uuid: Bun.randomUUIDv7(),
    distinct_id: "ann",
    properties: {},
    ...more,
  });

  describe("events", () => {
    test("the same events through both nodes concurrently, and again later, are stored once", async () => {
      const batch = Array.from({ length: 200 }, () => event("twice"));
      const answers = await Promise.all([one, other, one, other].map((node) => node.batch(batch)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      await cluster.everythingIsLoaded();
      expect((await other.batch(batch)).status).toBe(200);
      await cluster.everythingIsLoaded();
      for (const node of [one, other])
        expect((await node.eventsWhenStored(200, "event=twice")).length).toBe(200);
      const stored = await cluster.clickhouse.run(
        "SELECT count() FROM flagkeep.events WHERE event = 'twice'",
      );
      expect(stored).toEqual([[200]]);
    }, 60_000);

    test("history over alternating nodes stays in the order in which it was acknowledged", async () => {
      for (let number = 0; number < 100; number++) {
        const node = number % 2 === 0 ? one : other;
        const item = event("history", { timestamp: "2020-01-01T00:00:00Z", properties: { number } });
        expect((await node.batch([item], { historical_migration: true })).status).toBe(200);
      }
      const events = await one.eventsWhenStored(100, "order=seq&event=history");
      expect(events.map(({ properties }) => properties.number)).toEqual(
        Array.from({ length: 100 }, (_, index) => index),
      );
    }, 60_000);

    test("a person known by an event of one node is the same on the other, and groups too", async () => {
      await one.batch([
        event("$identify", {
          distinct_id: "kim",
          properties: { $anon_distinct_id: "anon-kim", $set: { plan: "pro" } },
        }),
      ]);
      await other.batch([event("bought", { distinct_id: "anon-kim" })]);
      await cluster.everythingIsLoaded();
      for (const node of [one, other]) {
        const person = await until(async () => {
          const answer = await node.api("/api/projects/1/persons/?distinct_id=anon-kim");
          return ((await answer.json()) as { results: { distinct_ids: string[]; properties: object }[] })
            .results[0];
        }, "the person is known");
        expect(person.distinct_ids.toSorted()).toEqual(["anon-kim", "kim"]);
        expect(person.properties).toMatchObject({ plan: "pro" });
      }
    }, 60_000);
  });

  test("an identified person keeps the value on both nodes, before and after", async () => {
    const body = {
      key: "steady",
      ensure_experience_continuity: true,
      filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
    };
    expect((await one.api(flagsPath, { method: "POST", body })).status).toBe(201);
    const idThatIs = (isOn: boolean, name: string) => {
      for (let i = 0; ; i++)
        if (rolloutPosition("steady", `${name}-${i}`) <= 0.5 === isOn) return `${name}-${i}`;
    };
    const steady = async (node: ServerProcess, more: object) => {
      const answer = await node.post("/flags/?v=2", { api_key: node.token, flag_keys: ["steady"], ...more });
      return ((await answer.json()) as { flags: Record<string, { enabled: boolean }> }).flags.steady?.enabled;
    };
    await until(async () => (await steady(other, { distinct_id: "x" })) !== undefined, "both have the flag");
    for (const [first, second] of [
      [one, other],
      [other, one],
    ] as const) {
      const user = idThatIs(false, `steady-${first.url}`);
      const anon = idThatIs(true, `former-${first.url}`);
      expect(await steady(first, { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
      // At the same time as the first front stores it.
      await second.batch([
        event("$identify", { distinct_id: user, properties: { $anon_distinct_id: anon } }),
      ]);
      expect(await steady(first, { distinct_id: user })).toBe(true);
      await until(() => steady(second, { distinct_id: user }), "the other front knows it");
      await cluster.everythingIsLoaded();
      for (const node of [first, second]) {
        await until(() => steady(node, { distinct_id: user }), "it stays");
        const statement = `SELECT 1 FROM ${layout === "rows" ? "flagkeep." : ""}hash_key_override WHERE hash_key = '${anon}'`;
        const rows = async () =>
          layout === "rows" ? await cluster.ask(statement) : cluster.askPersonsOf(node, statement);
        await until(async () => (await rows()).length === 1, "the person has the override");
      }
    }
  }, 60_000);

  test("a person deleted through one node is deleted on both, and both report it", async () => {
    const properties = { $set: { plan: "pro" } };
    expect((await one.batch([event("$identify", { distinct_id: "leaver", properties })])).status).toBe(200);
    const getPerson = async (node: ServerProcess) => {
      const answer = await node.api("/api/projects/1/persons/?distinct_id=leaver");
      return ((await answer.json()) as { results: { uuid: string }[] }).results[0];
    };
    const { uuid } = await until(() => getPerson(other), "the person is known");
    const deleted = await other.api(`/api/projects/1/persons/${uuid}/`, { method: "DELETE" });
    expect([200, 202]).toContain(deleted.status);
    for (const node of [one, other]) {
      await until(async () => (await getPerson(node)) === undefined, "the person is gone");
      const log = await (await node.api("/api/projects/1/activity_log/?scope=Person")).text();
      expect(log.split(`"item_id":"${uuid}"`).length).toBe(2);
    }
  }, 60_000);

  describe("management", () => {
    const getFlags = async (node: ServerProcess, distinctId = "ann") => {
      const answer = await node.post("/flags/?v=2", { api_key: node.token, distinct_id: distinctId });
      return ((await answer.json()) as { flags: Record<string, { enabled: boolean }> }).flags;
    };

    test("a flag that is created, changed and deleted on one node is so on the other in under a second", async () => {
      const created = await one.api(flagsPath, {
        method: "POST",
        body: {
          key: "shared",
          active: true,
          filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
        },
      });
      expect(created.status).toBe(201);
      const { id } = (await created.json()) as { id: number };
      const isSeen = async (node: ServerProcess, isEnabled: boolean) =>
        ((await getFlags(node)).shared?.enabled === true) === isEnabled;
      await until(() => isSeen(other, true), "the new flag is seen");
      await expectWithin(1_000, async () => {
        await other.api(`${flagsPath}${id}/`, { method: "PATCH", body: { active: true } });
        await until(() => isSeen(one, true), "it is seen to be switched on");
        await other.api(`${flagsPath}${id}/`, { method: "PATCH", body: { active: false } });
        await until(() => isSeen(one, false), "it is seen to be switched off");
      });
      // The management API itself is never behind.
      expect(await (await one.api(`${flagsPath}${id}/`)).json()).toMatchObject({ active: false });
      await one.api(`${flagsPath}${id}/`, { method: "PATCH", body: { deleted: true } });
      expect(await (await other.api(`${flagsPath}${id}/`)).json()).toMatchObject({ deleted: true });
    }, 60_000);

    test("concurrent changes through both nodes are all stored, each with a unique number", async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? one : other).api(flagsPath, {
            method: "POST",
            body: { key: `at-once-${index}` },
          }),
        ),
      );
      const ids = await Promise.all(
        answers.map(async (answer) => ((await answer.json()) as { id: number }).id),
      );
      expect(new Set(ids).size).toBe(20);
      for (const node of [one, other]) {
        const { results } = (await (await node.api(`${flagsPath}?limit=100`)).json()) as {
          results: { key: string }[];
        };
        expect(results.filter(({ key }) => key.startsWith("at-once-")).length).toBe(20);
      }
      // Of two of the same name one is created.
      const same = await Promise.all(
        [one, other].map((node) => node.api(flagsPath, { method: "POST", body: { key: "only-once" } })),
      );
      expect(same.map(({ status }) => status).sort()).toEqual([201, 400]);
    }, 60_000);

    test("a key that is revoked on one node stays so, though the other one has just noted its use", async () => {
      const created = await one.api("/api/personal_api_keys/", {
        method: "POST",
        body: { label: "revoked", scopes: ["feature_flag:read"] },
      });
      const { id, value } = (await created.json()) as { id: string; value: string };
      const getStatus = async (node: ServerProcess) => (await node.api(flagsPath, { key: value })).status;
      const waiting = async () => {
        const [row] = await cluster.ask<{ count: number }>(
          "SELECT count(*)::int AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'",
        );
        return row!.count;
      };
      const sql = new SQL(cluster.postgres.url("flagkeep"), { max: 1 });
      let revoking: Promise<Response> | undefined;
      await sql.begin(async (t) => {
        // Whoever changes something waits, the one behind the other.
        await t`SELECT 1 FROM flagkeep.store WHERE name = 'metadata' FOR UPDATE`;
        revoking = one.api(`/api/personal_api_keys/${id}/`, { method: "DELETE" });
        await until(async () => (await waiting()) === 1, "the key waits to be revoked");
        expect(await getStatus(other)).toBe(200);
        await until(async () => (await waiting()) === 2, "that it was used waits to be noted");
      });
      await sql.close();
      expect((await revoking!).status).toBe(204);
      // Behind whatever the other one had to say.
      await other.api(flagsPath, { method: "POST", body: { key: "behind-the-use" } });
      expect([await getStatus(one), await getStatus(other)]).toEqual([401, 401]);
    }, 60_000);

    test("who signs in on one node is signed in on the other, and signed out there, too", async () => {
      const link = one.logs.find((line) => line.console_url !== undefined)!.console_url as string;
      const headers = { "X-Flagkeep-Console": "1", "Content-Type": "application/json" };
      const setUp = await fetch(`${one.url}/api/session/setup/`, {
        method: "POST",
        headers,
        body: JSON.stringify({ token: link.split("#")[1], password: "correct horse battery staple" }),
      });
      expect(setUp.status).toBe(201);
      const cookie = setUp.headers.get("set-cookie")!.split(";")[0]!;
      const check = (node: ServerProcess) =>
        fetch(`${node.url}${flagsPath}`, { headers: { ...headers, cookie } });
      expect((await check(other)).status).toBe(200);
      // The link works once, on whichever front.
      const again = await fetch(`${other.url}/api/session/setup/`, {
        method: "POST",
        headers,
        body: JSON.stringify({ token: link.split("#")[1], password: "another horse battery staple" }),
      });
      expect(again.status).toBe(401);
      expect(
        (await fetch(`${other.url}/api/session/`, { method: "DELETE", headers: { ...headers, cookie } })).ok,
      ).toBe(true);
      expect((await check(one)).status).toBe(401);
    }, 60_000);
  });

  test("both nodes report pending entries in metrics, without disks and backups", async () => {
    const lag = async (node: ServerProcess) => {
      const text = await (await fetch(`${node.url}/metrics`)).text();
      expect(text).not.toMatch(/^flagkeep_(disk|backup|journal_lag_bytes)/m);
      return Number(/^flagkeep_journal_lag_entries\{lane="realtime"\} (\d+)$/m.exec(text)?.[1]);
    };
    await cluster.everythingIsLoaded();
    await cluster.clickhouse.holdInsert("before");
    try {
      expect((await other.batch([event("held")])).status).toBe(200);
      await until(async () => (await cluster.clickhouse.inserts()).isHolding, "an insert is held");
      expect((await one.batch(Array.from({ length: 30 }, () => event("waits")))).status).toBe(200);
      for (const node of [one, other])
        await until(async () => (await lag(node)) === 30, "30 entries wait", 10_000);
    } finally {
      await cluster.clickhouse.release();
    }
    for (const node of [one, other]) await until(async () => (await lag(node)) === 0, "none waits");
  }, 60_000);

  test("posthog-node over both by turns captures, identifies and asks for flags", async () => {
    using balancer = startBalancer([one, other]);
    await one.api(flagsPath, {
      method: "POST",
      body: { key: "for-node", filters: { groups: [{ properties: [], rollout_percentage: 100 }] } },
    });
    const posthog = new PostHog(one.token, { host: balancer.url.href, flushAt: 50, fetchRetryCount: 0 });
    posthog.identify({ distinctId: "node-user", properties: { plan: "pro" } });
    expect(await until(() => posthog.isFeatureEnabled("for-node", "node-user"), "the flag is on")).toBe(true);
    for (let number = 0; number < 1_000; number++)
      posthog.capture({ distinctId: `node-${number % 20}`, event: "by node", properties: { number } });
    await posthog.shutdown();
    const events = await other.eventsWhenStored(1_000, "event=by+node");
    expect(new Set(events.map(({ properties }) => properties.number)).size).toBe(1_000);
  }, 60_000);

  test("while PostgreSQL is unavailable captures are rejected, flags continue, status reports it, and all recovers", async () => {
    await one.api(flagsPath, {
      method: "POST",
      body: { key: "steady", filters: { groups: [{ properties: [], rollout_percentage: 100 }] } },
    });
    const flags = async (node: ServerProcess) => {
      const answer = await node.post("/flags/?v=2", { api_key: node.token, distinct_id: "ann" });
      return [
        answer.status,
        ((await answer.json()) as { flags: Record<string, unknown> }).flags.steady !== undefined,
      ];
    };
    await until(async () => (await flags(other))[1], "the flag is known");
    const ready = async (node: ServerProcess, role: string) =>
      (await fetch(`${node.url}/_readiness?role=${role}`)).status;
    // Nodes listen before their engine has started, which needs PostgreSQL.
    for (const node of [one, other])
      await until(async () => (await ready(node, "query")) === 200, "the engine has started");
    await cluster.postgres.kill();
    const expectAway = async (node: ServerProcess) => {
      const rejected = await node.batch([event("refused")]);
      expect([rejected.status, Number(rejected.headers.get("retry-after"))]).toEqual([
        503,
        expect.any(Number),
      ]);
      expect(Number(rejected.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await flags(node)).toEqual([200, true]);
      const change = await node.api(flagsPath, { method: "POST", body: { key: "not-now" } });
      expect(change.status).toBe(503);
      const series = [{ event: "$pageview" }];
      const query = await node.api("/api/projects/1/query/", {
        method: "POST",
        body: { query: { kind: "TrendsQuery", series } },
      });
      expect(query.status).toBe(200);
      expect([await ready(node, "flags"), await ready(node, "capture")]).toEqual([200, 503]);
      const status = (await (await node.api("/api/instance/status/")).json()) as {
        shared: { trouble: string };
      };
      expect(status.shared.trouble).toMatch(/^PostgreSQL at postgres:\/\/\S+ is unavailable: /);
    };
    await Promise.all([one, other].map(expectAway));
    await cluster.postgres.restart();
    for (const node of [one, other])
      await until(async () => (await node.batch([event("back")])).status === 200, "captures are taken again");
    await cluster.everythingIsLoaded();
    await one.eventsWhenStored(2, "event=back");
    const created = await other.api(flagsPath, { method: "POST", body: { key: "now" } });
    expect(created.status).toBe(201);
    const status = (await (await one.api("/api/instance/status/")).json()) as { shared: { trouble: null } };
    expect(status.shared.trouble).toBeNull();
  }, 120_000);

  test("while PostgreSQL hangs captures are rejected after five seconds, and flags continue", async () => {
    cluster.postgres.hang();
    try {
      const started = performance.now();
      const answers = await Promise.all([one, other].map((node) => node.batch([event("hung")])));
      expect(answers.map(({ status }) => status)).toEqual([503, 503]);
      expect(performance.now() - started).toBeLessThan(8_000);
      const flags = await one.post("/flags/?v=2", { api_key: one.token, distinct_id: "ann" });
      expect(flags.status).toBe(200);
    } finally {
      cluster.postgres.wake();
    }
    for (const node of [one, other])
      await until(async () => (await node.batch([event("woke")])).status === 200, "captures are taken again");
    await cluster.everythingIsLoaded();
  }, 60_000);

  test("while PostgreSQL rejects all connections it counts as unavailable, and all recovers", async () => {
    const letIn = async (isOpen: boolean) => {
      await cluster.postgres.run(`ALTER DATABASE flagkeep ALLOW_CONNECTIONS ${isOpen}`);
      await cluster.postgres.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'flagkeep'",
      );
    };
    await letIn(false);
    const ready = async (node: ServerProcess) => (await fetch(`${node.url}/_readiness?role=capture`)).status;
    for (const node of [one, other]) {
      expect((await node.batch([event("shut out")])).status).toBe(503);
      expect((await node.api(flagsPath, { method: "POST", body: { key: "shut-out" } })).status).toBe(503);
      await until(async () => (await ready(node)) === 503, "it is not ready for captures");
      const problem = async () => {
        const status = await (await node.api("/api/instance/status/")).json();
        return (status as { shared: { trouble: string | null } }).shared.trouble ?? "";
      };
      // Each try has its own reason, and of some only the reset comes through.
      await until(
        async () => (await problem()).includes("not currently accepting connections"),
        "it says what PostgreSQL says",
      );
    }
    await letIn(true);
    for (const node of [one, other])
      await until(
        async () => (await node.batch([event("let in")])).status === 200,
        "captures are taken again",
      );
    await cluster.everythingIsLoaded();
    await one.eventsWhenStored(2, "event=let+in");
  }, 60_000);

  test("a node that cannot reach PostgreSQL at its start reports it and continues when it can", async () => {
    await using late = await TestCluster.prepare();
    await late.postgres.kill();
    const sentences: string[] = [];
    let isListening = false;
    const starting = late.startNode(0, ({ msg }) => {
      if (String(msg).startsWith("PostgreSQL at ")) sentences.push(String(msg));
      isListening ||= msg === "listening";
    });
    await until(() => sentences.length > 0, "the node has reported it");
    expect(isListening).toBe(false);
    await late.postgres.restart();
    const node = await starting;
    expect(sentences[0]).toMatch(
      /^PostgreSQL at postgres:\/\/\S+ is unavailable: .* Flagkeep retries automatically\.$/,
    );
    expect(new Set(sentences).size).toBe(sentences.length);
    expect((await node.capture({ event: "first", distinct_id: "ann" })).status).toBe(200);
  }, 60_000);
}
