/** `POST …/query/` with queries that are computed without being saved. */

import { expect, test } from "bun:test";
import { ServerProcess } from "../../support/server.ts";

test("trends, funnels, retention and lifecycle are computed; what is not known is rejected", async () => {
  await using server = await ServerProcess.start();
  await server.batch([
    { event: "visit", distinct_id: "ann" },
    { event: "signup", distinct_id: "ann" },
    { event: "visit", distinct_id: "bob" },
  ]);
  await server.eventsWhenStored(3);
  const ask = async (query: unknown) => {
    const response = await server.api("/api/projects/1/query/", { method: "POST", body: { query } });
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
    [{ kind: "PathsQuery" }, 'Queries of kind "PathsQuery" are not supported.'],
    [{ kind: "TrendsQuery", series: [] }, "A trend requires 1 to 26 series."],
    [{ kind: "__proto__" }, 'Queries of kind "__proto__" are not supported.'],
    [{}, "Queries of kind null are not supported."],
    [7, "Not a valid string."],
  ] as const) {
    const [code, answer] = await ask(query);
    expect([code, answer.attr, answer.detail]).toEqual([400, "query", detail]);
  }
});

test("a result is cached until an event arrives; a query cancels the running one of its name", async () => {
  await using server = await ServerProcess.start();
  await server.batch([{ event: "visit", distinct_id: "ann" }]);
  await server.eventsWhenStored(1);
  const path = "/api/projects/1/query/";
  const query = { kind: "TrendsQuery", series: [{ kind: "EventsNode", event: "visit" }] };
  const ask = async (refresh?: unknown) => {
    const response = await server.api(path, { method: "POST", body: { query, refresh } });
    return { status: response.status, body: await response.json() };
  };
  expect((await ask("force_cache")).body).toEqual({ results: null, is_cached: false, last_refresh: null });
  const first = (await ask()).body;
  expect([first.is_cached, first.results[0].count]).toEqual([false, 1]);
  expect((await ask()).body).toEqual({ ...first, is_cached: true });
  expect((await ask(true)).body).toMatchObject({ is_cached: false, results: first.results });
  await server.batch([{ event: "visit", distinct_id: "bob" }]);
  await server.eventsWhenStored(2);
  expect((await ask("force_cache")).body).toMatchObject({ is_cached: true, results: first.results });
  expect((await ask("async")).body).toMatchObject({ is_cached: false, results: [{ count: 2 }] });
  expect(await ask("soon")).toMatchObject({ status: 400, body: { attr: "refresh" } });

  const long = server.api(path, {
    method: "POST",
    body: {
      query: "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7",
      client_query_id: "mine",
    },
  });
  const cancel = (id: string) => server.api(`${path}${id}/`, { method: "DELETE" });
  expect((await cancel("another")).status).toBe(204);
  let answer: Response | undefined;
  void long.then((response) => {
    answer = response;
  });
  while (answer === undefined) expect((await cancel("mine")).status).toBe(204);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ code: "query_cancelled", attr: "query" });
});
