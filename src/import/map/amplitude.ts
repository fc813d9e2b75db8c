/** Amplitude's export and HTTP formats; times without a zone are UTC. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { identityOf } from "./identity.ts";
import { idOf, objectOf, propertiesOf } from "./loose-json.ts";
import { copy, eventOf, type MappedEvent, type MappedGroup, unusable } from "./mapped.ts";

const columns = {
  ...{ ip_address: "$ip", ip: "$ip", os_name: "$os", os_version: "$os_version", device_type: "$device_type" },
  ...{ city: "$geoip_city_name", country: "$geoip_country_name", region: "$geoip_subdivision_1_name" },
  ...{ version_name: "$app_version", language: "$language", platform: "platform" },
  ...{ session_id: "$amplitude_session_id" },
};

export function fromAmplitude(record: JsonObject): MappedEvent[] {
  const properties = propertiesOf(record.event_properties);
  if (!isJsonObject(properties)) return unusable(properties);
  const { $set, $setOnce, ...plain } = objectOf(record.user_properties);
  const set = { ...plain, ...objectOf($set) };
  if (Object.keys(set).length > 0) properties.$set = set;
  const setOnce = objectOf($setOnce);
  if (Object.keys(setOnce).length > 0) properties.$set_once = setOnce;
  copy(record, properties, columns);
  const groups = groupsOf(objectOf(record.groups));
  if (Object.keys(groups).length > 0) properties.$groups = groups;
  const user = idOf(record.user_id);
  const device = idOf(record.device_id);
  const amplitudeId = idOf(record.amplitude_id);
  const { distinctId, ...identity } = identityOf(device, user, amplitudeId);
  const uuid = idOf(record.uuid);
  const time = record.event_time ?? record.time ?? record.client_event_time;
  return [
    {
      event: eventOf(record.event_type, distinctId, time, properties),
      sourceId: uuid ?? idOf(record.$insert_id ?? record.insert_id),
      ...(uuid === undefined ? {} : { isUuid: true }),
      source: { name: record.event_type, ids: [user, device, amplitudeId], content: contentOf(record) },
      ...identity,
      groups: groupStates(groups, objectOf(record.group_properties)),
    },
  ];
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

/** An event is of one group of each type; Amplitude writes lists. */
function groupsOf(groups: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const [type, value] of Object.entries(groups)) {
    const key = idOf((Array.isArray(value) ? value[0] : value) as Json | undefined);
    if (key !== undefined) result[type] = key;
  }
  return result;
}

/** `{"company":{"acme":{"size":3}}}`, or `{"company":{"size":3}}` of the event's own group. */
function groupStates(groups: JsonObject, given: JsonObject): MappedGroup[] {
  const states: MappedGroup[] = [];
  for (const [type, value] of Object.entries(given)) {
    const key = groups[type] as string | undefined;
    const properties = objectOf(value);
    const ofKeys = Object.entries(properties).filter(([, inner]) => isJsonObject(inner));
    if (ofKeys.length > 0 && ofKeys.length === Object.keys(properties).length) {
      for (const [each, inner] of ofKeys) states.push({ type, key: each, properties: inner as JsonObject });
    } else if (key !== undefined && Object.keys(properties).length > 0)
      states.push({ type, key, properties });
  }
  return states;
}
