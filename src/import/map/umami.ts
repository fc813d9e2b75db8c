/** Umami's table `website_event` (contract, import 2.6). Pure. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { fillScreen, joinAddress } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { getIdentity } from "./identity.ts";
import { getId, parseListString, toExactNumber } from "./lenient-json.ts";
import { type MappedRecord, toEvent } from "./mapped.ts";
import { Members } from "./members.ts";

const fields = {
  url_path: "$pathname",
  hostname: "$host",
  referrer_domain: "$referring_domain",
  page_title: "title",
  visit_id: "$session_id",
  session_id: "$device_id",
  browser: "$browser",
  os: "$os",
  device: "$device_type",
  language: "$browser_language",
  ip: "$ip",
  country: "$geoip_country_code",
  city: "$geoip_city_name",
  lat: "$geoip_latitude",
  lng: "$geoip_longitude",
  lcp: "$web_vitals_LCP_value",
  inp: "$web_vitals_INP_value",
  cls: "$web_vitals_CLS_value",
  fcp: "$web_vitals_FCP_value",
  ttfb: "$web_vitals_TTFB_value",
};
const regionFields = { region: 1, subdivision1: 1, subdivision2: 2 } as const;
/** `DE-BE`, `BE`, `06`. */
const regionCodeForm = /^(?:[A-Z]{2}-)?[A-Z0-9]{1,3}$/;
const omitted = ["job_id", "event_type"];

/** Data about the event and its session from files of the same folder. */
export interface UmamiLookup {
  /** `event_data` of the event: properties. */
  properties?: JsonObject;
  /** Columns of the session, which fill gaps. */
  session?: JsonObject;
  /** `session_data`: person properties. */
  person?: JsonObject;
}

/** A row of the table `website_event`. */
export function fromUmami(record: JsonObject, lookup: UmamiLookup = {}): MappedRecord {
  const members = new Members({ ...lookup.session, ...withoutEmpty(record) });
  const draft = new EventDraft("umami", lookup.properties);
  if (lookup.person !== undefined) draft.set(lookup.person);
  takeAddresses(draft, members);
  const session = getId(members.peek("session_id"));
  const user = members.takeId("distinct_id");
  const type = getId(members.peek("event_type"));
  const isView = type === "1" || !members.has("event_name");
  const name = isView ? "$pageview" : members.takeId("event_name");
  const time = members.take("created_at");
  const sourceId = members.takeId("event_id");
  if (fillScreen(draft, members.peek("screen"))) members.take("screen");
  for (const [column, level] of Object.entries(regionFields)) takeRegion(draft, members, column, level);
  draft.fillFrom(members, fields);
  draft.omit(members, omitted);
  draft.keepRest(members);
  const { distinctId, ...identity } = getIdentity(session, user);
  const event = toEvent(name, distinctId, time, draft.toProperties());
  const { created_at: _, ...content } = record;
  const source = { name: record.event_name, ids: [user, session], content };
  return { events: [{ event, sourceId, isUuid: true, source, ...identity }], omitted: draft.omitted };
}

function takeAddresses(draft: EventDraft, members: Members): void {
  const host = getId(members.peek("hostname"));
  const path = getId(members.peek("url_path"));
  if (path !== undefined) {
    const address = joinAddress(host, path, getId(members.peek("url_query")));
    if (draft.fill("$current_url", address)) members.take("url_query");
  }
  const domain = getId(members.peek("referrer_domain"));
  if (domain === undefined) return;
  const [referrerPath, query] = ["referrer_path", "referrer_query"].map((name) => getId(members.peek(name)));
  if (draft.fill("$referrer", joinAddress(domain, referrerPath, query)))
    for (const name of ["referrer_path", "referrer_query"]) members.take(name);
}

/** Umami writes some regions as codes and others as names. */
function takeRegion(draft: EventDraft, members: Members, column: string, level: 1 | 2): void {
  const value = members.peek(column);
  const isCode = typeof value === "string" && regionCodeForm.test(value);
  draft.fillFrom(members, { [column]: `$geoip_subdivision_${level}_${isCode ? "code" : "name"}` });
}

function withoutEmpty(record: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== ""));
}

/** Types of `event_data` and `session_data` values. */
const dataTypes = { text: 1, number: 2, boolean: 3, date: 4, list: 5 };

/** The name and the value of a row of `event_data` or `session_data`; undefined without a value. */
export function umamiDatum(row: JsonObject): [name: string, value: Json] | undefined {
  const name = getId(row.data_key) ?? getId(row.event_key) ?? getId(row.session_key);
  if (name === undefined) return undefined;
  const type = Number(getId(row.data_type) ?? getId(row.event_data_type) ?? dataTypes.text);
  const text = getId(row.string_value);
  switch (type) {
    case dataTypes.number: {
      const number = getId(row.number_value) ?? text;
      return number === undefined ? undefined : [name, toExactNumber(number)];
    }
    case dataTypes.boolean: {
      const flag = text ?? getId(row.number_value);
      return flag === undefined ? undefined : [name, /^(?:true|1|t)$/i.test(flag)];
    }
    case dataTypes.date: {
      const date = getId(row.date_value) ?? text;
      return date === undefined ? undefined : [name, date];
    }
    case dataTypes.list:
      return text === undefined ? undefined : [name, parseListString(text) ?? text];
    default:
      return text === undefined ? undefined : [name, text];
  }
}
