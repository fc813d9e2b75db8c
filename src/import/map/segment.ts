/**
 * Messages of Segment and of RudderStack, which has the same form: track, identify, page, screen, group, alias; as JSON or as
 * tables with columns such as `properties.plan` (contract, import 2.4). Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { EventDraft, type FieldNames } from "./event-draft.ts";
import { identityOf } from "./identity.ts";
import { idOf, objectOf, propertiesOf } from "./loose-json.ts";
import { eventOf, type MappedRecord, unusable } from "./mapped.ts";
import { Members } from "./members.ts";
import { fromColumns, isWarehouseRow, messageOfRow } from "./segment-tables.ts";

const omitted = [
  ...["integrations", "sentAt", "channel", "version", "writeKey", "projectId", "_metadata", "rudderId"],
  ...["uuid_ts", "loaded_at", "sent_at", "originalTimestamp", "receivedAt", "original_timestamp"],
  ...["received_at", "uuid", "event_text"],
];

/** Members of `context` and of the objects inside it. */
const contextFields: Readonly<Record<string, FieldNames>> = {
  "": {
    ...{ ip: "$ip", userAgent: "$raw_user_agent", locale: "$locale", timezone: "$timezone" },
    sessionId: "$session_id",
  },
  page: { url: "$current_url", path: "$pathname", referrer: "$referrer", title: "title", search: "search" },
  campaign: {
    ...{ source: "utm_source", medium: "utm_medium", name: "utm_campaign" },
    ...{ term: "utm_term", content: "utm_content" },
  },
  os: { name: "$os", version: "$os_version" },
  device: {
    ...{ type: "$device_type", manufacturer: "$device_manufacturer", model: "$device_model" },
    ...{ name: "$device_name", id: "$device_id" },
  },
  app: { name: "$app_name", version: "$app_version", build: "$app_build", namespace: "$app_namespace" },
  screen: { width: "$screen_width", height: "$screen_height", density: "screen_density" },
  network: {
    ...{ wifi: "$network_wifi", carrier: "$network_carrier", cellular: "$network_cellular" },
    bluetooth: "$network_bluetooth",
  },
  library: { name: "$lib", version: "$lib_version" },
  location: {
    ...{ city: "$geoip_city_name", country: "$geoip_country_name", region: "$geoip_subdivision_1_name" },
    ...{ countryCode: "$geoip_country_code", country_code: "$geoip_country_code" },
    ...{ regionCode: "$geoip_subdivision_1_code", region_code: "$geoip_subdivision_1_code" },
    ...{ continent: "$geoip_continent_name", postalCode: "$geoip_postal_code", zip: "$geoip_postal_code" },
    ...{ latitude: "$geoip_latitude", longitude: "$geoip_longitude", timezone: "$geoip_time_zone" },
  },
  referrer: { url: "$referrer" },
};

/** How members without a row are called: `context_device_token`, but `utm_id` and `referrer_type`. */
const labels: Readonly<Record<string, string>> = { campaign: "utm_", referrer: "referrer_" };

const pageFields = {
  ...{ url: "$current_url", path: "$pathname", referrer: "$referrer", title: "title", search: "search" },
};

export function fromSegment(given: JsonObject): MappedRecord {
  const record = isWarehouseRow(given) ? messageOfRow(given) : fromColumns(given);
  const own = propertiesOf(record.properties);
  if (!isJsonObject(own)) return unusable(own);
  const members = new Members(record);
  members.take("properties");
  const draft = new EventDraft("segment", own);
  const type = idOf(members.take("type")) ?? "track";
  const user = members.takeId("userId");
  const anonymous = members.takeId("anonymousId");
  const time = members.takeFirst("timestamp", "originalTimestamp", "receivedAt");
  const sourceId = members.takeId("messageId");
  const context = members.takeInside("context");
  const contextTraits = objectOf(context.take("traits"));
  const name = takeKind(draft, members, type, own);
  const { distinctId, pair, ...identity } = identityOf(anonymous, user);
  const isLink = type === "identify" && pair !== undefined;
  if (isLink) draft.fill("$anon_distinct_id", pair[0]);
  if (type === "alias") draft.fill("alias", user ?? anonymous);
  const previous = members.takeId("previousId");
  draft.set(contextTraits);
  const group = idOf(context.take("groupId"));
  if (group !== undefined) draft.group("company", group);
  takeContext(draft, context);
  draft.omit(members, omitted);
  draft.keepRest(members);
  const id = type === "alias" ? (previous ?? anonymous) : distinctId;
  return {
    events: [
      {
        event: eventOf(name, id, time, draft.toProperties()),
        sourceId,
        source: {
          name: type === "track" ? (record.event ?? null) : type,
          ids: [user, anonymous, previous, idOf(record.groupId)],
          content: contentOf(record),
        },
        ...identity,
        // An alias names the ids that it joins.
        ...(pair === undefined || type === "alias" ? {} : { pair }),
        ...(isLink ? { isLink: true } : {}),
      },
    ],
    notTaken: draft.notTaken,
  };
}

/** What tells a message without an id from others. */
function contentOf({ properties, traits, name, category }: JsonObject): JsonObject {
  const content = { properties, traits, name, category };
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** Uses what the kind of the message says. @returns the event's name. */
function takeKind(draft: EventDraft, members: Members, type: string, own: JsonObject): Json | undefined {
  switch (type) {
    case "identify":
      draft.set(members.takeInside("traits").takeRest());
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
      draft.fill("$group_key", members.take("groupId"));
      draft.fill("$group_set", objectOf(members.take("traits")));
      return "$groupidentify";
    }
    default:
      return members.take("event");
  }
}

function takeContext(draft: EventDraft, context: Members): void {
  const agent = context.peek("userAgent");
  for (const [name, fields] of Object.entries(contextFields)) {
    const members = name === "" ? context : context.takeInside(name);
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
