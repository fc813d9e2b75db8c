import { expect, test } from "bun:test";
import type { ImportClient } from "../../src/import/import-client.ts";
import { RecentUuids } from "../../src/import/recent.ts";

const getUuid = (n: number) => `01900000-0000-7000-8000-${String(n).padStart(12, "0")}`;

test("twice 200,000 uuids at most are held, the older ones until their events are loaded", async () => {
  const loads: number[] = [];
  let sent = 0;
  const target = {
    lastSeq: async () => sent,
    waitUntilLoaded: async (seq: number) => void loads.push(seq),
  } as unknown as ImportClient;
  const recent = new RecentUuids(target);
  const fill = (from: number) => {
    for (let n = from; !recent.isFull; n++) expect(recent.add(getUuid(n))).toBe(true);
    sent = from + 200_000;
    return recent.tidy();
  };
  await fill(0);
  expect(recent.add(getUuid(0))).toBe(false);
  await fill(200_000);
  // Those that went are in the store, which is asked about them.
  expect(recent.add(getUuid(1))).toBe(true);
  expect(recent.add(getUuid(200_000))).toBe(false);
  expect(loads).toEqual([0, 200_000]);
});
