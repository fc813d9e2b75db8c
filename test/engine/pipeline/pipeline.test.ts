import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SegmentBatch } from "../../../src/journal/reader.ts";
import { personsPage } from "../../../src/persons/reader.ts";
import { TestStores } from "../../support/event-store.ts";
import { until } from "../../support/server.ts";

const uuids = (rows: unknown[][]) => rows.map(([uuid]) => uuid);
const stored = async (stores: TestStores, order = "seq") =>
  uuids(await stores.rows(`SELECT uuid::VARCHAR FROM events ORDER BY historical, ${order}`));

describe("duplicates", () => {
  const v4 = "2a73edce-571f-45c9-96fc-e220f7ea4547";
  const v7 = "01a1fb87-7da1-73f7-80e7-91982e7a2fa3";

  for (const uuid of [v4, v7]) {
    test(`in one segment, in a later one, across lanes, after opening again: once (${uuid[14]})`, async () => {
      const stores = await TestStores.open();
      const event = (value: string) => ({ uuid, properties: { $set: { value } } });
      await stores.load([event("first"), event("again")]);
      await stores.load([event("later")]);
      await stores.load([event("historical")], "historical");
      stores.close();
      await using again = await TestStores.open({ folder: stores.folder });
      const pipeline = again.pipeline();
      const segment = await again.segment("realtime", [{}, {}, {}, {}, event("restarted")]);
      pipeline.offer([segment]);
      await pipeline.drain(10_000);
      expect((await stored(again)).filter((one) => one === uuid)).toEqual([uuid]);
      const [person] = personsPage(again.people, 1);
      expect(person!.properties.value).toBe("first");
    });
  }

  test("the same uuid in another project is another event", async () => {
    await using stores = await TestStores.open();
    await stores.load([{ uuid: v4 }, { uuid: v4, project: 2 }]);
    expect(await stored(stores)).toEqual([v4, v4]);
  });

  test("they are counted, once", async () => {
    await using stores = await TestStores.open();
    await stores.load([{ uuid: v4 }, { uuid: v4 }, { uuid: v4 }]);
    expect(stores.applied).toMatchObject([{ events: 1, duplicates: 2 }]);
    expect(stores.people.$client.query("SELECT identified, duplicates FROM usage_day").values()).toEqual([
      [1, 2],
    ]);
  });
});

describe("a crash between the two stores", () => {
  test("identity is not applied again and no event is missing", async () => {
    const stores = await TestStores.open();
    const segment = await stores.segment("realtime", [
      { distinctId: "a", properties: { $set: { n: 1 } } },
      { distinctId: "b" },
    ]);
    // The identity store has committed, the event store has not.
    const load = stores.loader.load.bind(stores.loader);
    let failed: unknown;
    stores.loader.load = () => Promise.reject(new Error("made by the test"));
    const pipeline = stores.pipeline();
    (pipeline as unknown as { callbacks: { onFatal: (error: unknown) => void } }).callbacks.onFatal = (
      error,
    ) => {
      failed = error;
    };
    pipeline.offer([segment]);
    while (failed === undefined) await Bun.sleep(5);
    stores.loader.load = load;
    expect(stores.store.cursor("realtime")).toBe(2);
    expect(stores.loader.cursor("realtime")).toBe(0);
    stores.close();

    await using again = await TestStores.open({ folder: stores.folder });
    const second = again.pipeline();
    second.offer([segment]);
    await second.drain(10_000);
    expect(await stored(again)).toHaveLength(2);
    expect(again.people.$client.query("SELECT identified FROM usage_day").values()).toEqual([[2]]);
  });

  test("a loaded segment is skipped and its file is deleted at the next checkpoint", async () => {
    await using stores = await TestStores.open();
    const segment = await stores.segment("realtime", [{}]);
    const first = stores.pipeline();
    first.offer([segment]);
    await first.drain(10_000);
    expect(existsSync(segment.path)).toBe(false);
    writeFileSync(segment.path, "");
    const second = stores.pipeline();
    second.offer([segment]);
    await second.drain(10_000);
    expect(await stored(stores)).toHaveLength(1);
    expect(existsSync(segment.path)).toBe(false);
    expect(stores.released).toContainEqual(["realtime", 1]);
  });
});

describe("order and priority", () => {
  test("the historical lane keeps its order over segments; realtime comes first", async () => {
    await using stores = await TestStores.open();
    const sent: string[] = [];
    const historical = [];
    for (let i = 0; i < 5; i++) {
      const events = Array.from({ length: 20 }, () => ({
        uuid: crypto.randomUUID(),
        time: Math.floor(Math.random() * 1e12),
      }));
      sent.push(...events.map(({ uuid }) => uuid));
      historical.push(await stores.segment("historical", events));
    }
    const live = await stores.segment("realtime", [{ event: "live" }]);
    const pipeline = stores.pipeline();
    pipeline.offer(historical);
    pipeline.offer([live]);
    await pipeline.drain(10_000);
    expect(stores.applied.map(({ lane }) => lane).indexOf("realtime")).toBeLessThanOrEqual(1);
    const rows = await stores.rows("SELECT uuid::VARCHAR FROM events WHERE historical ORDER BY seq");
    expect(uuids(rows)).toEqual(sent);
  });

  test("historical batches are stored together until a realtime event arrives, which waits for one batch", async () => {
    await using stores = await TestStores.open();
    const segments: SegmentBatch[] = [];
    for (let i = 0; i < 5; i++)
      segments.push(await stores.segment("historical", [{ distinctId: `id-${i}` }]));
    const live = await stores.segment("realtime", [{ distinctId: "live" }]);
    const pipeline = stores.pipeline({ portionBytes: 2 * segments[0]!.bytes });
    const third = segments[2]!;
    const text = third.text.bind(third);
    third.text = () => {
      pipeline.offer([live]);
      return text();
    };
    pipeline.offer(segments);
    await pipeline.drain(10_000);
    expect(stores.applied.map(({ lane, lastSeq }) => [lane, lastSeq])).toEqual([
      ["historical", 4],
      ["realtime", 1],
      ["historical", 5],
    ]);
    expect(await stores.rows("SELECT count(*) FROM events")).toEqual([[6n]]);
  });
});

describe("a large historical step waits for more segments, which it includes", () => {
  /** As long as the test may take. */
  const bulkPauseMs = 120_000;
  const large = () => Array.from({ length: 9 }, () => ({ properties: { text: "x".repeat(512 * 1024) } }));

  /** A pipeline that has staged a large segment and waits. */
  async function waiting(stores: TestStores, lane: "realtime" | "historical" = "historical") {
    const staged = Promise.withResolvers<void>();
    const stage = stores.loader.stage.bind(stores.loader);
    stores.loader.stage = (events) => stage(events).finally(staged.resolve);
    const pipeline = stores.pipeline({ bulkPauseMs });
    pipeline.offer([await stores.segment(lane, large())]);
    await staged.promise;
    // All that is done without a timer.
    await Bun.sleep(0);
    return pipeline;
  }

  const steps = (stores: TestStores) => stores.applied.map(({ lane, lastSeq }) => [lane, lastSeq]);

  test("until a user asks for it", async () => {
    await using stores = await TestStores.open();
    const pipeline = await waiting(stores);
    for (const event of ["one more", "another"]) {
      pipeline.offer([await stores.segment("historical", [{ event }])]);
      await until(() => pipeline.lag().historical.segments === 0, "it is taken");
    }
    expect(steps(stores)).toEqual([]);
    await until(() => {
      pipeline.hurry();
      return stores.applied.length > 0;
    }, "it is stored");
    await pipeline.settle();
    expect(steps(stores)).toEqual([["historical", 11]]);
  });

  test("until a realtime event arrives", async () => {
    await using stores = await TestStores.open();
    const pipeline = await waiting(stores);
    pipeline.offer([await stores.segment("realtime", [{}])]);
    await pipeline.settle();
    expect(steps(stores)).toEqual([
      ["historical", 9],
      ["realtime", 1],
    ]);
  });

  test("until it is stopped", async () => {
    await using stores = await TestStores.open();
    const pipeline = await waiting(stores);
    await pipeline.drain(10_000);
    expect(steps(stores)).toEqual([["historical", 9]]);
  });

  test("live events do not wait, nor does history when it is little", async () => {
    await using stores = await TestStores.open();
    const pipeline = await waiting(stores, "realtime");
    await pipeline.settle();
    pipeline.offer([await stores.segment("historical", [{}])]);
    await pipeline.settle();
    expect(steps(stores)).toEqual([
      ["realtime", 9],
      ["historical", 1],
    ]);
  });
});

test("as many events as the store likes best are loaded together, wherever that ends; everything once", async () => {
  await using stores = await TestStores.open();
  Object.assign(stores.loader, { eventsPerLoad: 5 });
  const created = Array.from({ length: 23 }, (_, n) => ({
    uuid: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
    properties: { $set: { [`p${n}`]: n } },
  }));
  const broken = { event: "broken" };
  const events = [
    ...created.slice(0, 12),
    created[1]!,
    broken,
    ...created.slice(10, 20),
    broken,
    ...created.slice(19),
  ];
  const segments = [];
  for (let at = 0; at < events.length; at += 8)
    segments.push(
      await stores.segment("realtime", events.slice(at, at + 8), (lines) =>
        lines.replace('"broken","', '"broken",'),
      ),
    );
  const pipeline = stores.pipeline();
  pipeline.offer(segments);
  await pipeline.drain(30_000);
  expect(await stored(stores)).toEqual(created.map(({ uuid }) => uuid));
  expect(stores.applied.map(({ events }) => events)).toEqual([5, 5, 5, 5, 3]);
  expect(stores.applied.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(4);
  const [person] = personsPage(stores.people, 1);
  expect(Object.keys(person!.properties).filter((key) => /^p\d+$/.test(key))).toHaveLength(23);
  const rejected = readFileSync(join(stores.folder, "quarantine", "refused-realtime.ndjson"), "utf8");
  expect(rejected.trim().split("\n")).toHaveLength(2);
  expect(stores.released.at(-1)).toEqual(["realtime", events.length]);
});

test("when the time for loading is over, a step ends after its current batch; the rest is loaded later", async () => {
  await using stores = await TestStores.open();
  const { loader } = stores;
  const pipeline = stores.pipeline({ portionBytes: 1 });
  let stopping: Promise<void> | undefined;
  const stage = loader.stage.bind(loader);
  loader.stage = async (events) => {
    await stage(events);
    stopping ??= pipeline.drain(0);
    // Timers come in their order.
    await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const segments = [];
  for (const event of ["first", "second", "third"])
    segments.push(await stores.segment("realtime", [{ event }]));
  pipeline.offer(segments);
  await pipeline.settle();
  await stopping;
  const names = async () => uuids(await stores.rows("SELECT event FROM events ORDER BY seq"));
  expect(await names()).toEqual(["first"]);
  const later = stores.pipeline();
  later.offer(segments);
  await later.drain(10_000);
  expect(await names()).toEqual(["first", "second", "third"]);
});

for (const failing of ["stage", "load"] as const) {
  test(`when ${failing} fails within a step, the part that fits into memory is rebuilt without staging; everything is stored once`, async () => {
    await using stores = await TestStores.open();
    Object.assign(stores.loader, { eventsPerLoad: 5 });
    const staged: number[] = [];
    const { loader } = stores;
    const stage = loader.stage.bind(loader);
    loader.stage = async (events) => {
      staged.push(events.length);
      // What DuckDB says to the second of them.
      await stage(failing === "stage" && staged.length === 2 ? [null as never] : events);
    };
    const load = loader.load.bind(loader);
    let loads = 0;
    loader.load = (lane, last, events) =>
      load(lane, last, failing === "load" && loads++ === 0 ? [null as never] : events);
    const created = Array.from({ length: 12 }, (_, n) => ({
      uuid: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
      properties: { $set: { [`p${n}`]: n } },
    }));
    const pipeline = stores.pipeline({ portionBytes: 1, stepBytes: { held: 1, staged: 32e6 } });
    pipeline.offer([
      await stores.segment("realtime", created.slice(0, failing === "stage" ? 2 : 5)),
      await stores.segment("realtime", created.slice(failing === "stage" ? 2 : 5)),
    ]);
    await pipeline.drain(30_000);
    expect(await stored(stores)).toEqual(created.map(({ uuid }) => uuid));
    expect(stores.applied.map(({ events }) => events)).toEqual(failing === "stage" ? [2, 5, 5] : [5, 5, 2]);
    // The first attempt, none of the second, which has one segment, and those after it.
    expect(staged).toEqual(failing === "stage" ? [2, 3, 5, 5] : [5, 5, 2]);
    expect(stores.applied.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(0);
    const [person] = personsPage(stores.people, 1);
    expect(Object.keys(person!.properties).filter((key) => /^p\d+$/.test(key))).toHaveLength(12);
  });
}

test("an invalid line is quarantined and logged; the others are stored", async () => {
  await using stores = await TestStores.open();
  const segment = await stores.segment(
    "realtime",
    [{ event: "before" }, { event: "broken" }, { uuid: "no-uuid" }, { event: "spoilt" }, { event: "after" }],
    (lines) =>
      lines.replace('"broken","', '"broken",').replace(/("spoilt".*"properties":){.*}}/, '$1{"a":x}}'),
  );
  const pipeline = stores.pipeline();
  pipeline.offer([segment]);
  await pipeline.drain(10_000);
  expect(uuids(await stores.rows("SELECT event FROM events ORDER BY seq"))).toEqual(["before", "after"]);
  expect(stores.corruption).toHaveLength(2);
  const rejected = readFileSync(join(stores.folder, "quarantine", "refused-realtime.ndjson"), "utf8");
  expect(rejected.trim().split("\n")).toHaveLength(3);
  expect(rejected).toContain("no-uuid");
  expect(rejected).toContain('"properties":{"a":x}}\n');
});

test("texts of older versions that DuckDB does not read are repaired", async () => {
  await using stores = await TestStores.open();
  await stores.load([{ distinctId: "a\u0000b", properties: { a: "\ud800", $set: { b: "x\udc00" } } }]);
  await stores.mirror.follow();
  expect(
    await stores.rows("SELECT distinct_id, properties->>'a', properties->'/$set'->>'b' FROM events"),
  ).toEqual([["a\ufffdb", "\ufffd", "x\ufffd"]]);
  expect(await stores.rows("SELECT properties->>'b' FROM person")).toEqual([["x\ufffd"]]);
});

test("events of a torn segment before the tear are loaded, and the corruption is logged", async () => {
  await using stores = await TestStores.open();
  const segment = await stores.segment("realtime", [{ event: "whole" }]);
  const bytes = readFileSync(segment.path);
  writeFileSync(segment.path, Buffer.concat([bytes, Buffer.from('{"seq":2,"project_id":1,"uu')]));
  const pipeline = stores.pipeline();
  pipeline.offer([segment]);
  await pipeline.drain(10_000);
  expect(uuids(await stores.rows("SELECT event FROM events"))).toEqual(["whole"]);
});

describe("a disk that is short", () => {
  const MiB = 1024 * 1024;
  /** Without the filler rows of long events. */
  const retained = async (stores: TestStores) =>
    uuids(await stores.rows("SELECT uuid::VARCHAR FROM events WHERE project_id > 0 ORDER BY seq"));
  /** Half a mebibyte each. */
  const large = (n: number) => ({
    uuid: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
    properties: { text: "x".repeat(MiB / 2), $set: { [`p${n}`]: n } },
  });

  test("a segment is loaded in parts, each written into the file before the next; everything once", async () => {
    await using stores = await TestStores.open();
    const checkpoints: number[] = [];
    const checkpoint = stores.loader.checkpoint.bind(stores.loader);
    stores.loader.checkpoint = () => {
      checkpoints.push(stores.loader.cursor("realtime"));
      return checkpoint();
    };
    // Room for about a mebibyte of the journal.
    const pipeline = stores.pipeline({ space: async () => ({ freeBytes: 13 * MiB, totalBytes: 133 * MiB }) });
    const events = Array.from({ length: 12 }, (_, n) => large(n));
    pipeline.offer([await stores.segment("realtime", [...events, events[0]!])]);
    await pipeline.drain(30_000);
    expect(await retained(stores)).toEqual(events.map(({ uuid }) => uuid));
    expect(checkpoints.length).toBeGreaterThan(4);
    expect(stores.applied.reduce((sum, { events }) => sum + events, 0)).toBe(12);
    expect(stores.applied.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(1);
    const [person] = personsPage(stores.people, 1);
    expect(Object.keys(person!.properties).filter((key) => /^p\d+$/.test(key))).toHaveLength(12);
    expect(stores.released.at(-1)).toEqual(["realtime", 13]);
  }, 60_000);

  test("without disk space nothing is loaded or written; it is logged, and loading continues automatically", async () => {
    await using stores = await TestStores.open();
    let freeBytes = 1 * MiB;
    const pipeline = stores.pipeline({ space: async () => ({ freeBytes, totalBytes: 133 * MiB }) });
    pipeline.offer([await stores.segment("realtime", [large(1)])]);
    await pipeline.settle();
    expect(stores.loader.cursor("realtime")).toBe(0);
    expect(stores.pauses).toEqual([{ freeBytes, neededBytes: expect.any(Number) }]);
    // What comes meanwhile waits as well.
    pipeline.offer([await stores.segment("historical", [large(2)])]);
    await pipeline.settle();
    expect(stores.loader.cursor("historical")).toBe(0);
    freeBytes = 100 * MiB;
    while (stores.loader.cursor("historical") === 0) await Bun.sleep(20);
    await pipeline.drain(10_000);
    expect(await retained(stores)).toHaveLength(2);
    expect(stores.pauses.at(-1)).toBeNull();
  }, 30_000);
});
