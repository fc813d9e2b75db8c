/** Turns records of Amplitude, Mixpanel and Segment into events. Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";
import { idOf, isObject, objectOf, propertiesOf } from "./loose-json.ts";
import type { MappedEvent } from "./records.ts";

/** Source: Amplitude's export and HTTP formats; times without a zone are UTC. */
export function fromAmplitude(record: JsonObject): MappedEvent {
  const properties = propertiesOf(record.event_properties);
  if (!isObject(properties)) return { event: { properties }, sourceId: undefined };
  const user = objectOf(record.user_properties);
  if (Object.keys(user).length > 0) properties.$set = user;
  copy(record, properties, {
    ...{
      ip_address: "$ip",
      ip: "$ip",
      os_name: "$os",
      os_version: "$os_version",
      device_type: "$device_type",
    },
    ...{ city: "$geoip_city_name", country: "$geoip_country_name", region: "$geoip_subdivision_1_name" },
    ...{
      version_name: "$app_version",
      language: "$language",
      platform: "platform",
      session_id: "$amplitude_session_id",
    },
  });
  const groups = objectOf(record.groups);
  if (Object.keys(groups).length > 0) properties.$groups = groups;
  const distinctId = record.user_id || record.device_id || record.amplitude_id;
  return {
    event: event(
      record.event_type,
      distinctId,
      record.event_time ?? record.time ?? record.client_event_time,
      properties,
    ),
    sourceId: idOf(record.uuid ?? record.$insert_id ?? record.insert_id),
  };
}

/** Source: Mixpanel's raw export; `time` counts seconds or milliseconds, UTC. */
export function fromMixpanel(record: JsonObject): MappedEvent {
  const found = propertiesOf(record.properties);
  if (!isObject(found)) return { event: { properties: found }, sourceId: undefined };
  const { distinct_id, time, $insert_id, ...properties } = found;
  copy(properties, properties, { $city: "$geoip_city_name", mp_country_code: "$geoip_country_code" });
  const distinctId = distinct_id || properties.$user_id || properties.$device_id;
  return { event: event(record.event, distinctId, time, properties), sourceId: idOf($insert_id) };
}

/** Source: Segment's messages: track, identify, page, screen, group, alias. */
export function fromSegment(record: JsonObject): MappedEvent {
  const { userId, anonymousId } = record;
  const traits = objectOf(record.traits);
  const properties = propertiesOf(record.properties);
  if (!isObject(properties)) return { event: { properties }, sourceId: undefined };
  Object.assign(properties, contextOf(objectOf(record.context)));
  let name = record.event as Json | undefined;
  if (record.type === "identify") {
    name = "$identify";
    properties.$set = traits;
    if (userId && anonymousId) properties.$anon_distinct_id = anonymousId;
  } else if (record.type === "page") name = "$pageview";
  else if (record.type === "screen") name = "$screen";
  else if (record.type === "alias") {
    name = "$create_alias";
    properties.alias = record.previousId ?? null;
  } else if (record.type === "group") {
    name = "$groupidentify";
    Object.assign(properties, {
      $group_type: "company",
      $group_key: record.groupId ?? null,
      $group_set: traits,
    });
  }
  if (record.type === "screen" && record.name) properties.$screen_name = record.name;
  const time = record.originalTimestamp ?? record.timestamp ?? record.receivedAt;
  return {
    event: event(name, userId || anonymousId, record.timestamp ?? time, properties),
    sourceId: idOf(record.messageId),
  };
}

function contextOf(context: JsonObject): JsonObject {
  const properties: JsonObject = {};
  copy(context, properties, {
    ip: "$ip",
    userAgent: "$user_agent",
    locale: "$locale",
    timezone: "$timezone",
  });
  copy(objectOf(context.page), properties, {
    ...{ url: "$current_url", path: "$pathname", referrer: "$referrer", title: "title" },
  });
  return properties;
}

function event(
  name: Json | undefined,
  distinctId: Json | undefined,
  timestamp: Json | undefined,
  properties: JsonObject,
): JsonObject {
  const made: JsonObject = { event: name ?? null, distinct_id: distinctId ?? null, properties };
  if (timestamp !== undefined && timestamp !== null) made.timestamp = timestamp;
  return made;
}

function copy(from: JsonObject, to: JsonObject, names: Record<string, string>): void {
  for (const [name, target] of Object.entries(names)) {
    const value = from[name];
    if (value !== undefined && value !== null && value !== "" && to[target] === undefined) to[target] = value;
  }
}
