/** Mixpanel's raw export, and its export of people. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";

import { idOf, propertiesOf } from "./loose-json.ts";
import { copy, eventOf, type MappedEvent, pairOf, unusable } from "./mapped.ts";

/** How Mixpanel marks ids of devices in `distinct_id`. */
const devicePrefix = "$device:";

/** `time` counts seconds or milliseconds, UTC. */
export function fromMixpanel(record: JsonObject): MappedEvent[] {
  const found = propertiesOf(record.properties);
  if (!isJsonObject(found)) return unusable(found);
  const { distinct_id, time, $insert_id, ...properties } = found;
  copy(properties, properties, { $city: "$geoip_city_name", mp_country_code: "$geoip_country_code" });
  const sourceId = idOf($insert_id);
  const user = idOf(properties.$user_id);
  const device = idOf(properties.$device_id);
  const distinctId = deviceId(idOf(distinct_id)) ?? user ?? device;
  if (record.event === "$identify") {
    const anonymous = deviceId(idOf(properties.$anon_id));
    if (anonymous !== undefined) properties.$anon_distinct_id = anonymous;
    const identified = idOf(properties.$identified_id) ?? distinctId;
    return [{ event: eventOf("$identify", identified, time, properties), sourceId }];
  }
  if (record.event === "$merge") return merges(properties, time, sourceId);
  return [{ event: eventOf(record.event, distinctId, time, properties), sourceId, ...pairOf(device, user) }];
}

/** `$distinct_ids` are one person: the first takes the others in. */
function merges(properties: JsonObject, time: Json | undefined, sourceId: string | undefined): MappedEvent[] {
  const ids = Array.isArray(properties.$distinct_ids) ? properties.$distinct_ids : [];
  const [first, ...others] = ids.map((id) => deviceId(idOf(id)));
  if (others.length === 0) return unusable(null);
  return others.map((alias, index) => ({
    event: eventOf("$merge_dangerously", first, time, { alias: alias ?? null }),
    sourceId: sourceId === undefined || index === 0 ? sourceId : `${sourceId}:${index}`,
  }));
}

/** A line of the people export: `$distinct_id` and `$properties`; its time is when the person was seen last. */
export function fromMixpanelPeople(record: JsonObject): MappedEvent[] {
  const found = propertiesOf(record.$properties);
  if (!isJsonObject(found)) return unusable(found);
  const { $last_seen, ...properties } = found;
  return [
    {
      event: eventOf("$set", deviceId(idOf(record.$distinct_id)), $last_seen, { $set: properties }),
      sourceId: undefined,
    },
  ];
}

function deviceId(id: string | undefined): string | undefined {
  return id?.startsWith(devicePrefix) ? id.slice(devicePrefix.length) : id;
}
