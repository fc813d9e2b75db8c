/** Opening the event store in ClickHouse: whose events it holds. */

import { expect } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ClickHouseStore, type ClickHouseStoreOptions } from "../../../src/events/clickhouse/store.ts";
import { parseClickHouseUrl } from "../../../src/lib/store-urls.ts";
import { ExternalEvents } from "../../../src/persons/external-events.ts";
import { openPersons } from "../../../src/persons/open.ts";
import { TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import { temporaryFolder } from "../../support/server.ts";

const test = testWithClickHouse("the event store in ClickHouse");

test("a server's name is stored once a successor has it too", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE one");
  const address = parseClickHouseUrl(server.url("one"))!;
  const folder = temporaryFolder();
  /** One of several nodes, which has nothing but what is everybody's. */
  const opened = async (name: string, options: ClickHouseStoreOptions) => {
    const people = openPersons(join(folder, name));
    const store = new ClickHouseStore(address, new ExternalEvents(people), options);
    try {
      await store.open();
    } finally {
      await store.close();
      people.$client.close();
    }
  };
  const dies = async () => {
    throw new Error("the process ends");
  };
  await expect(opened("first.sqlite", { settle: dies })).rejects.toThrow("the process ends");
  await opened("second.sqlite", { settle: async () => undefined });
  await expect(opened("third.sqlite", {})).rejects.toThrow("the events of another data directory");
  rmSync(folder, { recursive: true });
});
