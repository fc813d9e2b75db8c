import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import {
  anyEvent,
  anyToken,
  batch,
  envelope,
  eventBody,
  JournalUnavailableError,
  noon,
  startCapture,
} from "./support.ts";

const capturePaths = ["/capture", "/batch", "/e", "/i/v0/e", "/track", "/engage", "/i/v0/ai/batch"];

describe("every event route, with and without the slash", () => {
  for (const path of capturePaths.flatMap((bare) => [
    bare,
    `${bare}/`,
    `${bare}?`,
    `${bare}/?ip=1&_=1&ver=1.2&retry_count=3`,
  ])) {
    test(path, async () => {
      const { journal, send } = startCapture();
      const response = await send(path, { body: eventBody() });
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.text()).toBe('{"status":"Ok"}');
      expect(journal.events).toHaveLength(1);
      expect((await send(path, { body: batch([anyEvent, anyEvent]) })).status).toBe(200);
      expect((await send(path, { body: JSON.stringify([{ ...anyEvent, token: anyToken }]) })).status).toBe(
        200,
      );
      expect(journal.events).toHaveLength(4);
      expect(journal.notes).toEqual([]);
    });
  }

  test("accepts events from the query of a GET", async () => {
    const { journal, send } = startCapture();
    const url = `/e/?data=${encodeURIComponent(btoa(eventBody()))}&_=${noon / 1_000 - 1_000}`;
    expect((await send(url, { method: "GET" })).status).toBe(200);
    expect(journal.events).toMatchObject([{ properties: { $sent_at: "2026-11-21T11:59:59.000000Z" } }]);
    expect((await send("/e/", { method: "GET" })).status).toBe(400);
  });

  test("rejects other methods; only the paths of image pixels have GET", async () => {
    const { journal, send } = startCapture();
    const data = `?data=${encodeURIComponent(eventBody())}`;
    for (const path of capturePaths.flatMap((bare) => [bare, `${bare}/`])) {
      const isPixel = /^\/(?:e|i\/v0\/e|track|engage)\/?$/.test(path);
      for (const method of ["PUT", "PATCH", "DELETE", "HEAD", ...(isPixel ? [] : ["GET"])]) {
        const response = await send(path + data, { method });
        expect([path, method, response.status]).toEqual([path, method, 405]);
        expect(response.headers.get("allow")).toBe(isPixel ? "GET, POST, OPTIONS" : "POST, OPTIONS");
      }
      expect(journal.appends).toHaveLength(0);
      if (isPixel) expect((await send(path + data, { method: "GET" })).status).toBe(200);
      journal.appends.length = 0;
    }
  });
});

describe("the line in the journal", () => {
  test("of an event", async () => {
    const { journal, send } = startCapture();
    const uuid = "01a1fb87-8ea9-71da-a728-780e77655af4";
    const properties = '{"price":12.0,"$elements_chain":"a:text=\\"x\\""}';
    await send("/batch", {
      body: `{"api_key":"${anyToken}","historical_migration":true,"batch":[{"event":"a \\"b\\"","distinct_id":"d","uuid":"${uuid}","timestamp":"2020-01-01T00:00:00.5Z","properties":${properties}}]}`,
    });
    expect(journal.appends).toEqual([
      {
        lane: "historical",
        entries: [
          `"project_id":1,"uuid":"${uuid}","event":"a \\"b\\"","distinct_id":"d","time":1577836800500000,` +
            `"received":${noon},"historical":true,"mode":"full","made_uuid":false,` +
            `"elements_chain":"a:text=\\"x\\"","properties":{"price":12.0}}`,
        ],
      },
    ]);
  });

  test("of an event without a uuid gets a generated one", async () => {
    const { journal, send } = startCapture();
    await send("/capture", { body: eventBody({ properties: { $process_person_profile: false } }) });
    expect(journal.events).toMatchObject([{ made_uuid: true, mode: "propertyless", elements_chain: null }]);
    expect(journal.events[0]!.uuid).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/,
    );
  });

  test("of a note", async () => {
    const { journal, send } = startCapture();
    await send("/capture", { body: JSON.stringify({ api_key: anyToken, event: "e", uuid: "u" }) });
    expect(journal.appends[0]!.entries).toEqual([
      `"project_id":1,"note":"drop","type":"missing_distinct_id","received":${noon},"historical":false,` +
        `"details":{"event":"e","eventUuid":"u"}}`,
    ]);
  });

  test("all lines of a request are one append, in order, each note after its event", async () => {
    const { journal, send } = startCapture();
    const items = [
      { event: "1", distinct_id: "d" },
      { distinct_id: "d" },
      { event: "survey sent", distinct_id: "d", uuid: "u" },
      { event: "2", distinct_id: "" },
      { event: "3", properties: { distinct_id: "d" } },
      { event: "$$client_ingestion_warning", distinct_id: "d" },
    ];
    expect((await send("/batch", { body: batch(items) })).status).toBe(200);
    expect(journal.appends).toHaveLength(1);
    expect(journal.lines.map((line) => line.event ?? `${line.note} ${line.type}`)).toEqual([
      "1",
      "drop missing_event_name",
      "survey sent",
      "warning invalid_uuid",
      "warning survey_without_id",
      "drop missing_distinct_id",
      "3",
      "warning client_ingestion_warning",
    ]);
  });

  test("a batch of thousands keeps its order", async () => {
    const { journal, send } = startCapture();
    const items = Array.from({ length: 5_000 }, (_, index) => ({ event: `e${index}`, distinct_id: "d" }));
    expect((await send("/batch", { body: batch(items, { historical_migration: true }) })).status).toBe(200);
    expect(journal.appends).toHaveLength(1);
    expect(journal.events.map(({ event }) => event)).toEqual(items.map(({ event }) => event));
  });

  test("of a flood of bad events report how many, and the good ones are stored", async () => {
    const { journal, send } = startCapture();
    const items = [...Array(30_000).fill({}), anyEvent, ...Array(5).fill({ event: "e" }), anyEvent];
    expect((await send("/batch", { body: batch(items) })).status).toBe(200);
    expect(journal.events).toHaveLength(2);
    expect(journal.lines).toHaveLength(10_000 + 2 + 2);
    expect(journal.lines.slice(-2).map(({ note, type, details }) => ({ note, type, details }))).toEqual([
      { note: "drop", type: "missing_event_name", details: { count: 20_000 } },
      { note: "drop", type: "missing_distinct_id", details: { count: 5 } },
    ]);
  });

  test("times are corrected by the send time of body, query and form", async () => {
    const sent = "2026-11-21T12:05:00Z";
    const stamped = { ...anyEvent, timestamp: "2026-11-21T11:59:55Z" };
    const millis = String(Date.parse(sent));
    const form = `data=${encodeURIComponent(btoa(JSON.stringify({ ...stamped, token: anyToken })))}&_=${millis}`;
    const { journal, send } = startCapture();
    await send("/batch", { body: batch([stamped], { sent_at: sent }) });
    await send("/capture", { body: eventBody({ ...stamped, sent_at: sent }) });
    await send(`/e?_=${millis}`, { body: JSON.stringify([{ ...stamped, token: anyToken }]) });
    await send(`/e?sent_at=${encodeURIComponent(sent)}`, { body: eventBody(stamped) });
    await send("/e", { body: form });
    expect(journal.events.map(({ time }) => time)).toEqual(Array(5).fill(noon - 305_000_000));
  });
});

describe("responses", () => {
  test("to a beacon are empty, and only to a beacon that succeeded", async () => {
    const { journal, send } = startCapture();
    const response = await send("/e/?beacon=1", { body: eventBody() });
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
    expect(journal.events).toHaveLength(1);
    expect((await send("/s/?beacon=1", { body: "x" })).status).toBe(204);
    expect((await send("/e/?beacon=0", { body: eventBody() })).status).toBe(200);
    expect((await send("/e/?beacon=1", { body: "x" })).status).toBe(400);
  });

  test("are never a success when the journal cannot write", async () => {
    const { journal, send, unexpected } = startCapture();
    journal.rejection = new JournalUnavailableError("disk full");
    for (const path of ["/batch/", "/e/?beacon=1"]) {
      const response = await send(path, { body: eventBody(), headers: { origin: "http://shop.test" } });
      expect(response.status).toBe(503);
      expect(response.headers.get("retry-after")).toBe("5");
      expect(response.headers.get("access-control-allow-origin")).toBe("http://shop.test");
      expect(await envelope(response)).toEqual({
        type: "server_error",
        code: "journal_unavailable",
        detail: "transient error, please retry",
        attr: null,
      });
    }
    expect(unexpected).toEqual([]);
  });

  test("for a bug in the server report an internal error and log it once", async () => {
    const { journal, send, unexpected } = startCapture();
    journal.rejection = new Error("a defect");
    const response = await send("/batch/", { body: eventBody(), headers: { origin: "http://shop.test" } });
    expect(response.status).toBe(500);
    expect(response.headers.get("access-control-allow-origin")).toBe("http://shop.test");
    expect(await envelope(response)).toMatchObject({ type: "server_error", code: "error" });
    expect(unexpected).toMatchObject([{ message: "a defect" }]);
  });

  test("to bodies that are too large are sent before they are read if their length is known", async () => {
    const { journal, send } = startCapture({ limits: { bytesMax: 100 } });
    const exact = eventBody().padEnd(100);
    expect((await send("/e/", { body: exact })).status).toBe(200);
    for (const init of [
      { body: `${exact} ` },
      { body: "{}", headers: { "content-length": "101" } },
      { body: gzipSync(`${exact} `) },
      { body: new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(60)) }) },
    ]) {
      const response = await send("/e/", init as RequestInit);
      expect(response.status).toBe(413);
      expect(await envelope(response)).toMatchObject({ type: "validation_error", code: "payload_too_large" });
    }
    expect(journal.events).toHaveLength(1);
  });

  test("to an event that would need a hundred times its size in memory are sent before it is parsed", async () => {
    const { journal, send } = startCapture();
    const event = (part: string) =>
      `{"event":"e","distinct_id":"d","properties":{"parts":[${Array(1_000_001).fill(part).join()}]}}`;
    for (const part of ["{}", "[]"]) {
      const body = `{"api_key":"${anyToken}","batch":[${event(part)}]}`;
      const response = await send("/batch", { body });
      expect(response.status).toBe(413);
      expect(await envelope(response)).toMatchObject({ code: "payload_too_large" });
    }
    expect(journal.appends).toEqual([]);
  });

  test("to a body that breaks off are no success", async () => {
    const { journal, send, unexpected } = startCapture();
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from(eventBody().slice(0, 5)));
        controller.error(new Error("gone"));
      },
    });
    expect((await send("/e/", { body })).status).toBe(408);
    expect(journal.appends).toEqual([]);
    expect(unexpected).toEqual([]);
  });
});

describe("pages on other origins", () => {
  const headers = { origin: "http://shop.test" };

  test("may read every answer", async () => {
    const { send } = startCapture();
    const sent: [string, RequestInit][] = [
      ["/e/", { body: eventBody() }],
      ["/e/", { body: "x" }],
      ["/e/", { body: JSON.stringify(anyEvent) }],
      ["/e/", { method: "PUT" }],
      ["/e/?beacon=1", { body: eventBody() }],
      ["/s/", { body: "x" }],
      ["/i/v1/logs", { body: "x" }],
      ["/i/v0/ai", { body: "x" }],
      ["/i/v1/analytics/events", { body: "x" }],
    ];
    for (const [path, init] of sent) {
      const response = await send(path, { ...init, headers });
      expect(response.headers.get("access-control-allow-origin")).toBe("http://shop.test");
      expect(response.headers.get("access-control-allow-credentials")).toBe("true");
      expect(response.headers.get("x-request-id")).toMatch(/./);
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      expect(response.headers.get("access-control-expose-headers")).toContain("Retry-After");
      expect(response.headers.get("vary")).toBe("Origin");
    }
  });

  test("preflights get an empty response", async () => {
    const { send } = startCapture();
    for (const path of ["/e/", "/batch", "/s", "/i/v1/logs/", "/i/v1/analytics/events"]) {
      const response = await send(path, {
        method: "OPTIONS",
        headers: {
          ...headers,
          "access-control-request-method": "POST",
          "access-control-request-headers": "content-encoding,x-own",
        },
      });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe("");
      expect(response.headers.get("access-control-allow-origin")).toBe("http://shop.test");
      expect(response.headers.get("access-control-allow-headers")).toBe("content-encoding,x-own");
      expect(response.headers.get("access-control-allow-methods")).toBe("GET, POST, OPTIONS");
      expect(Number(response.headers.get("access-control-max-age"))).toBeGreaterThan(0);
    }
  });

  test("other OPTIONS are answered with the status", async () => {
    const { send } = startCapture();
    const response = await send("/e", { method: "OPTIONS" });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"status":"Ok"}');
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("routes whose data is discarded", () => {
  test("replay is read and accepted", async () => {
    const { journal, send } = startCapture();
    for (const path of ["/s", "/s/"]) {
      const response = await send(path, { body: gzipSync("snapshots") });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('{"status":"Ok"}');
    }
    expect(journal.appends).toEqual([]);
  });

  test("replay without an end is cut off", async () => {
    const { send } = startCapture();
    const chunk = new Uint8Array(8 * 1024 * 1024);
    const body = new ReadableStream({ pull: (controller) => controller.enqueue(chunk) });
    expect((await send("/s/", { body })).status).toBe(413);
  });

  test("logs, metrics and spans of traces", async () => {
    const { send } = startCapture();
    for (const path of ["/i/v1/logs?token=x", "/i/v1/metrics/", "/i/v1/traces"]) {
      const response = await send(path, { body: "{}" });
      expect([response.status, await response.text()]).toEqual([200, "{}"]);
    }
  });

  test("traces of language models are not served", async () => {
    const { send } = startCapture();
    for (const path of ["/i/v0/ai", "/i/v0/ai/", "/i/v0/ai/otel"]) {
      const response = await send(path, { body: "x" });
      expect(response.status).toBe(404);
      expect(await envelope(response)).toMatchObject({ code: "not_found" });
    }
  });

  test("robots.txt disallows robots", async () => {
    const { send } = startCapture();
    const response = await send("/robots.txt", { method: "GET" });
    expect(await response.text()).toBe("User-agent: *\nDisallow: /\n");
  });
});
