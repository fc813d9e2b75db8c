/** Amplitude's export, HTTP format and warehouse tables (contract, import 2.2); times without a zone are UTC. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { EventDraft } from "./event-draft.ts";
import { identityOf } from "./identity.ts";
import { idOf, objectOf, propertiesOf } from "./loose-json.ts";
import { eventOf, type MappedGroup, type MappedRecord, unusable } from "./mapped.ts";
import { Members } from "./members.ts";

const eventNames = new Map([
  ["[Amplitude] Page Viewed", "$pageview"],
  ["[Amplitude] Screen Viewed", "$screen"],
  ["[Amplitude] Element Clicked", "$autocapture"],
  ["[Amplitude] Element Changed", "$autocapture"],
]);
const elementEvents = new Map([
  ["[Amplitude] Element Clicked", "click"],
  ["[Amplitude] Element Changed", "change"],
]);

/** Of the property bag; each also stays under its own name. */
const ownFields = {
  "[Amplitude] Page URL": "$current_url",
  "[Amplitude] Page Location": "$current_url",
  "[Amplitude] Page Path": "$pathname",
  "[Amplitude] Page Domain": "$host",
  "[Amplitude] Page Title": "title",
  "[Amplitude] Screen Name": "$screen_name",
  "[Amplitude] Viewport Height": "$viewport_height",
  "[Amplitude] Viewport Width": "$viewport_width",
  "[Amplitude] Element Text": "$el_text",
  referrer: "$referrer",
  referring_domain: "$referring_domain",
};

const fields = {
  ip_address: "$ip",
  ip: "$ip",
  city: "$geoip_city_name",
  country: "$geoip_country_name",
  region: "$geoip_subdivision_1_name",
  location_lat: "$geoip_latitude",
  location_lng: "$geoip_longitude",
  version_name: "$app_version",
  app_version: "$app_version",
  device_manufacturer: "$device_manufacturer",
  device_brand: "$device_manufacturer",
  device_model: "$device_model",
  amplitude_id: "$amplitude_id",
};

const omitted = [
  ...["app", "schema", "$schema", "data", "data_type", "$insert_key", "amplitude_event_type"],
  ...["amplitude_attribution_ids", "is_attribution_event", "global_user_properties"],
  ...["client_event_time", "client_upload_time", "server_received_time", "server_upload_time"],
  "processed_time",
];

/** Operations on user properties that a single event cannot express: they are kept on the event. */
const operations = ["$add", "$append", "$prepend", "$preInsert", "$postInsert", "$remove", "$clearAll"];
const initialCampaign = /^initial_(utm_\w+|\w*clid|\w*click_id|gbraid|wbraid|_kx|referrer|referring_domain)$/;
const desktops = /^(windows|linux|mac|chrome ?os|cros)/i;
const mobiles = /^(ios|iphone|ipad|android)/i;

export function fromAmplitude(record: JsonObject): MappedRecord {
  const own = propertiesOf(record.event_properties);
  if (!isJsonObject(own)) return unusable(own);
  const members = new Members(record);
  members.take("event_properties");
  const draft = new EventDraft("amplitude", own);
  const type = members.take("event_type");
  for (const [name, property] of Object.entries(ownFields)) draft.fill(property, own[name]);
  if (typeof type === "string") draft.fill("$event_type", elementEvents.get(type));
  takeUserProperties(draft, members);

  const groups = groupKeys(draft, members.takeInside("groups"));
  const states = groupStates(groups, members.takeInside("group_properties"));
  for (const [group, key] of Object.entries(groups)) draft.group(group, key);

  const user = members.takeId("user_id");
  const device = members.takeId("device_id");
  draft.fill("$device_id", device);
  const amplitudeId = idOf(members.peek("amplitude_id"));
  const { distinctId, ...identity } = identityOf(device, user, amplitudeId);
  if (distinctId !== user && user !== undefined) draft.keep("user_id", user);
  const time = members.takeFirst("event_time", "time", "client_event_time");
  const uuid = members.takeId("uuid");
  const insertId = idOf(members.takeFirst("$insert_id", "insert_id"));
  takePlatform(draft, members);
  const session = idOf(members.peek("session_id"));
  if (session === "-1") members.take("session_id");
  draft.fillFrom(members, { ...fields, session_id: "$amplitude_session_id" });
  draft.omit(members, omitted);
  draft.keepRest(members);
  const name = typeof type === "string" ? (eventNames.get(type) ?? type) : type;
  return {
    events: [
      {
        event: eventOf(name, distinctId, time, draft.toProperties()),
        sourceId: uuid ?? insertId,
        ...(uuid === undefined ? {} : { isUuid: true }),
        source: { name: type, ids: [user, device, amplitudeId], content: contentOf(record) },
        ...identity,
        groups: states,
      },
    ],
    notTaken: draft.notTaken,
  };
}

/** What tells an event without an id from others. */
function contentOf({
  event_properties,
  user_properties,
  groups,
  session_id,
  event_id,
}: JsonObject): JsonObject {
  const content = { event_properties, user_properties, groups, session_id, event_id };
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** The browser and system of a web event stand in other columns than those of an app. */
function takePlatform(draft: EventDraft, members: Members): void {
  const isWeb = idOf(members.peek("platform"))?.toLowerCase() === "web";
  const system = idOf(members.peek(isWeb ? "device_type" : "os_name"))?.trim();
  if (isWeb) {
    draft.fillFrom(members, { os_name: "$browser", os_version: "$browser_version", device_type: "$os" });
  } else {
    draft.fillFrom(members, { os_name: "$os", os_version: "$os_version" });
  }
  if (system === undefined) return;
  if (mobiles.test(system)) draft.fill("$device_type", "Mobile");
  else if (isWeb && desktops.test(system)) draft.fill("$device_type", "Desktop");
}

function takeUserProperties(draft: EventDraft, members: Members): void {
  const given = members.takeInside("user_properties");
  const once = Object.entries(objectOf(given.take("$setOnce")));
  const set = Object.entries(objectOf(given.take("$set")));
  const unset = given.take("$unset");
  if (unset !== undefined) draft.fill("$unset", isJsonObject(unset) ? Object.keys(unset) : (unset as Json));
  const unsupported: JsonObject = {};
  for (const name of operations) {
    const value = given.take(name);
    if (value !== undefined) unsupported[name] = value;
  }
  if (Object.keys(unsupported).length > 0) draft.keep("amplitude_user_operations", unsupported);
  for (const [name, value] of [...set, ...given.takeRest()]) {
    const initial = initialCampaign.exec(name);
    if (initial === null) draft.set([[name, value]]);
    else if (value !== "EMPTY") draft.setOnce([[`$initial_${initial[1]}`, value]]);
  }
  for (const [name, value] of once) {
    const initial = initialCampaign.exec(name);
    if (initial === null || value !== "EMPTY")
      draft.setOnce([[initial === null ? name : `$initial_${initial[1]}`, value]]);
  }
}

/** An event is of one group of each type; Amplitude writes lists. */
function groupKeys(draft: EventDraft, groups: Members): Record<string, string> {
  const keys: [string, string][] = [];
  const lists: JsonObject = {};
  for (const [type, value] of groups.takeRest()) {
    const key = idOf((Array.isArray(value) ? value[0] : value) as Json | undefined);
    if (key !== undefined) keys.push([type, key]);
    if (key === undefined || (Array.isArray(value) && value.length > 1)) lists[type] = value;
  }
  if (Object.keys(lists).length > 0) draft.keep("amplitude_groups", lists);
  return Object.fromEntries(keys);
}

/** `{"company":{"acme":{"size":3}}}`, or `{"company":{"size":3}}` of the event's own group. */
function groupStates(groups: Readonly<Record<string, string>>, given: Members): MappedGroup[] {
  const states: MappedGroup[] = [];
  for (const [type, value] of given.takeRest()) {
    const properties = objectOf(value);
    const ofKeys = Object.entries(properties).filter(([, inner]) => isJsonObject(inner));
    if (ofKeys.length > 0 && ofKeys.length === Object.keys(properties).length) {
      for (const [key, inner] of ofKeys) states.push({ type, key, properties: inner as JsonObject });
    } else if (Object.hasOwn(groups, type)) states.push({ type, key: groups[type]!, properties });
  }
  return states;
}
