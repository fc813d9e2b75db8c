/** Mixpanel's raw export, and its export of people. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { identityAmong } from "./identity.ts";
import { idOf, propertiesOf } from "./loose-json.ts";
import { copy, type EventSource, eventOf, type MappedEvent, unusable } from "./mapped.ts";

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
  const given = deviceId(idOf(distinct_id));
  const { distinctId, ...identity } = identityAmong([given, user, device], device, user);
  const content = sourceId === undefined ? { content: withoutTime(found) } : {};
  const source: EventSource = { name: record.event, ids: [given, user, device], ...content };
  if (record.event === "$identify") {
    const anonymous = deviceId(idOf(properties.$anon_id));
    const known = idOf(properties.$identified_id) ?? distinctId;
    const { distinctId: identified, pair, ...rest } = identityAmong([known, anonymous], anonymous, known);
    if (pair !== undefined) properties.$anon_distinct_id = pair[0];
    const event = eventOf("$identify", identified, time, properties);
    const link = pair === undefined ? {} : ({ pair, isLink: true } as const);
    return [{ event, sourceId, source: { ...source, ids: [known, anonymous] }, ...link, ...rest }];
  }
  if (record.event === "$merge") return merges(properties, time, sourceId);
  return [{ event: eventOf(record.event, distinctId, time, properties), sourceId, source, ...identity }];
}

function withoutTime({ time: _, ...properties }: JsonObject): JsonObject {
  return properties;
}

/** `$distinct_ids` are one person: the first takes the others in. */
function merges(properties: JsonObject, time: Json | undefined, sourceId: string | undefined): MappedEvent[] {
  const ids = Array.isArray(properties.$distinct_ids) ? properties.$distinct_ids : [];
  const [first, ...others] = ids.map((id) => deviceId(idOf(id)));
  if (others.length === 0) return unusable(null);
  return others.map((alias, index) => ({
    event: eventOf("$merge_dangerously", first, time, { alias: alias ?? null }),
    source: { name: "$merge", ids: [first, alias] },
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
      source: { name: "$set", ids: [idOf(record.$distinct_id)], content: found },
    },
  ];
}

function deviceId(id: string | undefined): string | undefined {
  return id?.startsWith(devicePrefix) ? id.slice(devicePrefix.length) : id;
}
