/** A record of each source with a value of its own in every member that its contract section names. */

import type { RecordFormat } from "../../../src/import/map/formats.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../src/lib/json.ts";

export interface FullRecord {
  format: RecordFormat;
  record: JsonObject;
  /** Members whose value an event shows in another form, if at all: names, times, ids, addresses in parts. */
  used: readonly string[];
  /** Members that are reported (contract, import L2). */
  omitted: readonly string[];
  /** The member with the customer's own values, if the source has one. */
  bag?: string;
  table?: string;
}

/** Members with a text each, which `withPaths` makes unique. */
function texts(...names: string[]): JsonObject {
  return Object.fromEntries(names.map((name) => [name, "<>"]));
}

/** Replaces each text in angle brackets by one with its path, which occurs nowhere else. */
function withPaths(value: Json, path: string): Json {
  if (typeof value === "string") return value.startsWith("<") ? `<${path}>` : value;
  if (Array.isArray(value)) return value.map((item, at) => withPaths(item, `${path}.${at}`));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, inner]): [string, Json] => [
    name,
    withPaths(inner, path === "" ? name : `${path}.${name}`),
  ]);
  return Object.fromEntries(entries);
}

const at = "2024-05-01 10:00:00";
const omittedOf = {
  posthog: [
    ...[0, 1, 2, 3, 4].flatMap((n) => [`group_${n}`, `group${n}_properties`, `group${n}_created_at`]),
    ...["person_mode", "person_created_at", "person_version", "mat_plan", "dmat_string_1", "inserted_at"],
    ...["_timestamp", "_offset", "_partition", "consumer_breadcrumbs", "elements_hash", "team_id"],
    ...["project_id", "site_url", "created_at", "bq_ingested_timestamp", "historical_migration"],
    ...["person_properties", "person", "person_id"],
  ],
  amplitude: [
    ...["app", "schema", "$schema", "data", "data_type", "$insert_key", "amplitude_event_type"],
    ...["amplitude_attribution_ids", "is_attribution_event", "global_user_properties"],
    ...["client_event_time", "client_upload_time", "server_received_time", "server_upload_time"],
    "processed_time",
  ],
  segment: [
    ...["integrations", "sentAt", "channel", "version", "writeKey", "projectId", "_metadata"],
    ...["uuid_ts", "loaded_at", "sent_at", "originalTimestamp", "receivedAt"],
  ],
  ga4: ["event_date", "event_bundle_sequence_id", "batch_event_index", "batch_ordering_id", "batch_page_id"],
  matomo: [
    ...["deviceTypeIcon", "visitDurationPretty", "siteCurrencySymbol", "browserIcon", "pluginsIcons"],
    ...["plugins", "serverDate", "serverTimePretty", "visitCount", "actions", "searches", "events"],
    ...["interactions", "goalConversions", "countryFlag", "visitDuration", "daysSinceLastVisit"],
  ],
  snowplow: [
    ...["etl_tstamp", "etl_tags", "v_tracker", "v_collector", "v_etl", "name_tracker"],
    ...["event_fingerprint", "txn_id", "dvce_sent_tstamp"],
  ],
};

const records: Readonly<Record<string, FullRecord>> = {
  posthog: {
    format: "posthog",
    record: {
      uuid: "22222222-2222-4222-8222-222222222222",
      event: "e",
      distinct_id: "u",
      timestamp: at,
      properties: {},
      set: { a: "<set>" },
      set_once: { b: "<set_once>" },
      elements_chain: "a:<chain>",
      ...texts("ip", "custom", ...omittedOf.posthog),
      is_deleted: 0,
    },
    used: ["uuid", "event", "distinct_id", "timestamp", "properties", "elements_chain"],
    omitted: ["is_deleted", ...omittedOf.posthog],
    bag: "properties",
  },
  amplitude: {
    format: "amplitude",
    record: {
      event_type: "e",
      user_id: "u",
      device_id: "<device>",
      event_time: at,
      uuid: "not-a-uuid",
      event_properties: texts("[Amplitude] Page URL", "[Amplitude] Page Path", "referrer", "own"),
      user_properties: {
        ...texts("plan"),
        $set: { a: "<set>" },
        $setOnce: { b: "<once>" },
        $unset: { "<unset>": "-" },
        $add: { n: "<add>" },
        $append: { n: "<append>" },
        initial_utm_source: "<initial>",
      },
      groups: { org: ["<org>", "<other>"] },
      group_properties: { none: { size: "<size>" } },
      ...texts("$insert_id", "platform", "os_name", "os_version", "device_type", "device_manufacturer"),
      ...texts("device_brand", "device_model", "version_name", "start_version", "ip_address", "city"),
      ...texts("country", "region", "location_lat", "location_lng", "dma", "carrier", "device_carrier"),
      ...texts("device_family", "idfa", "idfv", "adid", "paying", "language", "library", "event_id"),
      ...texts("user_creation_time", "source_id", "plan", "partner_id", "sample_rate", "session_id"),
      ...texts("amplitude_id", "custom", "time", ...omittedOf.amplitude),
    },
    used: ["event_type", "user_id", "event_time", "uuid", "event_properties"],
    omitted: ["$insert_id", ...omittedOf.amplitude],
    bag: "event_properties",
  },
  mixpanel: {
    format: "mixpanel",
    record: {
      event: "$mp_web_page_view",
      properties: {
        time: 1714557600,
        distinct_id: "u",
        $device_id: "<device>",
        $user_id: "u",
        ...texts("$insert_id", "current_page_title", "current_url_path", "current_domain", "$current_url"),
        ...texts("$model", "$manufacturer", "$brand", "$app_version_string", "$app_build_number"),
        ...texts("$lib_version", "$initial_referrer", "$initial_referring_domain", "$city", "$region"),
        ...texts("mp_country_code", "$country_code", "utm_source [last touch]", "utm_source [first touch]"),
        ...texts("$mp_api_endpoint", "$mp_api_timestamp_ms", "mp_processing_time_ms", "$geo_source"),
        ...texts("$import", "$source", "custom"),
      },
      custom: "<outer>",
    },
    used: ["event", "properties"],
    omitted: [
      ...["$insert_id", "$mp_api_endpoint", "$mp_api_timestamp_ms", "mp_processing_time_ms"],
      ...["$geo_source", "$import", "$source"],
    ],
  },
  segment: {
    format: "segment",
    record: {
      type: "page",
      userId: "u",
      anonymousId: "d",
      messageId: "m",
      timestamp: at,
      properties: texts("url", "path", "referrer", "search", "title"),
      ...texts("name", "category", "custom", ...omittedOf.segment),
      context: {
        page: texts("url", "path", "referrer", "title", "search", "tab"),
        campaign: texts("source", "medium", "name", "term", "content", "id"),
        os: texts("name", "version", "build"),
        device: texts("type", "manufacturer", "model", "name", "id", "token"),
        app: texts("name", "version", "build", "namespace", "mode"),
        screen: texts("width", "height", "density", "pixels"),
        network: texts("wifi", "carrier", "cellular", "bluetooth", "speed"),
        library: texts("name", "version", "commit"),
        location: texts("city", "country", "region", "latitude", "longitude", "speed"),
        referrer: texts("url", "type", "name", "link"),
        traits: texts("plan"),
        ...texts("ip", "userAgent", "locale", "timezone", "groupId", "sessionId", "externalId", "other"),
      },
    },
    used: ["type", "userId", "anonymousId", "messageId", "timestamp", "properties"],
    omitted: omittedOf.segment,
    bag: "properties",
  },
  "warehouse row": {
    format: "rudderstack",
    record: {
      event: "<slug>",
      event_text: "e",
      user_id: "u",
      anonymous_id: "d",
      id: "m",
      timestamp: at,
      ...texts("context_ip", "context_page_url", "context_campaign_source", "context_device_ad_id"),
      ...texts("context_external_id", "context_library_name", "context_traits_plan", "custom", "type"),
      ...texts("original_timestamp", "received_at", "sent_at", "uuid_ts", "loaded_at", "rudder_id"),
    },
    used: ["event", "event_text", "user_id", "anonymous_id", "id", "timestamp"],
    omitted: ["original_timestamp", "received_at", "sent_at", "uuid_ts", "loaded_at", "rudder_id"],
  },
  ga4: {
    format: "ga4",
    record: {
      event_name: "page_view",
      event_timestamp: "1714557600000000",
      user_id: "u",
      user_pseudo_id: "d",
      event_params: ["page_location", "page_referrer", "page_title", "screen_name", "source", "gclid"].map(
        (key) => ({ key, value: { string_value: `<${key}>`, int_value: null } }),
      ),
      collected_traffic_source: texts(
        ...["manual_source", "manual_medium", "manual_campaign_name", "manual_term", "manual_content"],
        ...["manual_campaign_id", "manual_source_platform", "manual_creative_format"],
        ...["manual_marketing_tactic", "gclid", "dclid", "srsltid", "later"],
      ),
      traffic_source: texts("source", "medium", "name", "later"),
      user_properties: [{ key: "plan", value: { string_value: "<plan>" } }],
      user_first_touch_timestamp: "1714550000000000",
      device: {
        ...texts("category", "operating_system", "operating_system_version", "mobile_brand_name"),
        ...texts("mobile_model_name", "language", "browser", "browser_version", "advertising_id"),
        web_info: texts("browser", "browser_version", "hostname", "later"),
      },
      geo: texts("city", "country", "region", "continent", "sub_continent", "metro"),
      app_info: texts("id", "version", "install_store", "firebase_app_id", "install_source"),
      ecommerce: texts("transaction_id"),
      items: [texts("item_id")],
      event_dimensions: texts("hostname"),
      session_traffic_source_last_click: { manual_campaign: texts("last_click") },
      item_list: texts("list"),
      user_ltv: texts("ltv"),
      publisher: texts("ad"),
      privacy_info: texts("ads"),
      ...texts("is_active_user", "event_value_in_usd", "platform", "stream_id", "event_previous_timestamp"),
      ...texts("event_server_timestamp_offset", "custom", ...omittedOf.ga4),
    },
    used: [...["event_name", "event_timestamp", "user_id", "user_pseudo_id", "user_first_touch_timestamp"]],
    omitted: omittedOf.ga4,
  },
  umami: {
    format: "umami",
    record: {
      event_type: "1",
      created_at: at,
      event_id: "e-1",
      session_id: "<session>",
      distinct_id: "u",
      ...texts("event_name", "url_path", "url_query", "hostname", "referrer_domain", "referrer_path"),
      ...texts("referrer_query", "page_title", "visit_id", "browser", "os", "device", "language", "ip"),
      ...texts("country", "region", "subdivision2", "city", "lat", "lng", "utm_source", "gclid", "fbclid"),
      ...texts("msclkid", "ttclid", "li_fat_id", "twclid", "lcp", "inp", "cls", "fcp", "ttfb", "tag"),
      ...texts("website_id", "custom", "job_id"),
      screen: "1920x1080",
    },
    used: ["created_at", "event_id", "distinct_id", "screen"],
    omitted: ["event_type", "job_id"],
  },
  plausible: {
    format: "plausible",
    record: {
      timestamp: at,
      user_id: "17",
      name: "e",
      "meta.key": ["own"],
      "meta.value": ["<own>"],
      ...texts("hostname", "pathname", "referrer", "referrer_source", "acquisition_channel", "channel"),
      ...texts("click_id_param", "utm_source", "country_code", "subdivision1_code", "subdivision2_code"),
      ...texts("city_geoname_id", "browser", "browser_version", "operating_system", "screen_size"),
      ...texts("operating_system_version", "session_id", "revenue_source_amount", "engagement_time"),
      ...texts("revenue_source_currency", "revenue_reporting_amount", "revenue_reporting_currency"),
      ...texts("site_id", "domain", "custom"),
      scroll_depth: "61",
    },
    used: ["timestamp", "user_id", "name", "meta.key"],
    omitted: [],
  },
  matomo: {
    format: "matomo",
    record: {
      firstActionTimestamp: 1714557600,
      userId: "u",
      referrerType: "campaign",
      actionDetails: [
        {
          type: "action",
          timestamp: 1714557600,
          ...texts("url", "pageTitle", "title", "eventCategory", "eventAction", "eventName", "eventValue"),
          ...texts("goalName", "goalId", "revenue", "revenueSubTotal", "orderId", "itemDetails"),
          ...texts("siteSearchKeyword", "siteSearchCategory", "siteSearchCount", "timeSpent"),
          ...texts("pageLoadTimeMilliseconds", "contentName", "contentPiece", "contentTarget"),
          ...texts("contentInteraction", "formName", "mediaTitle", "bandwidth", "dimension1", "custom"),
          ...texts("interactions", "idpageview"),
        },
      ],
      ...texts("dimension2", "customVariables", "referrerName", "referrerKeyword", "campaignName"),
      ...texts("campaignSource", "campaignMedium", "campaignKeyword", "campaignContent", "campaignId"),
      ...texts("campaignGroup", "campaignPlacement", "referrerUrl", "referrerTypeName", "browserName"),
      ...texts("browserVersion", "operatingSystemName", "operatingSystemVersion", "deviceType"),
      ...texts("deviceBrand", "deviceModel", "languageCode", "resolution", "visitIp", "countryCode"),
      ...texts("country", "regionCode", "region", "city", "latitude", "longitude", "continent"),
      ...texts("idVisit", "idSite", "visitorId", "custom2", ...omittedOf.matomo),
    },
    used: ["userId", "actionDetails.timestamp", "actionDetails.type"],
    omitted: ["firstActionTimestamp", ...omittedOf.matomo],
  },
  snowplow: {
    format: "snowplow",
    record: {
      event: "unstruct",
      event_id: "33333333-3333-4333-8333-333333333333",
      user_id: "u",
      collector_tstamp: at,
      unstruct_event: { data: { data: { own: "<own>" } } },
      ...texts("event_name", "domain_userid", "network_userid", "page_url", "page_urlhost", "page_urlpath"),
      ...texts("page_title", "page_referrer", "page_urlquery", "mkt_medium", "mkt_source", "mkt_term"),
      ...texts("mkt_content", "mkt_campaign", "mkt_clickid", "mkt_network", "geo_country", "geo_region"),
      ...texts("geo_city", "geo_zipcode", "geo_latitude", "geo_longitude", "geo_region_name", "ip_isp"),
      ...texts("geo_timezone", "user_ipaddress", "br_name", "br_family", "br_version", "br_lang"),
      ...texts("os_name", "os_family", "dvce_type", "dvce_screenwidth", "dvce_screenheight", "useragent"),
      ...texts("domain_sessionid", "contexts", "derived_contexts", "tr_total", "ti_sku", "app_id"),
      ...texts("platform", "custom", "event_vendor", "se_action", "dvce_created_tstamp"),
      ...texts(...omittedOf.snowplow),
    },
    used: ["event", "event_id", "user_id", "collector_tstamp"],
    omitted: omittedOf.snowplow,
  },
  heap: {
    format: "heap",
    record: {
      event_id: "1",
      user_id: "7",
      time: at,
      ...texts("session_id", "event_table_name", "path", "query", "domain", "title", "referrer"),
      ...texts("landing_page", "browser", "platform", "device_type", "country", "region", "city", "ip"),
      ...texts("utm_source", "library", "app_version", "custom", "hash", "session_time"),
    },
    used: ["event_id", "user_id", "time"],
    omitted: [],
  },
};

export const fullRecords = Object.fromEntries(
  Object.entries(records).map(([name, full]) => [
    name,
    { ...full, record: withPaths(full.record, "") as JsonObject },
  ]),
);
