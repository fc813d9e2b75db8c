/** Matomo's visits, `Live.getLastVisitsDetails` as JSON or CSV: each action is an event (contract, import 2.9). Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { fillScreen } from "./common-fields.ts";
import { EventDraft } from "./event-draft.ts";
import { getIdentity } from "./identity.ts";
import { getId } from "./lenient-json.ts";
import { type MappedEvent, type MappedRecord, toEvent } from "./mapped.ts";
import { Members } from "./members.ts";

/** Actions other than views and events, and the events that they become. */
const eventNames = new Map([
  ["goal", "goal"],
  ["search", "site search"],
  ["download", "download"],
  ["outlink", "outlink"],
  ["ecommerceOrder", "order"],
  ["ecommerceAbandonedCart", "abandoned cart"],
]);

const actionFields = {
  url: "$current_url",
  pageTitle: "title",
  title: "title",
  timeSpent: "time_spent",
  eventCategory: "category",
  eventAction: "action",
  eventName: "label",
  eventValue: "value",
  siteSearchKeyword: "keyword",
  goalName: "goal",
  goalId: "goal_id",
  orderId: "order_id",
};
const visitFields = {
  browserName: "$browser",
  browserVersion: "$browser_version",
  operatingSystemName: "$os",
  operatingSystemVersion: "$os_version",
  deviceType: "$device_type",
  deviceBrand: "$device_manufacturer",
  deviceModel: "$device_model",
  languageCode: "$browser_language",
  visitIp: "$ip",
  countryCode: "$geoip_country_code",
  country: "$geoip_country_name",
  regionCode: "$geoip_subdivision_1_code",
  region: "$geoip_subdivision_1_name",
  city: "$geoip_city_name",
  latitude: "$geoip_latitude",
  longitude: "$geoip_longitude",
  continent: "$geoip_continent_name",
  referrerUrl: "$referrer",
  idVisit: "$session_id",
  idSite: "site_id",
  visitorId: "$device_id",
};
const campaignFields = {
  campaignName: "utm_campaign",
  campaignSource: "utm_source",
  campaignMedium: "utm_medium",
  campaignKeyword: "utm_term",
  campaignContent: "utm_content",
  campaignId: "utm_id",
};
/** Only Matomo's own pages need them. */
const omittedForm = /(?:Pretty|Symbol|Icon|icon|IconSVG|iconSVG|Flag)$|^(?:plugins|serverTime|serverDate)/;
/** Times and counters of the visit. */
const omittedOfVisit =
  /^(?:visitServerHour|visitLocal.*|(?:first|last)Action(?:Timestamp|DateTime)|visitCount|actions|searches|events|interactions|goalConversions|ecommerce(?:Revenue|Items).*|visitDuration|visitEcommerceStatus|totalEcommerce.*|totalAbandonedCarts.*|daysSince.*|secondsSince.*|visitConverted)$/;
const flatAction = /^actionDetails_(\d{1,4})_(\w+)$/;
const quarterHour = 900;
const correctionMax = 14 * 3_600;

/** A visit: its actions are the events. */
export function fromMatomo(record: JsonObject): MappedRecord {
  const visit = new Members(record);
  const actions = takeActions(visit);
  const user = visit.takeId("userId");
  const visitor = getId(visit.peek("visitorId"));
  const { distinctId, ...identity } = getIdentity(visitor, user);
  const id = `${getId(record.idSite)}:${getId(record.idVisit)}`;
  const { seconds, doubt } = getCorrection(record, actions);
  const omitted = new Set<string>();
  const shared = visitProperties(visit, omitted);
  const positions = new Map<string, number>();
  const events = actions.map((action, at): MappedEvent => {
    const members = new Members(action);
    const type = members.takeId("type") ?? "action";
    const name = takeName(members, type);
    const written = members.take("timestamp");
    const time = corrected(written, seconds) ?? record.serverTimestamp;
    const legacy = seconds === 0 || written === undefined ? {} : { legacyTime: written };
    const draft = new EventDraft("matomo");
    draft.fillFrom(members, actionFields);
    draft.omit(
      members,
      members.names().filter((member) => omittedForm.test(member)),
    );
    draft.keepRest(members);
    draft.deriveFromAddresses();
    for (const [property, value] of Object.entries(shared)) draft.keep(property, value);
    for (const each of draft.omitted) omitted.add(`actionDetails.${each}`);
    const event = toEvent(name, distinctId, time, draft.toProperties());
    const view = getId(action.idpageview);
    // Several actions of one page view may have the same type and second.
    const index = view === undefined ? at : countIn(positions, JSON.stringify([view, type, written ?? null]));
    return {
      event,
      sourceId: `matomo:${id}:${view === undefined ? "" : `${view}:`}${index}`,
      legacySourceId: `matomo:${id}:${at}`,
      source: { name: type, ids: [user, visitor] },
      ...identity,
      ...legacy,
    };
  });
  return { events, omitted, warnings: doubt === undefined ? [] : [doubt] };
}

/** @returns how many equal ones were counted before. */
function countIn(counts: Map<string, number>, key: string): number {
  const count = counts.get(key) ?? 0;
  counts.set(key, count + 1);
  return count;
}

function takeName(members: Members, type: string): Json | undefined {
  if (type === "action") return "$pageview";
  return type === "event" ? members.peek("eventAction") : (eventNames.get(type) ?? type);
}

/** Properties of all events of the visit. */
function visitProperties(visit: Members, omittedNames: Set<string>): JsonObject {
  const draft = new EventDraft("matomo");
  if (fillScreen(draft, visit.peek("resolution"))) draft.keep("resolution", visit.take("resolution")!);
  const isCampaign = visit.peek("referrerType") === "campaign";
  const name = visit.peek("referrerName");
  const keyword = visit.peek("referrerKeyword");
  draft.fillFrom(visit, campaignFields);
  if (isCampaign) {
    draft.fill("utm_campaign", name);
    draft.fill("utm_term", keyword);
  }
  draft.fillFrom(visit, visitFields);
  const omitted = visit.names().filter((each) => omittedForm.test(each) || omittedOfVisit.test(each));
  draft.omit(visit, omitted);
  draft.keepRest(visit);
  for (const each of draft.omitted) omittedNames.add(each);
  return draft.toProperties();
}

/**
 * `actionDetails[].timestamp` may be the local time of the site, while times of the visit are UTC: the difference, in
 * seconds. A difference that no zone has, and times without a visit time for comparison, are reported.
 */
function getCorrection(
  record: JsonObject,
  actions: readonly JsonObject[],
): { seconds: number; doubt?: string } {
  const first = secondsAt(actions[0]?.timestamp);
  const last = secondsAt(actions.at(-1)?.timestamp);
  const start = secondsAt(record.firstActionTimestamp);
  const end = secondsAt(record.lastActionTimestamp) ?? secondsAt(record.serverTimestamp);
  const [local, utc] = start === undefined ? [last, end] : [first, start];
  if (local === undefined) return { seconds: 0 };
  if (utc === undefined) return { seconds: 0, doubt: "matomo_time_reference_missing" };
  const difference = local - utc;
  const isZone = difference % quarterHour === 0 && Math.abs(difference) <= correctionMax;
  return isZone ? { seconds: difference } : { seconds: 0, doubt: "matomo_time_correction_unknown" };
}

function secondsAt(value: Json | undefined): number | undefined {
  const seconds = Number(getId(value));
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds : undefined;
}

function corrected(time: Json | undefined, seconds: number): Json | undefined {
  const at = secondsAt(time);
  return at === undefined || seconds === 0 ? time : at - seconds;
}

function takeActions(visit: Members): JsonObject[] {
  const listed = visit.takeList("actionDetails").filter(isJsonObject);
  if (listed.length > 0) return listed;
  const flat: [string, Json][][] = [];
  for (const [name, value] of visit.entries()) {
    const match = flatAction.exec(name);
    if (match === null) continue;
    visit.take(name);
    flat[Number(match[1])] ??= [];
    flat[Number(match[1])]!.push([match[2]!, value]);
  }
  return Object.values(flat).map(objectFrom);
}
