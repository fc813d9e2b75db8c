/** Tables of Segment and RudderStack: their rows as messages (contract, import 2.4). Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";
import { objectOf } from "./loose-json.ts";
import { isEmpty } from "./members.ts";

/** Columns of warehouse tables, and the members of a message that they are. */
const warehouseColumns: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ id: "messageId", message_id: "messageId", anonymous_id: "anonymousId", user_id: "userId" },
    ...{ original_timestamp: "originalTimestamp", received_at: "receivedAt", timestamp: "timestamp" },
    ...{ previous_id: "previousId", group_id: "groupId", event_text: "event" },
    ...{ sent_at: "sentAt", uuid_ts: "uuid_ts", loaded_at: "loaded_at", uuid: "uuid", channel: "channel" },
  }),
);
/** Objects of `context` that warehouse columns name with their members: `context_page_url`. */
const contextObjects = new Set([
  "page",
  "campaign",
  "os",
  "device",
  "app",
  "screen",
  "network",
  "library",
  "location",
  "referrer",
  "traits",
]);
/** Members of `context` that have two words. */
const contextWords: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ user_agent: "userAgent", session_id: "sessionId", group_id: "groupId", external_id: "externalId" },
  }),
);
const innerColumn = /^(properties|traits|context)\.(.+)$/;

/** Whether a record is a row of a warehouse table. */
export function isWarehouseRow(record: JsonObject): boolean {
  const has = (name: string) => Object.hasOwn(record, name);
  return has("original_timestamp") && (has("anonymous_id") || has("user_id"));
}

/** Puts the columns `properties.plan` and `context.page.url` of a table where they belong. */
export function fromColumns(record: JsonObject): JsonObject {
  if (!Object.keys(record).some((name) => innerColumn.test(name))) return record;
  const members: [string, Json][] = [];
  const inner: Record<string, [string, Json][]> = { properties: [], traits: [], context: [] };
  for (const [name, value] of Object.entries(record)) {
    const match = innerColumn.exec(name);
    if (match === null) members.push([name, value]);
    else if (!isEmpty(value)) inner[match[1]!]!.push([match[2]!, value]);
  }
  const result = objectFrom(members);
  for (const [name, entries] of Object.entries(inner)) {
    if (entries.length === 0) continue;
    const more = name === "context" ? nestedContext(entries) : objectFrom(entries);
    result[name] = { ...objectOf(result[name]), ...more };
  }
  return result;
}

/** `page.url` or `page_url` as the member of an object. */
function nestedContext(entries: readonly (readonly [string, Json])[]): JsonObject {
  const result = new Map<string, Json>();
  const objects = new Map<string, [string, Json][]>();
  for (const [name, value] of entries) {
    const at = name.search(/[._]/);
    const object = at === -1 ? "" : name.slice(0, at);
    if (!contextObjects.has(object)) {
      result.set(contextWords.get(name) ?? name, value);
      continue;
    }
    if (!objects.has(object)) objects.set(object, []);
    objects.get(object)!.push([name.slice(at + 1), value]);
  }
  for (const [name, members] of objects)
    result.set(name, { ...objectOf(result.get(name)), ...objectFrom(members) });
  return objectFrom(result);
}

/** A row of a warehouse table as a message. Its table's name is not known: the columns show its kind. */
export function messageOfRow(row: JsonObject): JsonObject {
  const members: [string, Json][] = [];
  const context: [string, Json][] = [];
  const others: [string, Json][] = [];
  for (const [name, value] of Object.entries(row)) {
    if (isEmpty(value) || name === "event" || name === "type") continue;
    const target = warehouseColumns.get(name);
    if (target !== undefined) members.push([target, value]);
    else if (name.startsWith("context_")) context.push([name.slice("context_".length), value]);
    else others.push([name, value]);
  }
  const message = objectFrom(members);
  if (message.event === undefined && !isEmpty(row.event)) message.event = row.event!;
  message.type = kindOf(row, message);
  if (context.length > 0) message.context = nestedContext(context);
  const isAboutTraits = message.type === "identify" || message.type === "group";
  if ((message.type === "page" || message.type === "screen") && !isEmpty(row.name)) {
    message.name = row.name!;
    others.splice(0, others.length, ...others.filter(([name]) => name !== "name"));
  }
  message[isAboutTraits ? "traits" : "properties"] = objectFrom(others);
  return message;
}

const kinds = new Set(["track", "identify", "page", "screen", "group", "alias"]);

function kindOf(row: JsonObject, message: JsonObject): string {
  if (typeof row.type === "string" && kinds.has(row.type)) return row.type;
  if (message.event !== undefined) return "track";
  if (message.previousId !== undefined) return "alias";
  if (message.groupId !== undefined) return "group";
  if (Object.hasOwn(row, "url") || Object.hasOwn(row, "path")) return "page";
  const isScreen = Object.keys(row).some((name) => name.startsWith("context_screen_"));
  return isScreen && !isEmpty(row.name) && !Object.hasOwn(row, "email") ? "screen" : "identify";
}
