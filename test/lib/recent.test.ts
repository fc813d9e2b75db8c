/** What is kept is what was asked for lately, within the bytes that were given. */

import { expect, test } from "bun:test";
import { BoundedCache } from "../../src/lib/bounded-cache.ts";

const owner = {};
const other = {};

test("an entry belongs to its owner", () => {
  const recent = new BoundedCache<object, string>(100_000, () => 0);
  recent.set(owner, "key", "value");
  expect(recent.get(owner, "key")).toBe("value");
  expect(recent.get(owner, "another key")).toBeUndefined();
  expect(recent.get(other, "key")).toBeUndefined();
  recent.set(owner, "key", "newer value");
  expect(recent.get(owner, "key")).toBe("newer value");
});

test("used entries stay, the rest is dropped", () => {
  const recent = new BoundedCache<object, number>(100_000, () => 800);
  recent.set(owner, "once", 1);
  recent.set(other, "often", 2);
  for (let i = 0; i < 1_000; i++) {
    recent.set(owner, `key ${i}`, i);
    expect(recent.get(other, "often")).toBe(2);
  }
  expect(recent.get(owner, "once")).toBeUndefined();
  expect(recent.get(owner, "key 0")).toBeUndefined();
  expect(recent.get(owner, "key 999")).toBe(999);
  const retained = Array.from({ length: 1_000 }, (_, i) => recent.get(owner, `key ${i}`)).filter(
    Boolean,
  ).length;
  expect(retained).toBeGreaterThan(40);
  expect(retained).toBeLessThanOrEqual(100);
});

test("one entry larger than all is kept until the next", () => {
  const recent = new BoundedCache<object, string>(1_000, (key) => key.length);
  const long = "x".repeat(5_000);
  recent.set(owner, long, "long");
  expect(recent.get(owner, long)).toBe("long");
});
