/** `POST …/query/` with queries that are computed without being saved. */

import { expect, test } from "bun:test";
import { TestAppliance } from "../../support/appliance.ts";

test("trends, funnels, retention and lifecycle are computed; what is not known is refused", async () => {
  await using appliance = await TestAppliance.start();
  await appliance.batch([
    { event: "visit", distinct_id: "ann" },
    { event: "signup", distinct_id: "ann" },
    { event: "visit", distinct_id: "bob" },
  ]);
  await appliance.eventsWhenStored(3);
  const ask = async (query: unknown) => {
    const response = await appliance.api("/api/projects/1/query/", { method: "POST", body: { query } });
    return [response.status, await response.json()] as const;
  };
  const series = [{ kind: "EventsNode", event: "visit" }];
  const [status, trends] = await ask({ kind: "TrendsQuery", series });
  expect([status, trends.results[0].count]).toEqual([200, 2]);
  const [, funnel] = await ask({
    kind: "InsightVizNode",
    source: { kind: "FunnelsQuery", series: [...series, { kind: "EventsNode", event: "signup" }] },
  });
  expect(funnel.results.map(({ count }: { count: number }) => count)).toEqual([2, 1]);
  const target = { id: "visit", type: "events" };
  const [, retention] = await ask({ kind: "RetentionQuery", retentionFilter: { targetEntity: target } });
  expect(retention.results.at(-1).values).toEqual([{ count: 2, label: "Day 0" }]);
  const [, lifecycle] = await ask({ kind: "LifecycleQuery", series });
  expect(lifecycle.results[0]).toMatchObject({ status: "new", count: 2 });
  const [, statement] = await ask({ kind: "HogQLQuery", query: "SELECT count(*) AS n FROM events" });
  expect(statement.rows).toEqual([{ n: 3 }]);
  for (const [query, detail] of [
    [{ kind: "PathsQuery" }, 'Queries of kind "PathsQuery" cannot be computed.'],
    [{ kind: "TrendsQuery", series: [] }, "A trend needs 1 to 26 series."],
    [{ kind: "__proto__" }, 'Queries of kind "__proto__" cannot be computed.'],
    [{}, "Queries of kind null cannot be computed."],
    [7, "Not a valid string."],
  ] as const) {
    const [code, answer] = await ask(query);
    expect([code, answer.attr, answer.detail]).toEqual([400, "query", detail]);
  }
});
