import { expect, test } from "bun:test";
import { setNewest } from "../../src/lib/bounded-cache.ts";

test("a full map loses its oldest entry; an entry that is set again is the newest", () => {
  const map = new Map<string, number>();
  setNewest(map, "a", 1, 2);
  setNewest(map, "b", 1, 2);
  setNewest(map, "a", 2, 2);
  setNewest(map, "c", 1, 2);
  expect([...map]).toEqual([
    ["a", 2],
    ["c", 1],
  ]);
});
