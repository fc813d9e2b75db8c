import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { anyToken, generatedUuid, JournalUnavailableError, noon, startCapture } from "./support.ts";

const ofrepPath = "/i/v1/analytics/events";
const uuid = (digit: number) => `01a1fb87-8ea9-71da-a728-780e77655af${digit}`;
const event = (digit: number, more: Record<string, unknown> = {}) => ({
  event: "e",
  uuid: uuid(digit),
  distinct_id: "d",
  timestamp: "2026-11-21T11:00:00Z",
  options: {},
  properties: {},
  ...more,
});
const batch = (items: unknown[], more: Record<string, unknown> = {}) =>
  JSON.stringify({ created_at: "2026-11-21T11:59:00Z", batch: items, ...more });
const headers = {
  authorization: `Bearer ${anyToken}`,
  "posthog-sdk-info": "posthog-node/5.70.0",
  "posthog-attempt": "1",
  "posthog-request-id": "request-1",
  "posthog-request-timestamp": "2026-11-21T12:00:00Z",
};

test("every event has its own result", async () => {
  const { journal, send } = startCapture({ generateUuid: () => generatedUuid });
  const body = batch([
    event(1),
    event(2, { event: "survey sent", distinct_id: "x".repeat(201) }),
    event(3, { event: "" }),
    event(4, { distinct_id: "" }),
    event(5, { event: "$identify", options: { process_person_profile: false } }),
    event(6, { uuid: uuid(6).toUpperCase() }),
    event(7, { uuid: "no uuid" }),
    event(8, { uuid: undefined }),
  ]);
  const response = await send(ofrepPath, { body, headers });
  expect(response.status).toBe(200);
  expect(response.headers.get("posthog-request-id")).toBe("request-1");
  expect(await response.json()).toEqual({
    results: {
      [uuid(1)]: { result: "ok" },
      [uuid(2)]: { result: "warning", details: "survey_without_id" },
      [uuid(3)]: { result: "drop", details: "missing_event_name" },
      [uuid(4)]: { result: "drop", details: "missing_distinct_id" },
      [uuid(5)]: { result: "warning", details: "invalid_event_when_process_person_profile_is_false" },
      [uuid(6).toUpperCase()]: { result: "ok" },
      "no uuid": { result: "warning", details: "invalid_uuid" },
      [generatedUuid]: { result: "ok" },
    },
  });
  expect(journal.appends).toHaveLength(1);
  expect(journal.events.map((line) => line.uuid)).toEqual([
    uuid(1),
    uuid(2),
    uuid(5),
    uuid(6),
    generatedUuid,
    generatedUuid,
  ]);

  const { "posthog-request-id": _, ...anonymous } = headers;
  const answer = await send(ofrepPath, { body: batch([event(1)]), headers: anonymous });
  expect(answer.headers.get("posthog-request-id")).toMatch(/^[0-9a-f-]{36}$/);
});

test("headers and members of the event become properties", async () => {
  const { journal, send } = startCapture();
  const options = { process_person_profile: false, cookieless_mode: true, product_tour_id: "tour" };
  const sent = event(1, {
    session_id: "s",
    window_id: "w",
    options,
    properties: { plan: "pro", $set: { a: 1 } },
  });
  const own = { $lib: "own", $session_id: "mine", $process_person_profile: true };
  await send(ofrepPath, { body: batch([sent, event(2, { session_id: "s", properties: own })]), headers });
  expect(journal.events[0]).toMatchObject({ mode: "propertyless", time: noon - 3_600_000_000 });
  expect(journal.events[0]!.properties).toEqual({
    plan: "pro",
    $sent_at: "2026-11-21T12:00:00.000000Z",
    $process_person_profile: false,
    $lib: "posthog-node",
    $lib_version: "5.70.0",
    $session_id: "s",
    $window_id: "w",
    $cookieless_mode: true,
    $product_tour_id: "tour",
  });
  expect(journal.events[1]!.properties).toMatchObject({
    $lib: "own",
    $lib_version: "5.70.0",
    $session_id: "mine",
  });
  expect(journal.events[1]!.properties).not.toHaveProperty("$process_person_profile");
});

test("times are corrected by the send time, unless the event disables it", async () => {
  const { journal, send } = startCapture();
  const body = batch([event(1), event(2, { options: { disable_skew_correction: true } })]);
  await send(ofrepPath, {
    body,
    headers: { ...headers, "posthog-request-timestamp": "2026-11-21T12:02:00Z" },
  });
  expect(journal.events.map(({ time }) => time)).toEqual([noon - 3_720_000_000, noon - 3_600_000_000]);
});

test("historical events are stored in their lane", async () => {
  const { journal, send } = startCapture();
  await send(ofrepPath, { body: batch([event(1)], { historical_migration: true }), headers });
  expect(journal.appends.map(({ lane }) => lane)).toEqual(["historical"]);
});

describe("bodies may be", () => {
  const body = Buffer.from(batch([event(1)]));
  for (const [coding, bytes] of [
    ["gzip", gzipSync(body)],
    ["deflate", deflateSync(body)],
    ["br", brotliCompressSync(body)],
    ["zstd", zstdCompressSync(body)],
  ] as const) {
    test(coding, async () => {
      const { journal, send } = startCapture();
      const response = await send(ofrepPath, {
        body: bytes,
        headers: { ...headers, "content-encoding": coding },
      });
      expect(response.status).toBe(200);
      expect(journal.events).toHaveLength(1);
    });
  }
});

describe("rejections are written in the protocol's own words", () => {
  for (const [name, init, status, error] of [
    ["no key", { headers: {} }, 401, "missing_api_key"],
    ["another scheme", { headers: { authorization: "Basic x" } }, 401, "missing_api_key"],
    ["an unknown key", { headers: { authorization: "Bearer phc_unknown" } }, 401, "invalid_api_key"],
    ["a personal key", { headers: { authorization: "Bearer phx_a" } }, 401, "invalid_api_key"],
    ["no JSON", { body: "x" }, 400, "invalid_payload"],
    ["an empty batch", { body: batch([]) }, 400, "invalid_payload"],
    ["no batch", { body: "{}" }, 400, "invalid_payload"],
    [
      "too much",
      { headers: { ...headers, "content-length": String(21 * 1024 * 1024) } },
      413,
      "payload_too_large",
    ],
  ] as [string, RequestInit, number, string][]) {
    test(name, async () => {
      const { journal, send } = startCapture();
      const response = await send(ofrepPath, { body: batch([event(1)]), headers, ...init });
      expect(response.status).toBe(status);
      expect(await response.json()).toEqual({
        error,
        error_description: expect.any(String),
        error_uri: null,
      });
      expect(journal.appends).toEqual([]);
    });
  }

  test("also when the journal cannot write", async () => {
    const { journal, send } = startCapture();
    journal.rejection = new JournalUnavailableError("full");
    const response = await send(ofrepPath, { body: batch([event(1)]), headers });
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("5");
    expect(await response.json()).toMatchObject({ error: "journal_unavailable" });
  });

  test("also for a defect of ours", async () => {
    const { journal, send, unexpected } = startCapture();
    journal.rejection = new Error("a defect");
    expect((await send(ofrepPath, { body: batch([event(1)]), headers })).status).toBe(500);
    expect(unexpected).toMatchObject([{ message: "a defect" }]);
  });

  test("other methods", async () => {
    const { send } = startCapture();
    expect((await send(ofrepPath, { method: "GET" })).status).toBe(405);
    expect((await send(ofrepPath, { method: "OPTIONS" })).status).toBe(200);
  });
});

test("strange options and headers do no harm", async () => {
  const { journal, send, unexpected } = startCapture();
  const deep = JSON.parse("[".repeat(50_000) + "]".repeat(50_000));
  for (const options of [null, 1, "x", [], deep, { process_person_profile: deep, cookieless_mode: deep }]) {
    const response = await send(ofrepPath, {
      body: `{"batch":[{"event":"e","uuid":"__proto__","distinct_id":"d"},${write(event(1, { session_id: ["s"] }), options)}]}`,
      headers: { ...headers, "posthog-sdk-info": '//"\\' },
    });
    const isDeep = typeof options === "object" && options !== null && jsonDepth.test(write({}, options));
    expect(response.status).toBe(isDeep ? 400 : 200);
  }
  expect(unexpected).toEqual([]);
  expect(journal.events.length).toBeGreaterThan(0);
});

const jsonDepth = /\[{1000}/;

/** JSON.stringify has not stack enough for the deep ones. */
function write(sent: Record<string, unknown>, options: unknown): string {
  const deep = "[".repeat(50_000) + "]".repeat(50_000);
  const isDeep = Array.isArray(options) && options.length > 0;
  const { options: _, ...rest } = sent;
  const text = isDeep
    ? deep
    : JSON.stringify(options, (name, value) =>
        name !== "" && Array.isArray(value) ? "DEEP" : value,
      ).replaceAll('"DEEP"', deep);
  return `${JSON.stringify(rest).slice(0, -1)},"options":${text}}`;
}
