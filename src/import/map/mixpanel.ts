/** Mixpanel's raw export, and its exports of people and groups (contract, import 2.3). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { EventDraft } from "./event-draft.ts";
import { identityAmong } from "./identity.ts";
import { idOf, propertiesOf } from "./loose-json.ts";
import {
  deletedReason,
  type EventSource,
  eventOf,
  leaveOut,
  type MappedEvent,
  type MappedRecord,
  unusable,
} from "./mapped.ts";
import { isTrue, Members, restOf } from "./members.ts";

/** How Mixpanel marks ids of devices in `distinct_id`. */
const devicePrefix = "$device:";
/** An id that Mixpanel derived: capitals, digits and hyphens alone. */
const derivedIdForm = /^[A-Z0-9-]+$/;

const omitted = [
  ...["$insert_id", "$mp_api_endpoint", "$mp_api_timestamp_ms", "mp_processing_time_ms"],
  ...["$geo_source", "$import", "$source"],
];

/** Members of the bag; each also stays under its own name. */
const fields = {
  $model: "$device_model",
  $manufacturer: "$device_manufacturer",
  $brand: "$device_manufacturer",
  $app_version_string: "$app_version",
  $app_build_number: "$app_build",
  $city: "$geoip_city_name",
  $region: "$geoip_subdivision_1_name",
  mp_country_code: "$geoip_country_code",
  $country_code: "$geoip_country_code",
};
const pageFields = {
  current_page_title: "title",
  current_url_path: "$pathname",
  current_domain: "$host",
};
const touchForm = /^(utm_\w+) \[(first|last) touch\]$/;

/** `time` counts seconds or milliseconds. */
export function fromMixpanel(record: JsonObject): MappedRecord {
  const found = propertiesOf(record.properties);
  if (!isJsonObject(found)) return unusable(found);
  const outer = new Members(record);
  for (const name of ["event", "properties"]) outer.take(name);
  const sourceId = idOf(found.$insert_id);
  const { distinct_id, time, ...bag } = found;
  if (isTrue(bag.$is_deleted)) return leaveOut(deletedReason);
  const notTaken = omitted.filter((name) => name !== "$insert_id" && name in bag);
  for (const name of omitted) delete bag[name];
  const draft = new EventDraft("mixpanel", bag, notTaken);
  draft.keepRest(outer);
  const user = idOf(bag.$user_id);
  const device = deviceId(idOf(bag.$device_id));
  const given = deviceId(idOf(distinct_id));
  const original = originalId(distinct_id, bag.$distinct_id_before_identity);
  const { distinctId, ...identity } = identityAmong([original, user, device], device, user);
  const content = sourceId === undefined ? { content: withoutTime(found) } : {};
  const source: EventSource = { name: record.event, ids: [given, user, device], ...content };
  const one = (event: JsonObject, more: Partial<MappedEvent>): MappedRecord => ({
    events: [{ event, sourceId, source, ...more }],
    notTaken: draft.notTaken,
  });
  if (record.event === "$identify") {
    const anonymous = deviceId(idOf(bag.$anon_id));
    const known = idOf(bag.$identified_id) ?? distinctId;
    const { distinctId: identified, pair, ...rest } = identityAmong([known, anonymous], anonymous, known);
    if (pair !== undefined) draft.fill("$anon_distinct_id", pair[0]);
    const link = pair === undefined ? {} : ({ pair, isLink: true } as const);
    const ids = [known, anonymous];
    return one(eventOf("$identify", identified, time, draft.toProperties()), {
      ...{ source: { ...source, ids }, ...link, ...rest },
    });
  }
  if (record.event === "$merge") return merges(bag, time, sourceId);
  for (const [name, property] of Object.entries(fields)) draft.fill(property, bag[name]);
  const isPageView = record.event === "$mp_web_page_view";
  if (isPageView) for (const [name, property] of Object.entries(pageFields)) draft.fill(property, bag[name]);
  takeFirstTouch(draft, bag);
  const name = isPageView ? "$pageview" : record.event;
  return one(eventOf(name, distinctId, time, draft.toProperties()), identity);
}

function withoutTime({ time: _, ...properties }: JsonObject): JsonObject {
  return properties;
}

function takeFirstTouch(draft: EventDraft, bag: JsonObject): void {
  for (const name of ["$initial_referrer", "$initial_referring_domain"]) {
    const value = bag[name];
    if (value !== undefined) draft.setOnce([[name, value]]);
  }
  for (const [name, value] of Object.entries(bag)) {
    const match = touchForm.exec(name);
    if (match === null) continue;
    if (match[2] === "last") draft.fill(match[1]!, value);
    else draft.setOnce([[`$initial_${match[1]}`, value]]);
  }
}

/** `distinct_id`, or the one that was sent where Mixpanel replaced it by one of its own. */
function originalId(given: Json | undefined, before: Json | undefined): string | undefined {
  const id = idOf(given);
  const isDerived = id === undefined || id.startsWith(devicePrefix) || derivedIdForm.test(id);
  const original = typeof before === "string" && before !== "" ? before : undefined;
  return deviceId(isDerived ? (original ?? id) : id);
}

/** `$distinct_ids` are one person: the first takes the others in. */
function merges(properties: JsonObject, time: Json | undefined, sourceId: string | undefined): MappedRecord {
  const ids = Array.isArray(properties.$distinct_ids) ? properties.$distinct_ids : [];
  const [first, ...others] = ids.map((id) => deviceId(idOf(id)));
  if (others.length === 0) return unusable(null);
  const events = others.map(
    (alias, index): MappedEvent => ({
      event: eventOf("$merge_dangerously", first, time, { alias: alias ?? null }),
      source: { name: "$merge", ids: [first, alias] },
      sourceId: sourceId === undefined || index === 0 ? sourceId : `${sourceId}:${index}`,
    }),
  );
  return { events };
}

const profileFields = {
  $email: "email",
  $name: "name",
  $first_name: "first_name",
  $last_name: "last_name",
  $phone: "phone",
  $avatar: "avatar",
  $city: "$geoip_city_name",
  $region: "$geoip_subdivision_1_name",
  $country_code: "$geoip_country_code",
};

/** A line of the people export; its time is when the person was last seen, else created. */
export function fromMixpanelPeople(record: JsonObject): MappedRecord {
  const found = propertiesOf(record.$properties);
  if (!isJsonObject(found)) return unusable(found);
  const { $last_seen, $delete, ...properties } = found;
  const set = { ...properties };
  for (const [name, target] of Object.entries(profileFields)) {
    if (set[name] !== undefined && set[target] === undefined) set[target] = set[name];
  }
  const id = deviceId(idOf(record.$distinct_id));
  if (id === undefined) return unusable(properties, "$set");
  return {
    events: [],
    snapshot: {
      ...{ kind: "person", id, distinctIds: [id], properties: set, time: $last_seen ?? properties.$created },
      ...{ version: 0, idVersion: 0, isDeleted: isTrue(record.$delete ?? $delete) },
    },
    notTaken: restOf(record, ["$distinct_id", "$properties", "$delete"]),
  };
}

/** A line of the export of group profiles. */
export function fromMixpanelGroups(record: JsonObject): MappedRecord {
  const properties = propertiesOf(record.$properties);
  if (!isJsonObject(properties)) return unusable(properties);
  const type = idOf(record.$group_key);
  const key = idOf(record.$group_id);
  if (type === undefined || key === undefined) return unusable(properties, "$groupidentify");
  return {
    events: [],
    snapshot: {
      ...{ kind: "group", type, key, properties, time: properties.$last_seen ?? properties.$created },
      ...{ version: 0, isDeleted: isTrue(record.$delete) },
    },
    notTaken: restOf(record, ["$group_key", "$group_id", "$properties", "$delete"]),
  };
}

function deviceId(id: string | undefined): string | undefined {
  return id?.startsWith(devicePrefix) ? id.slice(devicePrefix.length) : id;
}
