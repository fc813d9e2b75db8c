/** Tables of Heap Connect (contract, import 2.11). Pure. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { joinAddress } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { identityAmong, isPlaceholder } from "./identity.ts";
import { getId } from "./lenient-json.ts";
import { type MappedRecord, type SourceUser, toEvent } from "./mapped.ts";
import { Members } from "./members.ts";

const fields = {
  domain: "$host",
  path: "$pathname",
  title: "title",
  referrer: "$referrer",
  browser: "$browser",
  platform: "$os",
  device_type: "$device_type",
  country: "$geoip_country_name",
  region: "$geoip_subdivision_1_name",
  city: "$geoip_city_name",
  ip: "$ip",
  session_id: "$session_id",
  library: "$lib",
  app_version: "$app_version",
};
/** Columns of `users` that identify the person. */
const userIds = new Set(["user_id", "identity"]);

/** A row of an event table; the file name is the table's name unless a column contains it. */
export function fromHeap(record: JsonObject, table: string, user?: JsonObject): MappedRecord {
  const members = new Members(record);
  const eventTable = members.takeId("event_table_name") ?? members.takeId("event_name") ?? tableOfFile(table);
  const draft = new EventDraft("heap");
  if (user !== undefined) draft.set(Object.entries(user).filter(([name]) => !userIds.has(name)));
  const host = getId(members.peek("domain"));
  const path = getId(members.peek("path"));
  const address = joinAddress(host, path, getId(members.peek("query")));
  if (address === undefined) draft.fill("$current_url", members.peek("landing_page"));
  else if (draft.fill("$current_url", address)) members.take("query");
  const userId = members.takeId("user_id");
  const named = getId(members.peek("identity"));
  const known = getId(user?.identity);
  const identity = known ?? named;
  const { distinctId, ...placeholder } = identityAmong([known, named, heapId(userId)], undefined, undefined);
  if (distinctId === named) members.take("identity");
  if (userId !== undefined && distinctId !== heapId(userId)) draft.keep("user_id", record.user_id!);
  const time = members.take("time");
  const eventId = members.takeId("event_id") ?? getId(members.peek("session_id"));
  draft.fillFrom(members, fields);
  draft.keepRest(members);
  const { time: _, ...content } = record;
  const event = toEvent(getName(eventTable), distinctId, time, draft.toProperties());
  return {
    events: [
      {
        event,
        sourceId: eventId === undefined ? undefined : `heap:${eventTable}:${eventId}`,
        source: { name: eventTable, ids: [userId, identity], content },
        ...placeholder,
      },
    ],
    omitted: draft.omitted,
  };
}

/** The ID of a user without an identity; placeholders stay unchanged. */
function heapId(userId: string | undefined): string | undefined {
  return userId === undefined || isPlaceholder(userId) ? userId : `heap:${userId}`;
}

/** The distinct ID of a Heap user, for rows that merge users; undefined for placeholders. */
export function heapPerson(userId: string, identities: readonly (Json | undefined)[]): SourceUser["ids"] {
  const identity = identities.map(getId).findLast((id) => id !== undefined && !isPlaceholder(id));
  if (identity !== undefined) return [{ distinctId: identity, isUser: true }];
  return isPlaceholder(userId) ? [] : [{ distinctId: heapId(userId)!, isUser: false }];
}

/** Databases write a table in numbered parts, in capitals or not: the name must not depend on it. */
function tableOfFile(table: string): string {
  return /^(pageviews|sessions)(?:[_.-]?\d.*)?$/i.exec(table)?.[1]?.toLowerCase() ?? table;
}

function getName(table: string): Json {
  if (table === "pageviews") return "$pageview";
  return table === "sessions" ? "session_start" : table;
}
