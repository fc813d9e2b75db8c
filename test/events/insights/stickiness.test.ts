/** How many persons were active in how many intervals. */

import { beforeAll, expect, test } from "bun:test";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { stores, useStores } from "../../support/use-stores.ts";

const now = Date.UTC(2026, 10, 18, 12);
const at = (text: string) => Date.parse(`2026-11-${text}:00Z`);
useStores();
beforeAll(async () => {
  const visit = (distinctId: string, text: string) => ({ event: "visit", distinctId, time: at(text) });
  await stores.load([
    // Three days of one person with two ids, twice on the last.
    visit("ann", "10T08:00"),
    visit("ann2", "11T08:00"),
    visit("ann", "12T08:00"),
    visit("ann", "12T23:59"),
    visit("bob", "10T09:00"),
    visit("bob", "10T10:00"),
    visit("cy", "12T01:00"),
    // Outside of the range, and another event.
    visit("bob", "09T23:59"),
    visit("cy", "13T00:00"),
    { event: "pay", distinctId: "bob", time: at("11T09:00") },
    { event: "$identify", distinctId: "ann", time: now, properties: { $anon_distinct_id: "ann2" } },
  ]);
  await stores.mirror.follow();
});

const dateRange = { date_from: "2026-11-10", date_to: "2026-11-12" };
async function stickiness(more: JsonObject = {}): Promise<JsonObject[]> {
  const series = [{ kind: "EventsNode", event: "visit" }];
  const query = { kind: "StickinessQuery", series, dateRange, ...more };
  return (await stores.ask((store) =>
    computeInsight(store, { projectId: 1, query, timezone: "UTC", now }),
  )) as JsonObject[];
}
const getData = (results: JsonObject[]) => results.map(({ data }) => data);

test("persons by the number of days on which they were active", async () => {
  expect(await stickiness()).toEqual([
    {
      action: { id: "visit", type: "events", order: 0, name: "visit", custom_name: null, math: "total" },
      label: "visit",
      count: 3,
      data: [2, 0, 1],
      days: [1, 2, 3],
      labels: ["1 day", "2 days", "3 days"],
    },
  ]);
  expect(getData(await stickiness({ stickinessFilter: { computedAs: "cumulative" } }))).toEqual([[3, 1, 1]]);
});

test("several series, intervals, and periods", async () => {
  const series: JsonObject[] = [
    { kind: "EventsNode", event: null },
    { kind: "EventsNode", event: "pay", custom_name: "Paid" },
  ];
  const both = await stickiness({ series });
  expect(both.map(({ label, data }) => [label, data])).toEqual([
    ["All events", [1, 1, 1]],
    ["Paid", [1, 0, 0]],
  ]);
  const [byHour] = await stickiness({ interval: "hour" });
  expect([(byHour!.data as number[]).slice(0, 4), byHour!.count]).toEqual([[1, 1, 0, 1], 3]);
  const compareFilter = { compare: true, compare_to: "-1d" };
  const compared = await stickiness({ compareFilter });
  expect(compared.map(({ data, compare_label: label }) => [label, data])).toEqual([
    ["current", [2, 0, 1]],
    ["previous", [0, 2, 0]],
  ]);
});

test("days count from a number of events on", async () => {
  const having = async (operator: string, value: number) =>
    getData(await stickiness({ stickinessFilter: { stickinessCriteria: { operator, value } } }));
  expect(await having("gte", 2)).toEqual([[2, 0, 0]]);
  expect(await having("lte", 1)).toEqual([[1, 1, 0]]);
  expect(await having("exact", 2)).toEqual([[2, 0, 0]]);
});

test("what would be ignored is rejected by name", async () => {
  const series = { kind: "EventsNode", event: "visit" };
  for (const [more, name] of [
    [{ series: [] }, "1 to 26 series"],
    [{ series: [{ ...series, math: "sum", math_property: "x" }] }, "math"],
    [{ breakdownFilter: { breakdown: "plan" } }, "breakdown"],
    [{ intervalCount: 2 }, "intervalCount"],
    [{ interval: "minute" }, "interval"],
    [{ stickinessFilter: { computedAs: "other" } }, "computedAs"],
    [{ stickinessFilter: { stickinessCriteria: { operator: "gt", value: 1 } } }, "stickinessCriteria"],
    [{ stickinessFilter: { stickinessCriteria: { operator: "gte", value: 0 } } }, "stickinessCriteria"],
    [{ dateRange: { date_from: "nonsense" } }, "date range"],
  ] as [JsonObject, string][])
    await expect(stickiness(more)).rejects.toThrow(name);
});
