/** Exact repetition: which records are the same event, whatever file they come in. Source: contract, import 1.6. */

import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { SpilledCounts } from "../../src/import/counts.ts";
import { canonicalString, getEventId, getLegacyId, importNamespace } from "../../src/import/map/event-id.ts";
import { mapRecord, type RecordFormat } from "../../src/import/map/formats.ts";
import { toTime } from "../../src/import/map/time.ts";
import { parseJsonString } from "../../src/import/read/json-text.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";
import { ServerProcess } from "../support/server.ts";
import { getLines, SampleProject } from "./samples.ts";

function getIds(format: RecordFormat, records: readonly JsonObject[]): string[] {
  using counts = new SpilledCounts();
  const now = Date.UTC(2026, 0, 1) * 1_000;
  return records
    .flatMap((record) => mapRecord(format, record).events)
    .map((mapped) =>
      getEventId(mapped, toTime(mapped.event.timestamp, now) as number, (text) => counts.add(text)),
    );
}

describe("an id of the source counts with time, name and person", () => {
  const mixpanel = (event: string, distinct_id: string, time: number) => ({
    event,
    properties: { distinct_id, time, $insert_id: "order-7" },
  });
  const segment = (type: string, event: string, userId: string, timestamp: string) => ({
    type,
    event,
    userId,
    timestamp,
    messageId: "m",
    properties: {},
  });
  const amplitude = (event_type: string, user_id: string, device_id: string, event_time: string) => ({
    event_type,
    user_id,
    device_id,
    event_time,
    $insert_id: "i",
  });
  const table = (event: string, distinct_id: string, timestamp: string) => ({
    event,
    distinct_id,
    timestamp,
    $insert_id: "0190f3a4-5c11-7000-8000-000000000001",
  });
  for (const [format, records] of [
    [
      "mixpanel",
      [
        mixpanel("a", "u", 17e8),
        mixpanel("b", "u", 17e8),
        mixpanel("a", "v", 17e8),
        mixpanel("a", "u", 18e8 / 1.05),
      ],
    ],
    [
      "segment",
      [
        segment("track", "a", "u", "2024-01-02"),
        segment("track", "b", "u", "2024-01-02"),
        segment("track", "a", "v", "2024-01-02"),
        segment("track", "a", "u", "2024-01-03"),
        segment("page", "a", "u", "2024-01-02"),
      ],
    ],
    [
      "amplitude",
      [
        amplitude("a", "u", "d", "2024-01-02"),
        amplitude("b", "u", "d", "2024-01-02"),
        amplitude("a", "v", "d", "2024-01-02"),
        amplitude("a", "u", "e", "2024-01-02"),
        amplitude("a", "u", "d", "2024-01-03"),
      ],
    ],
    // An insert id that looks like a uuid is an insert id.
    ["events", [table("a", "u", "2024-01-02"), table("b", "u", "2024-01-02"), table("a", "v", "2024-01-02")]],
  ] as [RecordFormat, JsonObject[]][])
    test(format, () => {
      const ids = getIds(format, [...records, ...records]);
      expect(new Set(ids).size).toBe(records.length);
      expect(ids.slice(0, records.length)).toEqual(ids.slice(records.length));
    });

  test("a uuid of the source is the event's", () => {
    const uuid = "0190f3a4-5c11-7000-8000-000000000001";
    const time = "2024-01-02 03:04:05";
    expect(getIds("posthog", [{ uuid, event: "a", distinct_id: "u", timestamp: time }])).toEqual([uuid]);
    expect(getIds("amplitude", [{ uuid, event_type: "a", user_id: "u", event_time: time }])).toEqual([uuid]);
    const umami = { website_id: "w", session_id: "s", event_id: uuid, created_at: time, url_path: "/" };
    expect(getIds("umami", [umami])).toEqual([uuid]);
  });

  test("samples", async () => {
    const mixpanelProject = await SampleProject.create();
    const counts = { read: 4, accepted: 3, duplicate: 1, rejected: 0 };
    expect(await mixpanelProject.sample("15-mixpanel-same-insert-id.json")).toMatchObject(counts);
    const amplitudeProject = await SampleProject.create();
    expect(await amplitudeProject.sample("15-amplitude-same-insert-id.json")).toMatchObject({ accepted: 2 });
  }, 60_000);
});

describe("without an id the content counts, and how many equal records there are", () => {
  const ga4 = (more: JsonObject = {}) => ({
    event_name: "e",
    event_timestamp: "1714557600000001",
    user_pseudo_id: "p",
    stream_id: "1",
    event_params: [
      { key: "a", value: { string_value: "x", int_value: null } },
      { key: "n", value: { int_value: "5", string_value: null } },
    ],
    ...more,
  });

  test("a row of GA4 in another table, order or file is the same event", () => {
    const parquet: Json = {
      list: [
        { element: { key: "n", value: { int_value: 5 } } },
        { element: { key: "a", value: { string_value: "x" } } },
      ],
    };
    const [first, ...others] = [
      ga4(),
      ga4({ event_timestamp: 1714557600000001 }),
      ga4({ event_params: parquet }),
      ga4({
        collected_traffic_source: { manual_source: "s" },
        is_active_user: true,
        user_ltv: { revenue: 1 },
      }),
      ga4({ batch_event_index: "7", privacy_info: { ads_storage: "Yes" }, event_date: "20240501" }),
    ].map((record) => getIds("ga4", [record])[0]);
    for (const other of others) expect(other).toBe(first);
    const different = [
      ga4({ stream_id: "2" }),
      ga4({ user_id: "u" }),
      ga4({ event_name: "f" }),
      ga4({ event_bundle_sequence_id: 3 }),
      ga4({ event_timestamp: "1714557600000002" }),
      ga4({ event_params: [] }),
    ].map((record) => getIds("ga4", [record])[0]);
    expect(new Set([first, ...different]).size).toBe(different.length + 1);
  });

  test("two equal rows are two events, and the same two in another order", () => {
    const one = ga4();
    const other = ga4({ event_name: "f" });
    const ids = getIds("ga4", [one, one, other]);
    expect(new Set(ids).size).toBe(3);
    expect(getIds("ga4", [other, one, one]).sort()).toEqual(ids.toSorted());
    expect(getIds("ga4", [one])).toEqual(ids.slice(0, 1));
  });

  test("tables: columns in any order, numbers as text, empty cells", () => {
    const at = "2024-01-02 03:04:05";
    const [first, ...others] = [
      { event: "e", distinct_id: "u", timestamp: at, plan: "7" },
      { plan: 7, timestamp: "2024-01-02T03:04:05Z", distinct_id: "u", event: "e", none: null, empty: "" },
      { event: "e", distinct_id: "u", timestamp: 1704164645, plan: "7", properties: "{}" },
    ].map((record) => getIds("events", [record as unknown as JsonObject])[0]);
    for (const other of others) expect(other).toBe(first);
  });

  test("rows of Plausible: lists, numbers and filling as each writer has them", () => {
    const row = (more: JsonObject): JsonObject => ({
      timestamp: "2024-05-01 10:00:00",
      name: "pageview",
      user_id: "17446744073709551615",
      hostname: "x.example",
      pathname: "/a",
      site_id: 1,
      country_code: "DE",
      ...more,
    });
    const [first, ...others] = [
      row({ "meta.key": ["plan", "it's"], "meta.value": ["pro", "1"], revenue_source_amount: 12.5 }),
      // CSV and TSV of ClickHouse.
      row({ "meta.key": "['plan','it\\'s']", "meta.value": "['pro','1']", revenue_source_amount: "12.500" }),
      row({ "meta.key": '["plan","it\'s"]', "meta.value": '["pro","1"]', revenue_source_amount: "12.5" }),
      row({ meta: { key: ["plan", "it's"], value: ["pro", "1"] }, revenue_source_amount: "12.50" }),
      row({ meta: { "it's": "1", plan: "pro" }, revenue_source_amount: 12.5, currency: "\0\0\0" }),
      row({ props: '{"plan":"pro","it\'s":"1"}', revenue_source_amount: 12.5, country_code: "DE\\x00" }),
    ].map((record) => getIds("plausible", [record])[0]);
    for (const other of others) expect(other).toBe(first);
    const different = [row({ "meta.key": ["plan"], "meta.value": ["pro"] }), row({}), row({ site_id: 2 })];
    const ids = different.map((record) => getIds("plausible", [record])[0]);
    expect(new Set([first, ...ids]).size).toBe(different.length + 1);
  });

  test("a column of another notation: objects, booleans and decimals as text", () => {
    const getId = (more: JsonObject) =>
      getIds("events", [{ event: "e", distinct_id: "u", timestamp: "2024-01-02", ...more }])[0];
    expect(getId({ tags: '["a", "b"]', on: "true", price: "1.50" })).toBe(
      getId({ tags: ["a", "b"], on: true, price: 1.5 }),
    );
    expect(getId({ place: '{"b":1,"a":[]}' })).toBe(getId({ place: { b: 1 } }));
    // Inside of values nothing changes, and text that is no list stays text.
    expect(getId({ place: { a: "[1]" } })).not.toBe(getId({ place: { a: [1] } }));
    for (const text of ["[a", "{", "1.2.3", "01.50", "\0x"])
      expect(getId({ text })).not.toBe(getId({ text: `${text} ` }));
  });

  test("one text for a value, however its members stand", () => {
    const value = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
    const shuffled = (json: Json): Json => {
      if (Array.isArray(json)) return json.map(shuffled);
      if (json === null || typeof json !== "object") return json;
      const entries = Object.entries(json as JsonObject).reverse();
      return Object.fromEntries(entries.map(([name, member]) => [name, shuffled(member)])) as Json;
    };
    fc.assert(
      fc.property(value, (json) => expect(canonicalString(shuffled(json))).toBe(canonicalString(json))),
    );
    for (const [one, other] of [
      ["[1,2]", "[2,1]"],
      ["[1,[2]]", "[[1],2]"],
      ['{"a":"b"}', '["a","b"]'],
      ["12345678901234567890", "12345678901234567891"],
      ['{"a":true}', '{"a":"true"}'],
    ])
      expect(canonicalString(parseJsonString(one!))).not.toBe(canonicalString(parseJsonString(other!)));
    expect(canonicalString(parseJsonString("12345678901234567890"))).toBe(
      canonicalString("12345678901234567890"),
    );
  });

  test("samples: the same day in another order adds nothing; a row without any id is rejected", async () => {
    const project = await SampleProject.create();
    const first = await project.sample("10-ga4-order-a.json");
    expect(first).toMatchObject({ accepted: 4, duplicate: 0, rejected: 1 });
    const second = await project.sample("10-ga4-order-b.json");
    expect(second).toMatchObject({ accepted: 0, duplicate: 3, made: 0, rejected: 0 });
  }, 60_000);

  test("an import that is interrupted continues counting where it was, across files that are done", async () => {
    const project = await SampleProject.create();
    Bun.spawnSync(["mkdir", `${project.folder}/files`]);
    const row = ga4();
    project.write("files/1.json", getLines([row, row]));
    // A record that is rejected stops the import here.
    const second = project.write("files/2.json", getLines([row, { ...row, event_name: "" }, row]));
    const files = `${project.folder}/files`;
    const stopped = await project.file(files, "--max-rejects", "0");
    expect(stopped).toMatchObject({ accepted: 3, rejected: 0, complete: false });
    const resumed = await project.file(files, "--resume");
    expect(resumed).toMatchObject({ read: 5, accepted: 4, duplicate: 0, rejected: 1, complete: true });
    expect(await project.file(files)).toMatchObject({ accepted: 0, duplicate: 4, made: 0 });
    expect(await project.file(second)).toMatchObject({ accepted: 0, duplicate: 2 });
  }, 60_000);
});

test("a resumed import must read records as the interrupted one", async () => {
  const project = await SampleProject.create();
  const row = { event: "e", distinct_id: "u", timestamp: "2024-05-01 10:00:00" };
  const path = project.write("times.json", getLines([row, { ...row, event: "" }]));
  const berlin = ["--timezone", "Europe/Berlin"];
  expect(await project.file(path, ...berlin, "--max-rejects", "0")).toMatchObject({ accepted: 1 });
  await expect(project.file(path, "--resume", "--null", "x")).rejects.toThrow(
    "The interrupted import had other values of --null, --timezone. Repeat these options, or run the import without --resume.",
  );
  expect(await project.file(path, ...berlin, "--resume")).toMatchObject({
    read: 2,
    accepted: 1,
    rejected: 1,
  });
}, 60_000);

describe("what an older version has loaded is recognized", () => {
  /** Stores events as an older version did, with the uuids that it gave them. */
  async function withOldEvents(
    records: readonly [RecordFormat, JsonObject, name: string, id: string][],
    oldIds: readonly string[] = [],
  ) {
    const server = await ServerProcess.start();
    const batch = records.map(([format, record, event, distinct_id], at) => {
      const [mapped] = mapRecord(format, record).events;
      const micros = toTime(mapped!.event.timestamp, undefined) as number;
      const uuid = oldIds[at] ?? getLegacyId(mapped!.sourceId, micros, at + 1, record);
      return { uuid, event, distinct_id, timestamp: new Date(micros / 1_000).toISOString(), properties: {} };
    });
    await server.batch(batch, { historical_migration: true });
    await server.eventsWhenStored(batch.length);
    return { server, project: await SampleProject.create(server.dataDir) };
  }

  test("by source id, if name and person are the same", async () => {
    const record = (event: string, distinct_id: string) => ({
      event,
      properties: { distinct_id, time: 1760000000, $insert_id: "order-7" },
    });
    const { server, project } = await withOldEvents([["mixpanel", record("Placed", "u1"), "Placed", "u1"]]);
    await using _ = server;
    const records = [record("Placed", "u1"), record("Shipped", "u1"), record("Placed", "u2")];
    expect(await project.records(records, "--dry-run")).toMatchObject({ accepted: 2, duplicate: 1 });
    expect(await project.records(records)).toMatchObject({ accepted: 2, duplicate: 1 });
    expect(await project.records(records)).toMatchObject({ accepted: 0, duplicate: 3 });
  }, 60_000);

  test("under the time of Matomo that was not corrected", async () => {
    const visit = {
      idSite: "1",
      idVisit: "7",
      visitorId: "v",
      firstActionTimestamp: 1760000000,
      actionDetails: [{ type: "action", url: "https://x.example/", timestamp: 1760007200 }],
    };
    const server = await ServerProcess.start();
    await using _ = server;
    const uuid = getLegacyId("matomo:1:7:0", 1760007200e6, 1, {});
    const old = {
      uuid,
      event: "$pageview",
      distinct_id: "v",
      timestamp: "2025-10-09T10:53:20Z",
      properties: {},
    };
    await server.batch([old], { historical_migration: true });
    await server.eventsWhenStored(1);
    const project = await SampleProject.create(server.dataDir);
    expect(await project.records([visit])).toMatchObject({ accepted: 0, duplicate: 1 });
  }, 60_000);

  test("of Matomo by position in the visit; now the page view counts", async () => {
    const action = (idpageview: string, second: number) => ({
      type: "action",
      url: `https://x.example/${idpageview}`,
      idpageview,
      timestamp: 1760000000 + second,
    });
    const visit = (...actionDetails: JsonObject[]) => ({
      idSite: "1",
      idVisit: "7",
      visitorId: "v",
      firstActionTimestamp: 1760000000,
      actionDetails,
    });
    const source = { name: "action", ids: [undefined, "v"] };
    const uuid = getEventId({ event: {}, sourceId: "matomo:1:7:0", source }, 1760000000e6, () => 1);
    const server = await ServerProcess.start();
    await using _ = server;
    const old = {
      uuid,
      event: "$pageview",
      distinct_id: "v",
      timestamp: "2025-10-09T08:53:20Z",
      properties: {},
    };
    await server.batch([old], { historical_migration: true });
    await server.eventsWhenStored(1);
    const project = await SampleProject.create(server.dataDir);
    const records = [visit(action("a", 0), action("b", 5), action("b", 5))];
    expect(await project.records(records)).toMatchObject({ accepted: 2, duplicate: 1 });
    // Another export of the visit has one more action in between.
    const later = [visit(action("a", 0), action("c", 2), action("b", 5), action("b", 5))];
    expect(await project.records(later)).toMatchObject({ accepted: 1, duplicate: 3 });
  }, 60_000);

  test("by the content as version 0.2 wrote it, with its number among equal records", async () => {
    const row = {
      timestamp: "2024-05-01 10:00:00",
      name: "pageview",
      user_id: "17",
      hostname: "x.example",
      pathname: "/a",
      "meta.key": "['plan']",
      "meta.value": "['pro']",
      site_id: 1,
    };
    const { timestamp: _, ...content } = row;
    // Source: version 0.2, which made the UUIDs of this row in CSV.
    const text = (ordinal: number) =>
      `content:${ordinal}:${canonicalString([1714557600000000, "pageview", ["17"], content])}`;
    const getId = (ordinal: number) =>
      `018f3398-c100-7${Bun.randomUUIDv5(text(ordinal), importNamespace).slice(15)}`;
    const old: [RecordFormat, JsonObject, string, string] = ["plausible", row, "$pageview", "17"];
    const { server, project } = await withOldEvents([old, old], [getId(1), getId(2)]);
    await using _server = server;
    expect(await project.records([row, row, row])).toMatchObject({ accepted: 1, duplicate: 2 });
  }, 60_000);

  test("by line and content, under the name and the id that it had then", async () => {
    const row = {
      event_name: "page_view",
      event_timestamp: "1714557600000001",
      user_pseudo_id: "p",
      user_id: "0",
    };
    const other = { ...row, event_timestamp: "1714557600000002" };
    const { server, project } = await withOldEvents([
      ["ga4", row, "$pageview", "0"],
      ["ga4", other, "$pageview", "0"],
    ]);
    await using _ = server;
    expect(await project.records([row, other])).toMatchObject({ accepted: 0, duplicate: 2, made: 0 });
    // A line further down is a record of its own for the older version; the newer one has not seen it yet.
    expect(await project.records([other, row])).toMatchObject({ accepted: 2, duplicate: 0 });
    expect(await project.records([other, row])).toMatchObject({ accepted: 0, duplicate: 2 });
  }, 60_000);
});

describe("counts that are spilled to the disk", () => {
  test("continue", () => {
    using counts = new SpilledCounts(16);
    for (let round = 1; round <= 3; round++)
      for (let n = 0; n < 100; n++) expect(counts.add(`text ${n}`)).toBe(round);
  });
});

test("GA4: the rows of intraday tables are those of the daily table, also in one import", async () => {
  const project = await SampleProject.create();
  const row = (n: number, more: object) => ({
    event_name: "e",
    event_timestamp: `${1714557600000000 + n}`,
    user_pseudo_id: "d",
    ...more,
    event_params: [{ key: "n", value: { int_value: `${n}` } }],
  });
  // Two equal rows of one table are two events.
  const numbers = [1, 1, 2];
  mkdirSync(join(project.folder, "ga4"));
  const daily = { traffic_source: { source: "google" }, batch_event_index: "3" };
  project.write("ga4/events_intraday_20240501.json", getLines(numbers.map((n) => row(n, {}))));
  project.write("ga4/events_20240501-000.json", getLines(numbers.toReversed().map((n) => row(n, daily))));
  const folder = join(project.folder, "ga4");
  expect(await project.file(folder)).toMatchObject({ read: 6, accepted: 3, duplicate: 3 });
  expect(await project.file(folder)).toMatchObject({ read: 6, accepted: 0, duplicate: 6 });
}, 60_000);
