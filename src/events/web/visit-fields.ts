/** What is known of a visit: values of its first event, its first event with a campaign, and its first and last page view. */

import type { JsonObject } from "../../lib/json/value.ts";
import { type EventSql, type SqlDialect, stringAt } from "../sql-dialect.ts";
import { channelPatterns, directReferrer } from "./channels.ts";

/** What decides the channel, as SQL over a visit; absent values are null. */
export interface ChannelInputs {
  /** The referrer's domain; `$direct` without a referrer. */
  referrer: string;
  /** `utm_medium` of the first event. */
  medium: string;
  /** Whether the first event has the click id of an ad. */
  hasAdClick: string;
  /** Whether the first event has any UTM parameter. */
  hasUtm: string;
}

/** SQL for the channel of a visit, one of `channelNames`. */
function channelSql(dialect: SqlDialect, { referrer, medium, hasAdClick, hasUtm }: ChannelInputs): string {
  const direct = dialect.text(directReferrer);
  // Most visits have neither a medium nor a referrer, and patterns are slow.
  const isMedium = (pattern: string) =>
    `(${medium} IS NOT NULL AND ${dialect.matches(dialect.lower(medium), pattern)})`;
  const isReferrer = (pattern: string) =>
    `(${referrer} <> ${direct} AND ${dialect.matches(dialect.lower(referrer), pattern)})`;
  const { paidMedium, emailMedium, assistant, searchEngine, socialNetwork } = channelPatterns;
  return `CASE WHEN ${hasAdClick} OR ${isMedium(paidMedium)} THEN 'Paid'
    WHEN ${isMedium(emailMedium)} THEN 'Email'
    WHEN ${isReferrer(assistant)} THEN 'AI assistants'
    WHEN ${isReferrer(searchEngine)} THEN 'Search'
    WHEN ${isReferrer(socialNetwork)} THEN 'Social'
    WHEN ${hasUtm} THEN 'Campaign'
    WHEN ${referrer} = ${direct} THEN 'Direct'
    ELSE 'Referral' END`;
}

/** The event of a visit that a value comes from. */
export type Role = "first" | "campaign" | "entry" | "exit";
export const roles = ["first", "campaign", "entry", "exit"] as const;

/** SQL for the value of a field, over its event `e`. */
interface Field {
  role: Role;
  sql: (store: EventSql) => string;
}

/** A property as a string; null if absent or empty. */
function property({ dialect, eventProperties }: EventSql, name: string): string {
  return `nullif(${stringAt(dialect, eventProperties, name)}, '')`;
}

const utmNames = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"] as const;
/** Parameters that advertising networks add to links; `fbclid` is also in links that are no ads. */
const adClickNames = ["gclid", "msclkid"];

/** Properties that web analytics reads: materialized as columns once a project has page views. */
export const webPropertyNames = [
  "$session_id",
  "$pathname",
  "$host",
  "$referring_domain",
  "$browser",
  "$os",
  "$device_type",
  "$browser_language",
  "$timezone",
  "$geoip_country_code",
  "$viewport_width",
  "$viewport_height",
  ...utmNames,
  ...adClickNames,
];

const from = (role: Role, name: string): Field => ({ role, sql: (store) => property(store, name) });

const isAnySet = (names: readonly string[]) => (store: EventSql) =>
  `CASE WHEN ${names.map((name) => `${property(store, name)} IS NOT NULL`).join(" OR ")} THEN 1 ELSE 0 END`;

/** SQL for whether the event `e` has a campaign. */
export const hasCampaign = isAnySet(utmNames);

const fields = {
  first_referrer: from("first", "$referring_domain"),
  first_host: from("first", "$host"),
  first_medium: from("first", "utm_medium"),
  first_ad_click: { role: "first", sql: isAnySet(adClickNames) },
  first_utm: { role: "first", sql: hasCampaign },
  campaign_source: from("campaign", "utm_source"),
  campaign_medium: from("campaign", "utm_medium"),
  campaign_name: from("campaign", "utm_campaign"),
  campaign_term: from("campaign", "utm_term"),
  campaign_content: from("campaign", "utm_content"),
  entry_path: { role: "entry", sql: pathSql },
  exit_path: { role: "exit", sql: pathSql },
  browser: from("entry", "$browser"),
  os: from("entry", "$os"),
  device_type: from("entry", "$device_type"),
  browser_language: from("entry", "$browser_language"),
  timezone: from("entry", "$timezone"),
  country: from("entry", "$geoip_country_code"),
  viewport_width: from("entry", "$viewport_width"),
  viewport_height: from("entry", "$viewport_height"),
} as const satisfies Record<string, Field>;

export type VisitField = keyof typeof fields;
export const visitFields: Readonly<Record<VisitField, Field>> = fields;

/** SQL for the path of the event `e`, without query string and trailing slash. */
export function pathSql(store: EventSql): string {
  return pathIn(store, "$pathname");
}

/** Like `pathSql`, for the page that was left before the event. */
export function previousPathSql(store: EventSql): string {
  return pathIn(store, previousPathName);
}
export const previousPathName = "$prev_pageview_pathname";

function pathIn(store: EventSql, name: string): string {
  const { dialect } = store;
  const sent = property(store, name);
  const path = dialect.before(dialect.before(sent, "?"), "#");
  const cut = `CASE WHEN length(${path}) > 1 AND ${path} LIKE '%/' THEN substr(${path}, 1, length(${path}) - 1) ELSE ${path} END`;
  // Most paths need no change, and string functions are slow.
  const hasExtra = `${dialect.contains(sent, "?")} OR ${dialect.contains(sent, "#")} OR ${sent} LIKE '%/'`;
  return `CASE WHEN ${hasExtra} THEN ${cut} ELSE ${sent} END`;
}

/** A property of visits, computed from fields. */
export interface VisitProperty {
  fields: readonly VisitField[];
  /** SQL over a visit `e` with these fields. */
  sql: (dialect: SqlDialect) => string;
}

const same = (field: VisitField): VisitProperty => ({ fields: [field], sql: () => `e.${field}` });

const withoutWww = (host: string) =>
  `CASE WHEN ${host} LIKE 'www.%' THEN substr(${host}, 5) ELSE ${host} END`;

const referrerFields = ["first_referrer", "first_host"] as const;

function referrerSql(dialect: SqlDialect): string {
  const [referrer, host] = referrerFields.map((field) => withoutWww(`e.${field}`));
  const direct = dialect.text(directReferrer);
  return `CASE WHEN e.first_referrer IS NULL OR coalesce(${referrer} = ${host}, false) THEN ${direct} ELSE ${referrer} END`;
}

const channel: VisitProperty = {
  fields: [...referrerFields, "first_medium", "first_ad_click", "first_utm"],
  sql: (dialect) =>
    channelSql(dialect, {
      referrer: referrerSql(dialect),
      medium: "e.first_medium",
      hasAdClick: "e.first_ad_click = 1",
      hasUtm: "e.first_utm = 1",
    }),
};

/** `1280x720`; null unless both are positive integers. */
function viewportSql(dialect: SqlDialect): string {
  const isSize = (field: string) => `coalesce(${dialect.matches(field, "^[1-9][0-9]*$")}, false)`;
  return `CASE WHEN ${isSize("e.viewport_width")} AND ${isSize("e.viewport_height")}
    THEN concat(e.viewport_width, 'x', e.viewport_height) END`;
}

const orNone = (value: string) => `coalesce(${value}, '(none)')`;

/** Names of visit properties; `none` replaces nulls where visits without the property are counted too. */
const properties = {
  entryPath: same("entry_path"),
  exitPath: same("exit_path"),
  referrer: { fields: referrerFields, sql: referrerSql },
  host: same("first_host"),
  channel,
  source: same("campaign_source"),
  medium: same("campaign_medium"),
  campaign: same("campaign_name"),
  term: same("campaign_term"),
  content: same("campaign_content"),
  sourceMediumCampaign: {
    fields: [...referrerFields, "campaign_source", "campaign_medium", "campaign_name"],
    sql: (dialect) =>
      `concat(coalesce(e.campaign_source, concat('referrer:', ${referrerSql(dialect)})), ' / ',
        ${orNone("e.campaign_medium")}, ' / ', ${orNone("e.campaign_name")})`,
  },
  browser: same("browser"),
  os: same("os"),
  deviceType: same("device_type"),
  language: {
    fields: ["browser_language"],
    sql: (dialect) => dialect.lower(dialect.before("e.browser_language", "-")),
  },
  viewport: {
    fields: ["viewport_width", "viewport_height"],
    sql: viewportSql,
  },
  duration: { fields: [], sql: () => "(e.micros / 1000000.0)::VARCHAR" },
  pageViews: { fields: [], sql: () => "e.views::VARCHAR" },
} as const satisfies Record<string, VisitProperty>;

export type VisitPropertyName = keyof typeof properties;
export const visitProperties: Readonly<Record<VisitPropertyName, VisitProperty>> = properties;

/** Session properties in filters; PostHog's names. */
const sessionKeys: Readonly<Record<string, VisitPropertyName>> = {
  $entry_pathname: "entryPath",
  $end_pathname: "exitPath",
  $exit_pathname: "exitPath",
  $entry_referring_domain: "referrer",
  $entry_hostname: "host",
  $channel_type: "channel",
  $entry_utm_source: "source",
  $entry_utm_medium: "medium",
  $entry_utm_campaign: "campaign",
  $entry_utm_term: "term",
  $entry_utm_content: "content",
  $session_duration: "duration",
  $pageview_count: "pageViews",
};
export const sessionKeyNames = Object.keys(sessionKeys);

/** The visit property of a filter; undefined if unknown. */
export function filteredProperty({ key }: JsonObject): VisitProperty | undefined {
  const isKnown = typeof key === "string" && Object.hasOwn(sessionKeys, key);
  return isKnown ? visitProperties[sessionKeys[key]!] : undefined;
}
