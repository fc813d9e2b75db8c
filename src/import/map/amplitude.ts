/** Amplitude's export, HTTP format and warehouse tables (contract, import 2.2); times without a zone are UTC. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { campaignNames } from "../../persons/identity/automatic-properties.ts";
import { objectFrom } from "../read/json-text.ts";
import { EventDraft } from "./event-draft.ts";
import { getIdentity, isPlaceholder } from "./identity.ts";
import { getId, getProperties, toList, toObject } from "./lenient-json.ts";
import { type MappedEvent, type MappedGroup, type MappedRecord, rejectRecord, toEvent } from "./mapped.ts";
import { isEmpty, Members } from "./members.ts";

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

/** Of the property bag; each also keeps its own name, like those of the address. */
const amplitudeFields = {
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
  "app",
  "schema",
  "$schema",
  "data",
  "data_type",
  "$insert_key",
  "amplitude_event_type",
  "amplitude_attribution_ids",
  "is_attribution_event",
  "global_user_properties",
  "client_event_time",
  "client_upload_time",
  "server_received_time",
  "server_upload_time",
  "processed_time",
];

/** Operations on user properties that a single event cannot express: they are kept on the event. */
const operations = ["$add", "$append", "$prepend", "$preInsert", "$postInsert", "$remove", "$clearAll"];
/** First-touch values: of campaigns, clicks and referrers. */
const initialForm = /^initial_(.+)$/;
const firstTouchForm = /^(?:utm_\w+|\w*clk?id|\w*click_id|referrer|referring_domain)$/;
const firstTouchNames = new Set(campaignNames);
/** What Amplitude writes for a first-touch value that is missing. */
const noInitialValue = "EMPTY";
const desktops = /^(windows|linux|mac|chrome ?os|cros)/i;
const mobiles = /^(ios|iphone|ipad|android)/i;

/** Amplitude's SDK cuts the query off `Page URL`, but not off `Page Location`. */
function getAddress(own: JsonObject): Json | undefined {
  const url = own["[Amplitude] Page URL"];
  const location = own["[Amplitude] Page Location"];
  const isLonger = typeof url === "string" && typeof location === "string" && location.startsWith(url);
  return isEmpty(url) || isLonger ? location : url;
}

export function fromAmplitude(record: JsonObject): MappedRecord {
  const own = getProperties(record.event_properties);
  if (!isJsonObject(own)) return rejectRecord(own);
  const members = new Members(record);
  members.take("event_properties");
  const draft = new EventDraft("amplitude", own);
  const type = members.take("event_type");
  draft.fill("$current_url", getAddress(own));
  for (const [name, property] of Object.entries(amplitudeFields)) draft.fill(property, own[name]);
  if (typeof type === "string") draft.fill("$event_type", elementEvents.get(type));
  takeUserProperties(draft, members);

  const groups = groupKeys(draft, members.takeMembers("groups"));
  const states = groupStates(draft, groups, members.takeMembers("group_properties"));
  for (const [group, key] of Object.entries(groups)) draft.group(group, key);

  const user = members.takeId("user_id");
  const device = members.takeId("device_id");
  draft.use("$device_id", "device_id", device);
  const amplitudeId = getId(members.peek("amplitude_id"));
  const { distinctId, ...identity } = getIdentity(device, user, amplitudeId);
  if (distinctId !== user && user !== undefined) draft.keep("user_id", record.user_id!);
  const time = members.takeFirst("event_time", "time", "client_event_time");
  const uuid = members.takeId("uuid");
  const insertId = uuid === undefined ? getId(members.takeFirst("$insert_id", "insert_id")) : undefined;
  draft.omit(members, ["$insert_id", "insert_id"]);
  takePlatform(draft, members);
  const session = getId(members.peek("session_id"));
  if (session === "-1") members.take("session_id");
  draft.fillFrom(members, { ...fields, session_id: "$amplitude_session_id" });
  draft.omit(members, omitted);
  draft.keepRest(members);
  const name = typeof type === "string" ? (eventNames.get(type) ?? type) : type;
  return {
    events: [
      {
        event: toEvent(name, distinctId, time, draft.toProperties()),
        sourceId: uuid ?? insertId,
        ...(uuid === undefined ? {} : { isUuid: true }),
        source: { name: type, ids: [user, device, amplitudeId], content: getContent(record) },
        ...identity,
        ...getSourceUser(amplitudeId, device, user),
        groups: states,
      },
    ],
    omitted: draft.omitted,
  };
}

/** By `amplitude_id`, which is also the distinct ID of an event that has no other. */
function getSourceUser(
  id: string | undefined,
  device: string | undefined,
  user: string | undefined,
): Pick<MappedEvent, "sourceUser"> {
  if (id === undefined || isPlaceholder(id)) return {};
  const ids = [
    { distinctId: user, isUser: true },
    { distinctId: device, isUser: false },
  ].flatMap(({ distinctId, isUser }) =>
    distinctId === undefined || isPlaceholder(distinctId) ? [] : [{ distinctId, isUser }],
  );
  return { sourceUser: { id, ids: ids.length > 0 ? ids : [{ distinctId: id, isUser: false }] } };
}

/** Content that distinguishes an event without an ID. */
function getContent({
  event_properties,
  user_properties,
  groups,
  session_id,
  event_id,
}: JsonObject): JsonObject {
  const content = { event_properties, user_properties, groups, session_id, event_id };
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** Web events have the browser and system in other columns than app events. */
function takePlatform(draft: EventDraft, members: Members): void {
  const isWeb = getId(members.peek("platform"))?.toLowerCase() === "web";
  const system = getId(members.peek(isWeb ? "device_type" : "os_name"))?.trim();
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
  const source = members.takeMembers("user_properties");
  const once = source.takeMembers("$setOnce");
  const set = source.takeMembers("$set");
  const unset = source.take("$unset");
  if (unset !== undefined) draft.use("$unset", "amplitude_unset", namesIn(unset));
  const unsupported: JsonObject = {};
  for (const name of operations) {
    const value = source.take(name);
    if (value !== undefined) unsupported[name] = value;
  }
  if (Object.keys(unsupported).length > 0) draft.keep("amplitude_user_operations", unsupported);
  for (const [name, value] of [...set.takeRest(), ...source.takeRest()]) {
    if (isMissing(name, value)) continue;
    const first = firstTouchName(name);
    if (first === undefined) draft.set([[name, value]]);
    else draft.setOnce([[first, value]]);
  }
  for (const [name, value] of once.takeRest())
    if (!isMissing(name, value)) draft.setOnce([[firstTouchName(name) ?? name, value]]);
}

/** `$unset` is an object, a list or, in a table, the text of one. */
function namesIn(unset: Json): Json {
  const names = Object.keys(toObject(unset));
  const listed = names.length > 0 ? names : toList(unset);
  return listed.length > 0 ? listed : unset;
}

function isMissing(name: string, value: Json): boolean {
  return value === noInitialValue && initialForm.test(name);
}

/** The name of a first-touch value in `$set_once`. */
function firstTouchName(name: string): string | undefined {
  const inner = initialForm.exec(name)?.[1];
  if (inner === undefined) return undefined;
  return firstTouchForm.test(inner) || firstTouchNames.has(inner) ? `$initial_${inner}` : undefined;
}

/** An event has one group of each type; Amplitude writes lists, in a table as text. */
function groupKeys(draft: EventDraft, groups: Members): Record<string, string> {
  const keys: [string, string][] = [];
  const lists: [string, Json][] = [];
  for (const [type, value] of groups.takeRest()) {
    const list = toList(value);
    const key = getId(list.length > 0 ? list[0] : value);
    if (key !== undefined) keys.push([type, key]);
    if (key === undefined || list.length > 1) lists.push([type, value]);
  }
  if (lists.length > 0) draft.keep("amplitude_groups", objectFrom(lists));
  return Object.fromEntries(keys);
}

/** `{"company":{"acme":{"size":3}}}`, or `{"company":{"size":3}}` of the event's own group. */
function groupStates(
  draft: EventDraft,
  groups: Readonly<Record<string, string>>,
  members: Members,
): MappedGroup[] {
  const states: MappedGroup[] = [];
  const unknown: [string, Json][] = [];
  for (const [type, value] of members.takeRest()) {
    const properties = toObject(value);
    const entries = Object.entries(properties);
    const isByKey = entries.length > 0 && entries.every(([, inner]) => isJsonObject(inner));
    const own = Object.hasOwn(groups, type) ? groups[type] : undefined;
    if (isByKey) {
      for (const [key, inner] of entries) states.push({ type, key, properties: inner as JsonObject });
    } else if (own !== undefined && entries.length > 0) states.push({ type, key: own, properties });
    else unknown.push([type, value]);
  }
  if (unknown.length > 0) draft.keep("group_properties", objectFrom(unknown));
  return states;
}
