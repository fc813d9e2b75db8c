/** The contract's acceptance list for ingestion (section 18), over HTTP against the compiled executable. */

import { describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import lzString from "lz-string";
import { type StoredEvent, until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";
import { everythingReadable, getEvents, getPersons, getWarnings, item, send, unique } from "./support.ts";

useServer();

describe("routes and bodies", () => {
  for (const path of ["/capture/", "/capture", "/e/", "/i/v0/e/", "/track/", "/batch", "/batch/"]) {
    test(`1, 2: POST ${path} stores one event and one person`, async () => {
      const id = unique("route");
      const response = await send(path, JSON.stringify(item(id)), { "Content-Type": "application/json" });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('{"status":"Ok"}');
      expect(await getEvents(id)).toHaveLength(1);
      expect(await getPersons(id)).toHaveLength(1);
    });
  }

  test("3: in a batch, events without name or id are dropped, the rest is stored", async () => {
    const id = unique("batch");
    const response = await server.batch([
      { event: "kept", properties: { distinct_id: id } },
      { properties: { distinct_id: id } },
      { event: "no id", distinct_id: "" },
    ]);
    expect(response.status).toBe(200);
    expect((await getEvents(id)).map(({ event }) => event)).toEqual(["kept"]);
  });

  test("4: a single event without a distinct id", async () => {
    const before = await getWarnings("missing_distinct_id");
    expect((await server.capture({ event: "nobody" })).status).toBe(200);
    expect(await getWarnings("missing_distinct_id")).toBe(before + 1);
  });

  const rejections: [string, string, unknown, number][] = [
    ["5: no token", "/capture/", { event: "x", distinct_id: "y" }, 401],
    ["6: a personal key", "/capture/", { api_key: "phx_abc", event: "x", distinct_id: "y" }, 401],
    ["6: an unknown key", "/capture/", { api_key: "phc_unknown", event: "x", distinct_id: "y" }, 401],
  ];
  for (const [name, path, body, status] of rejections) {
    test(name, async () => {
      const response = await server.post(path, body);
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ type: "authentication_error", attr: null });
    });
  }

  test("7: an empty batch", async () => {
    const response = await server.batch([]);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ type: "validation_error", code: "invalid_payload" });
  });

  test("8: no JSON", async () => {
    expect((await send("/capture/", "not json", { "Content-Type": "application/json" })).status).toBe(400);
  });

  test("9: gzip without any hint", async () => {
    const id = unique("gzip");
    const response = await send("/e/", gzipSync(JSON.stringify(item(id))), { "Content-Type": "text/plain" });
    expect(response.status).toBe(200);
    expect(await getEvents(id)).toHaveLength(1);
  });

  test("10: a form with base64 in which a plus became a space", async () => {
    const id = unique("form");
    // Chosen so that the base64 text holds a plus.
    const base64 = Buffer.from(JSON.stringify(item(id, { properties: { text: "~~>>>???" } }))).toString(
      "base64",
    );
    const response = await send("/e/", `data=${base64.replaceAll("+", " ")}`, {
      "Content-Type": "application/x-www-form-urlencoded",
    });
    expect(response.status).toBe(200);
    expect((await getEvents(id))[0]!.properties.text).toBe("~~>>>???");
  });

  test("11: lz64", async () => {
    const id = unique("lz64");
    const body = lzString.compressToBase64(JSON.stringify(item(id)));
    expect((await send("/e/?compression=lz64", body, { "Content-Type": "text/plain" })).status).toBe(200);
    expect(await getEvents(id)).toHaveLength(1);
  });

  test("12: GET with data in the query", async () => {
    const id = unique("get");
    const data = encodeURIComponent(Buffer.from(JSON.stringify(item(id))).toString("base64"));
    expect((await send(`/e/?data=${data}`, undefined, {}, "GET")).status).toBe(200);
    expect(await getEvents(id)).toHaveLength(1);
  });

  test("13: a beacon gets 204 and nothing else", async () => {
    const response = await send("/e/?beacon=1", JSON.stringify(item(unique("beacon"))), {
      "Content-Type": "text/plain",
    });
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
  });

  test("14: an array with the token in the properties", async () => {
    const id = unique("array");
    const body = [{ event: "x", properties: { token: server.token, distinct_id: id } }];
    expect((await server.post("/e/", body)).status).toBe(200);
    expect(await getEvents(id)).toHaveLength(1);
  });

  test("15: two different tokens", async () => {
    const id = unique("tokens");
    const body = [item(id), { ...item(id), api_key: "phc_other" }];
    expect((await server.post("/e/", body)).status).toBe(401);
    expect(await getEvents(id)).toHaveLength(0);
  });

  test("16: distinct ids of other kinds", async () => {
    const base = unique("id");
    const long = base.padEnd(250, "x");
    await server.post("/batch/", {
      api_key: server.token,
      batch: [
        { event: "number", distinct_id: 987_654_321 },
        { event: "spaces", distinct_id: `  ${base}  ` },
        { event: "long", distinct_id: long },
      ],
    });
    expect(await getEvents("987654321")).toHaveLength(1);
    expect(await getEvents(`  ${base}  `)).toHaveLength(1);
    expect(await getEvents(long)).toHaveLength(1);
    expect(await getEvents(long.slice(0, 200))).toHaveLength(0);
  });

  test("28: 50,000 historical events in one body keep their order", async () => {
    const id = unique("historical");
    const batch = Array.from({ length: 50_000 }, (_, number) => ({
      event: "h",
      timestamp: "2021-01-01T00:00:00Z",
      properties: { distinct_id: id, number, padding: "x".repeat(230) },
    }));
    const body = JSON.stringify({ api_key: server.token, historical_migration: true, batch });
    expect(body.length).toBeGreaterThan(15e6);
    expect(body.length).toBeLessThan(20 * 1024 * 1024);
    const response = await send("/batch/", body, { "Content-Type": "application/json" });
    expect(response.status).toBe(200);
    const events = await until(
      async () => {
        const found = await server.events(`order=seq&distinct_id=${id}`);
        return found.length === 50_000 && found;
      },
      "all are stored",
      60_000,
    );
    expect(
      events.every(({ properties, historical }, index) => properties.number === index && historical),
    ).toBe(true);
  }, 90_000);

  test("29: more than 20 MiB, plain and as a bomb", async () => {
    const body = `{"api_key":"${server.token}","event":"x","distinct_id":"y","properties":{"a":"${"x".repeat(20 * 1024 * 1024)}"}}`;
    const plain = await send("/batch/", body, { "Content-Type": "application/json" });
    expect(plain.status).toBe(413);
    expect(await plain.json()).toMatchObject({ code: "payload_too_large" });
    const bomb = await send("/batch/", gzipSync(Buffer.alloc(500e6)), { "Content-Encoding": "gzip" });
    expect(bomb.status).toBe(413);
  }, 60_000);

  test("30: a preflight", async () => {
    const response = await send(
      "/e/",
      undefined,
      {
        Origin: "https://shop.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-custom",
      },
      "OPTIONS",
    );
    expect(response.status).toBe(200);
    expect(response.headers.get("access-control-allow-origin")).toBe("https://shop.example");
    expect(response.headers.get("access-control-allow-headers")?.toLowerCase()).toContain("x-custom");
  });

  test("32: replay data", async () => {
    expect((await server.post("/s/", [item("x")])).status).toBe(200);
  });
});

describe("duplicates", () => {
  test("17: the same uuid twice in one request, in a retry and in the other lane: once, with its effects once", async () => {
    const id = unique("duplicate");
    const uuid = crypto.randomUUID();
    const first = { event: "first", uuid, properties: { distinct_id: id, $set: { value: "first" } } };
    const second = {
      event: "second",
      uuid: uuid.toUpperCase(),
      properties: { distinct_id: id, $set: { value: "second" } },
    };
    await server.batch([first, second]);
    await server.batch([second]);
    expect(await getEvents(id)).toHaveLength(1);
    await server.batch([second], { historical_migration: true });
    await server.batch([second]);
    const events = await getEvents(id);
    expect(events.map(({ event }) => event)).toEqual(["first"]);
    expect((await getPersons(id))[0]!.properties.value).toBe("first");
  });
});

describe("31: times", () => {
  test("sent_at corrects the client's clock", async () => {
    const id = unique("time");
    const now = Date.now();
    const sent = new Date(now + 3_600_000).toISOString();
    await server.batch(
      [
        {
          event: "x",
          timestamp: new Date(now + 3_600_000 - 5_000).toISOString(),
          properties: { distinct_id: id },
        },
      ],
      { sent_at: sent },
    );
    const [event] = await getEvents(id);
    expect(Math.abs(Date.parse(event!.timestamp) - (now - 5_000))).toBeLessThan(2_000);
  });
});

test("hostile properties are read back equal or repaired; their siblings are stored", async () => {
  const id = unique("hostile");
  const depth = 490;
  const hostile = [
    `{"deep":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`,
    `{"lone":"\\ud800"}`,
    `{"nul":"a\\u0000b"}`,
    `{"huge":1e400,"big":123456789012345678901234567890,"exact":12.0}`,
    `{"__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}}}`,
    `{"long":"${"x".repeat(900_000)}"}`,
    `{"quo\\"te":"\\\\","'; DROP TABLE events; --":1,"emoji":"\u{1F600}"}`,
    `{"a":1,"a":2}`,
  ];
  const events = hostile.flatMap((properties) => [
    `{"event":"hostile","distinct_id":"${id}","properties":${properties}}`,
    `{"event":"sibling","distinct_id":"${id}"}`,
  ]);
  const body = `{"api_key":"${server.token}","batch":[${events.join(",")}]}`;
  expect((await send("/batch/", body, { "Content-Type": "application/json" })).status).toBe(200);
  await everythingReadable();
  const response = await server.api(`/api/projects/1/events/?order=seq&distinct_id=${id}`);
  const text = await response.text();
  const stored = (JSON.parse(text) as { results: StoredEvent[] }).results;
  expect(stored.filter(({ event }) => event === "sibling")).toHaveLength(hostile.length);
  expect(stored.filter(({ event }) => event === "hostile")).toHaveLength(hostile.length);
  expect(stored.some(({ properties }) => properties.lone === "\ufffd")).toBe(true);
  expect(text).toContain("123456789012345678901234567890");
  expect(text).toContain('"exact":12.0');
  expect(text).toContain('"__proto__":{"polluted":true}');
  expect(text).toContain("DROP TABLE");
  expect(text).not.toContain("\\ud800");
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test("a request with very many faults: all of them are counted, in the warnings and as dropped", async () => {
  const before = await getWarnings("missing_event_name");
  const dropped = async () => {
    const response = await server.api("/api/projects/1/usage/");
    return ((await response.json()) as { totals: { dropped: number } }).totals.dropped;
  };
  const droppedBefore = await dropped();
  expect((await server.batch(Array.from({ length: 25_000 }, () => ({ distinct_id: "a" })))).status).toBe(200);
  expect((await getWarnings("missing_event_name")) - before).toBe(25_000);
  expect((await dropped()) - droppedBefore).toBe(25_000);
});
