/**
 * Messages of Segment and of Rudderstack, which has taken over their form: track, identify, page, screen, group, alias; as
 * JSON, or as tables with columns such as `properties.plan` or, in warehouses, `anonymous_id`. Pure.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";
import { identityOf } from "./identity.ts";
import { idOf, objectOf, propertiesOf } from "./loose-json.ts";
import { copy, eventOf, type MappedEvent, unusable } from "./mapped.ts";

/** Columns of warehouse tables, and the members of a message that they are. */
const warehouseColumns = new Map(
  Object.entries({
    ...{ id: "messageId", message_id: "messageId", anonymous_id: "anonymousId", user_id: "userId" },
    ...{ original_timestamp: "originalTimestamp", received_at: "receivedAt", timestamp: "timestamp" },
    ...{ previous_id: "previousId", group_id: "groupId", event_text: "event" },
    ...{
      context_ip: "context.ip",
      context_user_agent: "context.userAgent",
      context_locale: "context.locale",
    },
    ...{ context_timezone: "context.timezone", context_page_url: "context.page.url" },
    ...{ context_page_path: "context.page.path", context_page_referrer: "context.page.referrer" },
    ...{ context_page_title: "context.page.title" },
  }),
);
/** Columns that only the warehouse needs. */
const warehouseOwn = new Set(["event", "sent_at", "uuid_ts", "uuid", "loaded_at"]);
const innerColumn = /^(properties|traits|context)\.(.+)$/;

export function fromSegment(given: JsonObject): MappedEvent[] {
  const record = isWarehouseRow(given) ? fromWarehouse(given) : nested(given);
  const properties = propertiesOf(record.properties);
  if (!isJsonObject(properties)) return unusable(properties);
  const context = objectOf(record.context);
  Object.assign(properties, contextOf(context));
  const user = idOf(record.userId);
  const anonymous = idOf(record.anonymousId);
  const { distinctId, pair, ...identity } = identityOf(anonymous, user);
  const isIdentify = record.type === "identify";
  const name = nameOf(record, properties, anonymous);
  if (isIdentify && pair !== undefined) properties.$anon_distinct_id = pair[0];
  const time = record.timestamp ?? record.originalTimestamp ?? record.receivedAt;
  return [
    {
      event: eventOf(
        name,
        record.type === "alias" ? previousIdOf(record, anonymous) : distinctId,
        time,
        properties,
      ),
      sourceId: idOf(record.messageId),
      source: {
        name: record.type === "track" ? (record.event ?? null) : (record.type ?? null),
        ids: [user, anonymous, idOf(record.previousId), idOf(record.groupId)],
        content: contentOf(record),
      },
      ...identity,
      ...(pair === undefined ? {} : { pair }),
      ...(pair !== undefined && isIdentify ? { isLink: true } : {}),
    },
  ];
}

function nameOf(record: JsonObject, properties: JsonObject, anonymous: string | undefined): Json | undefined {
  const traits = objectOf(record.traits);
  switch (record.type) {
    case "identify":
      properties.$set = traits;
      return "$identify";
    case "page":
      return "$pageview";
    case "screen":
      if (record.name) properties.$screen_name = record.name;
      return "$screen";
    case "alias":
      properties.alias = idOf(record.userId) ?? anonymous ?? null;
      return "$create_alias";
    case "group":
      Object.assign(properties, {
        $group_type: "company",
        $group_key: record.groupId ?? null,
        $group_set: traits,
      });
      return "$groupidentify";
    default:
      return record.event;
  }
}

/**
 * Of an alias the id that the user had before: as clients of `$create_alias` do, so that the new one becomes the main id.
 */
function previousIdOf({ previousId }: JsonObject, anonymous: string | undefined): string | undefined {
  return idOf(previousId) ?? anonymous;
}

/** What tells a message without an id from others. */
function contentOf({ properties, traits, name, category }: JsonObject): JsonObject {
  const content = { properties, traits, name, category };
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined)) as JsonObject;
}

function contextOf(context: JsonObject): JsonObject {
  const properties: JsonObject = {};
  copy(context, properties, {
    ...{ ip: "$ip", userAgent: "$user_agent", locale: "$locale", timezone: "$timezone" },
  });
  copy(objectOf(context.page), properties, {
    ...{ url: "$current_url", path: "$pathname", referrer: "$referrer", title: "title" },
  });
  return properties;
}

/** Puts the columns `properties.plan` and `context.page.url` of a table where they belong. */
function nested(record: JsonObject): JsonObject {
  if (!Object.keys(record).some((name) => innerColumn.test(name))) return record;
  const members: [string, Json][] = [];
  const inner: Record<string, [string, Json][]> = { properties: [], traits: [], context: [] };
  const page: [string, Json][] = [];
  for (const [name, value] of Object.entries(record)) {
    const match = innerColumn.exec(name);
    if (match === null) members.push([name, value]);
    else if (match[1] === "context" && match[2]!.startsWith("page.")) page.push([match[2]!.slice(5), value]);
    else inner[match[1]!]!.push([match[2]!, value]);
  }
  if (page.length > 0) inner.context!.push(["page", objectFrom(page)]);
  const result = objectFrom(members);
  for (const [name, entries] of Object.entries(inner)) {
    if (entries.length > 0) result[name] = { ...objectOf(result[name]), ...objectFrom(entries) };
  }
  return result;
}

/** A row of a table of a warehouse. */
export function isWarehouseRow(record: JsonObject): boolean {
  const has = (name: string) => Object.hasOwn(record, name);
  return has("original_timestamp") && (has("anonymous_id") || has("user_id"));
}

/** What kind of message a row was, its table's name would say: the columns tell. */
function fromWarehouse(row: JsonObject): JsonObject {
  const members: [string, Json][] = [];
  const others: [string, Json][] = [];
  for (const [name, value] of Object.entries(row)) {
    const target = warehouseColumns.get(name);
    if (target !== undefined) members.push([target, value]);
    else if (!warehouseOwn.has(name) && !name.startsWith("context_") && value !== null)
      others.push([name, value]);
  }
  const record = nested(objectFrom(members));
  if (record.event === undefined && row.event !== undefined) record.event = row.event;
  const isIdentify = record.event === undefined && row.url === undefined && row.path === undefined;
  record.type = record.event !== undefined ? "track" : isIdentify ? "identify" : "page";
  if (record.previousId !== undefined) record.type = "alias";
  if (record.groupId !== undefined && isIdentify) record.type = "group";
  const isAboutTraits = record.type === "identify" || record.type === "group";
  record[isAboutTraits ? "traits" : "properties"] = objectFrom(others);
  if (record.type === "page") {
    const properties = objectOf(record.properties);
    copy(row, properties, { url: "$current_url", path: "$pathname", referrer: "$referrer" });
    record.properties = properties;
  }
  return record;
}
