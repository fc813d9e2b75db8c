/**
 * Channels of visits: the lists that decide them, and the rules in order of precedence. Hosts also match their
 * subdomains; a name that ends with a dot matches under any top-level domain.
 */

import type { SqlDialect } from "../sql-dialect.ts";

export const channelNames = [
  "Paid",
  "Email",
  "AI assistants",
  "Search",
  "Social",
  "Campaign",
  "Direct",
  "Referral",
] as const;

/** Values of `utm_medium`; prefixes end with `*`. */
const paidMediums = ["cpc", "ppc", "cpm", "cpv", "paid*", "retargeting", "display", "banner"];
const emailMediums = ["email", "e-mail", "newsletter"];

const assistants = [
  "chatgpt.com",
  "claude.ai",
  "perplexity.ai",
  "gemini.google.com",
  "copilot.microsoft.com",
];
const searchEngines = [
  "google.",
  "bing.",
  "duckduckgo.",
  "ecosia.",
  "yahoo.",
  "yandex.",
  "baidu.",
  "startpage.",
  "qwant.",
  "search.brave.",
];
const socialNetworks = [
  "t.co",
  "x.com",
  "twitter.com",
  "linkedin.com",
  "lnkd.in",
  "reddit.com",
  "redd.it",
  "facebook.com",
  "fb.com",
  "fb.me",
  "messenger.com",
  "instagram.com",
  "threads.net",
  "threads.com",
  "youtube.com",
  "youtu.be",
  "bsky.app",
  "mastodon.social",
  "mastodon.online",
  "fosstodon.org",
  "hachyderm.io",
  "news.ycombinator.com",
  "lobste.rs",
  "tiktok.com",
  "pinterest.com",
  "pin.it",
  "snapchat.com",
  "whatsapp.com",
  "wa.me",
  "telegram.org",
  "t.me",
  "discord.com",
  "discord.gg",
  "vk.com",
  "ok.ru",
  "weibo.com",
  "quora.com",
  "tumblr.com",
  "medium.com",
  "xing.com",
  "twitch.tv",
];

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

/** Represents the absence of a referrer, as in `$referring_domain`. */
export const directReferrer = "$direct";

/** SQL for the channel of a visit, one of `channelNames`. */
export function channelSql(
  dialect: SqlDialect,
  { referrer, medium, hasAdClick, hasUtm }: ChannelInputs,
): string {
  const lowMedium = `coalesce(${dialect.lower(medium)}, '')`;
  const lowReferrer = dialect.lower(referrer);
  const mediumIn = (list: readonly string[]) => matchesAny(dialect, lowMedium, list.map(mediumPattern));
  const referrerIn = (list: readonly string[]) => matchesAny(dialect, lowReferrer, list.map(hostPattern));
  return `CASE WHEN ${hasAdClick} OR ${mediumIn(paidMediums)} THEN 'Paid'
    WHEN ${mediumIn(emailMediums)} THEN 'Email'
    WHEN ${referrerIn(assistants)} THEN 'AI assistants'
    WHEN ${referrerIn(searchEngines)} THEN 'Search'
    WHEN ${referrerIn(socialNetworks)} THEN 'Social'
    WHEN ${hasUtm} THEN 'Campaign'
    WHEN ${referrer} = ${dialect.text(directReferrer)} THEN 'Direct'
    ELSE 'Referral' END`;
}

const matchesAny = (dialect: SqlDialect, text: string, patterns: readonly string[]) =>
  dialect.matches(text, `^(?:${patterns.join("|")})$`);

const escaped = (text: string) => text.replaceAll(".", "[.]");

const mediumPattern = (medium: string) =>
  medium.endsWith("*") ? `${escaped(medium.slice(0, -1))}.*` : escaped(medium);

const hostPattern = (host: string) =>
  host.endsWith(".") ? `(?:.*[.])?${escaped(host)}.*` : `(?:.*[.])?${escaped(host)}`;
