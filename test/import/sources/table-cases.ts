/** Realistic records of sources with tables, and the events that are stored for them. */

import { all, at, type StoredCase, stored } from "./stored-case.ts";

export const snowplow: StoredCase = {
  forms: all,
  records: [
    {
      ...{ app_id: "app", platform: "web", etl_tstamp: at, collector_tstamp: "2024-05-01 09:00:00" },
      ...{ event: "page_view", event_name: "page_view", event_id: "0190a000-0000-4000-8000-000000000041" },
      ...{ derived_tstamp: at, user_id: "u1", domain_userid: "d1", network_userid: "n1", v_collector: "c" },
      ...{ page_url: "https://x.example/a?utm_id=7", page_urlhost: "x.example", page_urlpath: "/a" },
      ...{ page_title: "T", page_referrer: "https://r.example/", mkt_source: "news", mkt_clickid: "C" },
      ...{ mkt_network: "Google", geo_country: "DE", geo_region: "BE", geo_region_name: "Land Berlin" },
      ...{
        geo_city: "Berlin",
        geo_timezone: "Europe/Berlin",
        user_ipaddress: "203.0.113.8",
        br_family: "Chrome",
      },
      ...{ br_lang: "de", os_family: "Windows", dvce_type: "Computer", useragent: "Mozilla/5.0" },
      ...{
        dvce_screenwidth: 1920,
        dvce_screenheight: 1080,
        domain_sessionid: "se1",
        ip_isp: "isp",
        txn_id: "1",
      },
    },
    {
      ...{
        collector_tstamp: at,
        event: "struct",
        event_name: "event",
        domain_userid: "d2",
        v_collector: "c",
      },
      ...{ event_id: "0190a000-0000-4000-8000-000000000042", se_category: "c", se_action: "play" },
      ...{ se_label: "l", se_property: "p", se_value: 3, page_url: "https://x.example/b" },
    },
    {
      ...{
        collector_tstamp: at,
        event: "unstruct",
        event_name: "buy",
        domain_userid: "d2",
        v_collector: "c",
      },
      event_id: "0190a000-0000-4000-8000-000000000043",
      unstruct_event: { schema: "s", data: { schema: "iglu:com.x/buy/1", data: { title: "Own", n: 1 } } },
      page_title: "Page",
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "u1", timestamp: stored },
      properties: {
        ...{ $current_url: "https://x.example/a?utm_id=7", $host: "x.example", $pathname: "/a", title: "T" },
        ...{ $referrer: "https://r.example/", utm_source: "news", gclid: "C", mkt_network: "Google" },
        ...{ $geoip_country_code: "DE", $geoip_country_name: "Germany", $geoip_subdivision_1_code: "BE" },
        ...{ $geoip_subdivision_1_name: "Land Berlin", $geoip_city_name: "Berlin", $ip: "203.0.113.8" },
        ...{ $geoip_time_zone: "Europe/Berlin", $browser: "Chrome", $browser_language: "de", $os: "Windows" },
        ...{ $device_type: "Computer", $raw_user_agent: "Mozilla/5.0", $screen_width: 1920 },
        ...{ $session_id: "se1", $device_id: "d1", network_userid: "n1", ip_isp: "isp", app_id: "app" },
        ...{ etl_tstamp: undefined, v_collector: undefined, txn_id: undefined },
      },
    },
    {
      ...{ event: "play", distinct_id: "d2" },
      properties: { category: "c", label: "l", property: "p", value: 3, $pathname: "/b" },
    },
    { event: "buy", distinct_id: "d2", properties: { title: "Own", n: 1, page_title: "Page" } },
  ],
  summary: { accepted: 3, made: 1, not_taken: { etl_tstamp: 1, v_collector: 3, txn_id: 1 } },
};

export const matomo: StoredCase = {
  forms: ["ndjson"],
  records: [
    {
      ...{ idSite: 1, idVisit: 9, visitorId: "v1", userId: "u1", firstActionTimestamp: 1714557600 },
      ...{
        browserName: "Firefox",
        browserVersion: "1",
        operatingSystemName: "Windows",
        deviceType: "Desktop",
      },
      ...{
        countryCode: "de",
        country: "Germany",
        regionCode: "be",
        region: "Berlin",
        resolution: "1024x768",
      },
      ...{ referrerType: "campaign", referrerName: "spring", referrerKeyword: "kw", campaignSource: "goog" },
      ...{
        referrerUrl: "https://r.example/",
        dimension1: "visit",
        visitCount: 3,
        plugins: "pdf",
        languageCode: "de",
      },
      actionDetails: [
        {
          ...{
            type: "action",
            url: "https://x.example/a?utm_medium=url",
            pageTitle: "T",
            timestamp: 1714564800,
          },
          ...{ idpageview: "p1", timeSpent: "5", timeSpentPretty: "5s", dimension1: "action", iconSVG: "i" },
        },
        {
          ...{ type: "event", eventCategory: "c", eventAction: "play", eventName: "n", eventValue: 3 },
          ...{ timestamp: 1714564805, idpageview: "p1", url: "https://x.example/a" },
        },
        { type: "goal", goalName: "g", goalId: 1, revenue: 5, timestamp: 1714564806 },
        { type: "search", siteSearchKeyword: "kw", siteSearchCount: 2, timestamp: 1714564807 },
        { type: "download", url: "https://x.example/f.pdf", timestamp: 1714564808 },
        { type: "outlink", url: "https://y.example/", timestamp: 1714564809 },
        { type: "ecommerceOrder", orderId: "o1", itemDetails: [{ sku: "s" }], timestamp: 1714564810 },
        { type: "ecommerceAbandonedCart", revenue: 1, timestamp: 1714564811 },
        { type: "content", contentName: "ad", timestamp: 1714564812 },
        { type: "form", formName: "f", timestamp: 1714564813 },
        { type: "media", mediaTitle: "m", timestamp: 1714564814 },
      ],
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "u1", timestamp: stored },
      properties: {
        ...{
          $current_url: "https://x.example/a?utm_medium=url",
          title: "T",
          time_spent: "5",
          $browser: "Firefox",
        },
        ...{ timeSpentPretty: undefined, iconSVG: undefined, dimension1: "action", utm_medium: "url" },
        ...{ utm_campaign: "spring", utm_term: "kw", utm_source: "goog", referrerName: "spring" },
        ...{ $referrer: "https://r.example/", $referring_domain: "r.example", $screen_width: 1024 },
        ...{ resolution: "1024x768", $geoip_country_code: "de", $geoip_subdivision_1_name: "Berlin" },
        ...{ $session_id: 9, site_id: 1, $device_id: "v1", visitCount: undefined, plugins: undefined },
      },
    },
    {
      ...{ event: "play", distinct_id: "u1", timestamp: "2024-05-01T10:00:05.000000Z" },
      properties: { category: "c", action: "play", label: "n", value: 3, dimension1: "visit" },
    },
    { event: "goal", distinct_id: "u1", properties: { goal: "g", goal_id: 1, revenue: 5 } },
    { event: "site search", distinct_id: "u1", properties: { keyword: "kw", siteSearchCount: 2 } },
    { event: "download", distinct_id: "u1", properties: { $current_url: "https://x.example/f.pdf" } },
    { event: "outlink", distinct_id: "u1", properties: { $host: "y.example" } },
    { event: "order", distinct_id: "u1", properties: { order_id: "o1", itemDetails: [{ sku: "s" }] } },
    { event: "abandoned cart", distinct_id: "u1", properties: { revenue: 1 } },
    { event: "content", distinct_id: "u1", properties: { contentName: "ad" } },
    { event: "form", distinct_id: "u1", properties: { formName: "f" } },
    { event: "media", distinct_id: "u1", properties: { mediaTitle: "m" } },
  ],
  summary: { read: 1, accepted: 11, made: 1 },
};

export const pageviews: StoredCase = {
  table: "pageviews",
  forms: all,
  records: [
    {
      ...{ event_id: 1, user_id: 7, session_id: 2, time: at, domain: "x.example", path: "/a", query: "?q=1" },
      ...{
        title: "T",
        referrer: "https://r.example/",
        landing_page: "https://x.example/",
        browser: "Chrome 124",
      },
      ...{
        platform: "Windows 10",
        device_type: "Desktop",
        country: "Germany",
        region: "Berlin",
        city: "Berlin",
      },
      ...{ ip: "203.0.113.7", utm_source: "news", library: "web", app_version: "3", hash: "#x" },
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "heap:7", timestamp: stored },
      properties: {
        ...{ $current_url: "https://x.example/a?q=1", $host: "x.example", $pathname: "/a", title: "T" },
        ...{ $referrer: "https://r.example/", landing_page: "https://x.example/", $browser: "Chrome 124" },
        ...{ $os: "Windows 10", $device_type: "Desktop", $geoip_country_name: "Germany", $ip: "203.0.113.7" },
        ...{ utm_source: "news", $lib: "web", $app_version: "3", hash: "#x", $session_id: 2 },
      },
    },
  ],
  summary: { accepted: 1, not_taken: {} },
};
export const sessions: StoredCase = {
  table: "SESSIONS_0001_part_00",
  forms: ["ndjson", "csv"],
  records: [{ user_id: 7, session_id: 2, time: at, landing_page: "https://x.example/l?utm_source=s" }],
  events: [
    {
      ...{ event: "session_start", distinct_id: "heap:7" },
      properties: { $current_url: "https://x.example/l?utm_source=s", utm_source: "s", $session_id: 2 },
    },
  ],
};
export const allEvents: StoredCase = {
  table: "all_events",
  forms: ["ndjson", "csv"],
  records: [
    { event_id: 1, user_id: 7, session_id: 2, time: at, event_table_name: "clicked_buy" },
    { event_id: 1, user_id: 7, session_id: 2, time: at, event_table_name: "pageviews" },
  ],
  events: [
    { event: "clicked_buy", distinct_id: "heap:7", properties: {} },
    { event: "$pageview", distinct_id: "heap:7", properties: {} },
  ],
};

export const table: StoredCase = {
  forms: all,
  records: [
    {
      ...{ event: "e", distinct_id: "u1", timestamp: at, uuid: "0190a000-0000-4000-8000-000000000051" },
      ...{ properties: { a: 1, plan: "own" }, $set: { tier: "gold" }, $set_once: { first: "x" } },
      ...{ plan: "column", seats: "007", offset: 5, is_deleted: "no" },
    },
  ],
  events: [
    {
      ...{ event: "e", distinct_id: "u1", timestamp: stored },
      properties: { a: 1, plan: "own", events_plan: "column", seats: "007", offset: 5, is_deleted: "no" },
    },
  ],
  persons: { u1: { tier: "gold", first: "x" } },
};
