/** Random visits agree with a simple model; both engines answer web queries alike. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { computeQuery } from "../../../src/events/api/compute-query.ts";
import { forWebQueries } from "../../../src/events/web/property-columns.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { hasClickHouse, TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import { ClickHouseStores } from "../../support/clickhouse-stores.ts";
import type { TestEvent, TestStores } from "../../support/event-store.ts";
import { dateRange, filtered, lists, webEvents } from "./visits-fixture.ts";
import { expectedFigures } from "./visits-model.ts";
import { type Answer, byKey, list, open, request } from "./web-stores.ts";

let stores: TestStores;
let server: TestClickHouse | undefined;
let beside: ClickHouseStores | undefined;

beforeAll(async () => {
  stores = await open(webEvents);
  if (!hasClickHouse) return;
  server = await TestClickHouse.start();
  beside = await ClickHouseStores.beside(server, stores);
});

afterAll(async () => {
  await beside?.close(true);
  await server?.[Symbol.asyncDispose]();
  await stores[Symbol.asyncDispose]();
});

const paths = ["/", "/a", "/a/", "/b?x=1", "/c/d/#e"];
const event = fc.record({
  event: fc.constantFrom(
    "$pageview",
    "$pageview",
    "$pageleave",
    "click",
    "$feature_flag_called",
    "$identify",
  ),
  distinctId: fc.constantFrom("ann", "bob", "cat"),
  minute: fc.integer({ min: 0, max: 4 * 1440 }),
  session: fc.constantFrom(undefined, undefined, "", "s1", "s2", "s3"),
  path: fc.constantFrom(...paths),
  browser: fc.constantFrom(undefined, "Firefox", "Chrome"),
  zone: fc.constantFrom(undefined, "Europe/Berlin", "Asia/Saigon", "Nowhere/City"),
});
type Random = typeof event extends fc.Arbitrary<infer Value> ? Value : never;

const toEvent = ({ minute, session, path, browser, zone, ...rest }: Random): TestEvent => ({
  ...rest,
  time: Date.UTC(2026, 9, 18) + minute * 60_000,
  properties: { $session_id: session, $pathname: path, $browser: browser, $timezone: zone },
});

test("random events make the visits of a simple model", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
      await using own = await open(events.map(toEvent));
      const query = { kind: "WebOverviewQuery", dateRange };
      const answer = (await own.ask((store) => computeQuery(store, { ...request, query }))) as Answer;
      const { visitors, views, visits, seconds, bounces } = expectedFigures(events.map(toEvent));
      expect(byKey(answer)).toMatchObject({ visitors, sessions: visits });
      expect(Number(byKey(answer).views)).toBe(views);
      if (visits === 0) return;
      expect(byKey(answer)["session duration"]).toBeCloseTo(seconds / visits);
      expect(byKey(answer)["bounce rate"]).toBeCloseTo((100 * bounces) / visits);
    }),
    { numRuns: 15 },
  );
});

const compared = { compareFilter: { compare: true } };
const questions: JsonObject[] = [
  { kind: "WebOverviewQuery", ...compared },
  { kind: "WebTrendsQuery", interval: "hour", ...compared },
  { kind: "WebOnlineQuery" },
  { kind: "WebGoalsQuery", ...compared },
  { kind: "WebOverviewQuery", dateRange: { date_from: "all" }, ...compared },
  ...Object.keys(lists).map((breakdownBy) => list(breakdownBy, compared)),
  list("InitialUTMSourceMediumCampaign"),
  ...filtered.flatMap(([properties]) => [
    { kind: "WebOverviewQuery", properties: properties as never },
    list("Page", { properties: properties as never, ...compared }),
  ]),
];

testWithClickHouse("web analytics in ClickHouse")(
  "both engines answer alike",
  async () => {
    const goals = [
      { name: "Signup", event: "signup", path: null },
      { name: "Pricing", event: null, path: "/pricing" },
    ];
    const web = { goals, countsScreens: true };
    for (const timezone of ["UTC", "America/New_York"]) {
      for (const question of timezone === "UTC" ? questions : questions.slice(0, 5)) {
        const of = { ...request, timezone, web, query: { dateRange, ...question } };
        const mine = await stores.ask((store) => computeQuery(store, of));
        expect(await beside!.ask((store) => computeQuery(store, of))).toEqual(mine);
        const absent = ["msclkid", "utm_content"];
        expect(await stores.ask((store) => computeQuery(forWebQueries(store, absent), of))).toEqual(mine);
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 20, maxLength: 80 }), async (events) => {
        await using own = await open(events.map(toEvent));
        const theirs = await ClickHouseStores.beside(server!, own);
        try {
          for (const question of [
            questions[0]!,
            questions[1]!,
            list("Page"),
            list("ExitPage", compared),
            list("Country"),
          ]) {
            const of = {
              ...request,
              query: { dateRange: { date_from: "2026-10-20", date_to: "2026-10-21" }, ...question },
            };
            expect(await theirs.ask((store) => computeQuery(store, of))).toEqual(
              await own.ask((store) => computeQuery(store, of)),
            );
          }
        } finally {
          await theirs.close(true);
        }
      }),
      { numRuns: 3 },
    );
  },
  120_000,
);
