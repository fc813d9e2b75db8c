/** The queue of hash-key overrides: its limits, and when an answer waits for it. */

import { expect, test } from "bun:test";
import {
  type OverridesToStore,
  OverrideWriter,
} from "../../../src/flags/evaluation-context/override-writer.ts";

const overrides = (distinctIds: string[], hashKey = "anon"): OverridesToStore => ({
  projectId: 1,
  distinctIds,
  flagKeys: ["f"],
  hashKey,
  requestedMicros: 1,
});

/** A store that answers when it is let. */
function heldStore() {
  const stored: OverridesToStore[] = [];
  const held = Promise.withResolvers<void>();
  const writer = new OverrideWriter({
    store: async (sent) => {
      await held.promise;
      stored.push(sent);
    },
    onDiscarded: () => undefined,
  });
  return { writer, stored, release: held.resolve };
}

test("at most 10,000 IDs are queued; further requests of a queued one are joined to it", async () => {
  const { writer, stored, release } = heldStore();
  for (let number = 0; number < 10_000; number++)
    expect(writer.add(overrides([`user-${number}`]))).toBe(true);
  expect(writer.add(overrides(["one-more"]))).toBe(false);
  expect(writer.add(overrides(["user-5"], "later"))).toBe(true);
  expect(writer.queuedFor(1, "user-5")).toEqual(new Map([["f", "anon"]]));
  expect(writer.queuedFor(1, "one-more")).toBeUndefined();
  expect(writer.queuedFor(2, "user-5")).toBeUndefined();
  release();
  await writer.settle(60_000);
  expect(new Set(stored.map(({ distinctIds }) => distinctIds[0])).size).toBe(10_000);
  expect(writer.add(overrides(["one-more"]))).toBe(true);
});

test("of one ID at most 100 IDs are joined", async () => {
  const { writer, stored, release } = heldStore();
  for (let number = 0; number < 200; number++)
    writer.add(overrides(["user", `former-${number}`], `h-${number}`));
  release();
  await writer.settle(60_000);
  const { distinctIds, hashKey } = stored.at(-1)!;
  expect([distinctIds.length, distinctIds[0], hashKey]).toEqual([100, "user", "h-0"]);
});

test("a response waits until its override is stored, but not long", async () => {
  const { writer, stored, release } = heldStore();
  writer.add(overrides(["user"]));
  await writer.stored(1, "user");
  expect(stored).toEqual([]);
  const waiting = writer.stored(1, "user");
  release();
  await waiting;
  expect(stored).toHaveLength(1);
  await writer.stored(1, "user");
});

test("overrides that cannot be stored are passed on once, and those of another process are not", async () => {
  const shared: string[] = [];
  const released = Promise.withResolvers<void>();
  let isDown = true;
  const writer = new OverrideWriter({
    store: async () => {
      if (isDown) throw new Error("The engine is unavailable.");
    },
    onDiscarded: () => undefined,
    share: ({ distinctIds }) => {
      shared.push(distinctIds.join("+"));
      released.resolve();
    },
  });
  writer.add(overrides(["first"]));
  await released.promise;
  writer.add(overrides(["second"]));
  writer.add(overrides(["second"]));
  writer.add(overrides(["second", "former"]));
  writer.add(overrides(["from-another"]), true);
  expect(writer.queuedFor(1, "from-another")).toEqual(new Map([["f", "anon"]]));
  expect(shared).toEqual(["first", "second", "second+former"]);
  isDown = false;
  await writer.settle(60_000);
  writer.add(overrides(["third"]));
  await writer.settle(60_000);
  expect(shared).toHaveLength(3);
});

test("overrides that were not stored in time are passed on", async () => {
  const shared: OverridesToStore[] = [];
  const writer = new OverrideWriter({
    store: () => new Promise(() => undefined),
    onDiscarded: () => undefined,
    share: (queued) => shared.push(queued),
  });
  writer.add(overrides(["user"]));
  await writer.stored(1, "user");
  await writer.stored(1, "user");
  expect(shared.map(({ distinctIds }) => distinctIds)).toEqual([["user"]]);
});
