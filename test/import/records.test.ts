/** What records of other products become; whole files of them are in `import.test.ts`. */

import { expect, test } from "bun:test";
import { getLegacyId } from "../../src/import/map/event-id.ts";
import { fieldRule, withFields } from "../../src/import/map/fields.ts";

import { detectFormat, mapRecord, type RecordFormat } from "../../src/import/map/formats.ts";

import type { Json, JsonObject } from "../../src/lib/json/value.ts";

const uuid = "0190f3a4-5c11-7000-8000-000000000001";
const chain = 'button.primary:nth-child="1"text="Buy"';

for (const c of [
  {
    name: "a line of PostHog's batch export, properties as text",
    format: "posthog",
    record: {
      uuid,
      event: "$autocapture",
      distinct_id: "u",
      timestamp: "2024-01-02 03:04:05.678000",
      team_id: 2,
      properties: `{"$current_url":"/","n":1}`,
      elements_chain: chain,
      created_at: "2024-01-03",
      set: "{}",
      person_id: uuid,
      person_properties: `{"plan":"pro"}`,
      ip: "1.2.3.4",
      site_url: "",
      set_once: null,
    },
    event: {
      uuid,
      event: "$autocapture",
      distinct_id: "u",
      timestamp: "2024-01-02 03:04:05.678000",
      properties: { $elements_chain: chain, $ip: "1.2.3.4", $current_url: "/", n: 1 },
    },
    sourceId: uuid,
  },
  {
    name: "an event of PostHog's API",
    format: "posthog",
    record: {
      id: uuid,
      event: "a",
      distinct_id: "u",
      timestamp: "2024-01-02T03:04:05Z",
      properties: { $set: { a: 1 } },
      person: { is_identified: false },
      elements: [],
      elements_chain: "",
    },
    event: {
      event: "a",
      distinct_id: "u",
      timestamp: "2024-01-02T03:04:05Z",
      properties: { $set: { a: 1 } },
    },
    sourceId: uuid,
  },
  {
    name: "a row of a table: what is no part of an event is a property",
    format: "events",
    record: {
      event: "a",
      distinct_id: "u",
      id: "7",
      seq: "1",
      person: "p",
      "properties.plan": "pro",
      nothing: null,
    },
    event: { event: "a", distinct_id: "u", properties: { id: "7", seq: "1", person: "p", plan: "pro" } },
    sourceId: undefined,
  },
  {
    name: "a row of an own export",
    format: "flagkeep",
    record: {
      uuid,
      event: "a",
      distinct_id: "u",
      timestamp: "t",
      received_at: "r",
      properties: `{"seq":1}`,
      elements_chain: chain,
      historical: false,
      seq: 4,
      person_id: null,
    },
    event: {
      uuid,
      event: "a",
      distinct_id: "u",
      timestamp: "t",
      properties: { $elements_chain: chain, seq: 1 },
    },
    sourceId: uuid,
  },
  {
    name: "Amplitude",
    format: "amplitude",
    record: {
      event_type: "buy",
      user_id: null,
      device_id: "d",
      event_time: "2024-01-02 03:04:05.123456",
      $insert_id: "i",
      event_properties: { k: 1 },
      user_properties: { plan: "pro" },
      groups: { company: ["acme"] },
      ip_address: "1.2.3.4",
      os_name: "ios",
      city: "Bonn",
      language: "",
      session_id: 17,
    },
    event: {
      event: "buy",
      distinct_id: "d",
      timestamp: "2024-01-02 03:04:05.123456",
      properties: {
        k: 1,
        $set: { plan: "pro" },
        $ip: "1.2.3.4",
        $os: "ios",
        $geoip_city_name: "Bonn",
        $device_id: "d",
        $device_type: "Mobile",
        $amplitude_session_id: 17,
        $groups: { company: "acme" },
      },
    },
    sourceId: "i",
  },
  {
    name: "Mixpanel",
    format: "mixpanel",
    record: {
      event: "buy",
      properties: { time: 1704164645, distinct_id: "m", $insert_id: "i", $city: "Bonn", k: 1 },
    },
    event: {
      event: "buy",
      distinct_id: "m",
      timestamp: 1704164645,
      properties: { $city: "Bonn", k: 1, $geoip_city_name: "Bonn" },
    },
    sourceId: "i",
  },
  ...(
    [
      [
        { type: "track", event: "buy", properties: { k: 1 }, context: { ip: "1.2.3.4", page: { url: "u" } } },
        { event: "buy", properties: { k: 1, $ip: "1.2.3.4", $current_url: "u" } },
      ],
      [
        { type: "identify", anonymousId: "anon", traits: { a: 1 } },
        { event: "$identify", properties: { $set: { a: 1 }, $anon_distinct_id: "anon" } },
      ],
      [
        { type: "page", name: "Home" },
        { event: "$pageview", properties: { name: "Home" } },
      ],
      [
        { type: "screen", name: "Home" },
        { event: "$screen", properties: { $screen_name: "Home", name: "Home" } },
      ],
      [
        { type: "alias", previousId: "old" },
        { event: "$create_alias", distinct_id: "old", properties: { alias: "u" } },
      ],
      [
        { type: "group", groupId: "acme", traits: { size: 3 } },
        {
          event: "$groupidentify",
          properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 3 } },
        },
      ],
    ] as const
  ).map(([record, event]) => ({
    name: `Segment: ${record.type}`,
    format: "segment",
    record: { ...record, userId: "u", timestamp: "2024-01-02T03:04:05Z", messageId: "m" },
    event: { distinct_id: "u", ...event, timestamp: "2024-01-02T03:04:05Z" },
    sourceId: "m",
  })),
])
  test(c.name, () => {
    const [mapped, ...more] = mapRecord(c.format as RecordFormat, c.record as never).events;
    expect(more).toEqual([]);
    expect({ event: mapped!.event, sourceId: mapped!.sourceId }).toEqual({
      event: c.event as never,
      sourceId: c.sourceId,
    });
    if (c.name !== "a row of a table: what is no part of an event is a property")
      expect(detectFormat(c.record as never)).toBe(c.format as RecordFormat);
  });

test("properties that are no object stay what they are, for ingestion to reject", () => {
  for (const [format, field] of [
    ["events", "properties"],
    ["posthog", "properties"],
    ["amplitude", "event_properties"],
    ["mixpanel", "properties"],
    ["segment", "properties"],
  ] as const)
    for (const properties of [[1], "text", 7, true, "[1]"] as Json[]) {
      const record = { type: "track", event: "a", distinct_id: "u", [field]: properties };
      const [mapped] = mapRecord(format, withFields(record, [fieldRule("x=properties.x")!])).events;
      expect(mapped!.event.properties).toEqual(properties === "[1]" ? "[1]" : properties);
    }
});

test("names of members are names, whatever they mean elsewhere", () => {
  const record = JSON.parse(`{"event":"a","distinct_id":"u","__proto__":{"x":1},"constructor":2,"p":3}`);
  expect(JSON.stringify(mapRecord("events", record).events[0]!.event.properties)).toBe(
    `{"__proto__":{"x":1},"constructor":2,"p":3}`,
  );
  const rules = [fieldRule("p=properties.__proto__")!];
  expect(JSON.stringify(withFields(record, rules).properties)).toBe(`{"__proto__":3}`);
});

test("--map: other names, constants and fall-backs, inside of the properties as well", () => {
  const record = {
    name: "a",
    color: "red",
    properties: `{"n":1}`,
    x: 2,
    user_id: "",
    anonymous_id: "anon",
    when: { at: "2024" },
    "a.b": 3,
  };
  for (const [rules, expected] of [
    [["name=event", "color=properties.color"], { event: "a", properties: { n: 1, color: "red" } }],
    [["event=kind|name|'$pageview'"], { event: "a" }],
    [["event=kind|'$pageview'"], { event: "$pageview" }],
    [["event='a|b=c'"], { event: "a|b=c" }],
    [["distinct_id=user_id|anonymous_id"], { distinct_id: "anon" }],
    [["timestamp=when.at", "properties.c=a.b"], { timestamp: "2024", properties: { n: 1, c: 3 } }],
    [["event=nothing"], { event: undefined }],
  ] as [string[], Record<string, unknown>][]) {
    const created = withFields(
      record,
      rules.map((rule) => fieldRule(rule)!),
    );
    for (const [field, value] of Object.entries(expected)) expect(created[field]).toEqual(value as never);
  }
  const used = withFields(record, [fieldRule("distinct_id=user_id|anonymous_id")!]);
  expect(Object.keys(used)).not.toContain("anonymous_id");
  for (const wrong of ["x", "=x", "x=", "event='open", "event=a||b", ""])
    expect(fieldRule(wrong)).toBeUndefined();
});

test("names in capitals are those in lower case, if all are; --map accepts both", () => {
  const row = {
    EVENT_TYPE: "buy",
    USER_ID: "u",
    $INSERT_ID: "i",
    EVENT_PROPERTIES: `{"Plan":1}`,
    PLAN: "pro",
  };
  const lower = withFields(row, []);
  expect(detectFormat(lower)).toBe("amplitude");
  expect(mapRecord("amplitude", lower).events[0]!.event).toMatchObject({
    event: "buy",
    distinct_id: "u",
    properties: { Plan: 1, plan: "pro" },
  });
  for (const rule of ["distinct_id=OWNER", "distinct_id=owner"]) {
    const created = withFields({ EVENT: "e", OWNER: "u" }, [fieldRule(rule)!]);
    expect(created).toEqual({ event: "e", distinct_id: "u" });
  }
  const mixed = { EVENT: "e", distinct_id: "u" };
  expect(withFields(mixed, [])).toBe(mixed);
  expect(withFields({ $1: "e" }, [])).toEqual({ $1: "e" });
});

test("Amplitude: the address with its query, and empty objects that a table has as text", () => {
  const url = "[Amplitude] Page URL";
  const location = "[Amplitude] Page Location";
  const current = (event_properties: JsonObject) => {
    const record = { event_type: "x", user_id: "u", group_properties: "{}", groups: "{}", event_properties };
    const { properties } = mapRecord("amplitude", record).events[0]!.event;
    const { $current_url, utm_source, group_properties, groups } = properties as JsonObject;
    return [$current_url, utm_source, group_properties, groups];
  };
  const whole = "https://x.example/p?utm_source=news";
  expect(current({ [url]: "https://x.example/p", [location]: whole })).toEqual([
    whole,
    "news",
    undefined,
    undefined,
  ]);
  expect(current({ [url]: whole, [location]: "https://y.example/" })[0]).toBe(whole);
  expect(current({ [location]: whole })[0]).toBe(whole);
});

test("uuids of older versions: a source's own; else always the same of its id; else of its line and content", () => {
  const created = (sourceId: string | undefined, line: number, record: JsonObject, micros?: number) =>
    getLegacyId(sourceId, micros, line, record);
  expect(created(uuid.toUpperCase(), 1, {})).toBe(uuid);
  expect(created("i", 1, { a: 1 })).toBe(created("i", 2, { a: 2 }));
  expect(created("i", 1, {})).not.toBe(created("j", 1, {}));
  const ofContent = created(undefined, 1, { a: 1 });
  expect(created(undefined, 1, { a: 1 })).toBe(ofContent);
  expect(created(undefined, 2, { a: 1 })).not.toBe(ofContent);
  expect(created(undefined, 1, { a: 2 })).not.toBe(ofContent);
  const micros = Date.parse("2024-01-02T03:04:05.678Z") * 1_000;
  expect(created("i", 1, {}, micros)).toBe(created("i", 1, {}, micros + 999));
  // Written down once: another way of making them would load everything again.
  expect([created("i", 1, {}), created("i", 1, {}, micros), created("i", 1, {}, -1)]).toEqual([
    "34d24a4f-c0a0-5757-8699-47f49f3e563c",
    "018cc820-db2e-7757-8699-47f49f3e563c",
    "34d24a4f-c0a0-5757-8699-47f49f3e563c",
  ]);
  expect(created(undefined, 1, { a: 1 }, micros)).toBe("018cc820-db2e-7564-90f0-d8f30fd2266e");
});

test("Snowplow: numbers are numbers with a header, without one, and in JSON", () => {
  const row = {
    event: "struct",
    se_action: "a",
    event_id: uuid,
    domain_userid: "d",
    collector_tstamp: "2024-05-01",
  };
  const numbers = { se_value: "2.50", br_viewwidth: "800", pp_xoffset_max: "x" };
  for (const record of [
    { ...row, ...numbers },
    { ...row, se_value: 2.5, br_viewwidth: 800, pp_xoffset_max: "x" },
  ])
    expect(
      JSON.parse(JSON.stringify(mapRecord("snowplow", record).events[0]!.event.properties)),
    ).toMatchObject({
      value: 2.5,
      $viewport_width: 800,
      pp_xoffset_max: "x",
    });
});
