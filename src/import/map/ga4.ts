/** GA4's export to BigQuery, as JSON or Parquet (contract, import 2.5). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { isoFromMicros } from "../../lib/time.ts";
import { objectFrom } from "../read/json-text.ts";
import { EventDraft } from "./event-draft.ts";
import { identityOf } from "./identity.ts";
import { idOf, listInText, listOf, objectOf } from "./loose-json.ts";
import { eventOf, type MappedRecord, unusable } from "./mapped.ts";
import { isEmpty, Members, restOf } from "./members.ts";

const eventNames = new Map([
  ["page_view", "$pageview"],
  ["screen_view", "$screen"],
]);

/** Parameters that are also properties under these names. */
const parameterFields = {
  page_location: "$current_url",
  page_referrer: "$referrer",
  page_title: "title",
  firebase_screen: "$screen_name",
  screen_name: "$screen_name",
  ga_session_id: "$ga_session_id",
};
const parameterCampaign = {
  source: "utm_source",
  medium: "utm_medium",
  campaign: "utm_campaign",
  term: "utm_term",
  content: "utm_content",
  gclid: "gclid",
};
const collectedFields = {
  manual_source: "utm_source",
  manual_medium: "utm_medium",
  manual_campaign_name: "utm_campaign",
  manual_term: "utm_term",
  manual_content: "utm_content",
  manual_campaign_id: "utm_id",
  manual_source_platform: "utm_source_platform",
  manual_creative_format: "utm_creative_format",
  manual_marketing_tactic: "utm_marketing_tactic",
  gclid: "gclid",
  dclid: "dclid",
  srsltid: "srsltid",
};
const deviceFields = {
  category: "$device_type",
  operating_system: "$os",
  operating_system_version: "$os_version",
  mobile_brand_name: "$device_manufacturer",
  mobile_model_name: "$device_model",
  language: "$browser_language",
  browser: "$browser",
  browser_version: "$browser_version",
};
const webFields = { browser: "$browser", browser_version: "$browser_version", hostname: "$host" };
const geoFields = {
  city: "$geoip_city_name",
  country: "$geoip_country_name",
  region: "$geoip_subdivision_1_name",
  continent: "$geoip_continent_name",
};
const omitted = [
  ...["event_date", "event_bundle_sequence_id", "batch_event_index", "batch_ordering_id", "batch_page_id"],
];

/** A row of the tables `events_*`; `event_timestamp` counts microseconds. */
export function fromGa4(record: JsonObject): MappedRecord {
  const members = new Members(record);
  const name = members.takeId("event_name");
  const parameters = parametersOf(takeListed(members, "event_params"));
  const draft = new EventDraft("ga4", parameters);
  for (const [key, property] of Object.entries(parameterFields)) draft.fill(property, parameters[key]);
  draft.fillFrom(members.takeInside("collected_traffic_source"), collectedFields);
  for (const [key, property] of Object.entries(parameterCampaign)) draft.fill(property, parameters[key]);
  takeDevice(draft, members);
  draft.fillFrom(members, { event_value_in_usd: "value_usd" });
  takePerson(draft, members);
  const user = members.takeId("user_id");
  const pseudo = members.takeId("user_pseudo_id");
  const time = members.take("event_timestamp");
  const { distinctId, ...identity } = identityOf(pseudo, user);
  const content = {
    ...{
      stream_id: record.stream_id ?? null,
      event_bundle_sequence_id: record.event_bundle_sequence_id ?? null,
    },
    event_params: parameters,
  };
  draft.omit(members, omitted);
  for (const list of ["items", "item_list"]) {
    const items = members.takeList(list).map(elementOf);
    if (items.length > 0) draft.keep(list, items);
  }
  draft.keepRest(members);
  const event = eventOf(eventNames.get(name ?? "") ?? name, distinctId, time, draft.toProperties());
  const source = { name, ids: [pseudo, user], content };
  return { events: [{ event, sourceId: undefined, source, ...identity }], notTaken: draft.notTaken };
}

function takeDevice(draft: EventDraft, members: Members): void {
  const device = members.takeInside("device");
  const web = device.takeInside("web_info");
  draft.fillFrom(device, deviceFields, (name) => `device_${name}`);
  draft.fillFrom(web, webFields, (name) => `web_info_${name}`);
  draft.keepRest(web, (name) => `web_info_${name}`);
  draft.keepRest(device, (name) => `device_${name}`);
  const geo = members.takeInside("geo");
  draft.fillFrom(geo, geoFields, (name) => `geo_${name}`);
  draft.keepRest(geo, (name) => `geo_${name}`);
  const app = members.takeInside("app_info");
  draft.fillFrom(app, { id: "$app_namespace", version: "$app_version" }, (name) => `app_${name}`);
  draft.keepRest(app, (name) => `app_${name}`);
}

function takePerson(draft: EventDraft, members: Members): void {
  draft.set(parametersOf(takeListed(members, "user_properties")));
  const touch = members.peek("user_first_touch_timestamp");
  const micros = Number(idOf(touch));
  if (Number.isSafeInteger(micros) && micros > 0) {
    members.take("user_first_touch_timestamp");
    draft.setOnce([["$initial_seen_at", isoFromMicros(micros)]]);
  }
  const source = members.takeInside("traffic_source");
  draft.setOnce([
    ["$initial_utm_source", source.take("source") ?? null],
    ["$initial_utm_medium", source.take("medium") ?? null],
    ["$initial_utm_campaign", source.take("name") ?? null],
  ]);
  draft.keepRest(source, (name) => `traffic_source_${name}`);
}

/** `[{"key":"a","value":{"int_value":"1"}}]`, in Parquet inside of `{"list":[{"element":…}]}`. */
function parametersOf(given: Json | undefined): JsonObject {
  const entries: [string, Json][] = [];
  for (const each of listOf(given)) {
    const { key, value } = objectOf(elementOf(each));
    const { int_value, string_value, float_value, double_value } = objectOf(value);
    if (typeof key !== "string") continue;
    const found = string_value ?? asNumber(int_value) ?? float_value ?? double_value;
    if (!isEmpty(found)) entries.push([key, found!]);
  }
  return objectFrom(entries);
}

/** A list. Text in none of the forms of a list stays unused, so that it is kept (contract, import T4). */
function takeListed(members: Members, name: string): Json | undefined {
  const value = members.peek(name);
  if (typeof value === "string" && listInText(value) === undefined) return undefined;
  return members.take(name);
}

/** An element of a list, which Parquet wraps. */
function elementOf(each: Json): Json {
  return isJsonObject(each) && isJsonObject(each.element) ? each.element : each;
}

/** BigQuery writes whole numbers as text. */
function asNumber(value: Json | undefined): Json | undefined {
  return typeof value === "string" && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** A row of the tables `users_*` and `pseudonymous_users_*`. */
export function fromGa4User(record: JsonObject): MappedRecord {
  const id = idOf(record.user_id) ?? idOf(record.pseudo_user_id);
  if (id === undefined) return unusable({}, "$set");
  const set = parametersOfUser(record.user_properties);
  if (!isEmpty(record.audiences)) set.audiences = record.audiences!;
  const info = objectOf(record.user_info);
  const time = info.last_active_timestamp_micros ?? record.last_updated_date;
  return {
    events: [],
    snapshot: {
      ...{ kind: "person", id, distinctIds: [id], properties: set, time },
      ...{ version: 0, idVersion: 0, isDeleted: false },
    },
    notTaken: restOf(record, [
      ...["user_id", "pseudo_user_id", "user_properties", "audiences"],
      ...(time === record.last_updated_date ? ["last_updated_date"] : ["user_info"]),
    ]),
  };
}

/** `[{"key":"slot","value":{"user_property_name":"plan","string_value":"pro"}}]`, or the form of events. */
function parametersOfUser(given: Json | undefined): JsonObject {
  const entries: [string, Json][] = [];
  for (const each of listOf(given)) {
    const { key, value } = objectOf(elementOf(each));
    const { user_property_name, string_value } = objectOf(value);
    const name = user_property_name ?? key;
    if (typeof name !== "string") continue;
    const found = string_value ?? parametersOf([elementOf(each)])[String(key)];
    if (!isEmpty(found)) entries.push([name, found!]);
  }
  return objectFrom(entries);
}
