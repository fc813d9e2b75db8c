/**
 * Messages of Segment and of RudderStack, which has the same form: track, identify, page, screen, group, alias; as JSON
 * or as tables with columns such as `properties.plan` (contract, import 2.4). Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { EventDraft, type FieldNames } from "./event-draft.ts";
import { getIdentity, joinIds } from "./identity.ts";
import { getId, getProperties } from "./lenient-json.ts";
import { type MappedRecord, rejectRecord, toEvent } from "./mapped.ts";
import { Members } from "./members.ts";
import { getColumn, isRow, messageOfRow, toNestedMembers } from "./segment-tables.ts";

const omitted = [
  "integrations",
  "sentAt",
  "channel",
  "version",
  "writeKey",
  "projectId",
  "_metadata",
  "rudderId",
  "uuid_ts",
  "loaded_at",
  "sent_at",
  "originalTimestamp",
  "receivedAt",
  "original_timestamp",
  "received_at",
  "uuid",
  "event_text",
  "rudder_id",
];

/** Members of `context` and of the objects inside it. */
const contextFields: Readonly<Record<string, FieldNames>> = {
  "": {
    ip: "$ip",
    userAgent: "$raw_user_agent",
    locale: "$locale",
    timezone: "$timezone",
    sessionId: "$session_id",
  },
  page: { url: "$current_url", path: "$pathname", referrer: "$referrer", title: "title", search: "search" },
  campaign: {
    source: "utm_source",
    medium: "utm_medium",
    name: "utm_campaign",
    term: "utm_term",
    content: "utm_content",
  },
  os: { name: "$os", version: "$os_version" },
  device: {
    type: "$device_type",
    manufacturer: "$device_manufacturer",
    model: "$device_model",
    name: "$device_name",
    id: "$device_id",
  },
  app: { name: "$app_name", version: "$app_version", build: "$app_build", namespace: "$app_namespace" },
  screen: { width: "$screen_width", height: "$screen_height", density: "screen_density" },
  network: {
    wifi: "$network_wifi",
    carrier: "$network_carrier",
    cellular: "$network_cellular",
    bluetooth: "$network_bluetooth",
  },
  library: { name: "$lib", version: "$lib_version" },
  location: {
    city: "$geoip_city_name",
    country: "$geoip_country_name",
    region: "$geoip_subdivision_1_name",
    countryCode: "$geoip_country_code",
    country_code: "$geoip_country_code",
    regionCode: "$geoip_subdivision_1_code",
    region_code: "$geoip_subdivision_1_code",
    continent: "$geoip_continent_name",
    postalCode: "$geoip_postal_code",
    zip: "$geoip_postal_code",
    postal_code: "$geoip_postal_code",
    latitude: "$geoip_latitude",
    longitude: "$geoip_longitude",
    timezone: "$geoip_time_zone",
  },
  referrer: { url: "$referrer" },
};

/** Prefixes of members without a mapping: `context_device_token`, but `utm_id` and `referrer_type`. */
const labels: Readonly<Record<string, string>> = { campaign: "utm_", referrer: "referrer_" };

const pageFields = {
  url: "$current_url",
  path: "$pathname",
  referrer: "$referrer",
  title: "title",
  search: "search",
};

/** @param format `segment` or `rudderstack`. @param table see `MapContext` */
export function fromSegment(format: string, source: JsonObject, table: string): MappedRecord {
  const isOfTable = isRow(source);
  const record = isOfTable ? messageOfRow(source, table) : toNestedMembers(source);
  const own = getProperties(record.properties);
  if (!isJsonObject(own)) return rejectRecord(own);
  const members = new Members(record);
  members.take("properties");
  const draft = new EventDraft(format, own);
  const type = getId(members.take("type")) ?? "track";
  const user = members.takeId("userId");
  const anonymous = members.takeId("anonymousId");
  const time = members.takeFirst("timestamp", "originalTimestamp", "receivedAt");
  const sourceId = members.takeId("messageId");
  const context = members.takeMembers("context");
  const contextTraits = context.takeMembers("traits");
  const name = takeKind(draft, members, type, own);
  const { distinctId, pair, ...identity } = getIdentity(anonymous, user);
  const isLink = type === "identify" && pair !== undefined;
  if (isLink) draft.fill("$anon_distinct_id", pair[0]);
  const previous = type === "alias" ? members.takeId("previousId") : undefined;
  const joined = type === "alias" ? joinIds(previous ?? anonymous, user ?? anonymous) : undefined;
  for (const [key, value] of Object.entries(joined?.properties ?? {})) draft.fill(key, value);
  if (previous !== undefined && user !== undefined && anonymous !== undefined)
    draft.keep(isOfTable ? "anonymous_id" : "anonymousId", anonymous);
  draft.set(contextTraits.takeRest());
  const group = getId(context.take("groupId"));
  if (group !== undefined) draft.group("company", group);
  takeContext(draft, context);
  draft.omit(members, omitted, isOfTable ? getColumn : undefined);
  draft.keepRest(members, isOfTable ? getColumn : undefined);
  const id = joined === undefined ? distinctId : joined.distinctId;
  return {
    events: [
      {
        event: toEvent(name, id, time, draft.toProperties()),
        sourceId,
        source: {
          name: type === "track" ? (record.event ?? null) : type,
          ids: [user, anonymous, getId(record.previousId), getId(record.groupId)],
          content: getContent(record),
        },
        ...identity,
        ...(joined?.hasPlaceholder ? { hasPlaceholder: true } : {}),
        // An alias contains the IDs that it joins.
        ...(pair === undefined || type === "alias" ? {} : { pair }),
        ...(isLink ? { isLink: true } : {}),
      },
    ],
    omitted: draft.omitted,
  };
}

/** Content that distinguishes a message without an ID. */
function getContent({ properties, traits, name, category }: JsonObject): JsonObject {
  const content = { properties, traits, name, category };
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** Uses the members of the message's kind. @returns the event's name. */
function takeKind(draft: EventDraft, members: Members, type: string, own: JsonObject): Json | undefined {
  switch (type) {
    case "identify":
      draft.set(members.takeMembers("traits").takeRest());
      draft.ensureSet();
      return "$identify";
    case "page":
    case "screen":
      for (const [name, property] of Object.entries(pageFields)) draft.fill(property, own[name]);
      if (type === "screen") draft.fill("$screen_name", members.peek("name") ?? own.name);
      draft.fillFrom(members, { name: "name", category: "category" });
      return type === "page" ? "$pageview" : "$screen";
    case "alias":
      return "$create_alias";
    case "group": {
      draft.fill("$group_type", "company");
      draft.use("$group_key", "groupId", members.take("groupId"));
      draft.use("$group_set", "traits", objectFrom(members.takeMembers("traits").takeRest()));
      return "$groupidentify";
    }
    default:
      return members.take("event");
  }
}

function takeContext(draft: EventDraft, context: Members): void {
  const agent = context.peek("userAgent");
  for (const [name, fields] of Object.entries(contextFields)) {
    const members = name === "" ? context : context.takeMembers(name);
    const label = (member: string) =>
      labels[name] === undefined
        ? `context_${name === "" ? "" : `${name}_`}${member}`
        : `${labels[name]}${member}`;
    draft.fillFrom(members, fields, label);
    if (name !== "") draft.keepRest(members, label);
  }
  draft.fill("$user_agent", agent);
  draft.keepRest(context, (name) => `context_${name}`);
}
