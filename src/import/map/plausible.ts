/** Plausible's ClickHouse table `events_v2` (contract, import 2.7). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";
import { joinAddress } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { idOf, listOf, objectOf } from "./loose-json.ts";
import { eventOf, type MappedRecord } from "./mapped.ts";
import { Members } from "./members.ts";

const eventNames = new Map([
  ["pageview", "$pageview"],
  ["engagement", "$pageleave"],
]);

const fields = {
  hostname: "$host",
  pathname: "$pathname",
  referrer: "$referrer",
  country_code: "$geoip_country_code",
  subdivision1_code: "$geoip_subdivision_1_code",
  subdivision2_code: "$geoip_subdivision_2_code",
  browser: "$browser",
  browser_version: "$browser_version",
  operating_system: "$os",
  operating_system_version: "$os_version",
  screen_size: "$device_type",
  session_id: "$session_id",
  revenue_source_amount: "revenue",
  revenue_source_currency: "currency",
};
/** What the column `scroll_depth` has where nothing was measured. */
const noScrollDepth = "255";
const propertyColumn = /^(?:meta|props)\.(?!key$|value$)(.+)$/;

export function fromPlausible(record: JsonObject): MappedRecord {
  const members = new Members(record);
  const draft = new EventDraft("plausible", ownProperties(members));
  const host = idOf(members.peek("hostname"));
  const path = idOf(members.peek("pathname"));
  if (path !== undefined) draft.fill("$current_url", joinAddress(host, path, undefined));
  const name = members.take("name");
  const distinctId = members.takeId("user_id");
  const time = members.take("timestamp");
  if (idOf(members.peek("city_geoname_id")) === "0") members.take("city_geoname_id");
  const depth = idOf(members.peek("scroll_depth"));
  if (depth === noScrollDepth) members.take("scroll_depth");
  else if (depth !== undefined && Number.isFinite(Number(depth)))
    draft.fill("$prev_pageview_max_scroll_percentage", Number(depth) / 100);
  draft.fillFrom(members, fields);
  draft.keepRest(members);
  const known = typeof name === "string" ? (eventNames.get(name) ?? name) : name;
  const event = eventOf(known, distinctId, time, draft.toProperties());
  const { timestamp: _, ...content } = record;
  const source = { name: record.name, ids: [distinctId], content };
  return { events: [{ event, sourceId: undefined, source }], notTaken: draft.notTaken };
}

/** `meta.key` and `meta.value` side by side, or an object `meta` or `props`, or columns such as `meta.plan`. */
function ownProperties(members: Members): JsonObject {
  const entries: [string, Json][] = [];
  for (const bag of ["meta", "props"]) {
    const keys = listOf(members.peek(`${bag}.key`));
    const values = listOf(members.peek(`${bag}.value`));
    if (keys.length > 0 && keys.length === values.length) {
      for (const name of [`${bag}.key`, `${bag}.value`]) members.take(name);
      keys.forEach((key, at) => void entries.push([String(key), values[at]!]));
    }
    const object = objectOf(members.peek(bag));
    const [innerKeys, innerValues] = [listOf(object.key), listOf(object.value)];
    if (innerKeys.length > 0 && innerKeys.length === innerValues.length) {
      members.take(bag);
      innerKeys.forEach((key, at) => void entries.push([String(key), innerValues[at]!]));
    } else if (isJsonObject(object) && Object.keys(object).length > 0) {
      members.take(bag);
      entries.push(...Object.entries(object));
    }
  }
  for (const [name, value] of members.entries()) {
    const match = propertyColumn.exec(name);
    if (match === null) continue;
    members.take(name);
    entries.push([match[1]!, value]);
  }
  return objectFrom(entries);
}
