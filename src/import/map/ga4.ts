/** GA4's export to BigQuery, as JSON or Parquet (contract, import 2.5). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { isoFromMicros } from "../../lib/time.ts";
import { objectFrom, parseJsonString } from "../read/json-text.ts";
import { EventDraft } from "./event-draft.ts";
import { getIdentity } from "./identity.ts";
import { getId, parseListString, toList, toObject } from "./lenient-json.ts";
import { type MappedRecord, rejectRecord, toEvent } from "./mapped.ts";
import { isEmpty, Members } from "./members.ts";

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
  "event_date",
  "event_bundle_sequence_id",
  "batch_event_index",
  "batch_ordering_id",
  "batch_page_id",
];

/** BigQuery writes the rows of the day to this table, and later all of them to that of the day. */
const intradayForm = /^events_intraday_/i;

/** A row of the tables `events_*`; `event_timestamp` is in microseconds. @param table see `MapContext` */
export function fromGa4(record: JsonObject, table: string): MappedRecord {
  const members = new Members(record);
  const name = members.takeId("event_name");
  const parameters = getParameters(takeListed(members, "event_params"));
  const draft = new EventDraft("ga4", parameters);
  for (const [key, property] of Object.entries(parameterFields)) draft.fill(property, parameters[key]);
  const collected = members.takeMembers("collected_traffic_source");
  const collectedName = (each: string) => `collected_traffic_source_${each}`;
  draft.fillFrom(collected, collectedFields, collectedName);
  draft.keepRest(collected, collectedName);
  for (const [key, property] of Object.entries(parameterCampaign)) draft.fill(property, parameters[key]);
  draft.deriveFromAddresses();
  takeDevice(draft, members);
  draft.fillFrom(members, { event_value_in_usd: "value_usd" });
  takePerson(draft, members);
  const user = members.takeId("user_id");
  const pseudo = members.takeId("user_pseudo_id");
  const time = members.take("event_timestamp");
  const { distinctId, ...identity } = getIdentity(pseudo, user);
  const content = {
    stream_id: record.stream_id ?? null,
    event_bundle_sequence_id: record.event_bundle_sequence_id ?? null,
    event_params: parameters,
  };
  draft.omit(members, omitted);
  for (const list of ["items", "item_list"]) {
    const items = members.takeList(list);
    if (items.length > 0) draft.keep(list, unwrapped(items));
  }
  for (const [each, value] of members.takeRest()) draft.keep(each, unwrapped(value));
  const event = toEvent(eventNames.get(name ?? "") ?? name, distinctId, time, draft.toProperties());
  const copy = intradayForm.test(table) ? { copy: "intraday" } : {};
  const source = { name, ids: [pseudo, user], content, ...copy };
  return { events: [{ event, sourceId: undefined, source, ...identity }], omitted: draft.omitted };
}

function takeDevice(draft: EventDraft, members: Members): void {
  const device = members.takeMembers("device");
  const web = device.takeMembers("web_info");
  draft.fillFrom(device, deviceFields, (name) => `device_${name}`);
  draft.fillFrom(web, webFields, (name) => `web_info_${name}`);
  draft.keepRest(web, (name) => `web_info_${name}`);
  draft.keepRest(device, (name) => `device_${name}`);
  const geo = members.takeMembers("geo");
  draft.fillFrom(geo, geoFields, (name) => `geo_${name}`);
  draft.keepRest(geo, (name) => `geo_${name}`);
  const app = members.takeMembers("app_info");
  draft.fillFrom(app, { id: "$app_namespace", version: "$app_version" }, (name) => `app_${name}`);
  draft.keepRest(app, (name) => `app_${name}`);
}

function takePerson(draft: EventDraft, members: Members): void {
  draft.set(getParameters(takeListed(members, "user_properties")));
  const touch = members.peek("user_first_touch_timestamp");
  const micros = Number(getId(touch));
  if (Number.isSafeInteger(micros) && micros > 0) {
    members.take("user_first_touch_timestamp");
    draft.setOnce([["$initial_seen_at", isoFromMicros(micros)]]);
  }
  const source = members.takeMembers("traffic_source");
  draft.setOnce([
    ["$initial_utm_source", source.take("source") ?? null],
    ["$initial_utm_medium", source.take("medium") ?? null],
    ["$initial_utm_campaign", source.take("name") ?? null],
  ]);
  draft.keepRest(source, (name) => `traffic_source_${name}`);
}

/** `[{"key":"a","value":{"int_value":"1"}}]`, in Parquet inside `{"list":[{"element":…}]}`. */
function getParameters(members: Json | undefined): JsonObject {
  const entries: [string, Json][] = [];
  for (const each of toList(members)) {
    const { key, value } = toObject(getElement(each));
    const { int_value, string_value, float_value, double_value } = toObject(value);
    if (typeof key !== "string") continue;
    const found = [string_value, asNumber(int_value), float_value, double_value].find(
      (each) => !isEmpty(each),
    );
    if (found !== undefined) entries.push([key, found]);
  }
  return objectFrom(entries);
}

/** A list. A string that is not a list in any known form stays unused, so that it is kept (contract, import T4). */
function takeListed(members: Members, name: string): Json | undefined {
  const value = members.peek(name);
  if (typeof value === "string" && parseListString(value) === undefined) return undefined;
  return members.take(name);
}

/** An element of a list, unwrapped from Parquet's form. */
function getElement(each: Json): Json {
  return isJsonObject(each) && isJsonObject(each.element) ? each.element : each;
}

/** BigQuery writes integers as strings; those of more digits than a JavaScript number has keep all of them. */
function asNumber(value: Json | undefined): Json | undefined {
  return typeof value === "string" && /^-?(?:0|[1-9]\d*)$/.test(value) ? parseJsonString(value) : value;
}

/** A row of the tables `users_*` and `pseudonymous_users_*`. */
export function fromGa4User(record: JsonObject): MappedRecord {
  const members = new Members(record);
  const id = members.takeId("user_id") ?? members.takeId("pseudo_user_id");
  if (id === undefined) return rejectRecord({}, "$set");
  const set = parametersOfUser(takeListed(members, "user_properties"));
  if (members.has("audiences") && isEmpty(set.audiences))
    set.audiences = unwrapped(members.take("audiences")!);
  const info = members.takeMembers("user_info");
  const time = info.take("last_active_timestamp_micros") ?? members.take("last_updated_date");
  return {
    events: [],
    snapshot: {
      kind: "person",
      id,
      distinctIds: [id],
      properties: set,
      time,
      version: 0,
      idVersion: 0,
      isDeleted: false,
    },
    omitted: [...members.names(), ...info.names().map((name) => `user_info.${name}`)],
  };
}

/** A value without Parquet's form of lists, at any depth. */
function unwrapped(value: Json): Json {
  const list = typeof value === "string" ? [] : toList(value);
  if (list.length > 0) return list.map((each) => unwrapped(getElement(each)));
  if (!isJsonObject(value)) return value;
  return objectFrom(Object.entries(value).map(([name, inner]) => [name, unwrapped(inner)]));
}

/** `[{"key":"slot","value":{"user_property_name":"plan","string_value":"pro"}}]`, or the form of events. */
function parametersOfUser(members: Json | undefined): JsonObject {
  const entries: [string, Json][] = [];
  for (const each of toList(members)) {
    const { key, value } = toObject(getElement(each));
    const { user_property_name, string_value } = toObject(value);
    const name = user_property_name ?? key;
    if (typeof name !== "string") continue;
    const found = string_value ?? getParameters([getElement(each)])[String(key)];
    if (!isEmpty(found)) entries.push([name, found!]);
  }
  return objectFrom(entries);
}
