/** Events of 12 visits with every rule that decides them, and the figures they make; used for the API and both stores. */

import type { TestEvent } from "../../support/event-store.ts";

/** A Tuesday, at noon. */
export const noon = Date.UTC(2026, 9, 20, 12);
export const now = Date.UTC(2026, 9, 21, 18, 30);
const minute = 60_000;
const hour = 60 * minute;
const agent = (browser: string, os: string, device: string, language: string, zone: string) => ({
  $browser: browser,
  $os: os,
  $device_type: device,
  $browser_language: language,
  $timezone: zone,
  $host: "www.shop.example",
  $viewport_width: 1280,
  $viewport_height: 720,
});
const firefox = agent("Firefox", "Linux", "Desktop", "de-DE", "Europe/Berlin");
const chrome = agent("Chrome", "Windows", "Desktop", "en-US", "America/New_York");
const safari = agent("Safari", "iOS", "Mobile", "en-GB", "Asia/Calcutta");

const view = (
  time: number,
  distinctId: string,
  path: string,
  more: Record<string, unknown> = {},
): TestEvent => ({
  event: "$pageview",
  distinctId,
  time,
  properties: { $pathname: path, $current_url: `https://www.shop.example${path}?token=1`, ...more },
});
const other = (
  event: string,
  time: number,
  distinctId: string,
  more: Record<string, unknown> = {},
): TestEvent => ({
  event,
  distinctId,
  time,
  properties: more,
});

/** What posthog-js sends when a page is left. */
const left = (path: string, seconds: number, depth: number) => ({
  $prev_pageview_pathname: path,
  $prev_pageview_duration: seconds,
  $prev_pageview_max_content_percentage: depth,
});

/** By visit, in order of time; `kim` and `kim-laptop` are one person. */
export const visitEvents: TestEvent[][] = [
  // 1: two pages and a $pageleave a minute later; from a search engine.
  [
    view(noon, "kim", "/", { ...firefox, $session_id: "s1", $referring_domain: "www.google.com" }),
    view(noon + 30_000, "kim", "/pricing/", {
      ...firefox,
      $session_id: "s1",
      $referring_domain: "www.google.com",
      ...left("/", 30, 0.9),
    }),
    other("$pageleave", noon + 90_000, "kim", {
      ...firefox,
      $session_id: "s1",
      ...left("/pricing/", 60, 0.4),
    }),
  ],
  // 2: the same person on another device: one page, left after a minute, so no bounce.
  [
    view(noon + hour, "kim-laptop", "/pricing", {
      ...chrome,
      $session_id: "s2",
      $referring_domain: "$direct",
    }),
    other("$pageleave", noon + hour + minute, "kim-laptop", {
      ...chrome,
      $session_id: "s2",
      ...left("/pricing", 59, 1),
    }),
  ],
  // 3: a bounce; the first event is none of the page's, and flags do not extend the visit.
  [
    view(noon, "ann", "/", { ...firefox, $session_id: "s3", $referring_domain: "shop.example" }),
    other("$feature_flag_called", noon + 20 * minute, "ann", { ...firefox, $session_id: "s3" }),
  ],
  // 4 and 5: no session, and a gap over 30 minutes.
  [
    view(noon, "bob", "/blog/", { ...chrome, $referring_domain: "t.co" }),
    view(noon + 10 * minute, "bob", "/blog/post", { ...chrome, $referring_domain: "t.co" }),
    other("$identify", noon + 35 * minute, "bob", chrome),
  ],
  [view(noon + 41 * minute, "bob", "/", { ...chrome, $referring_domain: "news.example" })],
  // 6: across midnight, and 30 minutes exactly are no gap; paid.
  [
    view(noon + 11 * hour + 40 * minute, "cat", "/landing", {
      ...safari,
      gclid: "abc",
      utm_source: "google",
    }),
    other("signup", noon + 12 * hour + 10 * minute, "cat", { ...safari, revenue: 20.5 }),
  ],
  // 7: an e-mail campaign that starts with the second event.
  [
    other("$autocapture", noon + 2 * hour, "dan", { ...firefox, $session_id: "s7" }),
    view(noon + 2 * hour + 1_000, "dan", "/sale", {
      ...firefox,
      $session_id: "s7",
      utm_source: "letter",
      utm_medium: "Email",
      utm_campaign: "spring",
    }),
    view(noon + 2 * hour + 2_000, "dan", "/thanks", { ...firefox, $session_id: "s7", utm_term: "late" }),
  ],
  // 8: an assistant; the country was sent.
  [
    view(noon + 3 * hour, "eve", "/", {
      ...chrome,
      $session_id: "s8",
      $referring_domain: "chatgpt.com",
      $geoip_country_code: "FR",
    }),
    view(noon + 3 * hour + 20_000, "eve", "/", { ...chrome, $session_id: "s8" }),
  ],
  // 9: an e-mail, from its first event; a campaign without a medium follows in 10.
  [view(noon + 4 * hour, "fay", "/", { ...safari, $session_id: "s9", utm_medium: "newsletter" })],
  [view(noon + 5 * hour, "gus", "/", { ...safari, $session_id: "s10", utm_campaign: "poster" })],
  // 11: more than 24 hours long.
  [
    view(noon - 40 * hour, "hal", "/app", { ...chrome, $session_id: "s11" }),
    view(noon - 10 * hour, "hal", "/app/done", { ...chrome, $session_id: "s11" }),
  ],
  // 12: today.
  [
    view(noon + 24 * hour, "ann", "/pricing", {
      ...firefox,
      $session_id: "s12",
      $referring_domain: "www.reddit.com",
    }),
  ],
];

/** No visits: without a page view, or of an event that counts nowhere. */
const noVisits: TestEvent[] = [
  other("signup", noon, "ivy", { $session_id: "s20" }),
  other("$set", noon, "kim", { $set: { plan: "pro" } }),
  other("$create_alias", noon + 10 * hour, "kim", { alias: "kim-laptop" }),
];

export const webEvents: TestEvent[] = [...visitEvents.flat(), ...noVisits].sort(
  (one, two) => one.time! - two.time!,
);

/** The range that holds all of them. */
export const dateRange = { date_from: "2026-10-18", date_to: "2026-10-21" };

/** Headline figures by key. */
export const headline = {
  visitors: 9,
  views: 17,
  sessions: 12,
  "session duration": 88_972 / 12,
  "bounce rate": (5 / 12) * 100,
};

type Row = [value: unknown, visitors: number, views: number, bounceRate: number | null];

/** The rows of each list: value, visitors, page views, bounce rate. */
export const lists: Record<string, Row[]> = {
  Page: [
    ["/", 6, 7, 4 / 6],
    ["/pricing", 2, 3, 1 / 2],
    ...(
      [
        ["/app", 0],
        ["/app/done", null],
        ["/blog", 0],
        ["/blog/post", null],
        ["/landing", 0],
        ["/sale", 0],
        ["/thanks", null],
      ] as const
    ).map(([path, rate]): Row => [path, 1, 1, rate]),
  ],
  InitialPage: [
    ["/", 6, 8, 4 / 6],
    ["/pricing", 2, 2, 1 / 2],
    ["/app", 1, 2, 0],
    ["/blog", 1, 2, 0],
    ["/sale", 1, 2, 0],
    ["/landing", 1, 1, 0],
  ],
  ExitPage: [
    ["/", 5, 6, 4 / 5],
    ["/pricing", 2, 4, 1 / 3],
    ["/app/done", 1, 2, 0],
    ["/blog/post", 1, 2, 0],
    ["/thanks", 1, 2, 0],
    ["/landing", 1, 1, 0],
  ],
  InitialReferringDomain: [
    ["$direct", 7, 9, 3 / 7],
    ["chatgpt.com", 1, 2, 0],
    ["google.com", 1, 2, 0],
    ["t.co", 1, 2, 0],
    ["news.example", 1, 1, 1],
    ["reddit.com", 1, 1, 1],
  ],
  InitialChannelType: [
    ["Direct", 4, 6, 1 / 4],
    ["Social", 2, 3, 1 / 2],
    ["AI assistants", 1, 2, 0],
    ["Search", 1, 2, 0],
    ["Campaign", 1, 1, 1],
    ["Email", 1, 1, 1],
    ["Paid", 1, 1, 0],
    ["Referral", 1, 1, 1],
  ],
  InitialUTMSource: [
    [null, 7, 14, 5 / 10],
    ["letter", 1, 2, 0],
    ["google", 1, 1, 0],
  ],
  InitialUTMMedium: [
    [null, 7, 14, 4 / 10],
    ["Email", 1, 2, 0],
    ["newsletter", 1, 1, 1],
  ],
  InitialUTMCampaign: [
    [null, 7, 14, 4 / 10],
    ["spring", 1, 2, 0],
    ["poster", 1, 1, 1],
  ],
  // The term came after the campaign.
  InitialUTMTerm: [[null, 9, 17, 5 / 12]],
  InitialUTMContent: [[null, 9, 17, 5 / 12]],
  Browser: [
    ["Chrome", 4, 8, 1 / 5],
    ["Firefox", 3, 6, 2 / 4],
    ["Safari", 3, 3, 2 / 3],
  ],
  OS: [
    ["Windows", 4, 8, 1 / 5],
    ["Linux", 3, 6, 2 / 4],
    ["iOS", 3, 3, 2 / 3],
  ],
  DeviceType: [
    ["Desktop", 6, 14, 3 / 9],
    ["Mobile", 3, 3, 2 / 3],
  ],
  Country: [
    ["DE", 3, 6, 2 / 4],
    ["US", 3, 6, 1 / 4],
    ["IN", 3, 3, 2 / 3],
    ["FR", 1, 2, 0],
  ],
  Language: [
    ["en", 7, 11, 3 / 8],
    ["de", 3, 6, 2 / 4],
  ],
  Viewport: [[[1280, 720], 9, 17, 5 / 12]],
};

const session = (key: string, value: unknown, operator = "exact") => ({
  type: "session",
  key,
  value,
  operator,
});
const ofEvent = (key: string, value: unknown, operator = "exact") => ({
  type: "event",
  key,
  value,
  operator,
});

/** Filters, and the visitors, page views and visits they leave. */
export const filtered: [filters: unknown[], figures: [visitors: number, views: number, visits: number]][] = [
  [[session("$channel_type", "Direct")], [4, 6, 4]],
  [[session("$entry_referring_domain", ["google.com", "t.co"])], [2, 4, 2]],
  [[session("$entry_pathname", "/")], [6, 8, 6]],
  [[session("$end_pathname", "/pricing")], [2, 4, 3]],
  [[session("$entry_utm_campaign", undefined, "is_set")], [2, 3, 2]],
  [[session("$session_duration", 60, "gte")], [4, 8, 5]],
  [[session("$pageview_count", 2, "gte")], [5, 10, 5]],
  [[ofEvent("$browser", "Firefox")], [3, 6, 4]],
  [[{ key: "$browser", value: "Firefox", operator: "exact" }], [3, 6, 4]],
  // A page's filter counts its own views, but visits with other pages stay visits.
  [[ofEvent("$pathname", "/pricing")], [2, 3, 3]],
  [[ofEvent("$geoip_country_code", ["DE", "FR"])], [4, 7, 5]],
  [
    [ofEvent("$browser", "Chrome"), session("$channel_type", "Social")],
    [1, 2, 1],
  ],
  [[{ type: "person", key: "plan", value: "pro", operator: "exact" }], [1, 3, 2]],
  [[ofEvent("$browser", "Opera")], [0, 0, 0]],
];
