/** Tables of Heap Connect (contract, import 2.11). Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";
import { joinAddress } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { idOf } from "./loose-json.ts";
import { eventOf, type MappedRecord } from "./mapped.ts";
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
const userFields = new Set(["user_id", "identity", "joindate", "last_modified"]);

/** A row of a table of events; the file's name is the table's where no column names it. */
export function fromHeap(record: JsonObject, table: string, user?: JsonObject): MappedRecord {
  const members = new Members(record);
  const ownTable = members.takeId("event_table_name") ?? members.takeId("event_name") ?? table;
  const draft = new EventDraft("heap");
  if (user !== undefined) draft.set(Object.entries(user).filter(([name]) => !userFields.has(name)));
  const [host, path] = [idOf(members.peek("domain")), idOf(members.peek("path"))];
  draft.fill("$current_url", joinAddress(host, path, members.takeId("query")));
  if (!members.has("path")) draft.fill("$current_url", members.peek("landing_page"));
  const userId = members.takeId("user_id");
  const identity = idOf(user?.identity) ?? members.takeId("identity");
  const distinctId = identity ?? heapId(userId);
  const time = members.take("time");
  const eventId = members.takeId("event_id") ?? idOf(members.peek("session_id"));
  draft.fillFrom(members, fields);
  draft.keepRest(members);
  const { time: _, ...content } = record;
  const event = eventOf(nameOf(ownTable), distinctId, time, draft.toProperties());
  return {
    events: [
      {
        event,
        sourceId: eventId === undefined ? undefined : `heap:${ownTable}:${eventId}`,
        source: { name: ownTable, ids: [userId, identity], content },
      },
    ],
    notTaken: draft.notTaken,
  };
}

/** How a user without an identity is called. */
export function heapId(userId: string | undefined): string | undefined {
  return userId === undefined ? undefined : `heap:${userId}`;
}

function nameOf(table: string): Json {
  if (table === "pageviews") return "$pageview";
  return table === "sessions" ? "session_start" : table;
}
