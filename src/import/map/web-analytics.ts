/** Exports of web analytics: GA4 in BigQuery, Umami, Plausible, Matomo. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";
import { identityOf } from "./identity.ts";
import { idOf, listOf, objectOf } from "./loose-json.ts";
import { copy, eventOf, type MappedEvent } from "./mapped.ts";

const ga4Names = new Map([
  ["page_view", "$pageview"],
  ["screen_view", "$screen"],
]);

/** A row of the tables `events_*`, as JSON or Parquet; `event_timestamp` counts microseconds. */
export function fromGa4(record: JsonObject): MappedEvent[] {
  const name = idOf(record.event_name);
  const properties = parameters(record.event_params);
  copy(properties, properties, {
    ...{ page_location: "$current_url", page_referrer: "$referrer", page_title: "title" },
    ...{ firebase_screen: "$screen_name", ga_session_id: "$ga_session_id" },
  });
  addPath(properties);
  const device = objectOf(record.device);
  copy(device, properties, {
    ...{ category: "$device_type", operating_system: "$os", operating_system_version: "$os_version" },
    ...{ mobile_brand_name: "$device_manufacturer", mobile_model_name: "$device_model" },
    ...{ language: "$browser_language", browser: "$browser", browser_version: "$browser_version" },
  });
  copy(objectOf(device.web_info), properties, {
    ...{ browser: "$browser", browser_version: "$browser_version", hostname: "$host" },
  });
  copy(objectOf(record.geo), properties, {
    ...{ city: "$geoip_city_name", country: "$geoip_country_name", region: "$geoip_subdivision_1_name" },
    ...{ continent: "$geoip_continent_name" },
  });
  copy(objectOf(record.app_info), properties, { version: "$app_version", id: "$app_namespace" });
  copy(objectOf(record.traffic_source), properties, {
    ...{ source: "utm_source", medium: "utm_medium", name: "utm_campaign" },
  });
  copy(record, properties, { platform: "platform", stream_id: "stream_id", event_value_in_usd: "value_usd" });
  const ecommerce = objectOf(record.ecommerce);
  if (Object.values(ecommerce).some((value) => value !== null)) properties.ecommerce = ecommerce;
  const items = listOf(record.items);
  if (items.length > 0) properties.items = items;
  const set = parameters(record.user_properties);
  if (Object.keys(set).length > 0) properties.$set = set;
  const user = idOf(record.user_id);
  const pseudo = idOf(record.user_pseudo_id);
  const { distinctId, ...identity } = identityOf(pseudo, user);
  const event = eventOf(ga4Names.get(name ?? "") ?? name, distinctId, record.event_timestamp, properties);
  const source = { name, ids: [pseudo, user], content: ga4Content(record) };
  return [{ event, sourceId: undefined, source, ...identity }];
}

/**
 * What tells a row from others of its name, time and person. Attribution, `batch_*` and what else the tables of a day and
 * `intraday` fill in different ways is left out (contract, import 1.6 E2).
 */
function ga4Content({ stream_id, event_bundle_sequence_id, event_params }: JsonObject): JsonObject {
  return {
    ...{ stream_id: stream_id ?? null, event_bundle_sequence_id: event_bundle_sequence_id ?? null },
    event_params: parameters(event_params),
  };
}

/** `[{"key":"a","value":{"int_value":"1"}}]`, in Parquet inside of `{"list":[{"element":…}]}`. */
function parameters(given: Json | undefined): JsonObject {
  const entries: [string, Json][] = [];
  for (const each of listOf(given)) {
    const { key, value } = objectOf(isJsonObject(each) && isJsonObject(each.element) ? each.element : each);
    const { int_value, string_value, float_value, double_value } = objectOf(value);
    if (typeof key !== "string") continue;
    const found = string_value ?? wholeNumber(int_value) ?? float_value ?? double_value;
    if (found !== undefined && found !== null) entries.push([key, found]);
  }
  return objectFrom(entries);
}

/** BigQuery writes whole numbers as text. */
function wholeNumber(value: Json | undefined): Json | undefined {
  return typeof value === "string" && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** A row of the table `website_event`. */
export function fromUmami(record: JsonObject): MappedEvent[] {
  const properties: JsonObject = {};
  const host = idOf(record.hostname);
  const path = idOf(record.url_path);
  const query = idOf(record.url_query);
  const url = path === undefined ? undefined : `${path}${query === undefined ? "" : `?${query}`}`;
  if (url !== undefined) properties.$current_url = host === undefined ? url : `https://${host}${url}`;
  const referrer = idOf(record.referrer_domain);
  if (referrer !== undefined) properties.$referrer = `https://${referrer}${idOf(record.referrer_path) ?? ""}`;
  copy(record, properties, {
    ...{
      url_path: "$pathname",
      hostname: "$host",
      referrer_domain: "$referring_domain",
      page_title: "title",
    },
    ...{ browser: "$browser", os: "$os", device: "$device_type", language: "$browser_language" },
    ...{ country: "$geoip_country_code", region: "$geoip_subdivision_1_code", city: "$geoip_city_name" },
    ...{ subdivision1: "$geoip_subdivision_1_code", visit_id: "$session_id", screen: "$screen" },
    ...{ website_id: "website_id", tag: "tag", utm_source: "utm_source", utm_medium: "utm_medium" },
    ...{ utm_campaign: "utm_campaign", utm_term: "utm_term", utm_content: "utm_content" },
  });
  const session = idOf(record.session_id);
  const user = idOf(record.distinct_id);
  const name = idOf(record.event_name) ?? "$pageview";
  const { distinctId, ...identity } = identityOf(session, user);
  const event = eventOf(name, distinctId, record.created_at, properties);
  const { created_at: _, ...content } = record;
  const source = { name: record.event_name, ids: [user, session], content };
  return [{ event, sourceId: idOf(record.event_id), isUuid: true, source, ...identity }];
}

/** A row of ClickHouse's table `events_v2`. */
export function fromPlausible(record: JsonObject): MappedEvent[] {
  const properties: JsonObject = {};
  const host = idOf(record.hostname);
  const path = idOf(record.pathname);
  if (path !== undefined) properties.$current_url = host === undefined ? path : `https://${host}${path}`;
  copy(record, properties, {
    ...{
      hostname: "$host",
      pathname: "$pathname",
      referrer: "$referrer",
      referrer_source: "referrer_source",
    },
    ...{ country_code: "$geoip_country_code", subdivision1_code: "$geoip_subdivision_1_code" },
    ...{ operating_system: "$os", operating_system_version: "$os_version", screen_size: "$device_type" },
    ...{ browser: "$browser", browser_version: "$browser_version", session_id: "$session_id" },
    ...{ utm_source: "utm_source", utm_medium: "utm_medium", utm_campaign: "utm_campaign" },
    ...{ utm_term: "utm_term", utm_content: "utm_content", site_id: "site_id", domain: "domain" },
  });
  const keys = listOf(record["meta.key"]);
  const values = listOf(record["meta.value"]);
  const more = keys.flatMap((key, at): [string, Json][] =>
    typeof key === "string" ? [[key, values[at] ?? null]] : [],
  );
  const name = record.name === "pageview" ? "$pageview" : record.name;
  const event = eventOf(name, idOf(record.user_id), record.timestamp, { ...properties, ...objectFrom(more) });
  const { timestamp: _, ...content } = record;
  return [
    { event, sourceId: undefined, source: { name: record.name, ids: [idOf(record.user_id)], content } },
  ];
}

/** Actions of Matomo that are no page views, and the events that they become. */
const matomoNames = new Map([
  ["goal", "goal"],
  ["search", "site search"],
  ["download", "download"],
  ["outlink", "outlink"],
  ["ecommerceOrder", "order"],
  ["ecommerceAbandonedCart", "abandoned cart"],
]);
const flatAction = /^actionDetails_(\d{1,4})_(\w+)$/;

/** A visit of `Live.getLastVisitsDetails`, as JSON or CSV: its actions are the events. */
export function fromMatomo(record: JsonObject): MappedEvent[] {
  const shared: JsonObject = {};
  copy(record, shared, {
    ...{ browserName: "$browser", browserVersion: "$browser_version", operatingSystemName: "$os" },
    ...{ operatingSystemVersion: "$os_version", deviceType: "$device_type", visitIp: "$ip" },
    ...{ countryCode: "$geoip_country_code", country: "$geoip_country_name", city: "$geoip_city_name" },
    ...{ languageCode: "$browser_language", referrerUrl: "$referrer", idVisit: "$session_id" },
    ...{ idSite: "site_id", regionCode: "$geoip_subdivision_1_code" },
  });
  const user = idOf(record.userId);
  const visitor = idOf(record.visitorId);
  const visit = `${idOf(record.idSite)}:${idOf(record.idVisit)}`;
  const { distinctId, ...identity } = identityOf(visitor, user);
  return actionsOf(record).map((action, at) => {
    const properties = { ...shared };
    copy(action, properties, {
      ...{ url: "$current_url", pageTitle: "title", timeSpent: "time_spent", eventCategory: "category" },
      ...{ eventAction: "action", eventName: "label", eventValue: "value", siteSearchKeyword: "keyword" },
      ...{ goalName: "goal", goalId: "goal_id", revenue: "revenue", orderId: "order_id" },
    });
    addPath(properties);
    const kind = idOf(action.type) ?? "action";
    const name =
      kind === "action"
        ? "$pageview"
        : kind === "event"
          ? action.eventAction
          : (matomoNames.get(kind) ?? kind);
    const event = eventOf(name, distinctId, action.timestamp ?? record.serverTimestamp, properties);
    const sourceId = `matomo:${visit}:${at}`;
    return { event, sourceId, source: { name: kind, ids: [user, visitor] }, ...identity };
  });
}

function actionsOf(record: JsonObject): JsonObject[] {
  const listed = listOf(record.actionDetails).filter(isJsonObject);
  if (listed.length > 0) return listed;
  const flat: [string, Json][][] = [];
  for (const [name, value] of Object.entries(record)) {
    const match = flatAction.exec(name);
    if (match === null || value === null || value === "") continue;
    flat[Number(match[1])] ??= [];
    flat[Number(match[1])]!.push([match[2]!, value]);
  }
  return Object.values(flat).map(objectFrom);
}

function addPath(properties: JsonObject): void {
  const url = properties.$current_url;
  const parsed = typeof url === "string" ? URL.parse(url) : null;
  if (parsed === null || parsed.host === "") return;
  properties.$host ??= parsed.host;
  properties.$pathname ??= parsed.pathname;
}
