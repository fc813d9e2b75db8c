/** Web analytics over HTTP, where visits are cached between queries. */

import { expect, test } from "bun:test";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";
import { dateRange, filtered, headline, lists, webEvents } from "../web/visits-fixture.ts";

test("the fixture has the same figures over HTTP; goals are a project's setting", async () => {
  await using server = await ServerProcess.start();
  await server.batch(
    webEvents.map(({ event, distinctId, time, properties }) => ({
      event,
      distinct_id: distinctId,
      properties,
      timestamp: new Date(time!).toISOString(),
    })),
  );
  await server.eventsWhenStored(webEvents.length);
  const ask = async (query: Record<string, unknown>, expected = 200) => {
    const response = await server.api("/api/projects/1/query/", {
      method: "POST",
      body: { query: { dateRange, ...query } },
    });
    const body = await response.json();
    expect([response.status, expected === 200 ? undefined : body.attr]).toEqual([
      expected,
      expected === 200 ? undefined : "query",
    ]);
    return body;
  };
  const figures = ({ results }: { results: { key: string; value: number }[] }) =>
    Object.fromEntries(results.map(({ key, value }) => [key, value]));

  const overview = await ask({ kind: "WebOverviewQuery" });
  expect(figures(overview)).toEqual(headline);
  expect(overview).toMatchObject({ is_cached: false, dateFrom: "2026-10-18 00:00:00" });
  expect(await ask({ kind: "WebOverviewQuery" })).toEqual({ ...overview, is_cached: true });

  // At once: they read the same visits.
  await Promise.all(
    Object.entries(lists).map(async ([breakdownBy, rows]) => {
      const query = { kind: "WebStatsTableQuery", breakdownBy, includeBounceRate: true };
      const { results } = await ask({ kind: "DataTableNode", source: { dateRange, ...query } });
      const shown = results.map(([value, ...pairs]: [unknown, ...number[][]]) => [
        value,
        ...pairs.slice(0, 3).map(([now]) => now),
      ]);
      expect(shown).toEqual(rows);
    }),
  );
  for (const [properties, [visitors, views, sessions]] of filtered) {
    const found = figures(await ask({ kind: "WebOverviewQuery", properties }));
    expect(found).toMatchObject({ visitors, views, sessions });
  }
  const countries = await ask({ kind: "WebStatsTableQuery", breakdownBy: "Country" });
  expect(countries.isEstimated).toBe(true);
  expect((await ask({ kind: "WebOnlineQuery" })).results).toEqual([
    { key: "online", kind: "unit", value: 0 },
  ]);
  expect((await ask({ kind: "WebTrendsQuery" })).results.length).toBe(4);

  const patch = (web_goals: unknown) =>
    server.api("/api/projects/1/", { method: "PATCH", body: { web_goals } });
  expect((await ask({ kind: "WebGoalsQuery" })).results).toEqual([]);
  const goals = [
    { name: "Pricing", path: "/pricing/?plan=pro" },
    { name: "Signup", event: "signup" },
  ];
  expect((await (await patch(goals)).json()).web_goals).toEqual([
    { name: "Pricing", event: null, path: "/pricing" },
    { name: "Signup", event: "signup", path: null },
  ]);
  expect((await ask({ kind: "WebGoalsQuery" })).results).toEqual([
    ["Pricing", [2, null], [3, null], [2 / 9, null]],
    ["Signup", [1, null], [1, null], [1 / 9, null]],
  ]);
  for (const [wrong, detail] of [
    [[{ name: "x" }], "requires either an event or a path"],
    [[{ name: "x", event: "e", path: "/" }], "requires either an event or a path"],
    [[{ name: " ", event: "e" }], "may not be blank"],
    [[{ name: "x", event: "" }], "may not be blank"],
    [[{ name: "x", path: "thanks" }], 'must start with "/"'],
    [[goals[0], goals[0]], "Two goals have the name"],
    [Array.from({ length: 21 }, (_, index) => ({ name: `g${index}`, event: "e" })), "at most 20 goals"],
  ] as const) {
    const response = await patch(wrong);
    const { attr, detail: said } = await response.json();
    expect([response.status, attr.split("__")[0]]).toEqual([400, "web_goals"]);
    expect(said).toContain(detail);
  }
  const { detail } = await ask({ kind: "WebStatsTableQuery", breakdownBy: "Nothing" }, 400);
  expect(detail).toContain('The breakdownBy "Nothing" is not supported. Use Page,');
});

test("new events and changes of persons show immediately, although visits are cached", async () => {
  await using server = await ServerProcess.start();
  const view = (distinct_id: string, session: string) => ({
    event: "$pageview",
    distinct_id,
    properties: { $session_id: session, $pathname: "/" },
  });
  const ask = async () => {
    const query = { kind: "WebOverviewQuery" };
    const response = await server.api("/api/projects/1/query/", { method: "POST", body: { query } });
    const { results } = (await response.json()) as { results: { value: number }[] };
    return results.slice(0, 3).map(({ value }) => value);
  };
  await server.batch([view("ann", "a"), view("bob", "b")]);
  await server.eventsWhenStored(2);
  expect(await ask()).toEqual([2, 2, 2]);
  await server.batch([view("ann", "c")]);
  await server.eventsWhenStored(3);
  expect(await ask()).toEqual([2, 3, 3]);
  await server.batch([{ event: "$create_alias", distinct_id: "ann", properties: { alias: "bob" } }]);
  await server.eventsWhenStored(4);
  expect(await ask()).toEqual([1, 3, 3]);
});

test("properties that web analytics reads get columns once there are page views", async () => {
  await using server = await ServerProcess.start({ args: ["--property-columns", "1"] });
  const columns = async () => {
    const { stdout } = await flagkeep(["status", "--data-dir", server.dataDir, "--json"]);
    const found = /"properties":(\[[^\]]*\])/.exec(stdout)?.[1] ?? "[]";
    return JSON.parse(found) as { name: string; filled: number }[];
  };
  await server.batch(
    webEvents.map(({ event, distinctId, time, properties }) => ({
      event,
      distinct_id: distinctId,
      properties,
      timestamp: new Date(time!).toISOString(),
    })),
  );
  await server.eventsWhenStored(webEvents.length);
  const names = await until(async () => {
    const found = await columns();
    return found.length > 0 && found.every(({ filled }) => filled === 1) && found.map(({ name }) => name);
  }, "all columns are filled");
  expect(names).toContain("$pathname");
  expect(names).toContain("gclid");
  // It never occurred.
  expect(names).not.toContain("msclkid");
  for (const breakdownBy of ["Page", "InitialChannelType", "Country"]) {
    const query = { kind: "WebStatsTableQuery", breakdownBy, dateRange };
    const response = await server.api("/api/projects/1/query/", { method: "POST", body: { query } });
    const { results } = (await response.json()) as { results: [unknown, number[], number[]][] };
    const expected = lists[breakdownBy]!.map(([value, visitors, views]) => [value, visitors, views]);
    expect(results.map(([value, [visitors], [views]]) => [value, visitors, views])).toEqual(
      expected as never,
    );
  }
});
