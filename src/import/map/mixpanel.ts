/** Mixpanel's raw export, and its exports of people and groups (contract, import 2.3). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { deriveCountryName } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { identityAmong, isPlaceholder, joinIds } from "./identity.ts";
import { getId, getProperties, toList, toObject } from "./lenient-json.ts";
import {
  deletedReason,
  type EventSource,
  leaveOut,
  type MappedEvent,
  type MappedRecord,
  rejectRecord,
  toEvent,
} from "./mapped.ts";
import { getRest, isEmpty, isTrue, Members } from "./members.ts";

/** Prefix of device IDs in `distinct_id`. */
const devicePrefix = "$device:";
/** An ID that Mixpanel derived: only capitals, digits and hyphens. */
const derivedIdForm = /^[A-Z0-9-]+$/;

const omitted = [
  "$insert_id",
  "$mp_api_endpoint",
  "$mp_api_timestamp_ms",
  "mp_processing_time_ms",
  "$geo_source",
  "$import",
  "$source",
];

/** Members of the bag; each also keeps its own name. */
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

/** `time` is in seconds or milliseconds. */
export function fromMixpanel(record: JsonObject): MappedRecord {
  const found = getProperties(record.properties);
  if (!isJsonObject(found)) return rejectRecord(found);
  const outer = new Members(record);
  for (const name of ["event", "properties"]) outer.take(name);
  const sourceId = getId(found.$insert_id);
  const { distinct_id, time, ...bag } = found;
  if (isTrue(bag.$is_deleted)) return leaveOut(deletedReason);
  const omittedNames = omitted.filter((name) => !isEmpty(bag[name]));
  for (const name of omitted) delete bag[name];
  const alias = getId(bag.alias);
  const isJoining = record.event === "$create_alias" && alias !== undefined;
  if (isJoining) delete bag.alias;
  const draft = new EventDraft("mixpanel", bag, omittedNames);
  draft.keepRest(outer);
  const user = getId(bag.$user_id);
  const device = deviceId(getId(bag.$device_id));
  const members = deviceId(getId(distinct_id));
  const original = originalId(distinct_id, bag.$distinct_id_before_identity);
  const { distinctId, ...identity } = identityAmong([original, user, device], device, user);
  const content = sourceId === undefined ? { content: withoutTime(found) } : {};
  const source: EventSource = { name: record.event, ids: [members, user, device], ...content };
  const mapped = (event: JsonObject, more: Partial<MappedEvent>): MappedRecord => ({
    events: [{ event, sourceId, source, ...more }],
    omitted: draft.omitted,
  });
  for (const [name, property] of Object.entries(fields)) draft.fill(property, bag[name]);
  takeFirstTouch(draft, bag);
  if (record.event === "$identify") {
    const anonymous = deviceId(getId(bag.$anon_id));
    const known = getId(bag.$identified_id) ?? distinctId;
    const { distinctId: identified, pair, ...rest } = identityAmong([known, anonymous], anonymous, known);
    if (pair !== undefined) draft.fill("$anon_distinct_id", pair[0]);
    if (members !== identified) draft.keep("distinct_id", distinct_id ?? null);
    const link = pair === undefined ? {} : ({ pair, isLink: true } as const);
    const ids = [known, anonymous];
    return mapped(toEvent("$identify", identified, time, draft.toProperties()), {
      source: { ...source, ids },
      ...link,
      ...rest,
    });
  }
  if (record.event === "$merge") return merges(draft, bag.$distinct_ids, time, sourceId);
  if (isJoining) {
    const { distinctId: target, properties, ...rest } = joinIds(distinctId, alias);
    for (const [name, value] of Object.entries(properties)) draft.fill(name, value);
    const { pair: _, ...placeholder } = identity;
    return mapped(toEvent("$create_alias", target, time, draft.toProperties()), { ...placeholder, ...rest });
  }
  if (members !== distinctId) draft.keep("distinct_id", distinct_id ?? null);
  const isPageView = record.event === "$mp_web_page_view";
  if (isPageView) for (const [name, property] of Object.entries(pageFields)) draft.fill(property, bag[name]);
  const name = isPageView ? "$pageview" : record.event;
  return mapped(toEvent(name, distinctId, time, draft.toProperties()), identity);
}

/** The user of a record, as in the record. A `distinct_id` may also be a device's. */
export function mixpanelUser({ event, properties }: JsonObject): Json | undefined {
  const { $user_id, $identified_id } = toObject(properties);
  return isEmpty($user_id) && event === "$identify" ? $identified_id : $user_id;
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

/** `distinct_id`, or the sent ID if Mixpanel replaced it by a derived one. */
function originalId(members: Json | undefined, before: Json | undefined): string | undefined {
  const id = getId(members);
  const isDerived = id === undefined || id.startsWith(devicePrefix) || derivedIdForm.test(id);
  const original = typeof before === "string" && before !== "" ? before : undefined;
  return deviceId(isDerived ? (original ?? id) : id);
}

/** `$distinct_ids` are one person: the others are merged into the first that is not a placeholder. */
function merges(
  draft: EventDraft,
  members: Json | undefined,
  time: Json | undefined,
  sourceId: string | undefined,
): MappedRecord {
  const [first, ...others] = toList(members).map((id) => deviceId(getId(id)));
  if (others.length === 0) return rejectRecord(null);
  const { $distinct_ids: _, ...preserved } = draft.toProperties();
  const target = [first, ...others].find((id) => id !== undefined && !isPlaceholder(id)) ?? first;
  const events = others.map((alias, index): MappedEvent => {
    const joined = joinIds(target, alias === target ? first : alias);
    const { distinctId, properties, ...placeholder } = joined;
    return {
      event: toEvent("$merge_dangerously", distinctId, time, { ...preserved, ...properties }),
      source: { name: "$merge", ids: [first, alias] },
      sourceId: sourceId === undefined || index === 0 ? sourceId : `${sourceId}:${index}`,
      ...placeholder,
    };
  });
  return { events, omitted: draft.omitted };
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
  const found = getProperties(record.$properties);
  if (!isJsonObject(found)) return rejectRecord(found);
  const { $last_seen, $delete, ...properties } = found;
  const set = { ...properties };
  const fill = (name: string, value: Json | undefined) => {
    if (isEmpty(value) || !isEmpty(set[name])) return false;
    set[name] = value!;
    return true;
  };
  for (const [name, target] of Object.entries(profileFields)) fill(target, properties[name]);
  deriveCountryName({ get: (name) => set[name], fill });
  const id = deviceId(getId(record.$distinct_id));
  if (id === undefined) return rejectRecord(properties, "$set");
  return {
    events: [],
    snapshot: {
      kind: "person",
      id,
      distinctIds: [id],
      properties: set,
      time: lastSeen($last_seen, properties),
      version: 0,
      idVersion: 0,
      isDeleted: isTrue(record.$delete ?? $delete),
    },
    omitted: getRest(record, ["$distinct_id", "$properties", "$delete"]),
  };
}

/** A line of the export of group profiles. */
export function fromMixpanelGroups(record: JsonObject): MappedRecord {
  const properties = getProperties(record.$properties);
  if (!isJsonObject(properties)) return rejectRecord(properties);
  const { $delete } = properties;
  delete properties.$delete;
  const type = getId(record.$group_key);
  const key = getId(record.$group_id);
  if (type === undefined || key === undefined) return rejectRecord(properties, "$groupidentify");
  return {
    events: [],
    snapshot: {
      kind: "group",
      type,
      key,
      properties,
      time: lastSeen(properties.$last_seen, properties),
      version: 0,
      isDeleted: isTrue(record.$delete ?? $delete),
    },
    omitted: getRest(record, ["$group_key", "$group_id", "$properties", "$delete"]),
  };
}

function lastSeen(seen: Json | undefined, { $created }: JsonObject): Json | undefined {
  return isEmpty(seen) ? $created : seen;
}

function deviceId(id: string | undefined): string | undefined {
  return id?.startsWith(devicePrefix) ? id.slice(devicePrefix.length) : id;
}
