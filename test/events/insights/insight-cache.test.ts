/** What is kept of computed queries, and when it counts. */

import { expect, test } from "bun:test";
import { InsightCache } from "../../../src/events/insights/insight-cache.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";

const hour = 3_600_000;
const request = (query: JsonObject = { kind: "TrendsQuery" }, now = 10 * hour, timezone = "UTC") => ({
  projectId: 1,
  query,
  timezone,
  now,
});

function counting() {
  let times = 0;
  return { compute: async () => [{ count: ++times }], times: () => times };
}

test("an answer counts until data, hour or zone are others; whatever its age where nothing is to be computed", async () => {
  const cache = new InsightCache();
  const { compute, times } = counting();
  const ask = (of = request(), revision = "1") =>
    cache.answer(of, { revision, refresh: "blocking" }, compute);
  expect(cache.find(request())).toEqual({ results: null, computedAt: null, isCached: false });
  expect(await ask()).toEqual({ results: [{ count: 1 }], computedAt: 10 * hour, isCached: false });
  const later = request(undefined, 10 * hour + 1_000);
  expect(await ask(later)).toEqual({ results: [{ count: 1 }], computedAt: 10 * hour, isCached: true });
  for (const [of, revision] of [
    [later, "2"],
    [request(undefined, 11 * hour), "2"],
    [request(undefined, 11 * hour, "Europe/Berlin"), "2"],
    [request({ kind: "FunnelsQuery" }, 11 * hour), "2"],
    [{ ...request(undefined, 11 * hour), projectId: 2 }, "2"],
  ] as const) {
    const before = times();
    expect((await ask(of, revision)).isCached).toBe(false);
    expect(times()).toBe(before + 1);
  }
  const forced = await cache.answer(later, { revision: "2", refresh: "force_blocking" }, compute);
  expect(forced.isCached).toBe(false);
  expect(cache.find(request(undefined, 99 * hour))).toMatchObject({
    results: forced.results,
    isCached: true,
  });
  cache.clear();
  expect(cache.find(request()).results).toBeNull();
});

test("a failure and what is too large are not kept, and neither is more than a bounded part", async () => {
  const cache = new InsightCache();
  const keep = (name: string, length: number) =>
    cache.answer(request({ name }), { revision: "1", refresh: "blocking" }, async () => [
      { text: "x".repeat(length) },
    ]);
  await expect(
    cache.answer(request(), { revision: "1", refresh: "blocking" }, () => Promise.reject(new Error("no"))),
  ).rejects.toThrow("no");
  await keep("large", 3 * 1024 * 1024);
  expect(cache.find(request({ name: "large" })).isCached).toBe(false);
  for (let number = 0; number < 40; number++) await keep(`${number}`, 1024 * 1024);
  const cachedEntries = Array.from(
    { length: 40 },
    (_, number) => cache.find(request({ name: `${number}` })).isCached,
  );
  expect(cachedEntries.at(-1)).toBe(true);
  expect(cachedEntries.filter(Boolean).length).toBeLessThanOrEqual(16);
});
