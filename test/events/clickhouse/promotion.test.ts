/** Properties that are asked for get a column in ClickHouse, by themselves. */

import { expect } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ClickHouseBackend } from "../../../src/engine/clickhouse-backend.ts";
import type { MaterializedProperty } from "../../../src/events/duckdb/property-columns.ts";
import { materializationRules } from "../../../src/events/materialized-columns.ts";
import { stringAt } from "../../../src/events/sql-dialect.ts";
import { parseClickHouseUrl } from "../../../src/lib/store-urls.ts";
import { openPersons } from "../../../src/persons/open.ts";
import { TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import { temporaryFolder, until } from "../../support/server.ts";

const test = testWithClickHouse("columns of properties in ClickHouse");

test("a frequently queried property gets a column, which is found again and dropped when disabled", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE flagkeep");
  const folder = temporaryFolder();
  const people = openPersons(join(folder, "people.sqlite"));
  const name = "it's \\ `odd`";
  let promoted: MaterializedProperty[] = [];
  const start = async (columnsMax: number) => {
    const backend = new ClickHouseBackend(
      parseClickHouseUrl(server.url("flagkeep"))!,
      people,
      { queryTimeoutMs: 1, columnsMax, rules: { ...materializationRules, rowsMin: 1 } },
      { onAway: () => undefined, onPromoted: (now) => (promoted = now) },
    );
    await backend.open();
    return backend;
  };
  const columns = () =>
    server.run(
      "SELECT comment FROM system.columns WHERE database = 'flagkeep' AND startsWith(name, 'property_')",
    );
  const ask = (backend: ClickHouseBackend) =>
    backend.run(async (store) => {
      const sql = stringAt(store.dialect, store.eventProperties, name);
      return [
        sql.startsWith("e.property_"),
        (await store.rows(`SELECT ${sql} FROM events e ORDER BY e.seq`)).flat(),
      ];
    }, {});
  const event = (seq: number, value: unknown) => ({
    seq,
    projectId: 1,
    uuid: Bun.randomUUIDv7(),
    event: "a",
    distinctId: "b",
    timeMicros: seq,
    receivedMicros: seq,
    historical: false,
    mode: "full" as const,
    hasGeneratedUuid: false,
    elementsChain: null,
    propertiesText: Buffer.from(JSON.stringify({ [name]: value })),
  });
  const first = await start(16);
  await first.events.load("realtime", 2, [event(1, "old"), event(2, 123456789012345680000)]);
  for (let times = 0; times < 4; times++)
    expect(await ask(first)).toEqual([false, ["old", "123456789012345680000"]]);
  await until(() => promoted.length === 1, "it is promoted");
  expect(promoted).toEqual([{ name, filled: 1 }]);
  await first.events.load("realtime", 3, [event(3, null)]);
  expect(await ask(first)).toEqual([true, ["old", "123456789012345680000", null]]);
  expect(await columns()).toEqual([[name]]);
  await first.close();
  const second = await start(16);
  expect(await ask(second)).toEqual([true, ["old", "123456789012345680000", null]]);
  await second.close();
  const third = await start(0);
  await until(async () => (await columns()).length === 0, "it is dropped");
  expect(await ask(third)).toEqual([false, ["old", "123456789012345680000", null]]);
  await third.close();
  people.$client.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);
