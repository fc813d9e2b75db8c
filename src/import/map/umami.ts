/** Umami's table `website_event` (contract, import 2.6). Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";
import { fillScreen, joinAddress } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { identityOf } from "./identity.ts";
import { idOf } from "./loose-json.ts";
import { eventOf, type MappedRecord } from "./mapped.ts";
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
  region: "$geoip_subdivision_1_code",
  subdivision1: "$geoip_subdivision_1_code",
  subdivision2: "$geoip_subdivision_2_code",
  city: "$geoip_city_name",
  lat: "$geoip_latitude",
  lng: "$geoip_longitude",
  lcp: "$web_vitals_LCP_value",
  inp: "$web_vitals_INP_value",
  cls: "$web_vitals_CLS_value",
  fcp: "$web_vitals_FCP_value",
  ttfb: "$web_vitals_TTFB_value",
};
const omitted = ["job_id", "event_type"];

/** What files of the same folder say about the event and its session. */
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
  const host = idOf(members.peek("hostname"));
  const address = joinAddress(host, idOf(members.peek("url_path")), members.takeId("url_query"));
  if (members.has("url_path")) draft.fill("$current_url", address);
  const [path, query] = [members.takeId("referrer_path"), members.takeId("referrer_query")];
  const domain = idOf(members.peek("referrer_domain"));
  if (domain !== undefined) draft.fill("$referrer", joinAddress(domain, path, query));
  const session = idOf(members.peek("session_id"));
  const user = members.takeId("distinct_id");
  const type = idOf(members.peek("event_type"));
  const ownName = members.takeId("event_name");
  const name = type === "1" || ownName === undefined ? "$pageview" : ownName;
  const time = members.take("created_at");
  const sourceId = members.takeId("event_id");
  if (fillScreen(draft, members.peek("screen"))) members.take("screen");
  draft.fillFrom(members, fields);
  draft.omit(members, omitted);
  draft.keepRest(members);
  const { distinctId, ...identity } = identityOf(session, user);
  const event = eventOf(name, distinctId, time, draft.toProperties());
  const { created_at: _, ...content } = record;
  const source = { name: record.event_name, ids: [user, session], content };
  return { events: [{ event, sourceId, isUuid: true, source, ...identity }], notTaken: draft.notTaken };
}

function withoutEmpty(record: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== ""));
}

/** Types of `event_data` and `session_data` values. */
const dataTypes = { text: 1, number: 2, boolean: 3, date: 4, list: 5 };

/** The name and the value of a row of `event_data` or `session_data`; undefined where it has none. */
export function umamiDatum(row: JsonObject): [name: string, value: Json] | undefined {
  const name = idOf(row.data_key) ?? idOf(row.event_key) ?? idOf(row.session_key);
  if (name === undefined) return undefined;
  const type = Number(idOf(row.data_type) ?? idOf(row.event_data_type) ?? dataTypes.text);
  const text = idOf(row.string_value);
  switch (type) {
    case dataTypes.number: {
      const number = idOf(row.number_value) ?? text;
      return number === undefined || Number.isNaN(Number(number)) ? undefined : [name, Number(number)];
    }
    case dataTypes.boolean:
      return text === undefined ? undefined : [name, /^(true|1|t)$/i.test(text)];
    case dataTypes.date: {
      const date = idOf(row.date_value) ?? text;
      return date === undefined ? undefined : [name, date];
    }
    case dataTypes.list:
      return text === undefined ? undefined : [name, parseList(text)];
    default:
      return text === undefined ? undefined : [name, text];
  }
}

function parseList(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
