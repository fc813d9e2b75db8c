/** Bodies that are taken apart in another thread: the same answers, the same lines, in the same order. */

import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { LargeBodies, type LargeBody } from "../../src/ingestion/large-bodies.ts";
import { anyToken, noon, startCapture } from "./support.ts";

const filling = "x".repeat(1_000);
const many = (count: number, more: Record<string, unknown> = {}) =>
  JSON.stringify({
    api_key: anyToken,
    batch: Array.from({ length: count }, (_, index) => ({
      event: `e${index}`,
      distinct_id: "d",
      properties: { filling },
    })),
    ...more,
  });

describe("a large body", () => {
  for (const [name, body] of [
    ["as it is", many(3_000)],
    ["packed into a few bytes", gzipSync(many(3_000))],
    ["as a form", `data=${encodeURIComponent(btoa(many(3_000)))}`],
  ] as const) {
    test(`${name} is stored whole and in order`, async () => {
      const { journal, send } = startCapture();
      const response = await send("/batch", { body: body as never });
      expect([response.status, await response.text()]).toEqual([200, '{"status":"Ok"}']);
      expect(journal.events.map(({ event }) => event)).toEqual(
        Array.from({ length: 3_000 }, (_, index) => `e${index}`),
      );
      expect(journal.appends.length).toBeGreaterThan(1);
      expect(new Set(journal.appends.map(({ lane }) => lane))).toEqual(new Set(["realtime"]));
    });
  }

  test("can have any number of objects and arrays, as long as no event has too many", async () => {
    const { journal, send } = startCapture();
    const cart = `[${Array(60).fill('{"n":1}').join()}]`;
    const event = `{"event":"paid","distinct_id":"d","properties":{"cart":${cart}}}`;
    const body = `{"batch":[${Array(18_000).fill(event).join()}],"api_key":"${anyToken}"}`;
    expect((await send("/batch", { body })).status).toBe(200);
    const nothings = `{"api_key":"${anyToken}","batch":[${"{},".repeat(1_500_000)}${event}]}`;
    expect((await send("/batch", { body: nothings })).status).toBe(200);
    expect(journal.events).toHaveLength(18_001);
    // All parts together write a limited number of notes in full.
    expect(journal.notes).toHaveLength(10_001);
    expect(journal.lines.at(-1)).toMatchObject({ details: { count: 1_490_000 } });
  });

  test("of which only some events are history is rejected", async () => {
    const { journal, send } = startCapture();
    const { batch } = JSON.parse(many(1_000)) as { batch: Record<string, unknown>[] };
    for (const event of batch.slice(600)) event.historical_migration = true;
    const response = await send("/batch", { body: JSON.stringify({ api_key: anyToken, batch }) });
    expect([response.status, (await response.text()).includes("position 600 ")]).toEqual([400, true]);
    expect(journal.appends).toEqual([]);
  });

  test("whose events name several keys is rejected, and one that names a key late is not", async () => {
    const { journal, send } = startCapture();
    const { batch } = JSON.parse(many(1_000)) as { batch: Record<string, unknown>[] };
    batch[999]!.token = anyToken;
    expect((await send("/e", { body: JSON.stringify(batch) })).status).toBe(200);
    expect(journal.events).toHaveLength(1_000);
    batch[0]!.token = "phc_another";
    expect((await send("/e", { body: JSON.stringify(batch) })).status).toBe(401);
    batch[500]!.properties = "none";
    const response = await send("/e", { body: JSON.stringify(batch) });
    expect([response.status, (await response.text()).includes("position 500 ")]).toEqual([400, true]);
    expect(journal.events).toHaveLength(1_000);
  });

  test("of historical events is stored in its lane", async () => {
    const { journal, send } = startCapture();
    const body = many(2_000, { historical_migration: true });
    expect((await send("/batch", { body })).status).toBe(200);
    expect(new Set(journal.appends.map(({ lane }) => lane))).toEqual(new Set(["historical"]));
  });

  test("in the newer protocol gets a result for each event", async () => {
    const { send } = startCapture();
    const uuids = Array.from({ length: 2_000 }, () => Bun.randomUUIDv7());
    const batch = uuids.map((uuid) => ({ event: "e", distinct_id: "d", uuid, properties: { filling } }));
    const response = await send("/i/v1/analytics/events", {
      body: JSON.stringify({ batch }),
      headers: { authorization: `Bearer ${anyToken}` },
    });
    const { results } = (await response.json()) as { results: Record<string, { result: string }> };
    expect(Object.keys(results)).toEqual(uuids);
    expect(results[uuids[0]!]).toEqual({ result: "ok" });
  });

  const large = JSON.stringify({ filling: filling.repeat(700) });
  for (const [name, body, status, code] of [
    ["without a key", many(2_000).replace(anyToken, ""), 401, "invalid_api_key"],
    ["of a project that is none", many(2_000).replace(anyToken, "phc_nobody"), 401, "invalid_api_key"],
    ["that is no JSON", `${many(2_000)}x`, 400, "invalid_payload"],
    ["of another shape", large, 401, "missing_api_key"],
    ["of brackets", "[".repeat(5_000_000), 400, "invalid_payload"],
    ["of objects in objects", '{"a":'.repeat(1_000_000), 400, "invalid_payload"],
    ["of nothings", `[${"{},".repeat(2_000_000)}{}]`, 401, "missing_api_key"],
    [
      "whose event has a million parts",
      `[{"event":"e","a":[${"[],".repeat(1_000_000)}0]},{}]`,
      413,
      "payload_too_large",
    ],
    ["that is cut off", many(2_000).slice(0, -1), 400, "invalid_payload"],
    ["with a comma too many", many(2_000).replace("}},{", "}},,{"), 400, "invalid_payload"],
    ["with two commas at the end", many(2_000).replace("}}]", "}},]"), 400, "invalid_payload"],
    ["of two bodies", many(2_000) + many(2_000), 400, "invalid_payload"],
    ["that unpacks to more than is allowed", gzipSync("x".repeat(30_000_000)), 413, "payload_too_large"],
  ] as const) {
    test(`${name} is rejected: ${status}`, async () => {
      const { journal, send, unexpected } = startCapture();
      const response = await send("/e", { body: body as never });
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ code });
      expect(journal.appends).toEqual([]);
      expect(unexpected).toEqual([]);
      // The thread continues after a rejection.
      expect((await send("/batch", { body: many(1_000) })).status).toBe(200);
    });
  }

  test("is handed over without a copy where it is alone in its memory, and copied where it is not", async () => {
    const bodies = new LargeBodies();
    const take = async (bytes: Uint8Array) => {
      const body = { bytes, query: {}, contentEncoding: null } as unknown as LargeBody["body"];
      const arrival = { receivedMicros: noon, clientIp: undefined };
      let count = 0;
      await bodies.take(
        {
          body,
          protocol: { kind: "classic", rule: "drop" },
          limitBytes: 1e9,
          arrival,
          known: undefined,
        } as unknown as LargeBody,
        {
          findProject: () => ({ id: 1, anonymizeIps: false }) as never,
          append: async (_, entries) => {
            count += entries.length;
          },
        },
      );
      return count;
    };
    const alone = new Uint8Array(Buffer.from(many(100)));
    const shared = Buffer.concat([Buffer.from(many(100)), Buffer.from("of others")]);
    const all = new Uint8Array(shared.length);
    all.set(shared);
    expect(await take(alone)).toBe(100);
    expect(alone.byteLength).toBe(0);
    expect(await take(all.subarray(0, all.length - 9))).toBe(100);
    expect(Buffer.from(all).subarray(-9).toString()).toBe("of others");
  });

  test("does not block other requests while it is split", async () => {
    const { send } = startCapture();
    const slow = send("/batch", { body: "[{},".repeat(1_500_000) });
    let isOver = false;
    void slow.then(() => {
      isOver = true;
    });
    const body = JSON.stringify({ api_key: anyToken, event: "e", distinct_id: "d" });
    expect((await send("/e", { body })).status).toBe(200);
    expect(isOver).toBe(false);
    expect((await slow).status).toBe(400);
  });
});

describe("a batch", () => {
  const small = JSON.stringify({ api_key: anyToken, event: "small", distinct_id: "d" });
  const events = (journal: ReturnType<typeof startCapture>["journal"]) =>
    journal.appends.map(({ entries }) => (entries.length === 1 ? "small" : "batch"));

  for (const [name, body] of [
    ["of some size", many(100)],
    ["packed into a few kilobytes", gzipSync(JSON.stringify(varied(100)))],
    ["in base64", btoa(JSON.stringify(varied(40)))],
  ] as const) {
    test(`${name} waits for its turn, and small requests for none of them`, async () => {
      const { journal, send } = startCapture();
      const before = Array.from({ length: 8 }, () => send("/batch", { body: body as never }));
      await new Promise(setImmediate);
      const answers = [send("/e", { body: small }), ...before];
      for (const answer of answers) expect((await answer).status).toBe(200);
      expect(events(journal)).toHaveLength(9);
      expect(events(journal).indexOf("small")).toBeLessThan(5);
    });
  }
});

/** A batch that does not pack into next to nothing. */
function varied(count: number) {
  const item = () => ({
    event: "e",
    distinct_id: Bun.randomUUIDv7(),
    properties: { id: Bun.randomUUIDv7() },
  });
  return { api_key: anyToken, batch: Array.from({ length: count }, item) };
}
