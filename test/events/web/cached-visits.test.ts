/** Lists over cached visits, which refer to events, equal those over visits with their values. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { computeQuery } from "../../../src/events/api/compute-query.ts";
import { CachedTables } from "../../../src/events/duckdb/cached-tables.ts";
import { duckdbSql } from "../../../src/events/duckdb/sql-dialect.ts";
import { breakdownNames } from "../../../src/events/web/stats-table.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import type { TestEvent, TestStores } from "../../support/event-store.ts";
import { dateRange, filtered, webEvents } from "./visits-fixture.ts";
import { list, open, request } from "./web-stores.ts";

const compared = { compareFilter: { compare: true } };

/** Asks each question with and without a cache. */
async function expectEqual(stores: TestStores, questions: readonly JsonObject[]): Promise<void> {
  const connection = await stores.database.connect();
  const reader = new CachedTables().reader(connection);
  for (const question of questions) {
    const of = { ...request, query: { dateRange, ...question } };
    const cached = await computeQuery(duckdbSql(connection, undefined, reader.table), {
      ...of,
      revision: "1",
    });
    expect(cached).toEqual(await stores.ask((store) => computeQuery(store, of)));
  }
  await reader.end();
  connection.closeSync();
}

test("the fixture, by each breakdown and filter", async () => {
  await using stores = await open(webEvents);
  await expectEqual(stores, [
    { kind: "WebOverviewQuery", ...compared },
    { kind: "WebTrendsQuery", interval: "day" },
    ...breakdownNames.map((breakdownBy) => list(breakdownBy, compared)),
    ...filtered.map(([properties]) => list("ExitPage", { properties: properties as never })),
  ]);
});

const event = fc.record({
  event: fc.constantFrom("$pageview", "$pageleave", "click"),
  distinctId: fc.constantFrom("ann", "bob"),
  minute: fc.integer({ min: 0, max: 2_880 }),
  session: fc.constantFrom(undefined, "s1", "s2", "s3"),
  path: fc.constantFrom("/", "/a/", "/b?x=1"),
  referrer: fc.constantFrom(undefined, "$direct", "www.google.com", "T.CO", "news.example"),
  medium: fc.constantFrom(undefined, "", "CPC", "email", "other"),
});
type Random = typeof event extends fc.Arbitrary<infer Value> ? Value : never;

const toEvent = ({ minute, session, path, referrer, medium, ...rest }: Random): TestEvent => ({
  ...rest,
  time: Date.UTC(2026, 9, 18) + minute * 60_000,
  properties: { $session_id: session, $pathname: path, $referring_domain: referrer, utm_medium: medium },
});

test("random events of both lanes, whose sequence numbers are equal", async () => {
  const random = fc.array(event, { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(random, random, async (realtime, historical) => {
      await using stores = await open(realtime.map(toEvent));
      await stores.load(
        historical.map((event) => ({ ...toEvent(event), distinctId: `${event.distinctId}-imported` })),
        "historical",
      );
      await stores.mirror.follow();
      const breakdowns = ["InitialChannelType", "InitialUTMMedium", "InitialPage", "ExitPage"];
      await expectEqual(
        stores,
        ["InitialUTMSourceMediumCampaign", ...breakdowns].map((name) => list(name)),
      );
    }),
    { numRuns: 8 },
  );
});
