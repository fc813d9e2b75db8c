/** Events of many megabytes: more of them than DuckDB has memory for, and every way of reading them. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ExportPosition, exportPage } from "../../src/events/export/page.ts";
import { listEvents } from "../../src/events/list.ts";
import { SqlitePersonReader } from "../../src/persons/sqlite-person-reader.ts";
import { TestStores } from "../support/event-store.ts";

const count = 100;
const bytes = 2_000_000;
let stores: TestStores;
beforeAll(async () => {
  stores = await TestStores.open({ memoryLimitBytes: 160 * 1024 * 1024 });
  const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(3_000))).toString("base64");
  const long = (index: number) => `${index}:${noise.repeat(bytes / noise.length)}`;
  for (let index = 0; index < count; index++) {
    const properties = { long: long(index), $set: { index, long: noise } };
    await stores.load([
      { event: "long", distinctId: `d${index}`, properties, time: Date.UTC(2026, 0, 1) + index },
      { event: "short", distinctId: `d${index}`, time: Date.UTC(2026, 0, 1) + index },
    ]);
  }
  // An id and a name of the same length.
  await stores.load([{ event: long(1), distinctId: long(2), time: Date.UTC(2026, 0, 2) }]);
  await stores.mirror.follow();
}, 120_000);
afterAll(async () => await stores[Symbol.asyncDispose]());

test("they are written to the file and can be computed with, within the limit", async () => {
  expect(await stores.loader.checkpoint()).toBe(true);
  expect(
    await stores.rows(
      `SELECT count(*)::INT, sum((properties->'/$set'->>'index')::INT)::INT, min(length(properties->>'long'))
       FROM events WHERE project_id = 1 AND event = 'long'`,
    ),
  ).toEqual([[count, (count * (count - 1)) / 2, expect.any(BigInt)]]);
  const [[length]] = (await stores.rows(
    "SELECT sum(length(properties::VARCHAR))::DOUBLE FROM events WHERE project_id = 1",
  )) as [[number]];
  expect(length).toBeGreaterThan(count * bytes);
  expect(await stores.rows("SELECT count(*)::INT FROM person_distinct_id WHERE project_id = 1")).toEqual([
    [count + 1],
  ]);
});

test("a list of them has shorter pages, and none is missing", async () => {
  for (const limit of [100, 1_000]) {
    const names: string[] = [];
    let from: Parameters<typeof listEvents>[1]["from"];
    let pages = 0;
    do {
      const page = await stores.ask((store) =>
        listEvents(store, { projectId: 1, order: "-timestamp", limit, from }),
      );
      names.push(...page.events.map(({ event }) => event.slice(0, 10)));
      expect(page.events.length).toBeLessThanOrEqual(limit);
      const length = page.events.reduce((sum, { properties }) => sum + properties.length, 0);
      expect(length).toBeLessThan(32 * 1024 * 1024 + bytes * 2);
      from = page.next;
      pages += 1;
    } while (from !== undefined);
    expect(names).toHaveLength(2 * count + 1);
    expect(names.filter((name) => name === "long")).toHaveLength(count);
    expect(pages).toBeGreaterThan(4);
  }
}, 60_000);

test("an export reads them in order, a few at a time", async () => {
  const seqs: unknown[] = [];
  let after: ExportPosition | undefined;
  do {
    const page = await stores.ask((store) =>
      exportPage(
        {
          store,
          persons: new SqlitePersonReader(stores.people),
          loadedSeqs: { realtime: 2 * count + 1, historical: 0 },
        },
        { projectId: 1, subject: "events", after },
      ),
    );
    const length = page.rows.reduce((sum, row) => sum + String(row[5]).length, 0);
    expect(length).toBeLessThan(4 * bytes + 8 * 1024 * 1024);
    seqs.push(...page.rows.map((row) => row[8]));
    after = page.next;
  } while (after !== undefined);
  expect(seqs).toEqual(Array.from({ length: 2 * count + 1 }, (_, index) => index + 1));
}, 60_000);
