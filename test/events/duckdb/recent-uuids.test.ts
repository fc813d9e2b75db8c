/** What is known of stored uuids without asking DuckDB. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { RecentUuids } from "../../../src/events/duckdb/recent-uuids.ts";

const start = Date.UTC(2026, 0, 1);
const uuidAt = (time: number) => Bun.randomUUIDv7("hex", time);

test("nothing that was added is ever new, whatever its time and however much follows it", () => {
  const time = fc.oneof(
    fc.integer({ min: start - 1_000, max: start + 1_000 }),
    fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    fc.integer({ min: Date.now() + 3_600_000, max: Date.now() + 7_200_000 }),
  );
  const uuid = fc.oneof(
    time.map(uuidAt),
    fc.constant("ffffffff-ffff-7fff-bfff-ffffffffffff"),
    fc.noShrink(fc.integer()).map(() => crypto.randomUUID()),
  );
  const events = fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), uuid), { maxLength: 300, size: "max" });
  fc.assert(
    fc.property(events, fc.integer({ min: 1, max: 150 }), (events, limit) => {
      const recent = new RecentUuids(start, limit);
      for (const [index, [projectId, uuid]] of events.entries()) {
        recent.add(projectId, uuid);
        expect(events.slice(0, index + 1).filter(([project, one]) => recent.isNew(project, one))).toEqual([]);
      }
    }),
    { numRuns: 100 },
  );
});

test("a uuid that did not fit is not lost when capacity grows", () => {
  for (const probes of [1, 4, 16, 256]) {
    const recent = new RecentUuids(0, 200_000, probes);
    const uuids = Array.from({ length: 100_000 }, () => uuidAt(start));
    for (const uuid of uuids) recent.add(1, uuid);
    expect(uuids.filter((uuid) => recent.isNew(1, uuid))).toEqual([]);
    // With as many as usual there is a place for each.
    if (probes === 256) expect(recent.isNew(1, uuidAt(start))).toBe(true);
  }
});

test("another uuid, or one of another project, is new; other versions and earlier times are unknown", () => {
  const recent = new RecentUuids(start);
  const uuid = uuidAt(start + 5);
  recent.add(1, uuid);
  expect(recent.isNew(2, uuid)).toBe(true);
  expect(recent.isNew(1, uuidAt(start + 5))).toBe(true);
  expect(recent.isNew(1, uuidAt(start - 1))).toBe(false);
  expect(recent.isNew(1, crypto.randomUUID())).toBe(false);
});

test("above the limit the oldest are dropped, and their time is unknown", () => {
  const recent = new RecentUuids(0, 20_000);
  const uuids = Array.from({ length: 100_000 }, (_, n) => uuidAt(start + n));
  // Of a clock that is wrong by a year.
  const early = uuidAt(Date.now() + 366 * 86_400_000);
  for (const uuid of [early, ...uuids]) recent.add(1, uuid);
  expect([early, ...uuids].filter((uuid) => recent.isNew(1, uuid))).toEqual([]);
  const unknown = (n: number) => recent.isNew(1, uuidAt(start + n));
  expect([unknown(0), unknown(59_000), unknown(81_000), unknown(200_000)]).toEqual([
    false,
    false,
    true,
    true,
  ]);
});

test("very many of a future time make the present unknown", () => {
  const recent = new RecentUuids(0, 1_000);
  const later = Date.now() + 366 * 86_400_000;
  for (let n = 0; n < 5_000; n++) recent.add(1, uuidAt(later + n));
  expect(recent.isNew(1, uuidAt(Date.now()))).toBe(false);
  expect(recent.isNew(1, uuidAt(later + 5_000))).toBe(true);
});
