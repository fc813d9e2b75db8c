import { afterAll, beforeAll } from "bun:test";
import type { InsertFence } from "../../../src/events/clickhouse/insert-fence.ts";
import { ClickHouseLoader } from "../../../src/events/clickhouse/loader.ts";
import { hasClickHouse, TestClickHouse } from "../../support/clickhouse.ts";
import { ClickHouseStores } from "../../support/clickhouse-stores.ts";
import {
  type EventStoreUnderTest,
  eventStoreConformance,
  type StoredRow,
} from "../event-store-conformance.ts";

let server: TestClickHouse;

/** In the order of the question below, without the properties. */
const columns = ["projectId", "seq", "uuid", "event", "distinctId", "timeMicros", "receivedMicros"].concat([
  "historical",
  "elementsChain",
]);

function underTest(stores: ClickHouseStores, fence?: InsertFence): EventStoreUnderTest {
  return {
    store: fence === undefined ? stores.loader : new ClickHouseLoader(stores.store, () => undefined, fence),
    async rows() {
      const rows = await stores.rows(
        `SELECT project_id, seq, uuid, event, distinct_id, time, received, historical, elements_chain, properties_text
         FROM events ORDER BY project_id, historical, seq`,
      );
      return rows.map(([...values]) => {
        const properties = JSON.parse(values.pop() as string);
        return { ...Object.fromEntries(values.map((value, at) => [columns[at], value])), properties };
      }) as StoredRow[];
    },
    reopen: async () => underTest(await stores.reopen(), fence),
    close: () => stores[Symbol.asyncDispose](),
  };
}

if (hasClickHouse) {
  beforeAll(async () => {
    server = await TestClickHouse.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  eventStoreConformance("ClickHouse", async () => underTest(await ClickHouseStores.open(server)));
  const fence = { until: () => performance.now() + 30_000, previousEnd: 0 };
  eventStoreConformance("ClickHouse whose inserts have deadlines", async () =>
    underTest(await ClickHouseStores.open(server), fence),
  );
} else {
  console.log("SKIPPED ClickHouse is an event store: the engine is not installed; run `make clickhouse`");
}
