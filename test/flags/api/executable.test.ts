/** Flags from the compiled executable over a real socket: consistency, persons made by events, changes, the engine. */

import { describe, expect, test } from "bun:test";
import { openMetadata } from "../../../src/accounts/metadata.ts";
import { rolloutPosition } from "../../../src/flags/evaluate/bucketing.ts";
import { findFlagByKey } from "../../../src/flags/store/flag.ts";
import { updateFlag } from "../../../src/flags/store/flag-writes.ts";
import { paths } from "../../../src/paths.ts";
import { plainPayloads } from "../../support/payloads.ts";
import { ServerProcess, until } from "../../support/server.ts";
import { restartServer, server, useServer } from "../../support/use-server.ts";
import simple from "../testdata/rollout-45-percent.json";
import multivariate from "../testdata/rollout-55-percent-five-variants.json";

const flagsPath = "/api/projects/1/feature_flags/";

useServer();

async function create(key: string, filters: object, more: object = {}): Promise<number> {
  const response = await server.api(flagsPath, { method: "POST", body: { key, filters, ...more } });
  const body = (await response.json()) as { id: number };
  if (response.status !== 201) throw new Error(JSON.stringify(body));
  return body.id;
}
async function change(id: number, body: object): Promise<void> {
  const response = await server.api(`${flagsPath}${id}/`, { method: "PATCH", body });
  expect(response.status).toBe(200);
}
interface FlagValue {
  enabled: boolean;
  variant: string | null;
  reason: { code: string };
}
async function ask(body: object, headers: Record<string, string> = {}) {
  const response = await server.post("/flags/?v=2", { api_key: server.token, ...body }, headers);
  expect(response.status).toBe(200);
  return (await response.json()) as {
    errorsWhileComputingFlags: boolean;
    flags: Record<string, FlagValue>;
  };
}
async function seenValue(key: string, body: object): Promise<boolean | string> {
  const flag = (await ask({ ...body, flag_keys: [key] })).flags[key]!;
  return flag.enabled && (flag.variant ?? true);
}

describe("the published results, over HTTP", () => {
  test("500 ids within a rollout of 45 percent", async () => {
    await create(simple.flagKey, { groups: [{ properties: [], rollout_percentage: simple.percentage }] });
    let found = "";
    for (let i = 0; i < 500; i++) {
      const value = await seenValue(simple.flagKey, { distinct_id: `${simple.idPrefix}${i}` });
      found += value === true ? "1" : "0";
    }
    expect(found).toBe(simple.isOn.join(""));
  });

  test("500 ids among five variants", async () => {
    await create(multivariate.flagKey, {
      groups: [{ properties: [], rollout_percentage: multivariate.percentage }],
      multivariate: {
        variants: multivariate.variants,
      },
    });
    let found = "";
    for (let i = 0; i < 500; i++) {
      const value = await seenValue(multivariate.flagKey, { distinct_id: `${multivariate.idPrefix}${i}` });
      found += value === false ? 0 : multivariate.variants.findIndex(({ key }) => key === value) + 1;
    }
    expect(found).toBe(multivariate.variantNumbers.join(""));
  });
});

describe("persons and groups created by events", () => {
  test("a property that was captured turns a flag on within seconds", async () => {
    await create("pro", {
      groups: [
        {
          properties: [{ key: "plan", type: "person", operator: "exact", value: "pro" }],
          rollout_percentage: 100,
        },
      ],
    });
    expect(await seenValue("pro", { distinct_id: "ann" })).toBe(false);
    await server.capture({ event: "$set", distinct_id: "ann", properties: { $set: { plan: "pro" } } });
    await until(() => seenValue("pro", { distinct_id: "ann" }), "the property counts", 5_000);
  });

  test("a group's property", async () => {
    const group = { $group_type: "company", $group_key: "acme", $group_set: { size: "large" } };
    await server.capture({ event: "$groupidentify", distinct_id: "ann", properties: group });
    await create("large", {
      aggregation_group_type_index: 0,
      groups: [
        {
          properties: [
            { key: "size", type: "group", group_type_index: 0, operator: "exact", value: "large" },
          ],
          rollout_percentage: 100,
        },
      ],
    });
    const asked = { distinct_id: "ann", groups: { company: "acme" } };
    await until(() => seenValue("large", asked), "the group counts", 5_000);
    expect(await seenValue("large", { distinct_id: "ann", groups: { company: "other" } })).toBe(false);
    expect((await ask({ distinct_id: "ann" })).flags.large).toMatchObject({
      enabled: false,
      reason: { code: "no_group_type" },
    });
  });

  test("who is identified keeps the value seen before, also after the merge and a restart", async () => {
    await create(
      "steady",
      { groups: [{ properties: [], rollout_percentage: 50 }] },
      { ensure_experience_continuity: true },
    );
    const idThatIs = (isOn: boolean, name: string) => {
      for (let i = 0; ; i++) {
        if (rolloutPosition("steady", `${name}${i}`) <= 0.5 === isOn) return `${name}${i}`;
      }
    };
    const anon = idThatIs(true, "anon-");
    const user = idThatIs(false, "user-");
    // Both events are on their way only, when the flags are asked for.
    await server.capture({ event: "seen", distinct_id: anon });
    await server.capture({
      event: "$identify",
      distinct_id: user,
      properties: { $anon_distinct_id: anon },
    });
    expect(await seenValue("steady", { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
    await until(() => seenValue("steady", { distinct_id: user }), "the override is stored", 10_000);
    await restartServer();
    expect(await seenValue("steady", { distinct_id: user })).toBe(true);
    expect(await seenValue("steady", { distinct_id: idThatIs(false, "stranger-") })).toBe(false);
  }, 60_000);
});

describe("a change is in the very next answer", () => {
  test("created through the API", async () => {
    const id = await create("switch", { groups: [{ properties: [], rollout_percentage: 0 }] });
    for (let round = 0; round < 10; round++) {
      for (const rollout_percentage of [100, 0]) {
        await change(id, { filters: { groups: [{ properties: [], rollout_percentage }] } });
        expect(await seenValue("switch", { distinct_id: "a" })).toBe(rollout_percentage === 100);
      }
    }
    await change(id, { active: false });
    expect((await ask({ distinct_id: "a" })).flags).not.toHaveProperty("switch");
    await change(id, { active: true, deleted: true });
    expect((await ask({ distinct_id: "a" })).flags).not.toHaveProperty("switch");
  });

  test("created by another process", async () => {
    await create("outside", { groups: [{ properties: [], rollout_percentage: 0 }] });
    expect(await seenValue("outside", { distinct_id: "a" })).toBe(false);
    // This test is another process than the server, as the command line is.
    const metadata = openMetadata(paths(server.dataDir).metadata);
    const { id } = findFlagByKey(metadata.db, 1, "outside")!;
    const fields = { filters: { groups: [{ properties: [], rollout_percentage: 100 }] } };
    updateFlag(
      { metadata, payloads: plainPayloads },
      { projectId: 1, id, by: 1, sent: {}, fields, now: new Date() },
    );
    metadata.close();
    // The server looks for changes of other processes every 2 ms, if the machine is not busy.
    await until(() => seenValue("outside", { distinct_id: "a" }), "the change is seen");
  });
});

describe("on the wire", () => {
  /** Sends bytes and returns everything that comes back until the other end closes. */
  async function exchange(parts: string[]): Promise<string> {
    const { hostname, port } = new URL(server.url);
    let received = "";
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data(_, chunk) {
          received += chunk.toString();
        },
        close: () => resolve(),
      },
    });
    for (const part of parts) {
      socket.write(part);
      socket.flush();
      await Bun.sleep(20);
    }
    await promise;
    return received;
  }
  const body = () => JSON.stringify({ token: server.token, distinct_id: "a" });

  test("a body in chunks", async () => {
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    const text = body();
    const received = await exchange([
      "POST /flags/?v=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
      chunk(text.slice(0, 9)),
      `${chunk(text.slice(9))}0\r\n\r\n`,
    ]);
    expect(received).toStartWith("HTTP/1.1 200");
    expect(received).toContain('"flags":{');
  });

  test("a client that waits for 100 Continue", async () => {
    const text = body();
    const received = await exchange([
      `POST /flags/?v=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${text.length}\r\nExpect: 100-continue\r\n\r\n`,
      text,
    ]);
    expect(received).toContain("HTTP/1.1 200");
    expect(received).toContain('"flags":{');
  });

  test("no answer redirects, whatever the slash", async () => {
    for (const path of [
      "/flags",
      "/flags/",
      "/flags?v=2",
      "/flags/?v=2",
      "/flags?",
      "/decide",
      "/decide/?v=3",
    ]) {
      const response = await fetch(server.url + path, {
        method: "POST",
        body: body(),
        redirect: "manual",
      });
      expect([path, response.status]).toEqual([path, 200]);
    }
  });

  test("the browser library is part of the executable", async () => {
    for (const path of [
      "/static/array.js",
      "/static/1.449.2/surveys.js",
      `/array/${server.token}/config.js`,
    ]) {
      const response = await fetch(server.url + path, { headers: { origin: "https://shop.example" } });
      expect(response.status).toBe(200);
      expect(response.headers.get("access-control-allow-origin")).toBe("https://shop.example");
      expect((await response.text()).length).toBeGreaterThan(500);
    }
    expect(await (await fetch(`${server.url}/static/LICENSE.txt`)).text()).toContain("Apache License");
  });
});

test("flags are answered while the engine is down, and what had to be stored is stored later", async () => {
  await using own = await ServerProcess.start();
  const post = async (body: object) => {
    const response = await own.post("/flags/?v=2", { api_key: own.token, ...body });
    return (await response.json()) as {
      errorsWhileComputingFlags: boolean;
      flags: Record<string, FlagValue>;
    };
  };
  await own.api(flagsPath, {
    method: "POST",
    body: {
      key: "steady",
      ensure_experience_continuity: true,
      filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
    },
  });
  const [anon, user] = ["", ""].map((_, wanted) => {
    for (let i = 0; ; i++)
      if (rolloutPosition("steady", `id-${i}`) <= 0.5 === (wanted === 0)) return `id-${i}`;
  }) as [string, string];
  await own.capture({ event: "seen", distinct_id: user });
  await own.eventsWhenStored(1);
  for (const pid of await own.enginePids()) process.kill(pid, "SIGKILL");
  const down = await post({ distinct_id: user, $anon_distinct_id: anon });
  expect(down).toMatchObject({ errorsWhileComputingFlags: false, flags: { steady: { enabled: true } } });
  expect(await post({ distinct_id: user })).toMatchObject({ flags: { steady: { enabled: true } } });
  await until(() => own.logs.filter(({ msg }) => msg === "engine ready").length >= 2, "the engine is back");
  // A restart forgets what was only in memory; what counts then is what was stored.
  const { Database } = await import("bun:sqlite");
  const people = new Database(paths(own.dataDir).people, { readonly: true });
  await until(
    () => people.query("SELECT hash_key FROM hash_key_override").get() as object | undefined,
    "the override is stored",
  );
  people.close();
}, 60_000);
