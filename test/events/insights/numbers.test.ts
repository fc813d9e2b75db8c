/** Numbers in questions about events: one value, however they are written. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import { exactNumber } from "../../../src/lib/json/exact.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { TestStores } from "../../support/event-store.ts";

const now = Date.UTC(2026, 10, 21, 12, 30);

describe("numbers", () => {
  let written: TestStores;
  beforeAll(async () => {
    written = await TestStores.open();
    const values = [
      "12",
      "12.0",
      "1.2e1",
      '"12"',
      '"12.0"',
      "12.5",
      '"nan"',
      '"Infinity"',
      '"1_000"',
      '" 3 "',
    ];
    await written.load(
      values.map((text, index) => ({
        distinctId: String(index),
        time: now,
        properties: { paid: text.startsWith('"') ? JSON.parse(text) : exactNumber(text) },
      })),
    );
  });
  afterAll(() => written[Symbol.asyncDispose]());

  async function ask(query: JsonObject): Promise<JsonObject[]> {
    const request = {
      projectId: 1,
      timezone: "UTC",
      now,
      query: { kind: "TrendsQuery", dateRange: { date_from: "-0d" }, ...query },
    };
    return (await written.ask((store) => computeInsight(store, request))) as JsonObject[];
  }

  test("are one value of a breakdown however they are written; texts stay what they are", async () => {
    const results = await ask({ series: [{}], breakdownFilter: { breakdown: "paid" } });
    const counts = Object.fromEntries(results.map(({ label, count }) => [label, count]));
    expect(counts).toEqual({
      "12": 4,
      "12.0": 1,
      "12.5": 1,
      nan: 1,
      Infinity: 1,
      "1_000": 1,
      " 3 ": 1,
    });
  });

  test.each([
    ["exact", 12, 4],
    ["exact", "12", 4],
    ["exact", "12.0", 1],
    ["is_not", 12, 6],
    ["icontains", "2.0", 1],
    ["ends_with", "2", 4],
    ["regex", "^12$", 4],
    ["exact", "NaN", 1],
    ["gt", 11, 6],
    ["gt", 100, 0],
    ["lt", 13, 7],
    ["not_between", [0, 20], 0],
  ])("are found by %s %j", async (operator, value, count) => {
    const [result] = await ask({ series: [{ properties: [{ key: "paid", operator, value }] }] });
    expect(result!.count).toBe(count);
  });

  test.each([
    ["sum", 75.5],
    ["avg", 75.5 / 7],
    ["min", 3],
    ["max", 12.5],
    ["median", 12],
  ])("invalid ones do not affect a %s", async (math, amount) => {
    const [result] = await ask({ series: [{ math, math_property: "paid" }] });
    expect(result!.data).toEqual([expect.closeTo(amount as number, 9)]);
  });
});
