/** Each member of a record is used, kept or reported; the customer's values win. Source: contract, import 1.2, 1.3. */

import { describe, expect, test } from "bun:test";
import { getEventId } from "../../src/import/map/event-id.ts";
import { detectFormat, mapRecord, noContext, type RecordFormat } from "../../src/import/map/formats.ts";
import { isJsonObject, type Json, type JsonObject } from "../../src/lib/json/value.ts";
import { fullRecords } from "./sources/full-records.ts";

function map(name: string, record = fullRecords[name]!.record) {
  const { format, table = "" } = fullRecords[name]!;
  return mapRecord(format, record, { ...noContext, table });
}

/** The texts in a value that occur nowhere else in its record, with their paths. */
function* marksOf(value: Json, path: string): Generator<[path: string, mark: string]> {
  if (typeof value === "string") {
    if (value.startsWith("<")) yield [path, value];
  } else if (Array.isArray(value)) for (const item of value) yield* marksOf(item, path);
  else if (isJsonObject(value))
    for (const [name, inner] of Object.entries(value)) {
      if (name.startsWith("<")) yield [path, name];
      yield* marksOf(inner, path === "" ? name : `${path}.${name}`);
    }
}

for (const [name, full] of Object.entries(fullRecords))
  describe(name, () => {
    const { record, used, omitted, bag } = full;

    test("is recognized", () => expect(detectFormat(record)).toBe(full.format));

    test("no member is lost, and the reported ones are those of the contract", () => {
      const mapped = map(name);
      const events = JSON.stringify(mapped.events.map(({ event }) => event));
      const reported = [...(mapped.omitted ?? [])];
      expect(reported.sort()).toEqual(omitted.toSorted());
      const isAccounted = (path: string) =>
        [...used, ...omitted].some((each) => path === each || path === `properties.${each}`);
      const lost = [...marksOf(record, "")].filter(
        ([path, mark]) => !isAccounted(path) && !events.includes(JSON.stringify(mark).slice(1, -1)),
      );
      expect(lost).toEqual([]);
      // Nothing that is reported is in an event.
      for (const each of omitted)
        if (String(record[each]).startsWith("<")) expect(events).not.toContain(String(record[each]));
    });

    if (bag !== undefined)
      test("own properties win over every derived one, which is kept under another name", () => {
        const derived = map(name).events[0]!.event.properties as JsonObject;
        const imported = Object.keys(derived).filter((each) => !isJsonObject(derived[each]));
        const own = Object.fromEntries(imported.map((each) => [each, `own ${each}`]));
        const { events, omitted: reported = [] } = map(name, { ...record, [bag]: own });
        const properties = events[0]!.event.properties as JsonObject;
        expect(properties).toMatchObject(own);
        const written = JSON.stringify(events);
        const { [bag]: _, ...others } = record;
        const isReported = (path: string) => [...reported, ...used].some((each) => path === each);
        const lost = [...marksOf(others, "")].filter(
          ([path, mark]) => !isReported(path) && !written.includes(JSON.stringify(mark).slice(1, -1)),
        );
        expect(lost).toEqual([]);
      });

    test("null and empty members are neither properties nor reported", () => {
      const empty = Object.fromEntries(omitted.map((each, n) => [each, [null, "", [], {}][n % 4]!]));
      const properties = record.properties;
      const inside = name === "mixpanel" && isJsonObject(properties);
      const changed = inside ? { properties: { ...properties, ...empty } } : empty;
      const { omitted: reported = [] } = map(name, { ...record, ...changed } as JsonObject);
      expect([...reported]).toEqual([]);
    });
  });

test("an object or list without a value inside does not count", () => {
  const nothing = { a: null, b: { c: "", d: [null, {}] } };
  const ga4 = { event_name: "x", event_timestamp: "1714557600000000", user_pseudo_id: "u" };
  const segment = { type: "track", event: "x", userId: "u", timestamp: "2024-05-01", properties: {} };
  for (const [format, record, properties] of [
    [
      "ga4",
      { ...ga4, device: { web_info: nothing }, geo: nothing, publisher: nothing, items: [nothing] },
      {},
    ],
    ["segment", { ...segment, context: { page: nothing, other: nothing }, integrations: nothing }, {}],
    ["snowplow", { event: "x", event_id: "e", contexts: nothing, domain_userid: "u" }, { $device_id: "u" }],
  ] as const) {
    const { events, omitted = [] } = mapRecord(format, record as unknown as JsonObject);
    expect([events[0]!.event.properties, [...omitted]]).toEqual([properties as never, []]);
  }
});

test("GA4: lists of Parquet at any depth; text that resembles a list stays text", () => {
  const list = (...elements: JsonObject[]): JsonObject => ({
    list: elements.map((element) => ({ element })),
  });
  const items = list({
    item_id: "i",
    name: "[1]",
    item_params: list({ key: "k", value: { int_value: "5" } }),
  });
  const ga4 = { event_name: "x", event_timestamp: "1714557600000000", user_pseudo_id: "u" };
  const [mapped] = mapRecord("ga4", { ...ga4, items, publisher: "[1]" }).events;
  expect(mapped!.event.properties).toEqual({
    items: [{ item_id: "i", name: "[1]", item_params: [{ key: "k", value: { int_value: "5" } }] }],
    publisher: "[1]",
  });
});

describe("more than five groups", () => {
  const keys = Object.fromEntries(
    ["a", "b", "c", "d", "e", "f", "g"].map((type) => [type, `key of ${type}`]),
  );
  const at = "2024-05-01 10:00:00";
  const records: Record<string, JsonObject> = {
    amplitude: { event_type: "x", user_id: "u", event_time: at, groups: keys },
    posthog: { event: "x", distinct_id: "u", timestamp: at, team_id: 1, properties: { $groups: keys } },
    events: { event: "x", distinct_id: "u", timestamp: at, properties: { $groups: keys } },
    segment: { type: "track", event: "x", userId: "u", timestamp: at, properties: { $groups: keys } },
    mixpanel: { event: "x", properties: { distinct_id: "u", time: 1714557600, $groups: keys } },
  };
  for (const [format, record] of Object.entries(records))
    test(format, () => {
      expect(detectFormat(record)).toBe(format as never);
      const { events, omitted = [] } = mapRecord(format as never, record);
      const properties = events[0]!.event.properties as JsonObject;
      expect(Object.keys(properties.$groups as JsonObject)).toEqual(["a", "b", "c", "d", "e"]);
      expect(properties).toMatchObject({ $group_f: "key of f", $group_g: "key of g" });
      expect([...omitted].filter((name) => name !== "team_id").sort()).toEqual(["$groups.f", "$groups.g"]);
    });

  test("Flagkeep's own export keeps them all", () => {
    const own = { uuid: "0190a000-0000-4000-8000-000000000001", received_at: at, seq: 1, timestamp: at };
    const record = { ...own, event: "x", distinct_id: "u", properties: { $groups: keys } };
    const { events, omitted = [] } = mapRecord("flagkeep", record);
    expect(events[0]!.event.properties).toEqual({ $groups: keys });
    expect([...omitted]).not.toContain("$groups.f");
  });
});

test("empty lists and objects are no members, however a table writes them", () => {
  const at = "2024-05-01 10:00:00";
  for (const [format, record, empty] of [
    [
      "plausible",
      { name: "e", user_id: "1", timestamp: at },
      { "meta.key": "[]", "meta.value": "[]", props: "{}" },
    ],
    ["amplitude", { event_type: "e", user_id: "u", event_time: at }, { groups: "{}", user_properties: "{}" }],
    ["segment", { type: "track", event: "e", userId: "u", timestamp: at }, { context: '{"page":{}}' }],
    [
      "ga4",
      { event_name: "e", user_id: "u", event_timestamp: "1714557600000000" },
      { device: "{}", items: "[]" },
    ],
  ] as [RecordFormat, JsonObject, JsonObject][]) {
    const [plain, mapped] = [record, { ...record, ...empty }].map((each) => mapRecord(format, each));
    expect(mapped!.events[0]!.event).toEqual(plain!.events[0]!.event);
    expect([...(mapped!.omitted ?? [])]).toEqual([]);
    const ids = [plain!, mapped!].map(({ events }) => getEventId(events[0]!, 1, () => 1));
    expect(ids[1]).toBe(ids[0]!);
  }
});
