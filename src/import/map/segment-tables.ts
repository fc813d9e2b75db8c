/** Tables of Segment and RudderStack: their rows as messages (contract, import 2.4). Pure. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { toObject } from "./lenient-json.ts";
import { isEmpty } from "./members.ts";

/** Columns of warehouse tables, and the corresponding members of a message. */
const warehouseColumns: ReadonlyMap<string, string> = new Map(
  Object.entries({
    id: "messageId",
    message_id: "messageId",
    anonymous_id: "anonymousId",
    user_id: "userId",
    original_timestamp: "originalTimestamp",
    received_at: "receivedAt",
    timestamp: "timestamp",
    previous_id: "previousId",
    group_id: "groupId",
    event_text: "event",
    sent_at: "sent_at",
    uuid_ts: "uuid_ts",
    loaded_at: "loaded_at",
    uuid: "uuid",
    channel: "channel",
    rudder_id: "rudder_id",
  }),
);
const columnNames = new Map([...warehouseColumns].map(([column, member]) => [member, column]));
/** Objects of `context` whose members are warehouse columns: `context_page_url`. */
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
/** Members of `context` with names of two words. */
const contextNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    user_agent: "userAgent",
    session_id: "sessionId",
    group_id: "groupId",
  }),
);
const innerColumn = /^(properties|traits|context)\.(.+)$/;

export function isWarehouseRow(record: JsonObject): boolean {
  const has = (name: string) => Object.hasOwn(record, name);
  return has("original_timestamp") && (has("anonymous_id") || has("user_id"));
}

/** Whether a record of a table that was recognized is a row, although its cell `original_timestamp` may be empty. */
export function isRow(record: JsonObject): boolean {
  const has = (name: string) => Object.hasOwn(record, name);
  const isMessage = ["userId", "anonymousId", "messageId", "previousId"].some(has);
  return isWarehouseRow(record) || (!isMessage && (has("anonymous_id") || has("user_id")));
}

/** Moves the columns `properties.plan` and `context.page.url` of a table into their objects. */
export function toNestedMembers(record: JsonObject): JsonObject {
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
    result[name] = { ...toObject(result[name]), ...more };
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
      result.set(contextNames.get(name) ?? name, value);
      continue;
    }
    if (!objects.has(object)) objects.set(object, []);
    objects.get(object)!.push([name.slice(at + 1), value]);
  }
  for (const [name, members] of objects)
    result.set(name, { ...toObject(result.get(name)), ...objectFrom(members) });
  return objectFrom(result);
}

/** The column that a member of a warehouse row's message was. */
export function getColumn(member: string): string {
  return columnNames.get(member) ?? member;
}

/** A row of a warehouse table as a message. @param table see `MapContext` */
export function messageOfRow(row: JsonObject, table: string): JsonObject {
  const members: [string, Json][] = [];
  const context: [string, Json][] = [];
  const others: [string, Json][] = [];
  for (const [name, value] of Object.entries(row)) {
    // A column `type` that names no kind is a property.
    if (isEmpty(value) || name === "event" || (name === "type" && kinds.has(String(value)))) continue;
    const target = warehouseColumns.get(name);
    if (target !== undefined) members.push([target, value]);
    else if (name.startsWith("context_")) context.push([name.slice("context_".length), value]);
    else others.push([name, value]);
  }
  const message = objectFrom(members);
  if (message.event === undefined && !isEmpty(row.event)) message.event = row.event!;
  message.type = getKind(row, message, others, table);
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
/** The tables that Segment and RudderStack create, and the kind of their rows. */
const tableKinds: ReadonlyMap<string, string> = new Map([
  ["identifies", "identify"],
  ["pages", "page"],
  ["screens", "screen"],
  ["groups", "group"],
  ["tracks", "track"],
  ["aliases", "alias"],
]);

/** @param others columns that are neither of the message nor of its context. */
function getKind(
  row: JsonObject,
  message: JsonObject,
  others: readonly (readonly [string, Json])[],
  table: string,
): string {
  if (typeof row.type === "string" && kinds.has(row.type)) return row.type;
  if (message.event !== undefined) return "track";
  if (message.previousId !== undefined) return "alias";
  if (message.groupId !== undefined) return "group";
  if (Object.hasOwn(row, "url") || Object.hasOwn(row, "path")) return "page";
  // Page and identify rows may have the same columns; the name of their table decides.
  const known = tableKinds.get(table.toLowerCase().replace(/[_.-]?\d.*$/, ""));
  if (known !== undefined) return known;
  const hasScreen = Object.keys(row).some((name) => name.startsWith("context_screen_"));
  const isNameAlone = others.length === 1 && others[0]![0] === "name";
  return hasScreen && isNameAlone ? "screen" : "identify";
}
