import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import LZString from "lz-string";
import { anyToken, JournalUnavailable, noon, otherToken, quietToken, startCapture } from "./support.ts";

const anyEvent = { event: "e", distinct_id: "d" };
const one = (more: Record<string, unknown> = {}) =>
  JSON.stringify({ api_key: anyToken, ...anyEvent, ...more });
const batch = (items: unknown, more: Record<string, unknown> = {}) =>
  JSON.stringify({ api_key: anyToken, batch: items, ...more });

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

const capturePaths = ["/capture", "/batch", "/e", "/i/v0/e", "/track", "/engage", "/i/v0/ai/batch"];

async function envelope(response: Response) {
  expect(response.headers.get("content-type")).toStartWith("application/json");
  return (await response.json()) as { type: string; code: string; detail: string; attr: null };
}

describe("every event route, with and without the slash", () => {
  for (const path of capturePaths.flatMap((bare) => [
    bare,
    `${bare}/`,
    `${bare}?`,
    `${bare}/?ip=1&_=1&ver=1.2&retry_count=3`,
  ])) {
    test(path, async () => {
      const { journal, send } = startCapture();
      const response = await send(path, { body: one() });
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

  test("takes events from the query of a GET", async () => {
    const { journal, send } = startCapture();
    const url = `/e/?data=${encodeURIComponent(btoa(one()))}&_=${noon / 1_000 - 1_000}`;
    expect((await send(url, { method: "GET" })).status).toBe(200);
    expect(journal.events).toMatchObject([{ properties: { $sent_at: "2026-11-21T11:59:59.000000Z" } }]);
    expect((await send("/e/", { method: "GET" })).status).toBe(400);
  });

  test("refuses other methods; only the paths of image pixels have GET", async () => {
    const { journal, send } = startCapture();
    const data = `?data=${encodeURIComponent(one())}`;
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

  test("of an event without a uuid gets a made one", async () => {
    const { journal, send } = startCapture();
    await send("/capture", { body: one({ properties: { $process_person_profile: false } }) });
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

  test("all lines of a request go in one append, in order, each note behind its event", async () => {
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

  test("of a flood of bad events says how many, and the good ones are kept", async () => {
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
    const sent = "2026-11-21T12:00:05Z";
    const stamped = { ...anyEvent, timestamp: "2026-11-21T11:59:55Z" };
    const millis = String(Date.parse(sent));
    const form = `data=${encodeURIComponent(btoa(JSON.stringify({ ...stamped, token: anyToken })))}&_=${millis}`;
    const { journal, send } = startCapture();
    await send("/batch", { body: batch([stamped], { sent_at: sent }) });
    await send("/capture", { body: one({ ...stamped, sent_at: sent }) });
    await send(`/e?_=${millis}`, { body: JSON.stringify([{ ...stamped, token: anyToken }]) });
    await send(`/e?sent_at=${encodeURIComponent(sent)}`, { body: one(stamped) });
    await send("/e", { body: form });
    expect(journal.events.map(({ time }) => time)).toEqual(Array(5).fill(noon - 10_000_000));
  });
});

describe("the project key", () => {
  const item = (more: object) => ({ ...anyEvent, ...more });
  for (const [name, body, path, project] of [
    ["beside the batch", { api_key: anyToken, batch: [anyEvent] }, "/batch", 1],
    ["beside the batch under its other name", { token: anyToken, batch: [anyEvent] }, "/batch", 1],
    [
      "beside the batch wins over others",
      { api_key: anyToken, batch: [item({ token: otherToken })] },
      "/batch",
      1,
    ],
    ["with white space", { api_key: ` ${anyToken}\n`, batch: [anyEvent] }, "/batch", 1],
    ["in the event", item({ api_key: anyToken }), "/e", 1],
    ["in the event as token", item({ token: anyToken }), "/e", 1],
    ["in the event as $token", item({ $token: anyToken }), "/e", 1],
    ["in the properties", item({ properties: { token: anyToken } }), "/e", 1],
    ["in one event of several", [anyEvent, item({ properties: { token: otherToken } }), anyEvent], "/e", 2],
    ["in an event of a batch without one", { batch: [item({ token: otherToken })] }, "/batch", 2],
    ["an empty one gives way", { api_key: "", token: anyToken, batch: [anyEvent] }, "/batch", 1],
    ["in the query as a last resort", anyEvent, `/e?api_key=${anyToken}`, 1],
    ["in the query as token", [anyEvent], `/e?token=${anyToken}`, 1],
    ["not in the query when the event has one", item({ api_key: otherToken }), `/e?api_key=${anyToken}`, 2],
  ] as const) {
    test(name, async () => {
      const { journal, send } = startCapture();
      expect((await send(path, { body: JSON.stringify(body) })).status).toBe(200);
      expect(new Set(journal.events.map((event) => event.project_id))).toEqual(new Set([project]));
    });
  }

  for (const [name, body, code, detail] of [
    ["none", anyEvent, "missing_api_key", "event submitted without an api_key"],
    ["none in a batch", { batch: [anyEvent] }, "missing_api_key", "event submitted without an api_key"],
    ["null", { ...anyEvent, api_key: null }, "missing_api_key", "event submitted without an api_key"],
    ["empty", { ...anyEvent, api_key: "" }, "invalid_api_key", "API key is not valid: empty"],
    ["white space", { api_key: "  ", batch: [anyEvent] }, "invalid_api_key", "API key is not valid: empty"],
    [
      "too long",
      { ...anyEvent, api_key: "p".repeat(65) },
      "invalid_api_key",
      "API key is not valid: too_long",
    ],
    ["not ASCII", { ...anyEvent, api_key: "phc_ü" }, "invalid_api_key", "API key is not valid: not_ascii"],
    ["with NUL", { ...anyEvent, api_key: "phc\0" }, "invalid_api_key", "API key is not valid: null_byte"],
    [
      "personal",
      { ...anyEvent, api_key: "phx_abc" },
      "invalid_api_key",
      "API key is not valid: personal_api_key",
    ],
    ["a number", { ...anyEvent, api_key: 5 }, "invalid_api_key", "API key is not valid: not_a_string"],
    [
      "unknown",
      { ...anyEvent, api_key: "phc_unknown" },
      "invalid_api_key",
      "API key is not valid: no project has this key",
    ],
    [
      "unknown without any good event",
      { api_key: "phc_unknown", batch: [{}] },
      "invalid_api_key",
      "API key is not valid: no project has this key",
    ],
    [
      "different ones",
      [
        { ...anyEvent, token: anyToken },
        { ...anyEvent, token: otherToken },
      ],
      "invalid_api_key",
      "batch submitted with inconsistent api_key values",
    ],
  ] as const) {
    test(`is refused: ${name}`, async () => {
      const { journal, send } = startCapture();
      const response = await send("/e/", { body: JSON.stringify(body) });
      expect(response.status).toBe(401);
      expect(await envelope(response)).toEqual({ type: "authentication_error", code, detail, attr: null });
      expect(journal.appends).toEqual([]);
    });
  }
});

describe("a request that cannot be understood is refused as a whole", () => {
  for (const [name, path, body, detail] of [
    ["no JSON", "/capture", "not json", "the body is not JSON: "],
    ["no JSON that looks like base64", "/capture", "deadbeef", "the body is not JSON: "],
    [
      "no text",
      "/capture",
      Buffer.from([1, 2, 250, 251]),
      "the body is not JSON: it begins with the bytes 0102fafb",
    ],
    ["half a JSON", "/capture", one().slice(0, -1), "the body is not JSON: "],
    ["JSON and more", "/capture", `${one()}x`, "the body is not JSON: "],
    ["nothing", "/capture", "", "request missing data payload"],
    ["white space", "/capture", "  ", "the body is not JSON: "],
    ["a number", "/capture", "12", "an event must be an object: the body is a number"],
    ["a text", "/capture", '"text"', "an event must be an object: the body is a string"],
    ["an empty array", "/e", "[]", "request holds no event"],
    ["an empty batch", "/batch", batch([]), "request holds no event"],
    [
      "an event that is no object",
      "/batch",
      batch([anyEvent, 1]),
      "an event must be an object: the item at position 1 is a number",
    ],
    [
      "an event that is an array",
      "/e",
      `[[${one()}]]`,
      "an event must be an object: the item at position 0 is an array",
    ],
    ["an event that is null", "/e", "[null]", "an event must be an object: the item at position 0 is null"],
    ["a batch that is no array", "/batch", batch({}), "`batch` must be an array of events, not an object"],
    [
      "a batch that is no array, elsewhere",
      "/e",
      batch("x"),
      "`batch` must be an array of events, not a string",
    ],
    [
      "no batch and no event",
      "/batch",
      JSON.stringify({ api_key: anyToken }),
      "the body has neither a `batch` of events nor an `event`",
    ],
    [
      "a switch of the wrong type",
      "/batch",
      batch([anyEvent], { historical_migration: "true" }),
      "`historical_migration` must be true or false, not a string",
    ],
    ...["text", "", [], [{}], 1, false].flatMap((properties) =>
      (
        [
          ["/capture", one({ properties }), 0],
          [
            "/e",
            JSON.stringify([
              { ...anyEvent, token: anyToken },
              { ...anyEvent, properties },
            ]),
            1,
          ],
          ["/batch", batch([anyEvent, { properties }, anyEvent]), 1],
          ["/batch", batch([anyEvent, anyEvent, { ...anyEvent, event: "$snapshot", properties }]), 2],
        ] as const
      ).map(
        ([path, body, position]) =>
          [
            `properties ${JSON.stringify(properties)} at ${path} ${position}`,
            path,
            body,
            `\`properties\` must be an object: in the item at position ${position} it is `,
          ] as const,
      ),
    ),
    ...[
      `"properties":{"a":${nested(499)}}`,
      `"distinct_id":${nested(100_000)}`,
      `"$set":${nested(1_000)}`,
      `"other":${nested(500)}`,
    ].map(
      (member) =>
        [
          `nested too deep ${member.slice(0, 20)}`,
          "/batch",
          `{"api_key":"${anyToken}","batch":[${JSON.stringify(anyEvent)},{"event":"e","distinct_id":"d",${member}}]}`,
          "an event may be nested 500 levels deep: the item at position 1 is nested deeper",
        ] as const,
    ),
  ] as const) {
    test(name, async () => {
      const { journal, send } = startCapture();
      const response = await send(path, { body });
      expect(response.status).toBe(400);
      const failure = await envelope(response);
      expect(failure).toMatchObject({ type: "validation_error", code: "invalid_payload", attr: null });
      expect(failure.detail).toStartWith(detail);
      expect(journal.appends).toEqual([]);
    });
  }

  test("JSON nested hundreds of thousands of times is refused; 500 levels are kept", async () => {
    const { journal, send, unexpected } = startCapture();
    const deep = nested(400_000);
    for (const body of [deep, `{"a":`.repeat(400_000), one().replace("}", `,"properties":{"a":${deep}}}`)]) {
      expect((await send("/e", { body })).status).toBe(400);
    }
    const kept = `{"a":${nested(498)}}`;
    expect((await send("/e", { body: one().replace("}", `,"properties":${kept}}`) })).status).toBe(200);
    expect(journal.lines.map(({ properties }) => JSON.stringify(properties))).toEqual([kept]);
    journal.appends.length = 0;
    expect(journal.events).toEqual([]);
    expect(unexpected).toEqual([]);
  });
});

describe("what a request is made of", () => {
  test("a nameless lone event is dropped, not refused", async () => {
    for (const path of ["/capture", "/e", "/i/v0/e", "/track"]) {
      const { journal, send } = startCapture();
      expect(
        (await send(path, { body: JSON.stringify({ api_key: anyToken, distinct_id: "d" }) })).status,
      ).toBe(200);
      expect(journal.events).toEqual([]);
      expect(journal.notes).toEqual(["drop missing_event_name"]);
    }
  });

  test("a person update needs no name", async () => {
    const { journal, send } = startCapture();
    const update = { $token: anyToken, $distinct_id: "d", $set: { plan: "pro" } };
    expect((await send("/engage/", { body: JSON.stringify(update) })).status).toBe(200);
    expect((await send("/engage/", { body: JSON.stringify([update]) })).status).toBe(200);
    const expected = { event: "$identify", distinct_id: "d", properties: { $set: { plan: "pro" } } };
    expect(journal.events).toMatchObject([expected, expected]);
  });

  test("a batch beside an event is a batch", async () => {
    const { journal, send } = startCapture();
    await send("/capture", { body: one({ batch: [{ event: "inner", distinct_id: "d" }] }) });
    expect(journal.events.map(({ event }) => event)).toEqual(["inner"]);
  });

  test("the last of repeated batches counts", async () => {
    const { journal, send } = startCapture();
    const [a, b] = ["a", "b"].map((event) =>
      JSON.stringify({ event, distinct_id: "d", properties: { event } }),
    );
    for (const first of [`[${a},${a},${a}]`, "[1]", "[]", '"x"', "null"]) {
      const response = await send("/batch", {
        body: `{"batch":${first},"api_key":"${anyToken}","b\\u0061tch":[${b}]}`,
      });
      expect(response.status).toBe(200);
    }
    expect(journal.events.map(({ event }) => event)).toEqual(Array(5).fill("b"));
    expect(journal.events.map(({ properties }) => properties)).toEqual(Array(5).fill({ event: "b" }));
  });

  test("text that is not well-formed before it is JSON is repaired", async () => {
    // lz64 carries UTF-16, so half a pair can stand in the text without an escape.
    const items = [{ ...anyEvent, properties: { a: "x" } }, anyEvent].map((each) =>
      JSON.stringify({ ...each, token: anyToken }),
    );
    const body = LZString.compressToBase64(`[${items.join(",").replace('"x"', '"\ud800"')}]`);
    const { journal, send } = startCapture();
    expect((await send("/e?compression=lz64", { body })).status).toBe(200);
    expect(journal.events.map(({ properties }) => properties)).toEqual([{ a: "\ufffd" }, {}]);
    expect(journal.notes).toEqual([]);
  });

  test("only a batch can be historical, only with true", async () => {
    const { journal, send } = startCapture();
    await send("/batch", { body: batch([anyEvent], { historical_migration: true }) });
    await send("/batch", { body: batch([anyEvent], { historical_migration: false }) });
    await send("/batch", {
      body: batch([{ ...anyEvent, historical_migration: true }], { historical_migration: null }),
    });
    await send("/capture", { body: one({ historical_migration: true }) });
    expect(journal.appends.map(({ lane }) => lane)).toEqual([
      "historical",
      "realtime",
      "realtime",
      "realtime",
    ]);
    expect(journal.events.map(({ historical }) => historical)).toEqual([true, false, false, false]);
  });

  test("JSON is JSON under any content type", async () => {
    const types = ["application/x-www-form-urlencoded", "text/xml", "application/octet-stream", "nonsense"];
    for (const [index, type] of types.entries()) {
      const { journal, send } = startCapture();
      const headers = { "content-type": type };
      for (const body of [one(), ` \n${one()}`, `\ufeff${one()}`]) {
        expect((await send(index % 2 === 0 ? "/capture" : "/batch", { body, headers })).status).toBe(200);
      }
      expect(journal.events).toHaveLength(3);
    }
  });

  test("a project that keeps no addresses", async () => {
    const { journal, send } = startCapture();
    await send("/e", { body: one({ api_key: quietToken, properties: { $ip: "1.1.1.1", a: 1 } }) });
    expect(journal.events).toMatchObject([{ project_id: 3 }]);
    expect(journal.events[0]!.properties).toEqual({ a: 1 });
  });
});

describe("answers", () => {
  test("to a beacon are empty, and only to a beacon that succeeded", async () => {
    const { journal, send } = startCapture();
    const response = await send("/e/?beacon=1", { body: one() });
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
    expect(journal.events).toHaveLength(1);
    expect((await send("/s/?beacon=1", { body: "x" })).status).toBe(204);
    expect((await send("/e/?beacon=0", { body: one() })).status).toBe(200);
    expect((await send("/e/?beacon=1", { body: "x" })).status).toBe(400);
  });

  test("are never a success when the journal cannot write", async () => {
    const { journal, send, unexpected } = startCapture();
    journal.refusal = new JournalUnavailable("disk full");
    for (const path of ["/batch/", "/e/?beacon=1"]) {
      const response = await send(path, { body: one(), headers: { origin: "http://shop.test" } });
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

  test("to a defect of ours say so and report it once", async () => {
    const { journal, send, unexpected } = startCapture();
    journal.refusal = new Error("a defect");
    const response = await send("/batch/", { body: one(), headers: { origin: "http://shop.test" } });
    expect(response.status).toBe(500);
    expect(response.headers.get("access-control-allow-origin")).toBe("http://shop.test");
    expect(await envelope(response)).toMatchObject({ type: "server_error", code: "error" });
    expect(unexpected).toMatchObject([{ message: "a defect" }]);
  });

  test("to what is too large come before the body is read where its length is known", async () => {
    const { journal, send } = startCapture({ limits: { bytesMax: 100 } });
    const exact = one().padEnd(100);
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

  test("to what would take a hundred times its size in memory come before it is parsed", async () => {
    const { journal, send } = startCapture();
    const nothings = (part: string) =>
      `{"api_key":"${anyToken}","batch":[${Array(1_000_001).fill(part).join()}]}`;
    for (const part of ["{}", "[]"]) {
      const response = await send("/batch", { body: nothings(part) });
      expect(response.status).toBe(413);
      expect(await envelope(response)).toMatchObject({ code: "payload_too_large" });
    }
    expect(journal.appends).toEqual([]);
  });

  test("to a body that breaks off are no success", async () => {
    const { journal, send, unexpected } = startCapture();
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from(one().slice(0, 5)));
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
      ["/e/", { body: one() }],
      ["/e/", { body: "x" }],
      ["/e/", { body: JSON.stringify(anyEvent) }],
      ["/e/", { method: "PUT" }],
      ["/e/?beacon=1", { body: one() }],
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

  test("ask before, and are answered with nothing", async () => {
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

describe("routes for what is not kept", () => {
  test("replay is read and answered", async () => {
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

  test("logs and metrics", async () => {
    const { send } = startCapture();
    for (const path of ["/i/v1/logs?token=x", "/i/v1/metrics/"]) {
      const response = await send(path, { body: "{}" });
      expect([response.status, await response.text()]).toEqual([200, "{}"]);
    }
  });

  test("traces are not served", async () => {
    const { send } = startCapture();
    for (const path of ["/i/v0/ai", "/i/v0/ai/", "/i/v0/ai/otel"]) {
      const response = await send(path, { body: "x" });
      expect(response.status).toBe(404);
      expect(await envelope(response)).toMatchObject({ code: "not_found" });
    }
  });

  test("robots are asked to stay away", async () => {
    const { send } = startCapture();
    const response = await send("/robots.txt", { method: "GET" });
    expect(await response.text()).toBe("User-agent: *\nDisallow: /\n");
  });
});
