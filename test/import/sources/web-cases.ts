/** Realistic records of sources of web analytics, and the events that are stored for them. */

import type { JsonObject } from "../../../src/lib/json.ts";
import { all, at, type StoredCase, stored } from "./stored-case.ts";

const parameter = (key: string, value: JsonObject) => ({
  key,
  value: { string_value: null, int_value: null, float_value: null, double_value: null, ...value },
});
export const ga4: StoredCase = {
  forms: ["ndjson", "parquet"],
  records: [
    {
      ...{ event_date: "20240501", event_timestamp: "1714557600000000", event_name: "page_view" },
      ...{ user_id: "u1", user_pseudo_id: "p.1", user_first_touch_timestamp: "1714550000000000" },
      event_params: [
        parameter("page_location", { string_value: "https://x.example/a?utm_content=url&utm_term=t" }),
        parameter("page_title", { string_value: "T" }),
        parameter("page_referrer", { string_value: "https://r.example/" }),
        parameter("source", { string_value: "param" }),
        parameter("medium", { string_value: "param" }),
        parameter("ga_session_id", { int_value: "1714557000" }),
        parameter("ga_session_number", { int_value: "3" }),
        parameter("big", { int_value: "1234567890123456789" }),
        parameter("price", { double_value: 1.5 }),
        parameter("title", { string_value: "Own" }),
      ],
      collected_traffic_source: { manual_source: "news", manual_campaign_id: "9", gclid: "G", srsltid: "S" },
      traffic_source: { source: "google", medium: "cpc", name: "brand" },
      user_properties: [parameter("plan", { string_value: "pro" })],
      device: {
        ...{ category: "desktop", operating_system: "Windows", language: "de", mobile_brand_name: "B" },
        web_info: { browser: "Chrome", browser_version: "124", hostname: "host.example" },
        advertising_id: "ad",
      },
      geo: { city: "Bonn", country: "Germany", region: "NRW", continent: "Europe", metro: "(not set)" },
      app_info: { id: "com.x", version: "2", install_source: "store" },
      ...{ ecommerce: { transaction_id: "t1" }, items: [{ item_id: "i1", price: 2.5 }], platform: "WEB" },
      ...{
        stream_id: "77",
        event_value_in_usd: 2.5,
        is_active_user: true,
        privacy_info: { ads_storage: "Yes" },
      },
      ...{ user_ltv: { revenue: null, currency: null }, event_bundle_sequence_id: "5" },
    },
    {
      ...{ event_timestamp: "1714557600000000", event_name: "screen_view", user_id: null },
      ...{ user_pseudo_id: "p.2", event_params: [parameter("firebase_screen", { string_value: "Home" })] },
    },
    {
      ...{
        event_timestamp: "1714557600000000",
        event_name: "page_view",
        user_id: null,
        user_pseudo_id: null,
      },
      event_params: [],
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "u1", timestamp: stored },
      properties: {
        ...{
          $current_url: "https://x.example/a?utm_content=url&utm_term=t",
          $referrer: "https://r.example/",
        },
        ...{ title: "Own", page_title: "T", utm_source: "news", utm_medium: "param", utm_content: "url" },
        ...{ utm_term: "t", utm_id: "9", gclid: "G", srsltid: "S", $ga_session_id: 1714557000 },
        ...{ ga_session_number: 3, price: 1.5, $device_type: "desktop", $os: "Windows" },
        ...{
          $browser_language: "de",
          $device_manufacturer: "B",
          $browser: "Chrome",
          $browser_version: "124",
        },
        ...{ $host: "x.example", web_info_hostname: "host.example", device_advertising_id: "ad" },
        ...{ $geoip_city_name: "Bonn", $geoip_country_name: "Germany", $geoip_continent_name: "Europe" },
        ...{
          geo_metro: "(not set)",
          $app_namespace: "com.x",
          $app_version: "2",
          app_install_source: "store",
        },
        ...{ value_usd: 2.5, is_active_user: true, platform: "WEB", stream_id: "77", user_ltv: undefined },
        ...{ event_date: undefined, event_bundle_sequence_id: undefined, traffic_source: undefined },
      },
    },
    { event: "$screen", distinct_id: "p.2", properties: { $screen_name: "Home", firebase_screen: "Home" } },
  ],
  persons: {
    u1: {
      ...{ plan: "pro", $initial_utm_source: "google", $initial_utm_medium: "cpc" },
      ...{ $initial_utm_campaign: "brand", $initial_seen_at: "2024-05-01T07:53:20.000000Z" },
    },
  },
  summary: { accepted: 2, made: 1, rejected: 1, not_taken: { event_date: 1, event_bundle_sequence_id: 1 } },
};

export const umami: StoredCase = {
  forms: all,
  records: [
    {
      ...{
        event_id: "0190a000-0000-4000-8000-000000000031",
        website_id: "w",
        session_id: "s1",
        visit_id: "v1",
      },
      ...{ created_at: at, event_type: 1, url_path: "/a", url_query: "q=1", hostname: "x.example" },
      ...{ referrer_domain: "r.example", referrer_path: "/from", referrer_query: "z=2", page_title: "T" },
      ...{ browser: "chrome", os: "Windows 10", device: "laptop", language: "de-DE", screen: "1920x1080" },
      ...{ country: "DE", region: "DE-BE", subdivision2: "Mitte", city: "Berlin", utm_source: "news" },
      ...{ gclid: "G", li_fat_id: "L", lcp: 1200.5, tag: "t1", job_id: "j", distinct_id: "u1" },
    },
    {
      ...{
        event_id: "0190a000-0000-4000-8000-000000000032",
        website_id: "w",
        session_id: "s2",
        visit_id: "v2",
      },
      ...{ created_at: at, event_type: 2, event_name: "buy", url_path: "/b", hostname: "x.example" },
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "u1", timestamp: stored },
      properties: {
        ...{ $current_url: "https://x.example/a?q=1", $pathname: "/a", $host: "x.example", title: "T" },
        ...{ $referrer: "https://r.example/from?z=2", $referring_domain: "r.example", $session_id: "v1" },
        ...{ $device_id: "s1", $browser: "chrome", $os: "Windows 10", $device_type: "laptop" },
        ...{
          $browser_language: "de-DE",
          $screen_width: 1920,
          $screen_height: 1080,
          $geoip_country_code: "DE",
        },
        ...{ $geoip_country_name: "Germany", $geoip_subdivision_1_code: "DE-BE", utm_source: "news" },
        ...{ $geoip_subdivision_2_name: "Mitte", $geoip_city_name: "Berlin", gclid: "G", li_fat_id: "L" },
        ...{ $web_vitals_LCP_value: 1200.5, tag: "t1", website_id: "w", job_id: undefined },
      },
    },
    { event: "buy", distinct_id: "s2", properties: { $session_id: "v2", event_type: undefined } },
  ],
  summary: { accepted: 2, made: 1, not_taken: { event_type: 2, job_id: 1 } },
};

export const plausible: StoredCase = {
  forms: all,
  records: [
    {
      ...{ timestamp: at, name: "pageview", site_id: 1, user_id: "17446744073709551615", session_id: "90" },
      ...{
        hostname: "x.example",
        pathname: "/a",
        "meta.key": ["plan", "$browser"],
        "meta.value": ["pro", "Own"],
      },
      ...{ referrer: "https://r.example/a", referrer_source: "R", acquisition_channel: "Referral" },
      ...{ country_code: "DE", subdivision1_code: "DE-BE", city_geoname_id: 2950159, browser: "Chrome" },
      ...{ operating_system: "Mac", screen_size: "Desktop", utm_source: "news", scroll_depth: 255 },
      ...{ revenue_source_currency: "\0\0\0", click_id_param: "gclid" },
    },
    {
      ...{
        timestamp: at,
        name: "engagement",
        site_id: 1,
        user_id: "17",
        session_id: "91",
        hostname: "x.example",
      },
      ...{
        pathname: "/a",
        scroll_depth: 61,
        engagement_time: 3000,
        country_code: "\0\0",
        city_geoname_id: 0,
      },
      ...{ revenue_source_amount: "9.99", revenue_source_currency: "EUR", revenue_reporting_amount: "10.5" },
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "17446744073709551615", timestamp: stored },
      properties: {
        ...{ $host: "x.example", $pathname: "/a", $current_url: "https://x.example/a", plan: "pro" },
        ...{
          $browser: "Own",
          plausible_browser: undefined,
          browser: "Chrome",
          $referring_domain: "r.example",
        },
        ...{ referrer_source: "R", acquisition_channel: "Referral", $geoip_country_code: "DE" },
        ...{ $geoip_country_name: "Germany", $geoip_subdivision_1_code: "DE-BE", $os: "Mac" },
        ...{ city_geoname_id: 2950159, $device_type: "Desktop", utm_source: "news", $session_id: "90" },
        ...{ scroll_depth: undefined, currency: undefined, site_id: 1, click_id_param: "gclid" },
      },
    },
    {
      ...{ event: "$pageleave", distinct_id: "17" },
      properties: {
        ...{ scroll_depth: 61, engagement_time: 3000, revenue: "9.99", currency: "EUR" },
        ...{ revenue_reporting_amount: "10.5", $prev_pageview_max_scroll_percentage: 0.61 },
        ...{ $geoip_country_code: undefined, city_geoname_id: undefined },
      },
    },
  ],
  summary: { accepted: 2, made: 0, not_taken: {} },
};

export const plausibleObjects: StoredCase = {
  forms: ["ndjson", "csv", "parquet"],
  records: [
    {
      timestamp: at,
      name: "a",
      site_id: 1,
      user_id: 17,
      hostname: "x.example",
      pathname: "/a",
      meta: { plan: "p" },
    },
    { timestamp: at, name: "b", domain: "x.example", user_id: 17, hostname: "x.example", pathname: "/a" },
  ],
  events: [
    { event: "a", distinct_id: "17", properties: { plan: "p", meta: undefined, site_id: 1 } },
    { event: "b", distinct_id: "17", properties: { domain: "x.example", $host: "x.example" } },
  ],
};
export const plausibleColumns: StoredCase = {
  forms: all,
  records: [
    {
      ...{ timestamp: at, name: "a", site_id: 1, user_id: 17, hostname: "x.example", pathname: "/a" },
      ...{ "meta.plan": "p", "props.tier": "gold", country_code: "ZZ" },
    },
  ],
  events: [
    {
      ...{ event: "a", distinct_id: "17" },
      properties: { plan: "p", tier: "gold", $geoip_country_name: undefined },
    },
  ],
};
