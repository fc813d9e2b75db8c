/** Inserts of a node in a cluster: ClickHouse rejects those that arrive after their deadline. */

import { afterAll, beforeAll, expect } from "bun:test";
import type { InsertFence } from "../../../src/events/clickhouse/insert-fence.ts";
import { ClickHouseLoader } from "../../../src/events/clickhouse/loader.ts";
import { deduplicationWindow } from "../../../src/events/clickhouse/schema.ts";
import type { StorableEvent } from "../../../src/journal/entry.ts";
import { hasClickHouse, TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import { ClickHouseStores } from "../../support/clickhouse-stores.ts";
import { until } from "../../support/server.ts";

const test = testWithClickHouse("deadlines of inserts");
let server: TestClickHouse;

if (hasClickHouse) {
  beforeAll(async () => {
    server = await TestClickHouse.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());
}

function getEvents(count: number): StorableEvent[] {
  const timeMicros = Date.UTC(2026, 0, 1) * 1_000;
  return Array.from({ length: count }, (_, index) => ({
    kind: "event",
    seq: index + 1,
    projectId: 1,
    uuid: Bun.randomUUIDv7(),
    event: "seen",
    distinctId: "a",
    timeMicros,
    receivedMicros: timeMicros,
    historical: false,
    mode: "full",
    hasGeneratedUuid: false,
    elementsChain: null,
    propertiesText: Buffer.from("{}"),
  })) as unknown as StorableEvent[];
}

/** A lease as its holder knows it. */
class Fence implements InsertFence {
  previousEnd = 0;
  constructor(public end: number) {}
  until(): number {
    return this.end;
  }
}

const getCount = async (stores: ClickHouseStores) => (await stores.rows("SELECT count() FROM events"))[0]![0];
const isHeld = async () => (await server.inserts()).isHolding;

test("an insert that arrives after its deadline stores nothing, and is done in smaller ones", async () => {
  await using stores = await ClickHouseStores.open(server);
  const fence = new Fence(performance.now() + 4_000);
  const loader = new ClickHouseLoader(stores.store, () => undefined, fence);
  await server.holdInsert("before", { isUnnamed: true });
  const loading = loader.load("realtime", 3_000, getEvents(3_000));
  await until(isHeld, "the insert is held");
  await until(() => performance.now() > fence.end, "its lease has ended");
  const before = await server.inserts();
  await server.release();
  await until(async () => (await server.inserts()).refused > before.refused, "it is refused");
  expect(await getCount(stores)).toBe(0);
  fence.end = Number.MAX_SAFE_INTEGER / 1_000_000;
  await loading;
  expect(await getCount(stores)).toBe(3_000);
  expect((await server.inserts()).inserted - before.inserted).toBe(2);
}, 30_000);

test("nothing is inserted while the lease is not renewed", async () => {
  await using stores = await ClickHouseStores.open(server);
  const fence = new Fence(performance.now());
  const loader = new ClickHouseLoader(stores.store, () => undefined, fence);
  const before = await server.inserts();
  const loading = loader.load("realtime", 10, getEvents(10));
  const end = performance.now() + 1_000;
  while (performance.now() < end) {
    expect((await server.inserts()).inserted).toBe(before.inserted);
    await Bun.sleep(50);
  }
  fence.end = performance.now() + 30_000;
  await loading;
  expect(await getCount(stores)).toBe(10);
}, 30_000);

test("a load started by another node continues when its inserts cannot be stored any more", async () => {
  await using stores = await ClickHouseStores.open(server);
  const fence = new Fence(performance.now() + 30_000);
  await stores.store.open();
  stores.store.outside.start({ lane: "realtime", last: 10 });
  fence.previousEnd = performance.now() + 1_500;
  const loader = new ClickHouseLoader(stores.store, () => undefined, fence);
  await loader.load("realtime", 10, getEvents(10));
  expect(performance.now()).toBeGreaterThan(fence.previousEnd);
  expect(await getCount(stores)).toBe(10);
}, 30_000);

test("tables of earlier versions remember more names of inserts from the next start", async () => {
  const stores = await ClickHouseStores.open(server);
  await stores.store.open();
  const setting = "non_replicated_deduplication_window";
  await stores.store.connection.command(`ALTER TABLE events MODIFY SETTING ${setting} = 1000`);
  await using again = await stores.reopen();
  await again.store.open();
  const [[full] = []] = await again.rows(
    `SELECT engine_full FROM system.tables WHERE database = '${again.database}' AND name = 'events'`,
  );
  expect(full).toContain(`${setting} = ${deduplicationWindow}`);
}, 30_000);
