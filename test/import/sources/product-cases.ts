/** Realistic records of sources of product analytics, and the events that are stored for them. */

import { all, at, type StoredCase, stored } from "./stored-case.ts";

export const posthog: StoredCase = {
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
export const amplitude: StoredCase = {
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

export const mixpanel: StoredCase = {
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

export const segment: StoredCase = {
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

export const rudder: StoredCase = {
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
export const tracks: StoredCase = {
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
export const identifies: StoredCase = {
  table: "identifies",
  forms: all,
  records: [{ ...warehouse, id: "w2", name: "Ann", plan: "pro", context_screen_width: 100 }],
  events: [{ event: "$identify", distinct_id: "u1", properties: { $anon_distinct_id: "a1" } }],
  persons: { u1: { name: "Ann", plan: "pro" } },
};
export const pages: StoredCase = {
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
export const screens: StoredCase = {
  table: "export",
  forms: all,
  records: [{ ...warehouse, id: "w5", name: "Home", context_screen_width: 320 }],
  events: [{ event: "$screen", distinct_id: "u1", properties: { $screen_name: "Home", $screen_width: 320 } }],
};
export const groups: StoredCase = {
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
export const aliases: StoredCase = {
  table: "export",
  forms: all,
  records: [{ ...warehouse, id: "w7", previous_id: "old", anonymous_id: null }],
  events: [{ event: "$create_alias", distinct_id: "old", properties: { alias: "u1" } }],
};
