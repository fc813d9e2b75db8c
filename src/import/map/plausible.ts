/** Plausible's ClickHouse table `events_v2` (contract, import 2.7). Pure. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { joinAddress } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { getId, toList, toObject, withoutFilling } from "./lenient-json.ts";
import { type MappedRecord, toEvent } from "./mapped.ts";
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
/** Value of the column `scroll_depth` without a measurement. */
const noScrollDepth = "255";
const propertyColumn = /^(?:meta|props)\.(?!key$|value$)(.+)$/;

export function fromPlausible(row: JsonObject): MappedRecord {
  const record = withoutFillings(row);
  const members = new Members(record);
  const own = customProperties(members);
  const draft = new EventDraft("plausible", own);
  const { timestamp: _, ...columns } = Object.fromEntries(members.entries());
  const host = getId(members.peek("hostname"));
  const path = getId(members.peek("pathname"));
  if (path !== undefined) draft.fill("$current_url", joinAddress(host, path, undefined));
  const name = members.take("name");
  const distinctId = members.takeId("user_id");
  const time = members.take("timestamp");
  if (getId(members.peek("city_geoname_id")) === "0") members.take("city_geoname_id");
  const depth = getId(members.peek("scroll_depth"));
  if (depth === noScrollDepth) members.take("scroll_depth");
  else if (depth !== undefined && Number.isFinite(Number(depth)))
    draft.fill("$prev_pageview_max_scroll_percentage", Number(depth) / 100);
  draft.fillFrom(members, fields);
  draft.keepRest(members);
  const known = typeof name === "string" ? (eventNames.get(name) ?? name) : name;
  const event = toEvent(known, distinctId, time, draft.toProperties());
  // As in the file: an older version has not removed the NUL bytes.
  const { timestamp: __, ...formerContent } = row;
  const source = {
    name: record.name,
    ids: [distinctId],
    content: { ...columns, "meta.": own },
    formerContent,
  };
  return { events: [{ event, sourceId: undefined, source }], omitted: draft.omitted };
}

/** A FixedString ends with NUL bytes (contract, import T6). */
function withoutFillings(record: JsonObject): JsonObject {
  const entries = Object.entries(record).map(([name, value]): [string, Json] => [
    name,
    typeof value === "string" ? withoutFilling(value) : value,
  ]);
  return objectFrom(entries);
}

/** `meta.key` and `meta.value` as parallel lists, or an object `meta` or `props`, or columns such as `meta.plan`. */
function customProperties(members: Members): JsonObject {
  const entries: [string, Json][] = [];
  for (const bag of ["meta", "props"]) {
    const columns = [`${bag}.key`, `${bag}.value`] as const;
    const keys = toList(members.peek(columns[0]));
    const values = toList(members.peek(columns[1]));
    if (keys.length === values.length) {
      for (const name of columns) members.takeList(name);
      keys.forEach((key, at) => void entries.push([String(key), values[at]!]));
    }
    const object = toObject(members.peek(bag));
    const innerKeys = toList(object.key);
    const innerValues = toList(object.value);
    if (innerKeys.length > 0 && innerKeys.length === innerValues.length) {
      members.take(bag);
      innerKeys.forEach((key, at) => void entries.push([String(key), innerValues[at]!]));
    } else {
      members.takeMembers(bag);
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
