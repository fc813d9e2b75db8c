/** Web analytics: the figures of a fixture and of random events, the same from both engines. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { toVisits } from "../../../src/console/page/model/visits.ts";
import { computeQuery } from "../../../src/events/api/compute-query.ts";
import { channelNames } from "../../../src/events/web/channels.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import type { TestStores } from "../../support/event-store.ts";
import { dateRange, filtered, headline, lists, noon, now, webEvents } from "./visits-fixture.ts";
import { type Answer, byKey, list, open, request } from "./web-stores.ts";

let stores: TestStores;
beforeAll(async () => {
  stores = await open(webEvents);
});
afterAll(async () => await stores[Symbol.asyncDispose]());

async function ask(query: JsonObject, more: JsonObject = {}): Promise<Answer> {
  return (await stores.ask((store) =>
    computeQuery(store, { ...request, ...more, query: { dateRange, ...query } } as never),
  )) as Answer;
}

describe("the fixture of twelve visits", () => {
  test("the headline", async () => {
    const answer = await ask({ kind: "WebOverviewQuery" });
    expect(byKey(answer)).toEqual(headline);
    expect(answer).toMatchObject({ dateFrom: "2026-10-18 00:00:00", dateTo: "2026-10-21 23:59:59" });
    expect(answer.results[4]).toEqual({
      key: "bounce rate",
      kind: "percentage",
      isIncreaseBad: true,
      value: headline["bounce rate"],
      previous: null,
      changeFromPreviousPct: null,
    });
  });

  for (const [breakdownBy, rows] of Object.entries(lists)) {
    test(`by ${breakdownBy}`, async () => {
      const { results, columns, hasMore } = await ask(list(breakdownBy));
      expect(
        results.map(([value, ...pairs]) => [
          value,
          ...pairs.slice(0, 3).map((pair: unknown) => (pair as number[])[0]),
        ]),
      ).toEqual(rows);
      expect([columns, hasMore]).toEqual([
        ["breakdown_value", "visitors", "views", "bounce_rate", "ui_fill_fraction", "cross_sell"].map(
          (name) => `context.columns.${name}`,
        ),
        false,
      ]);
      const shares = results.map((row) => row[4] as number);
      expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
    });
  }

  for (const [properties, [visitors, views, sessions]] of filtered) {
    test(`filtered by ${JSON.stringify(properties)}`, async () => {
      const figures = byKey(await ask({ kind: "WebOverviewQuery", properties: properties as never }));
      expect(figures).toMatchObject({ visitors, views, sessions });
      const { results } = await ask(list("Page", { properties: properties as never }));
      const sum = results.reduce((total, row) => total + (row[2] as number[])[0]!, 0);
      expect(sum).toBe(views);
    });
  }

  test("pages of a list, and its order", async () => {
    const { results, hasMore } = await ask(list("Page", { limit: 2, offset: 1, includeBounceRate: false }));
    expect([results.map(([path]) => path), hasMore]).toEqual([["/pricing", "/app"], true]);
    const ordered = await ask(list("Browser", { orderBy: ["BounceRate", "ASC"] }));
    expect(ordered.results.map(([browser]) => browser)).toEqual(["Chrome", "Firefox", "Safari"]);
    const byViews = await ask(list("ExitPage", { orderBy: ["Views", "DESC"], limit: 2 }));
    expect(byViews.results.map(([path]) => path)).toEqual(["/", "/pricing"]);
  });

  test("only what is in the range is read, and the current day is compared up to the minute", async () => {
    // The visit across midnight has its page view on the first day.
    const second = { date_from: "2026-10-21", date_to: "2026-10-21" };
    expect(byKey(await ask({ kind: "WebOverviewQuery", dateRange: second }))).toMatchObject({
      views: 1,
      sessions: 1,
    });
    const compared = { kind: "WebOverviewQuery", dateRange: second, compareFilter: { compare: true } };
    // At 18:30, not yet the visits of 22:40 and later.
    const answer = await ask(compared);
    expect(byKey(answer, "previous")).toMatchObject({ views: 14, sessions: 10 });
    expect(byKey(answer, "changeFromPreviousPct")).toMatchObject({ views: -93, sessions: -90 });
    const later = await ask(compared, { now: now + 86_400_000 });
    expect(byKey(later, "previous")).toMatchObject({ views: 15, sessions: 11 });
    // Ranges that overlap count events twice.
    const shifted = await ask({
      ...compared,
      dateRange,
      compareFilter: { compare: true, compare_to: "-1d" },
    });
    expect(byKey(shifted, "previous")).toMatchObject({ views: 15 });
  });

  test("the course by day", async () => {
    const { results } = await ask({ kind: "WebTrendsQuery", interval: "day" });
    expect(results).toEqual([
      {
        bucket: "2026-10-18",
        metrics: { UniqueUsers: 1, PageViews: 2, Sessions: 1, Bounces: 0, SessionDuration: 86_400 },
      },
      {
        bucket: "2026-10-19",
        metrics: { UniqueUsers: 0, PageViews: 0, Sessions: 0, Bounces: 0, SessionDuration: 0 },
      },
      {
        bucket: "2026-10-20",
        metrics: { UniqueUsers: 8, PageViews: 14, Sessions: 10, Bounces: 4, SessionDuration: 257.2 },
      },
      {
        bucket: "2026-10-21",
        metrics: { UniqueUsers: 1, PageViews: 1, Sessions: 1, Bounces: 1, SessionDuration: 0 },
      },
    ] as never);
    const one = await ask({
      kind: "WebTrendsQuery",
      interval: "week",
      metrics: ["Sessions"],
      compareFilter: { compare: true },
    });
    expect(one.results.map(({ metrics }) => metrics)).toEqual([{ Sessions: 1 }, { Sessions: 11 }]);
    expect((one.previous as JsonObject[]).map(({ metrics }) => metrics)).toEqual([{ Sessions: 0 }]);
  });

  test("goals", async () => {
    const goals = [
      { name: "Signup", event: "signup", path: null },
      { name: "Pricing", event: null, path: "/pricing" },
      { name: "Never", event: "never", path: null },
    ];
    const web = { goals, countsScreens: false } as never;
    const { results } = await ask({ kind: "WebGoalsQuery" }, { web });
    // A signup without a page view is not a visitor's.
    expect(results).toEqual([
      ["Signup", [1, null], [1, null], [1 / 9, null]],
      ["Pricing", [2, null], [3, null], [2 / 9, null]],
      ["Never", [0, null], [0, null], [0, null]],
    ]);
    const ordered = await ask({ kind: "WebGoalsQuery", orderBy: ["ConversionRate", "DESC"] }, { web });
    expect(ordered.results.map(([name]) => name)).toEqual(["Pricing", "Signup", "Never"]);
    expect((await ask({ kind: "WebGoalsQuery" })).results).toEqual([]);
  });

  test("conversions and revenue in the headline, as PostHog's clients ask for them", async () => {
    const compareFilter = { compare: true };
    const getFigures = async (more: JsonObject, web: object = { goals: [], countsScreens: false }) =>
      byKey(await ask({ kind: "WebOverviewQuery", ...more }, { web } as never));
    const conversionGoal = { customEventName: "signup" };
    expect(await getFigures({ conversionGoal, includeRevenue: true, samplingFactor: 0.1 })).toEqual({
      visitors: 9,
      "total conversions": 1,
      "unique conversions": 1,
      "conversion rate": (1 / 9) * 100,
      "conversion revenue": 20.5,
    });
    expect(await getFigures({ includeRevenue: true })).toEqual({ ...headline, revenue: 20.5 });
    const goals = [{ name: "Pricing", event: null, path: "/pricing" }];
    const ofPage = { conversionGoal: { goalName: "Pricing" } };
    expect(await getFigures(ofPage, { goals, countsScreens: false })).toEqual({
      visitors: 9,
      "total conversions": 3,
      "unique conversions": 2,
      "conversion rate": (2 / 9) * 100,
    });
    const compared = await ask({
      kind: "WebOverviewQuery",
      conversionGoal,
      compareFilter,
      includeRevenue: true,
      dateRange: { date_from: "2026-10-20", date_to: "2026-10-21" },
    });
    expect(byKey(compared)).toMatchObject({ visitors: 9, "total conversions": 1 });
    expect(byKey(compared, "previous")).toMatchObject({ "total conversions": 0, "conversion revenue": 0 });
    const filtered = { properties: [{ type: "event", key: "$browser", value: "Firefox" }], conversionGoal };
    expect(await getFigures(filtered)).toMatchObject({ visitors: 3, "unique conversions": 0 });
  });

  test("conversions in lists are of the visitors of each row", async () => {
    const { results, columns } = await ask(
      list("Browser", { conversionGoal: { customEventName: "signup" }, includeRevenue: true }),
    );
    expect((columns as string[]).slice(1, 6)).toEqual(
      ["visitors", "total_conversions", "unique_conversions", "conversion_rate", "conversion_revenue"].map(
        (name) => `context.columns.${name}`,
      ),
    );
    const rows = (answer: Answer) =>
      answer.results.map(([value, ...pairs]) => [value, ...pairs.slice(0, -2).map(([now]: number[]) => now)]);
    const converted = rows({ results } as never);
    expect(converted.filter(([, , total]) => total > 0)).toEqual([["Safari", 3, 1, 1, 1 / 3, 20.5]]);
    const ofPages = await ask(
      list("Page", {
        conversionGoal: { customEventName: "signup" },
        orderBy: ["ConversionRate", "DESC"],
        limit: 1,
      }),
    );
    expect(rows(ofPages)).toEqual([["/landing", 1, 1, 1, 1]]);
    expect(ofPages.results[0].at(-2)).toBe(1);
  });

  test("time on pages and scroll depth, from what is sent when a page is left", async () => {
    const wanted = { includeAvgTimeOnPage: true, includeScrollDepth: true };
    const left = (answer: Answer) =>
      Object.fromEntries(
        answer.results.map(([path, , , ...pairs]) => [path, pairs.slice(0, 4).map(([now]: number[]) => now)]),
      );
    const found = left(await ask(list("Page", wanted)));
    expect(found["/"]).toEqual([30, 2 / 3, 0.9, 1]);
    expect(found["/pricing"]).toEqual([59.5, 0.5, 0.7, 0.5]);
    expect(found["/app"]!.filter((_: unknown, index: number) => index !== 1)).toEqual([null, null, null]);
    const onPricing = [{ type: "event", key: "$pathname", value: "/pricing" }];
    expect(left(await ask(list("Page", { ...wanted, properties: onPricing })))["/pricing"]).toEqual(
      found["/pricing"],
    );
    const ofSearch = [{ type: "session", key: "$channel_type", value: "Search" }];
    const searched = left(await ask(list("Page", { ...wanted, properties: ofSearch })));
    expect([searched["/"]![0], searched["/pricing"]![0]]).toEqual([30, 60]);
    const longest = await ask(list("Page", { ...wanted, orderBy: ["AvgTimeOnPage", "DESC"], limit: 1 }));
    expect(longest.results[0][0]).toBe("/pricing");
  });

  test("visitors who are online", async () => {
    const online = async (at: number) => byKey(await ask({ kind: "WebOnlineQuery" }, { now: at })).online;
    expect(await online(now)).toBe(0);
    expect(await online(noon + 4 * 60_000)).toBe(4);
    expect(await online(noon - 1)).toBe(0);
  });

  test("screens count if the project's setting is on", async () => {
    await using own = await open([
      {
        event: "$screen",
        distinctId: "app",
        time: noon,
        properties: { $session_id: "a", $screen_name: "Home" },
      },
    ]);
    const count = async (countsScreens: boolean) => {
      const query = { kind: "WebOverviewQuery", dateRange };
      const of = { ...request, web: { goals: [], countsScreens }, query };
      return byKey((await own.ask((store) => computeQuery(store, of))) as Answer).views;
    };
    expect([await count(false), await count(true)]).toEqual([0, 1]);
  });

  test("what is not supported is rejected by name", async () => {
    for (const [query, message] of [
      [list("City"), 'The breakdownBy "City" is not supported. Use Page, InitialPage,'],
      [list("Page", { limit: 1_001 }), "limit must be an integer from 1 to 1000."],
      [list("Page", { offset: -1 }), "offset must be an integer from 0"],
      [list("Page", { orderBy: ["Clicks", "DESC"] }), 'The orderBy ["Clicks","DESC"] is not valid'],
      [list("Browser", { includeScrollDepth: true }), 'includeScrollDepth requires the breakdownBy "Page"'],
      [
        list("Page", { includeAvgTimeOnPage: true, conversionGoal: { customEventName: "x" } }),
        "without a conversionGoal",
      ],
      [{ kind: "WebOverviewQuery", conversionGoal: { actionId: 1 } }, 'The conversionGoal {"actionId":1}'],
      [{ kind: "WebOverviewQuery", conversionGoal: { goalName: "x" } }, 'The project has no goal "x"'],
      [{ kind: "WebTrendsQuery", conversionGoal: { customEventName: "x" } }, "The conversionGoal"],
      [{ kind: "WebOverviewQuery", includeScrollDepth: true }, "The includeScrollDepth true"],
      [{ kind: "WebOverviewQuery", samplingFactor: 1.5 }, "The samplingFactor 1.5 is not between 0 and 1."],
      [{ kind: "WebOverviewQuery", samplingFactor: "1" }, 'The samplingFactor "1"'],
      [{ kind: "WebOverviewQuery", samplingFactor: 0.1 }, undefined],
      [{ kind: "WebOverviewQuery", dateRange: { date_from: "soon" } }, "Invalid date range."],
      [{ kind: "WebOverviewQuery", compareFilter: { compare: true, compare_to: "1y" } }, undefined],
      [
        { kind: "WebOverviewQuery", compareFilter: { compare: true, compare_to: "soon" } },
        "Invalid compare_to",
      ],
      [
        { kind: "WebOverviewQuery", properties: [{ type: "session", key: "$nope", value: "x" }] },
        'The session property "$nope"',
      ],
      [
        { kind: "WebOverviewQuery", properties: [{ type: "cohort", key: "id", value: 1 }] },
        'Properties of type "cohort"',
      ],
      [{ kind: "WebTrendsQuery", metrics: ["Clicks"] }, 'Unknown metrics ["Clicks"].'],
      [{ kind: "WebGoalsQuery", orderBy: "x" }, 'The orderBy "x" is not valid'],
    ] as [JsonObject, string | undefined][]) {
      const failure = await ask(query).then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (message === undefined) expect(failure).toBeUndefined();
      else expect(failure).toContain(message);
    }
  });
});

describe("channels", () => {
  const cases: [properties: JsonObject, channel: string][] = [
    [{ gclid: "1", $referring_domain: "www.google.com" }, "Paid"],
    [{ msclkid: "1" }, "Paid"],
    [{ fbclid: "1", $referring_domain: "l.facebook.com" }, "Social"],
    [{ fbclid: "1", utm_medium: "paid_social" }, "Paid"],
    [{ utm_medium: "CPC" }, "Paid"],
    [{ utm_medium: "retargeting", utm_source: "x" }, "Paid"],
    [{ utm_medium: "E-Mail", $referring_domain: "mail.google.com" }, "Email"],
    [{ $referring_domain: "gemini.google.com" }, "AI assistants"],
    [{ $referring_domain: "www.perplexity.ai" }, "AI assistants"],
    [{ $referring_domain: "google.co.uk" }, "Search"],
    [{ $referring_domain: "search.brave.com" }, "Search"],
    [{ $referring_domain: "www.bing.com", utm_source: "bing" }, "Search"],
    [{ $referring_domain: "old.reddit.com" }, "Social"],
    [{ $referring_domain: "t.co" }, "Social"],
    [{ $referring_domain: "not-t.co" }, "Referral"],
    [{ $referring_domain: "xx.com" }, "Referral"],
    [{ $referring_domain: "notgoogle.com" }, "Referral"],
    [{ utm_source: "podcast" }, "Campaign"],
    [{ $referring_domain: "" }, "Direct"],
    [{ $referring_domain: "www.shop.example", $host: "shop.example" }, "Direct"],
    [{ $referring_domain: "blog.shop.example", $host: "shop.example" }, "Referral"],
    [{ utm_source: "" }, "Direct"],
  ];

  test.each(cases)("the timeline of a person shows them as Overview does: %j", (properties, channel) => {
    const event = { uuid: "1", event: "$pageview", distinct_id: "a", timestamp: "2026-11-14T10:00:00Z" };
    expect(toVisits([{ ...event, properties }])[0]!.channel).toBe(channel);
  });

  test("of every rule", async () => {
    await using own = await open(
      cases.map(([properties], index) => ({
        event: "$pageview",
        distinctId: `id${index}`,
        time: noon + index,
        properties: { $session_id: `s${index}`, ...properties },
      })),
    );
    const query = { kind: "WebStatsTableQuery", breakdownBy: "InitialChannelType", dateRange };
    const { results } = (await own.ask((store) => computeQuery(store, { ...request, query }))) as Answer;
    const expected = channelNames.map((name) => [
      name,
      cases.filter(([, channel]) => channel === name).length,
    ]);
    expect(Object.fromEntries(results.map(([name, [visitors]]) => [name, visitors]))).toEqual(
      Object.fromEntries(expected),
    );
  });
});

test("properties of any type and events of any time", async () => {
  const sizes = [
    [1280, 720],
    ["390", 844.0],
    [0, 720],
    ["wide", 720],
    [1280, null],
    [{ a: 1 }, [2]],
  ] as const;
  await using own = await open([
    ...sizes.map(([width, height], index) => ({
      event: "$pageview",
      distinctId: `id${index}`,
      time: noon + index,
      properties: { $session_id: index, $pathname: index, $viewport_width: width, $viewport_height: height },
    })),
    { event: "$pageview", distinctId: "early", time: Date.UTC(1000, 0, 1), properties: { $pathname: "//" } },
  ]);
  const compute = async (query: JsonObject) =>
    (await own.ask((store) => computeQuery(store, { ...request, query }))) as Answer;
  const sizesShown = await compute({ kind: "WebStatsTableQuery", breakdownBy: "Viewport", dateRange });
  expect(sizesShown.results.map(([size]) => size)).toEqual([
    [1280, 720],
    [390, 844],
  ]);
  const all = await compute({
    kind: "WebStatsTableQuery",
    breakdownBy: "Page",
    dateRange: { date_from: "all" },
  });
  expect(all.results.map(([path]) => path)).toEqual(["/", "0", "1", "2", "3", "4", "5"]);
});
