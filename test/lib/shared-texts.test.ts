import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { intern } from "../../src/lib/bounded-cache.ts";

/** A text of its own each time. */
const created = (value: unknown) => Buffer.from(JSON.stringify(value)).toString();

test("the interned text equals the given text", () => {
  for (let round = 0; round < 3; round++)
    for (let value = 0; value < 20_000; value++) expect(intern(created(value))).toBe(created(value));
  const long = "x".repeat(1_000);
  expect(intern(long)).toBe(long);
});

test("equal texts share memory, and unused ones are dropped", () => {
  const strings = () => {
    Bun.gc(true);
    return heapStats().objectTypeCounts.string ?? 0;
  };
  const before = strings();
  const retained = Array.from({ length: 100_000 }, (_, index) => intern(created(`value ${index % 10}`)));
  expect(strings() - before).toBeLessThan(1_000);
  expect(retained).toHaveLength(100_000);
  for (let value = 0; value < 100_000; value++) intern(created(`only ${value}`));
  // The texts and little else: as many as two generations have.
  expect(strings() - before).toBeLessThan(2 * 8_192 + 1_000);
});
