/** Realistic records of each source, and the events that are stored for them. Source: contract, import 2.1 to 2.11. */

import type { JsonObject } from "../../../src/lib/json.ts";

export type FileForm = "ndjson" | "csv" | "tsv" | "parquet";

export interface StoredCase {
  /** Name of the file, if the source's mapping depends on it. */
  table?: string;
  forms: readonly FileForm[];
  records: readonly JsonObject[];
  /** The events in order, with a part of their properties; undefined for a name that must be absent. */
  events: readonly {
    event: string;
    distinct_id: string;
    timestamp?: string;
    properties: Record<string, unknown>;
    elements_chain?: string;
  }[];
  /** A part of the person properties, by distinct id. */
  persons?: Record<string, Record<string, unknown>>;
  summary?: Record<string, unknown>;
}

const all = ["ndjson", "csv", "tsv", "parquet"] as const;
const at = "2024-05-01 10:00:00";
const stored = "2024-05-01T10:00:00.000000Z";

const posthog: StoredCase = {
  forms: all,
  records: [
    {
      ...{ uuid: "0190a000-0000-4000-8000-000000000001", event: "$autocapture", distinct_id: "p1" },
      ...{ timestamp: "2024-05-01 10:00:00.123", properties: { a: 1, $ip: "10.0.0.1" }, ip: "203.0.113.1" },
      ...{ people_set: { plan: "pro" }, people_set_once: { first: "x" }, team_id: 7, mat_plan: "pro" },
      ...{ person_id: "x", group_0: "acme", consumer_breadcrumbs: "[]", is_deleted: 0, custom: "kept" },
      elements: [
        {
          ...{ tag_name: "a", text: 'Say "Go"', href: "/x", attr_class: ["btn", "a1"], nth_child: 1 },
          ...{ nth_of_type: 2, attributes: { attr__data: "d" }, order: 0 },
        },
        { tag_name: "div", nth_child: 3, nth_of_type: 4, attributes: {}, order: 1 },
      ],
    },
    {
      ...{ uuid: "0190a000-0000-4000-8000-000000000002", event: "x", distinct_id: "p2", timestamp: at },
      ...{ properties: { $set: { plan: "own" }, n: "007" }, people_set: { plan: "other" }, team_id: 7 },
      ...{ ip: "203.0.113.2", elements: [] },
    },
  ],
  events: [
    {
      ...{ event: "$autocapture", distinct_id: "p1", timestamp: "2024-05-01T10:00:00.123000Z" },
      properties: {
        ...{ a: 1, $ip: "10.0.0.1", custom: "kept", team_id: undefined, mat_plan: undefined },
        ...{ person_id: undefined, group_0: undefined, people_set: undefined, is_deleted: undefined },
      },
      elements_chain:
        'a.a1.btn:attr__data="d"attr__href="/x"nth-child="1"nth-of-type="2"text="Say \\"Go\\"";div:nth-child="3"nth-of-type="4"',
    },
    { event: "x", distinct_id: "p2", timestamp: stored, properties: { n: "007", $ip: "203.0.113.2" } },
  ],
  persons: { p1: { plan: "pro", first: "x" }, p2: { plan: "own" } },
  // The replaced value of `people_set` is reported, too.
  summary: {
    ...{ accepted: 2, rejected: 0 },
    not_taken: { team_id: 2, mat_plan: 1, person_id: 1, group_0: 1, people_set: 1, ip: 1 },
  },
};
const amplitude: StoredCase = {
  forms: all,
  records: [
    {
      ...{ event_type: "[Amplitude] Page Viewed", user_id: "u1", device_id: "d1", event_time: at },
      ...{ uuid: "0190a000-0000-4000-8000-000000000011", platform: "Web", os_name: "Chrome" },
      ...{ os_version: "124", device_type: "Windows", device_family: "Windows", city: "Bonn" },
      ...{
        country: "Germany",
        region: "NRW",
        location_lat: 50.7,
        location_lng: 7.1,
        ip_address: "203.0.113.4",
      },
      ...{ session_id: -1, amplitude_id: 123456789012, language: "German", dma: "x", paying: "true" },
      ...{
        app: 77,
        client_event_time: at,
        data: { path: "/2/httpapi" },
        $insert_id: "i1",
        version_name: "2.1",
      },
      event_properties: {
        ...{
          "[Amplitude] Page URL": "https://x.example/p?utm_source=news&gclid=G",
          referrer: "https://r.example/a",
        },
        ...{ "[Amplitude] Page Title": "P", title: "Own", "[Amplitude] Viewport Width": 800 },
      },
      user_properties: {
        ...{ plan: "pro", initial_utm_source: "ad", initial_gclid: "EMPTY", initial_other: "EMPTY" },
        ...{ initial_msclkid: "M", initial_li_fat_id: "L", initial_referrer: "https://i.example/" },
        ...{ $setOnce: { first: "x", initial_utm_medium: "EMPTY" }, $add: { n: 1 } },
      },
      groups: { org: ["acme", "b"], team: "red" },
    },
    {
      ...{ event_type: "[Amplitude] Element Clicked", user_id: "u1", device_id: "d1", event_time: at },
      ...{
        uuid: "0190a000-0000-4000-8000-000000000012",
        platform: "iOS",
        os_name: "ios",
        os_version: "17.1",
      },
      ...{ device_type: "Apple iPhone", device_manufacturer: "Apple", device_brand: "AB", session_id: 17 },
      event_properties: { "[Amplitude] Element Text": "Go", "[Amplitude] Element Tag": "a" },
    },
    {
      ...{
        event_type: "session_start",
        device_id: "d1",
        event_time: at,
        platform: "Web",
        device_type: "iOS",
      },
      ...{ uuid: "0190a000-0000-4000-8000-000000000013", os_name: "Safari", groups: { org: "acme" } },
      ...{ group_properties: { org: { acme: { size: 3 } } } },
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "u1", timestamp: stored },
      properties: {
        ...{
          $current_url: "https://x.example/p?utm_source=news&gclid=G",
          $host: "x.example",
          $pathname: "/p",
        },
        ...{
          utm_source: "news",
          gclid: "G",
          $referrer: "https://r.example/a",
          $referring_domain: "r.example",
        },
        ...{ title: "Own", "[Amplitude] Page Title": "P", $viewport_width: 800, $browser: "Chrome" },
        ...{ $browser_version: "124", $os: "Windows", $device_type: "Desktop", $geoip_city_name: "Bonn" },
        ...{ $geoip_country_name: "Germany", $geoip_subdivision_1_name: "NRW", $geoip_latitude: 50.7 },
        ...{
          $ip: "203.0.113.4",
          $amplitude_session_id: undefined,
          session_id: undefined,
          language: "German",
        },
        ...{ dma: "x", paying: "true", device_family: "Windows", app: undefined, data: undefined },
        ...{ $app_version: "2.1", $device_id: "d1", $groups: { org: "acme", team: "red" } },
        ...{ amplitude_groups: { org: ["acme", "b"] }, amplitude_user_operations: { $add: { n: 1 } } },
      },
    },
    {
      ...{ event: "$autocapture", distinct_id: "u1" },
      properties: {
        ...{ $event_type: "click", $el_text: "Go", "[Amplitude] Element Tag": "a", $os: "ios" },
        ...{ $os_version: "17.1", $device_type: "Mobile", device_type: "Apple iPhone", device_brand: "AB" },
        ...{ $device_manufacturer: "Apple", $amplitude_session_id: 17, $browser: undefined },
      },
    },
    {
      ...{ event: "session_start", distinct_id: "d1" },
      properties: { $browser: "Safari", $os: "iOS", $device_type: "Mobile", $groups: { org: "acme" } },
    },
  ],
  persons: {
    u1: {
      ...{ plan: "pro", $initial_utm_source: "ad", $initial_msclkid: "M", $initial_li_fat_id: "L" },
      ...{ $initial_referrer: "https://i.example/", first: "x", $initial_other: undefined },
      ...{ initial_other: undefined, $add: undefined, $initial_utm_medium: undefined },
    },
  },
  summary: { accepted: 3, made: 2, rejected: 0 },
};

const mixpanel: StoredCase = {
  forms: ["ndjson", "csv", "tsv"],
  records: [
    {
      event: "$mp_web_page_view",
      properties: {
        ...{ time: 1714557600, distinct_id: "$device:d1", $device_id: "d1", $insert_id: "m1" },
        ...{ current_page_title: "T", current_url_path: "/p", current_domain: "x.example" },
        ...{ $current_url: "https://x.example/p?utm_campaign=may", $browser: "Chrome", $city: "Berlin" },
        ...{ $region: "Land Berlin", mp_country_code: "DE", $model: "M", $brand: "B", $manufacturer: "Mf" },
        ...{ $app_version_string: "1.2", $app_build_number: "77", $lib_version: "2", mp_lib: "web" },
        ...{ "utm_source [last touch]": "l", "utm_source [first touch]": "f", $initial_referrer: "$direct" },
        $mp_api_endpoint: "x",
      },
    },
    {
      event: "buy",
      properties: {
        ...{ time: 1714557600, distinct_id: "AB-12", $distinct_id_before_identity: "orig", $insert_id: "m2" },
        title: "Own",
      },
    },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "d1", timestamp: stored },
      properties: {
        ...{ title: "T", $pathname: "/p", $host: "x.example", utm_campaign: "may", utm_source: "l" },
        ...{ $geoip_city_name: "Berlin", $geoip_subdivision_1_name: "Land Berlin", $city: "Berlin" },
        ...{ $geoip_country_code: "DE", $geoip_country_name: "Germany", $device_model: "M" },
        ...{ $device_manufacturer: "Mf", $brand: "B", $app_version: "1.2", $app_build: "77" },
        ...{ "utm_source [first touch]": "f", $mp_api_endpoint: undefined, $insert_id: undefined },
      },
    },
    { event: "buy", distinct_id: "orig", properties: { title: "Own", distinct_id: "AB-12" } },
  ],
  persons: { d1: { $initial_utm_source: "f", $initial_referrer: "$direct" } },
  summary: { accepted: 2, not_taken: { $insert_id: 2, $mp_api_endpoint: 1 } },
};

const segment: StoredCase = {
  forms: all,
  records: [
    {
      ...{ type: "track", event: "Buy", userId: "u1", anonymousId: "a1", messageId: "s1", timestamp: at },
      properties: { title: "Dune", total: 7, $browser: "Own", utm_source: "own" },
      context: {
        ...{ ip: "203.0.113.9", userAgent: "Mozilla/5.0", locale: "de-DE", timezone: "Europe/Berlin" },
        page: { url: "https://x.example/a?utm_content=c", title: "Page", referrer: "https://r.example/" },
        campaign: { source: "news", medium: "email", name: "may", id: "9" },
        device: { type: "ios", id: "dev", token: "tok" },
        ...{ os: { name: "iOS", version: "17" }, app: { name: "A", version: "1", build: 3 } },
        ...{ screen: { width: 320, height: 640, density: 2 }, network: { wifi: true, carrier: "T" } },
        ...{
          library: { name: "analytics.js", version: "4" },
          location: { city: "Bonn", country: "Germany" },
        },
        ...{ traits: { plan: "pro" }, groupId: "acme", externalId: "e1", sessionId: "se1" },
      },
      ...{ integrations: { All: true }, sentAt: at, originalTimestamp: "2024-05-01 09:00:00" },
    },
    {
      ...{ type: "identify", userId: "u1", anonymousId: "a1", messageId: "s2", timestamp: at },
      ...{ traits: { email: "u@example.com", plan: "own" }, context: { traits: { plan: "ctx", age: 3 } } },
    },
    {
      ...{ type: "screen", name: "Home", category: "Main", userId: "u1", messageId: "s3", timestamp: at },
      properties: { x: 1 },
    },
    {
      ...{
        type: "group",
        userId: "u1",
        groupId: "acme",
        traits: { size: 3 },
        messageId: "s4",
        timestamp: at,
      },
    },
    { type: "alias", previousId: "old", userId: "u1", messageId: "s5", timestamp: at },
  ],
  events: [
    {
      ...{ event: "Buy", distinct_id: "u1", timestamp: stored },
      properties: {
        ...{ title: "Dune", total: 7, $browser: "Own", utm_source: "own", segment_utm_source: "news" },
        ...{ utm_medium: "email", utm_campaign: "may", utm_id: "9", utm_content: "c", $host: "x.example" },
        ...{ context_page_title: "Page", $ip: "203.0.113.9", $raw_user_agent: "Mozilla/5.0" },
        ...{ $user_agent: "Mozilla/5.0", $locale: "de-DE", $timezone: "Europe/Berlin", $device_type: "ios" },
        ...{ $device_id: "dev", context_device_token: "tok", $os: "iOS", $os_version: "17", $app_name: "A" },
        ...{
          $app_build: 3,
          $screen_width: 320,
          screen_density: 2,
          $network_wifi: true,
          $lib: "analytics.js",
        },
        ...{ $geoip_city_name: "Bonn", $geoip_country_name: "Germany", context_externalId: "e1" },
        ...{ $groups: { company: "acme" }, $session_id: "se1", $referring_domain: "r.example" },
        ...{ integrations: undefined, sentAt: undefined },
      },
    },
    { event: "$identify", distinct_id: "u1", properties: { $anon_distinct_id: "a1" } },
    {
      ...{ event: "$screen", distinct_id: "u1" },
      properties: { $screen_name: "Home", name: "Home", category: "Main", x: 1 },
    },
    {
      ...{ event: "$groupidentify", distinct_id: "u1" },
      properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 3 } },
    },
    { event: "$create_alias", distinct_id: "old", properties: { alias: "u1" } },
  ],
  persons: { u1: { email: "u@example.com", plan: "own", age: 3 } },
  summary: { accepted: 5, not_taken: { integrations: 1, sentAt: 1, originalTimestamp: 1 } },
};

const rudder: StoredCase = {
  forms: all,
  records: [
    {
      ...{ type: "track", event: "Buy", anonymousId: "a1", messageId: "r1", channel: "web", rudderId: "r" },
      ...{ originalTimestamp: at, receivedAt: "2024-05-01 10:00:09", properties: { name: "Own" } },
      context: {
        ...{ library: { name: "RudderLabs JavaScript SDK", version: "2" }, campaign: { name: "may" } },
        ...{
          page: { url: "https://x.example/a", tab_url: "t", path: "/own" },
          sessionId: 17,
          referrer: { url: "u" },
        },
      },
    },
  ],
  events: [
    {
      ...{ event: "Buy", distinct_id: "a1", timestamp: stored },
      properties: {
        ...{ name: "Own", $lib: "RudderLabs JavaScript SDK", $lib_version: "2", utm_campaign: "may" },
        ...{
          $pathname: "/own",
          context_page_tab_url: "t",
          $session_id: 17,
          $referrer: "u",
          channel: undefined,
        },
      },
    },
  ],
  summary: { accepted: 1, made: 0, not_taken: { channel: 1, rudderId: 1, receivedAt: 1 } },
};

const warehouse = { user_id: "u1", anonymous_id: "a1", original_timestamp: at, timestamp: at, sent_at: at };
const tracks: StoredCase = {
  table: "order_completed",
  forms: all,
  records: [
    {
      ...{ ...warehouse, id: "w1", event: "order_completed", event_text: "Order Completed", total: 7 },
      ...{ context_ip: "203.0.113.9", context_page_url: "https://x.example/a", context_campaign_name: "may" },
      ...{ context_traits_plan: "pro", context_library_name: "analytics.js", type: "gift", uuid_ts: at },
    },
  ],
  events: [
    {
      ...{ event: "Order Completed", distinct_id: "u1", timestamp: stored },
      properties: {
        ...{ total: 7, $ip: "203.0.113.9", $host: "x.example", utm_campaign: "may", type: "gift" },
        ...{ $lib: "analytics.js", sent_at: undefined, original_timestamp: undefined },
      },
    },
  ],
  persons: { u1: { plan: "pro" } },
  summary: { accepted: 1, made: 1, not_taken: { original_timestamp: 1, sent_at: 1, uuid_ts: 1 } },
};
const identifies: StoredCase = {
  table: "identifies",
  forms: all,
  records: [{ ...warehouse, id: "w2", name: "Ann", plan: "pro", context_screen_width: 100 }],
  events: [{ event: "$identify", distinct_id: "u1", properties: { $anon_distinct_id: "a1" } }],
  persons: { u1: { name: "Ann", plan: "pro" } },
};
const pages: StoredCase = {
  table: "PAGES_001",
  forms: all,
  records: [
    {
      ...{ ...warehouse, id: "w3", name: "Pricing", category: "M", url: "https://x.example/pricing?q=1" },
      ...{ path: "/pricing", title: "Prices", referrer: "https://r.example/" },
    },
    // An export may lack the original time.
    { ...warehouse, id: "w4", name: "Home", original_timestamp: null },
  ],
  events: [
    {
      ...{ event: "$pageview", distinct_id: "u1" },
      properties: {
        ...{ name: "Pricing", category: "M", $current_url: "https://x.example/pricing?q=1" },
        ...{ $pathname: "/pricing", title: "Prices", $referrer: "https://r.example/" },
      },
    },
    { event: "$pageview", distinct_id: "u1", properties: { name: "Home" } },
  ],
};
const screens: StoredCase = {
  table: "export",
  forms: all,
  records: [{ ...warehouse, id: "w5", name: "Home", context_screen_width: 320 }],
  events: [{ event: "$screen", distinct_id: "u1", properties: { $screen_name: "Home", $screen_width: 320 } }],
};
const groups: StoredCase = {
  table: "export",
  forms: all,
  records: [{ ...warehouse, id: "w6", group_id: "acme", name: "Acme", size: 3 }],
  events: [
    {
      ...{ event: "$groupidentify", distinct_id: "u1" },
      properties: { $group_key: "acme", $group_set: { name: "Acme", size: 3 } },
    },
  ],
};
const aliases: StoredCase = {
  table: "export",
  forms: all,
  records: [{ ...warehouse, id: "w7", previous_id: "old", anonymous_id: null }],
  events: [{ event: "$create_alias", distinct_id: "old", properties: { alias: "u1" } }],
};

const parameter = (key: string, value: JsonObject) => ({
  key,
  value: { string_value: null, int_value: null, float_value: null, double_value: null, ...value },
});
const ga4: StoredCase = {
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

const umami: StoredCase = {
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

const plausible: StoredCase = {
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

const plausibleObjects: StoredCase = {
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
const plausibleColumns: StoredCase = {
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

const snowplow: StoredCase = {
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

const matomo: StoredCase = {
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

const pageviews: StoredCase = {
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
const sessions: StoredCase = {
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
const allEvents: StoredCase = {
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

const table: StoredCase = {
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

export const storedCases: Readonly<Record<string, StoredCase>> = {
  ...{ posthog, amplitude, mixpanel, segment, tracks, identifies, pages, screens, groups, aliases, ga4 },
  ...{
    rudder,
    plausibleObjects,
    plausibleColumns,
    umami,
    plausible,
    matomo,
    snowplow,
    pageviews,
    sessions,
    "all events": allEvents,
    table,
  },
};
