/** Files of other products: their type is detected by their content, and their events are loaded. */

import { describe, expect, test } from "bun:test";
import { detectFormat, mapRecord, type RecordFormat } from "../../src/import/map/formats.ts";
import { toTime } from "../../src/import/map/time.ts";
import { detectFileType } from "../../src/import/read/file-type.ts";
import { UnreadableFileError } from "../../src/import/read/input.ts";
import { parseJsonString } from "../../src/import/read/json-text.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";

describe("times", () => {
  const now = Date.UTC(2026, 10, 22) * 1_000;
  const second = Date.UTC(2023, 0, 2, 3, 4, 5) / 1_000;
  const micros = second * 1e6;
  const day = Date.UTC(2023, 0, 1) * 1_000;
  for (const [value, expected] of [
    ...[second, second * 1e3, micros, String(second), `${second}000`, `${second}000000`].map((v) => [
      v,
      micros,
    ]),
    [parseJsonString(`${second}000000789`), micros],
    [`${second}000001789`, micros + 1],
    [`${second}123456`, micros + 123_456],
    [`${second}.123456`, micros + 123_456],
    [second + 0.5, micros + 500_000],
    ["2023-01-02T03:04:05Z", micros],
    ["2023-01-02 03:04:05 UTC", micros],
    ["2023-01-02 03:04:05.000000+00", micros],
    ["2023-01-02T04:04:05+01:00", micros],
    ["20230102T030405Z", micros],
    ["20230102030405", micros],
    ["2023-W01-1T03:04:05", micros],
    ["2023-002T03:04:05", micros],
    ["20230101", day],
    [20230101, day],
    ["2023-01-01", day],
    ["2023-01", day],
    ["2026-11-22T23:59:59Z", now + 86_399e6],
    ["1990-01-01", Date.UTC(1990, 0, 1) * 1_000],
    // A date is the event's own time, whenever it was or will be.
    ["2026-11-23T00:00:01Z", now + 86_401e6],
    ["1989-12-31T23:59:59Z", Date.UTC(1989, 11, 31, 23, 59, 59) * 1_000],
    ["1912-06-23T00:00:00Z", Date.UTC(1912, 5, 23) * 1_000],
    ["19990623", Date.UTC(1999, 5, 23) * 1_000],
    ["2611-01-01", Date.UTC(2611, 0, 1) * 1_000],
    // A number only says so by its size.
    ...[0, 1, -5, 1e30, "1700", "315532800", now / 1e6 + 86_401, second * 1e10].map((v) => [
      v,
      "timestamp_out_of_range",
    ]),
    ...["soon", "2023-13-01", "2023-02-30", "20231301", "19120623", true, [], {}, "1/2/2023", "  "].map(
      (v) => [v, "ignored_invalid_timestamp"],
    ),
    ...[undefined, null, ""].map((v) => [v, "historical_event_without_timestamp"]),
  ] as [Json, number | string][])
    test(`${JSON.stringify(value)}`, () => expect(toTime(value, now)).toBe(expected as never));
  test("any previously stored value is valid", () => {
    expect(toTime("0001-01-01 (BC) 00:00:00.5+00", undefined)).toBe(-62_167_219_199_500_000);
    expect(toTime("0002-01-01 (BC) 00:00:00+00", undefined)).toBe("ignored_invalid_timestamp");
    expect(toTime("1960-01-01", undefined)).toBe(Date.UTC(1960, 0, 1) * 1_000);
  });
});

describe("shapes", () => {
  const detect = (text: string | Buffer) => detectFileType("f", Buffer.from(text as string));
  for (const [text, kind, member] of [
    ['{"event":"a"}\n{"event":"b"}\n', "lines"],
    ['{"event":"a","data":[{"x":1}]}\n{"event":"b"}', "lines"],
    ['{"event":"cut off\n{"event":"b"}', "lines"],
    ['istinct_id":"x"}\n{"event":"b"}', "lines"],
    ['[{"event":"a"},{"event":"b"}]', "document"],
    ['\uFEFF [\n  {\n "event":"a"}]', "document"],
    ["[]", "document"],
    ['{\n  "event": "a",\n  "x": 1\n}\n{\n "event": "b"}', "document"],
    ['{"next":null,"results":[{"event":"a"}]}', "document", "results"],
    ['{\n  "api_key": "k",\n  "batch": [\n    {"event":"a"}]}', "document", "batch"],
    ['{"meta":{"results":[1]},"text":"\\"data\\":[{","data":[ ]}', "document", "data"],
    [`{"meta":"${"x".repeat(1e5)}`, "lines"],
    ["event,distinct_id\na,b\n", "csv"],
    ["event;distinct_id\n", "csv"],
    ["event\tdistinct_id\n", "csv"],
    ["PAR1....", "parquet"],
    ["", "lines"],
  ] as [string, string, string?][])
    test(text.slice(0, 60), () =>
      expect(detect(text)).toEqual(kind === "document" ? { kind, member } : ({ kind } as never)),
    );
  for (const bytes of ["BZh91", "SQLite format 3\0", "%PDF-1.7", "\u00ff\u00fea\0", "a\0b"])
    test(`refused: ${JSON.stringify(bytes)}`, () =>
      expect(() => detect(Buffer.from(bytes, "latin1"))).toThrow(UnreadableFileError));
});

/** One record of each product as its documentation shows it, and what becomes of it. */
const at = "2024-01-02 03:04:05";
const records: [RecordFormat, JsonObject, unknown[]][] = [
  [
    "ga4",
    {
      event_date: "20240102",
      event_timestamp: "1704164645000000",
      event_name: "page_view",
      user_id: "u",
      event_params: [
        { key: "page_location", value: { string_value: "https://a.example/x?y=1", int_value: null } },
        { key: "engagement_time_msec", value: { int_value: "12" } },
      ],
      user_pseudo_id: "p.1",
      user_properties: [{ key: "plan", value: { string_value: "pro" } }],
      device: { category: "mobile", web_info: { browser: "Chrome" } },
      geo: { city: "Bonn" },
      items: [],
    },
    [
      [
        "$pageview",
        "u",
        "1704164645000000",
        ["p.1", "u"],
        {
          $current_url: "https://a.example/x?y=1",
          $pathname: "/x",
          engagement_time_msec: 12,
          $browser: "Chrome",
          $device_type: "mobile",
          $geoip_city_name: "Bonn",
          $set: { plan: "pro" },
        },
      ],
    ],
  ],
  [
    "umami",
    {
      event_id: "e",
      website_id: "w",
      session_id: "s",
      created_at: at,
      url_path: "/x",
      url_query: "y=1",
      hostname: "a.example",
      event_type: "1",
      event_name: "",
      browser: "chrome",
      distinct_id: "u",
    },
    [
      [
        "$pageview",
        "u",
        at,
        ["s", "u"],
        { $current_url: "https://a.example/x?y=1", $pathname: "/x", $browser: "chrome" },
      ],
    ],
  ],
  [
    "plausible",
    {
      timestamp: at,
      name: "pageview",
      site_id: 1,
      user_id: 17,
      session_id: 2,
      hostname: "a.example",
      pathname: "/x",
      country_code: "DE",
      "meta.key": ["plan"],
      "meta.value": ["pro"],
    },
    [
      [
        "$pageview",
        "17",
        at,
        undefined,
        { $current_url: "https://a.example/x", $geoip_country_code: "DE", plan: "pro" },
      ],
    ],
  ],
  [
    "matomo",
    {
      idSite: "1",
      idVisit: "9",
      visitorId: "v",
      userId: "u",
      browserName: "Firefox",
      countryCode: "de",
      actionDetails: [
        { type: "action", url: "https://a.example/x", pageTitle: "X", timestamp: 1704164645 },
        { type: "event", eventCategory: "c", eventAction: "play", eventName: "n", timestamp: 1704164646 },
        { type: "download", url: "https://a.example/f.pdf", timestamp: 1704164647 },
      ],
    },
    [
      ["$pageview", "u", 1704164645, ["v", "u"], { $current_url: "https://a.example/x", title: "X" }],
      ["play", "u", 1704164646, ["v", "u"], { category: "c", label: "n", $browser: "Firefox" }],
      ["download", "u", 1704164647, ["v", "u"], { $geoip_country_code: "de" }],
    ],
  ],
  [
    "matomo",
    {
      idVisit: "9",
      idSite: "1",
      visitorId: "v",
      actionDetails_0_type: "action",
      actionDetails_1_type: "",
      actionDetails_0_timestamp: "1704164645",
      actionDetails_0_url: "https://a.example/",
    },
    [["$pageview", "v", "1704164645", undefined, { $current_url: "https://a.example/" }]],
  ],
  [
    "amplitude",
    {
      event_type: "buy",
      user_id: "u",
      device_id: "d",
      event_time: at,
      groups: { org: ["acme", "b"] },
      group_properties: { org: { acme: { size: 3 } } },
      user_properties: { $set: { a: 1 }, b: 2 },
    },
    [["buy", "u", at, ["d", "u"], { $groups: { org: "acme" }, $set: { a: 1, b: 2 } }]],
  ],
  [
    "mixpanel",
    {
      event: "buy",
      properties: { time: 1704164645, distinct_id: "$device:d", $device_id: "d", $user_id: "u" },
    },
    [["buy", "d", 1704164645, ["d", "u"], {}]],
  ],
  [
    "mixpanel",
    { event: "$identify", properties: { time: 1, $identified_id: "u", $anon_id: "d", distinct_id: "x" } },
    [["$identify", "u", 1, ["d", "u"], { $anon_distinct_id: "d" }]],
  ],
  [
    "mixpanel",
    { event: "$merge", properties: { time: 1, $insert_id: "i", $distinct_ids: ["a", "b", "c"] } },
    [
      ["$merge_dangerously", "a", 1, undefined, { alias: "b" }],
      ["$merge_dangerously", "a", 1, undefined, { alias: "c" }],
    ],
  ],
  [
    "segment",
    {
      messageId: "m",
      type: "track",
      event: "buy",
      userId: "u",
      anonymousId: "an",
      timestamp: at,
      "properties.plan": "pro",
      "context.ip": "1.2.3.4",
      "context.page.url": "https://a.example",
    },
    [["buy", "u", at, ["an", "u"], { plan: "pro", $ip: "1.2.3.4", $current_url: "https://a.example" }]],
  ],
  [
    "segment",
    {
      id: "m",
      anonymous_id: "an",
      user_id: "u",
      original_timestamp: at,
      timestamp: at,
      uuid_ts: at,
      event: "order_completed",
      event_text: "Order Completed",
      context_ip: "1.2.3.4",
      total: "7",
    },
    [["Order Completed", "u", at, ["an", "u"], { total: "7", $ip: "1.2.3.4" }]],
  ],
  [
    "rudderstack",
    {
      messageId: "m",
      type: "identify",
      userId: "u",
      anonymousId: "an",
      originalTimestamp: at,
      context: { library: { name: "RudderLabs JavaScript SDK" } },
      traits: { a: 1 },
      channel: "web",
    },
    [["$identify", "u", at, ["an", "u"], { $anon_distinct_id: "an", $set: { a: 1 } }]],
  ],
];
for (const [index, [format, record, expected]] of records.entries())
  test(`${format} (${index})`, () => {
    expect(detectFormat(record)).toBe(format);
    const mapped = mapRecord(format, record).events;
    expect(mapped).toHaveLength(expected.length);
    for (const [at, [name, id, time, pair, properties]] of (expected as Json[][]).entries()) {
      const { event, pair: found } = mapped[at]!;
      expect([event.event, event.distinct_id, event.timestamp, found]).toEqual([
        name,
        id,
        time,
        pair,
      ] as never);
      expect(event.properties).toMatchObject(properties as JsonObject);
    }
  });

describe("Snowplow", () => {
  const row = (more: JsonObject): JsonObject => ({
    event_id: "0190a000-0000-4000-8000-000000000001",
    collector_tstamp: at,
    v_collector: "c",
    domain_userid: "d",
    ...more,
  });
  const buy = { schema: "iglu:com.acme/buy/jsonschema/1-0-0", data: { n: 1 } };
  for (const [name, record, event] of [
    ["an older version without event_name", { event: "unstruct", unstruct_event: { data: buy } }, "buy"],
    [
      "an SDK's member",
      { event: "unstruct", event_name: "buy", unstruct_event_com_acme_buy_1: { n: 1 } },
      "buy",
    ],
    [
      "a warehouse's column",
      { event: "unstruct", event_name: "buy", unstruct_event_com_acme_buy_1: `{"n":1}` },
      "buy",
    ],
    [
      "a screen",
      { event: "unstruct", event_name: "screen_view", unstruct_event_screen_1: { n: 1, name: "Home" } },
      "$screen",
    ],
  ] as [string, JsonObject, string][])
    test(name, () => {
      const [mapped] = mapRecord("snowplow", row(record)).events;
      expect(mapped!.event).toMatchObject({ event, properties: { n: 1 } });
      if (event === "$screen") expect(mapped!.event.properties).toMatchObject({ $screen_name: "Home" });
    });
});

/** Rows that describe persons and groups. */
const snapshots: [RecordFormat, JsonObject, unknown][] = [
  [
    "mixpanel-people",
    { $distinct_id: "$device:u", $properties: { $last_seen: at, $email: "a@b" } },
    { id: "u", distinctIds: ["u"], time: at, properties: { $email: "a@b", email: "a@b" } },
  ],
  [
    "mixpanel-people",
    { $distinct_id: "u", $properties: { $created: at, $name: "N", name: "own" }, $delete: true },
    { time: at, properties: { name: "own" }, isDeleted: true },
  ],
  [
    "mixpanel-groups",
    { $group_key: "company", $group_id: "acme", $properties: { size: 3 } },
    { kind: "group", type: "company", key: "acme", properties: { size: 3 }, isDeleted: false },
  ],
  [
    "persons",
    { id: "x", created_at: at, properties: `{"plan":"pro"}`, distinct_ids: `["a","b"]` },
    { id: "x", distinctIds: ["a", "b"], time: at, properties: { plan: "pro" } },
  ],
  [
    "persons",
    { team_id: 1, distinct_id: "a", person_id: "p-1", properties: "{}", created_at: at, person_version: 2 },
    { id: "p-1", distinctIds: ["a"], version: 2, isDeleted: false },
  ],
  [
    "persons",
    { distinct_id: "a", person_id: "p-1", properties: "", person_version: "7", is_deleted: 1 },
    { version: 7, isDeleted: true },
  ],
  [
    "groups",
    { type: "org", type_index: 0, key: "acme", created_at: at, properties: { size: 3 } },
    { kind: "group", type: "org", key: "acme", time: at, properties: { size: 3 } },
  ],
  [
    "groups",
    { type: "org", group_key: "acme", group_properties: `{"size":3}`, created_at: at, is_deleted: 1 },
    { kind: "group", type: "org", key: "acme", isDeleted: true },
  ],
  [
    "groups",
    { group_type: "org", group_key: "acme", group_properties: `{"size":3}`, created_at: at },
    { kind: "group", type: "org", key: "acme", properties: { size: 3 } },
  ],
];
for (const [index, [format, record, expected]] of snapshots.entries())
  test(`${format} (${index})`, () => {
    expect(detectFormat(record)).toBe(format);
    expect(mapRecord(format, record)).toMatchObject({ events: [], snapshot: expected as never });
  });

test("what is no record of any of them, and totals", () => {
  expect(detectFormat({ kind: "metric", value: 1 })).toBeUndefined();
  expect(detectFormat({ date: "2024-01-02", visitors: "3", pageviews: "4" })).toBe("totals");
});

describe("numbers of more digits than JavaScript holds are kept as they are written", () => {
  const numbers = [
    "12345678901234567",
    "-98765432109876543210",
    "1.1234567890123456789",
    "0.1234567890123456",
    "1e400",
  ];
  const exponents = ["-1.5E+400", "1234567890123456789.5e-20", "0.00000000000000000000012345678901234567"];
  test.each([...numbers, ...exponents])("%s", (number) => {
    for (const text of [
      number,
      `{"a":${number}}`,
      `{"id":"0193d1a2-7b1c-8e71-9f60-be2f3a4b5c6d","a":${number}}`,
      `[1,${number}]`,
      `[[${number}],{"b":[${number}]}]`,
    ])
      expect(JSON.stringify(parseJsonString(text))).toBe(text);
    expect(JSON.stringify(parseJsonString(` {"a" :\n\t ${number} , "b": [ ${number}\r] }`))).toBe(
      `{"a":${number},"b":[${number}]}`,
    );
  });

  test("those in strings are text", () => {
    const text = '{"a":"12345678901234567","b":["x,1e400"],"c":"8e71"}';
    expect(JSON.stringify(parseJsonString(text))).toBe(text);
  });
});
