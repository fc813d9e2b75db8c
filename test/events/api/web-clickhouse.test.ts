/** Web analytics of a server with its events in ClickHouse. */

import { expect } from "bun:test";
import { TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";
import { dateRange, headline, lists, webEvents } from "../web/visits-fixture.ts";

testWithClickHouse("web analytics of a server with its events in ClickHouse")(
  "the figures are the same with events in ClickHouse, before and after their columns are added",
  async () => {
    await using server = await TestClickHouse.start();
    await server.run("CREATE DATABASE flagkeep");
    await using flagkeepServer = await ServerProcess.start({
      args: ["--events-url", server.url("flagkeep")],
    });
    await flagkeepServer.batch(
      webEvents.map(({ event, distinctId, time, properties }) => ({
        event,
        distinct_id: distinctId,
        properties,
        timestamp: new Date(time!).toISOString(),
      })),
    );
    await flagkeepServer.eventsWhenStored(webEvents.length);
    const ask = async (query: object) => {
      const body = { query: { dateRange, ...query }, refresh: "force_blocking" };
      const response = await flagkeepServer.api("/api/projects/1/query/", { method: "POST", body });
      return ((await response.json()) as { results: never[] }).results;
    };
    const check = async () => {
      const overview: { key: string; value: number }[] = await ask({ kind: "WebOverviewQuery" });
      expect(Object.fromEntries(overview.map(({ key, value }) => [key, value]))).toEqual(headline);
      for (const breakdownBy of ["Page", "InitialChannelType", "Country", "Viewport"]) {
        const query = { kind: "WebStatsTableQuery", breakdownBy, includeBounceRate: true };
        const results: [unknown, ...number[][]][] = await ask(query);
        expect(results.map(([value, ...pairs]) => [value, ...pairs.slice(0, 3).map(([now]) => now)])).toEqual(
          lists[breakdownBy] as never,
        );
      }
    };
    await check();
    await until(async () => {
      const { stdout } = await flagkeep(["status", "--data-dir", flagkeepServer.dataDir, "--json"]);
      return stdout.includes('"name":"$pathname"') || stdout.includes('"name": "$pathname"');
    }, "the properties have columns");
    await check();
  },
  60_000,
);
