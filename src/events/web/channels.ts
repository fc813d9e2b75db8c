/**
 * Channels of visits: the lists that decide them, and the rules in order of precedence. Hosts also match their
 * subdomains; a name that ends with a dot matches under any top-level domain.
 */

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

/** Represents the absence of a referrer, as in `$referring_domain`. */
export const directReferrer = "$direct";

const escaped = (text: string) => text.replaceAll(".", "[.]");

const mediumPattern = (medium: string) =>
  medium.endsWith("*") ? `${escaped(medium.slice(0, -1))}.*` : escaped(medium);

const hostPattern = (host: string) =>
  host.endsWith(".") ? `(?:.*[.])?${escaped(host)}.*` : `(?:.*[.])?${escaped(host)}`;

const anyOf = (patterns: readonly string[]) => `^(?:${patterns.join("|")})$`;

/** Patterns of media and of hosts in small letters, which decide channels. */
export const channelPatterns = {
  paidMedium: anyOf(paidMediums.map(mediumPattern)),
  emailMedium: anyOf(emailMediums.map(mediumPattern)),
  assistant: anyOf(assistants.map(hostPattern)),
  searchEngine: anyOf(searchEngines.map(hostPattern)),
  socialNetwork: anyOf(socialNetworks.map(hostPattern)),
};

/** The channel of a visit; the same rules, for the console. */
export function channelOf({
  referrer,
  medium,
  hasAdClick,
  hasUtm,
}: {
  referrer: string;
  medium: string;
  hasAdClick: boolean;
  hasUtm: boolean;
}): (typeof channelNames)[number] {
  const isMedium = (pattern: string) => new RegExp(pattern).test(medium.toLowerCase());
  const isReferrer = (pattern: string) => new RegExp(pattern).test(referrer.toLowerCase());
  const { paidMedium, emailMedium, assistant, searchEngine, socialNetwork } = channelPatterns;
  if (hasAdClick || isMedium(paidMedium)) return "Paid";
  if (isMedium(emailMedium)) return "Email";
  if (isReferrer(assistant)) return "AI assistants";
  if (isReferrer(searchEngine)) return "Search";
  if (isReferrer(socialNetwork)) return "Social";
  if (hasUtm) return "Campaign";
  return referrer === directReferrer ? "Direct" : "Referral";
}
