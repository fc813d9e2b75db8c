import { rmSync } from "node:fs";
import { TestStores } from "../support/event-store.ts";
import {
  type EventStoreUnderTest,
  eventStoreConformance,
  type StoredRow,
} from "./event-store-conformance.ts";

function underTest(stores: TestStores): EventStoreUnderTest {
  return {
    store: stores.loader,
    async rows() {
      const rows = await stores.rows(
        `SELECT project_id, seq, uuid::VARCHAR, event, distinct_id, epoch_us(timestamp), epoch_us(received_at), historical,
           elements_chain, properties::VARCHAR
         FROM events WHERE project_id > 0 ORDER BY project_id, historical, seq`,
      );
      return rows.map(
        ([projectId, seq, uuid, event, distinctId, time, received, historical, elementsChain, properties]) =>
          ({
            projectId,
            uuid,
            event,
            distinctId,
            historical,
            elementsChain,
            seq: Number(seq),
            timeMicros: Number(time),
            receivedMicros: Number(received),
            properties: JSON.parse(properties as string),
          }) as StoredRow,
      );
    },
    async reopen() {
      stores.close();
      return underTest(await TestStores.open({ folder: stores.folder }));
    },
    async close() {
      stores.close();
      rmSync(stores.folder, { recursive: true, force: true });
    },
  };
}

eventStoreConformance("DuckDB", async () => underTest(await TestStores.open()));
