/** Snowplow's enriched events: TSV, JSON of its SDKs, `atomic.events` (contract, import 2.10). Pure. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { EventDraft } from "./event-draft.ts";
import { getIdentity } from "./identity.ts";
import { getId, toExactNumber, toJsonString, toObject } from "./lenient-json.ts";
import { type MappedRecord, toEvent } from "./mapped.ts";
import { Members } from "./members.ts";

/** The columns of enriched events in Snowplow's order; older versions have fewer. */
const snowplowColumns: readonly string[] =
  `app_id platform etl_tstamp collector_tstamp dvce_created_tstamp event event_id txn_id name_tracker v_tracker v_collector v_etl
  user_id user_ipaddress user_fingerprint domain_userid domain_sessionidx network_userid geo_country geo_region geo_city
  geo_zipcode geo_latitude geo_longitude geo_region_name ip_isp ip_organization ip_domain ip_netspeed page_url page_title
  page_referrer page_urlscheme page_urlhost page_urlport page_urlpath page_urlquery page_urlfragment refr_urlscheme refr_urlhost
  refr_urlport refr_urlpath refr_urlquery refr_urlfragment refr_medium refr_source refr_term mkt_medium mkt_source mkt_term
  mkt_content mkt_campaign contexts se_category se_action se_label se_property se_value unstruct_event tr_orderid tr_affiliation
  tr_total tr_tax tr_shipping tr_city tr_state tr_country ti_orderid ti_sku ti_name ti_category ti_price ti_quantity
  pp_xoffset_min pp_xoffset_max pp_yoffset_min pp_yoffset_max useragent br_name br_family br_version br_type br_renderengine
  br_lang br_features_pdf br_features_flash br_features_java br_features_director br_features_quicktime br_features_realplayer
  br_features_windowsmedia br_features_gears br_features_silverlight br_cookies br_colordepth br_viewwidth br_viewheight os_name
  os_family os_manufacturer os_timezone dvce_type dvce_ismobile dvce_screenwidth dvce_screenheight doc_charset doc_width
  doc_height tr_currency tr_total_base tr_tax_base tr_shipping_base ti_currency ti_price_base base_currency geo_timezone
  mkt_clickid mkt_network etl_tags dvce_sent_tstamp refr_domain_userid refr_dvce_tstamp derived_contexts domain_sessionid
  derived_tstamp event_vendor event_name event_format event_version event_fingerprint true_tstamp`.split(
    /\s+/,
  );

const fields = {
  page_url: "$current_url",
  page_urlhost: "$host",
  page_urlpath: "$pathname",
  page_title: "title",
  page_referrer: "$referrer",
  refr_urlhost: "$referring_domain",
  mkt_medium: "utm_medium",
  mkt_source: "utm_source",
  mkt_term: "utm_term",
  mkt_content: "utm_content",
  mkt_campaign: "utm_campaign",
  geo_country: "$geoip_country_code",
  geo_region: "$geoip_subdivision_1_code",
  geo_region_name: "$geoip_subdivision_1_name",
  geo_city: "$geoip_city_name",
  geo_zipcode: "$geoip_postal_code",
  geo_latitude: "$geoip_latitude",
  geo_longitude: "$geoip_longitude",
  geo_timezone: "$geoip_time_zone",
  user_ipaddress: "$ip",
  useragent: "$raw_user_agent",
  br_family: "$browser",
  br_name: "$browser",
  br_version: "$browser_version",
  br_lang: "$browser_language",
  br_viewwidth: "$viewport_width",
  br_viewheight: "$viewport_height",
  os_family: "$os",
  os_name: "$os",
  dvce_type: "$device_type",
  dvce_screenwidth: "$screen_width",
  dvce_screenheight: "$screen_height",
  domain_sessionid: "$session_id",
  domain_userid: "$device_id",
};
const structuredFields = {
  se_category: "category",
  se_label: "label",
  se_property: "property",
  se_value: "value",
};
const omitted = ["name_tracker", "event_fingerprint", "txn_id", "dvce_sent_tstamp"];
const omittedForm = /^(?:etl_|v_)/;
/** Names of a click ID by its ad network. */
const clickIds = new Map([
  ["google", "gclid"],
  ["microsoft", "msclkid"],
  ["doubleclick", "dclid"],
]);
/** The name in `iglu:com.acme/buy/jsonschema/1-0-0`. */
const schemaForm = /^iglu:[^/]+\/([^/]+)\//;
const viewNames = new Map([
  ["page_view", "$pageview"],
  ["screen_view", "$screen"],
]);
const numberColumns =
  /^(?:geo_l(?:at|ong)itude|se_value|t[ri]_(?:total|tax|shipping|price|quantity)(?:_base)?|pp_[xy]offset_m(?:in|ax)|br_view(?:width|height)|dvce_screen(?:width|height)|doc_(?:width|height)|domain_sessionidx)$/;

/** A line of an enriched file, which has no header. */
export function snowplowRow(values: readonly string[]): JsonObject {
  return objectFrom(
    values.map((value, at): [string, Json] => [snowplowColumns[at] ?? `column_${at + 1}`, value]),
  );
}

/** Tables have numbers as text, the JSON of the SDKs does not. */
function withNumbers(record: JsonObject): JsonObject {
  const entries = Object.entries(record).map(([name, value]): [string, Json] => [
    name,
    typeof value === "string" && numberColumns.test(name) ? toExactNumber(value) : value,
  ]);
  return objectFrom(entries);
}

export function fromSnowplow(record: JsonObject): MappedRecord {
  const members = new Members(withNumbers(record));
  const kind = members.takeId("event");
  const eventName = members.takeId("event_name");
  const schema = getId(toObject(toObject(members.peek("unstruct_event")).data).schema);
  const self = kind === "unstruct" || kind === undefined ? takeSelfDescribing(members) : undefined;
  const draft = new EventDraft("snowplow", self);
  let name: Json | undefined = viewNames.get(eventName ?? "") ?? viewNames.get(kind ?? "");
  if (name === undefined && kind === "struct") {
    name = members.takeId("se_action");
    draft.fillFrom(members, structuredFields);
  }
  // Older versions have no `event_name`.
  name ??= eventName ?? schemaForm.exec(schema ?? "")?.[1] ?? kind;
  if (eventName !== undefined && kind !== "struct" && viewNames.get(eventName) !== name && eventName !== name)
    draft.keep("event_name", eventName);
  if (name === "$screen") draft.fill("$screen_name", self?.name);
  const user = members.takeId("user_id");
  const domain = getId(members.peek("domain_userid"));
  const network = getId(members.peek("network_userid"));
  const time = members.takeFirst("true_tstamp", "derived_tstamp", "collector_tstamp");
  const sourceId = members.takeId("event_id");
  const clickId = clickIds.get(getId(members.peek("mkt_network"))?.toLowerCase() ?? "");
  if (clickId !== undefined) draft.fillFrom(members, { mkt_clickid: clickId });
  for (const name of ["contexts", "derived_contexts"]) {
    const value = members.peek(name);
    if (value !== undefined) draft.keep(name, toJsonString(members.take(name)!));
  }
  draft.fillFrom(members, fields);
  draft.omit(
    members,
    members.names().filter((each) => omitted.includes(each) || omittedForm.test(each)),
  );
  draft.keepRest(members);
  const { distinctId, ...identity } = getIdentity(domain, user, network);
  const event = toEvent(name, distinctId, time, draft.toProperties());
  const source = { name: eventName ?? kind, ids: [user, domain, network] };
  return { events: [{ event, sourceId, isUuid: true, source, ...identity }], omitted: draft.omitted };
}

/** The data of a self-describing event: `unstruct_event.data.data`, or `unstruct_event_com_acme_buy_1` of the SDKs. */
function takeSelfDescribing(members: Members): JsonObject | undefined {
  const outer = toObject(members.peek("unstruct_event"));
  const inner = toObject(toObject(outer.data).data);
  if (Object.keys(inner).length > 0) {
    members.take("unstruct_event");
    return inner;
  }
  const name = members.names().find((each) => each.startsWith("unstruct_event_"));
  // Warehouses write the object as text.
  const value = name === undefined ? {} : toObject(members.peek(name));
  if (Object.keys(value).length === 0) return undefined;
  members.take(name!);
  return value;
}
