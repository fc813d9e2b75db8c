/** UUIDs that sort in the order in which they were created. */

import { expect, test } from "bun:test";
import { orderedUuid } from "../../src/lib/ids.ts";

test("ids of one millisecond sort in their order, although ids for other times are created in between", () => {
  const time = new Date("2026-03-01T12:00:00Z");
  const other = new Date("2026-03-02T12:00:00Z");
  const ids = Array.from({ length: 10_000 }, () => {
    orderedUuid(other);
    return orderedUuid(time);
  });
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.every((id) => /^019ca945-0a00-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/.test(id))).toBe(true);
  expect(orderedUuid(other) > ids.at(-1)!).toBe(true);
});
