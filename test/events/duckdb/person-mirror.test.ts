/** The event store's copies of persons after deletions. */

import { expect, test } from "bun:test";
import { getLine } from "../../../src/journal/entry.ts";
import { changeRange } from "../../../src/persons/changes.ts";
import { deletionEntry } from "../../../src/persons/deletion.ts";
import { TestStores } from "../../support/event-store.ts";

const identify = { event: "$identify", distinctId: "b", properties: { $anon_distinct_id: "a" } };

async function deletePersonByDistinctId(stores: TestStores, distinctId: string): Promise<void> {
  const [[uuid] = []] = await stores.rows(
    `SELECT person_uuid::VARCHAR FROM person_distinct_id WHERE distinct_id = '${distinctId}'`,
  );
  const deletion = deletionEntry(1, { uuid: String(uuid), distinctId }, 1_000);
  const pipeline = stores.pipeline();
  pipeline.offer([await stores.segment("realtime", [{}], (line) => getLine(JSON.parse(line).seq, deletion))]);
  await pipeline.drain(60_000);
}

const owners = (stores: TestStores) =>
  stores.rows(
    `SELECT e.distinct_id, o.person_uuid IS NOT NULL FROM events e
     LEFT JOIN person_distinct_id o ON o.distinct_id = e.distinct_id AND o.project_id = e.project_id
     ORDER BY ALL`,
  );

test("ids of a deleted person lose their owner, and only those that send again get one", async () => {
  await using stores = await TestStores.open();
  await stores.load([{ distinctId: "a" }, identify]);
  await stores.mirror.follow();
  expect(await owners(stores)).toEqual([
    ["a", true],
    ["b", true],
  ]);
  await deletePersonByDistinctId(stores, "b");
  await stores.mirror.follow();
  expect(await owners(stores)).toEqual([
    ["a", false],
    ["b", false],
  ]);
  await stores.load([{ distinctId: "a" }]);
  await stores.mirror.follow();
  expect(await owners(stores)).toEqual([
    ["a", true],
    ["a", true],
    ["b", false],
  ]);
});

test("copies of a version that kept such ids are rebuilt once", async () => {
  await using stores = await TestStores.open();
  await stores.load([{ distinctId: "a" }, identify]);
  await stores.mirror.follow();
  await deletePersonByDistinctId(stores, "b");
  const leftovers = await stores.rows("SELECT count(*) FROM person_distinct_id WHERE project_id > 0");
  expect(leftovers).toEqual([[2n]]);
  // As the version before left it: the deletion is followed, and the ids are there.
  await stores.rows("DELETE FROM schema_migration WHERE version > 4");
  await stores.rows(`UPDATE mirror_cursor SET change_id = ${changeRange(stores.people).last}`);
  const { folder } = stores;
  stores.close();
  const again = await TestStores.open({ folder });
  expect(again.mirror.isCutOff).toBe(true);
  await again.mirror.refill();
  expect(await owners(again)).toEqual([
    ["a", false],
    ["b", false],
  ]);
  expect(again.mirror.isCutOff).toBe(false);
  again.close();
});
