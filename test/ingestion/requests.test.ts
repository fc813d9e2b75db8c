/** What a request has to be: its key, its body, its parts. */

import { describe, expect, test } from "bun:test";
import LZString from "lz-string";
import {
  anyEvent,
  anyToken,
  batch,
  envelope,
  eventBody,
  otherToken,
  quietToken,
  startCapture,
} from "./support.ts";

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

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
    test(`is rejected: ${name}`, async () => {
      const { journal, send } = startCapture();
      const response = await send("/e/", { body: JSON.stringify(body) });
      expect(response.status).toBe(401);
      expect(await envelope(response)).toEqual({ type: "authentication_error", code, detail, attr: null });
      expect(journal.appends).toEqual([]);
    });
  }
});

describe("a request that cannot be understood is rejected as a whole", () => {
  for (const [name, path, body, detail] of [
    ["no JSON", "/capture", "not json", "the body is not JSON: "],
    ["no JSON that looks like base64", "/capture", "deadbeef", "the body is not JSON: "],
    [
      "no text",
      "/capture",
      Buffer.from([1, 2, 250, 251]),
      "the body is not JSON: it begins with the bytes 0102fafb",
    ],
    ["half a JSON", "/capture", eventBody().slice(0, -1), "the body is not JSON: "],
    ["JSON and more", "/capture", `${eventBody()}x`, "the body is not JSON: "],
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
      `[[${eventBody()}]]`,
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
          ["/capture", eventBody({ properties }), 0],
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

  test("JSON nested hundreds of thousands of times is rejected; 500 levels are kept", async () => {
    const { journal, send, unexpected } = startCapture();
    const deep = nested(400_000);
    for (const body of [
      deep,
      `{"a":`.repeat(400_000),
      eventBody().replace("}", `,"properties":{"a":${deep}}}`),
    ]) {
      expect((await send("/e", { body })).status).toBe(400);
    }
    const retained = `{"a":${nested(498)}}`;
    expect((await send("/e", { body: eventBody().replace("}", `,"properties":${retained}}`) })).status).toBe(
      200,
    );
    expect(journal.lines.map(({ properties }) => JSON.stringify(properties))).toEqual([retained]);
    journal.appends.length = 0;
    expect(journal.events).toEqual([]);
    expect(unexpected).toEqual([]);
  });
});

describe("parts of a request", () => {
  test("a nameless lone event is dropped, not rejected", async () => {
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

  test("a batch next to an event is a batch", async () => {
    const { journal, send } = startCapture();
    await send("/capture", { body: eventBody({ batch: [{ event: "inner", distinct_id: "d" }] }) });
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

  test("a request of any shape can be historical, only with true", async () => {
    const { journal, send } = startCapture();
    const old = { ...anyEvent, historical_migration: true };
    const historical = [
      ["/batch", batch([anyEvent], { historical_migration: true })],
      ["/batch", batch([old], { historical_migration: null })],
      ["/batch", eventBody({ historical_migration: true })],
      ["/capture", eventBody({ historical_migration: true })],
      ["/e", JSON.stringify([{ ...old, api_key: anyToken }, old])],
      ["/engage", eventBody({ historical_migration: true })],
    ] as const;
    const realtime = [
      ["/batch", batch([anyEvent], { historical_migration: false })],
      ["/batch", batch([old], { historical_migration: false })],
      ["/capture", eventBody({ historical_migration: null })],
      ["/capture", eventBody({ historical_migration: false })],
    ] as const;
    for (const [path, body] of [...historical, ...realtime])
      expect((await send(path, { body })).status).toBe(200);
    expect(journal.appends.map(({ lane }) => lane)).toEqual([
      ...historical.map(() => "historical" as const),
      ...realtime.map(() => "realtime" as const),
    ]);
    expect(journal.events.filter(({ historical }) => historical)).toHaveLength(historical.length + 1);
  });

  test("a historical_migration that is no boolean is rejected in every shape", async () => {
    const { journal, send } = startCapture();
    for (const historical_migration of ["true", 1, {}, []]) {
      const bad = { ...anyEvent, historical_migration };
      for (const body of [
        batch([anyEvent], { historical_migration }),
        batch([anyEvent, bad]),
        batch([bad], { historical_migration: true }),
        eventBody({ historical_migration }),
        JSON.stringify([{ ...bad, api_key: anyToken }]),
      ])
        expect((await send("/batch", { body })).status).toBe(400);
    }
    const mixed = [anyEvent, { ...anyEvent, historical_migration: true }];
    const rejected = await send("/batch", { body: batch(mixed) });
    expect(rejected.status).toBe(400);
    expect(await rejected.text()).toContain("position 1");
    expect(journal.appends).toEqual([]);
  });

  test("JSON is JSON under any content type", async () => {
    const types = ["application/x-www-form-urlencoded", "text/xml", "application/octet-stream", "nonsense"];
    for (const [index, type] of types.entries()) {
      const { journal, send } = startCapture();
      const headers = { "content-type": type };
      for (const body of [eventBody(), ` \n${eventBody()}`, `\ufeff${eventBody()}`]) {
        expect((await send(index % 2 === 0 ? "/capture" : "/batch", { body, headers })).status).toBe(200);
      }
      expect(journal.events).toHaveLength(3);
    }
  });

  test("a project that keeps no addresses", async () => {
    const { journal, send } = startCapture();
    await send("/e", { body: eventBody({ api_key: quietToken, properties: { $ip: "1.1.1.1", a: 1 } }) });
    expect(journal.events).toMatchObject([{ project_id: 3 }]);
    expect(journal.events[0]!.properties).toEqual({ a: 1 });
  });
});
