/** Page views like a website's: visits of a few pages, whose referrer, campaign and browser depend on the visit. */

const paths = [
  "",
  "pricing",
  "docs",
  "docs/install",
  "blog/first-steps",
  "blog/release",
  "account",
  "search",
];
const referrers = [
  "$direct",
  "www.google.com",
  "news.ycombinator.com",
  "t.co",
  "partner.example",
  "chatgpt.com",
];
const browsers = ["Chrome", "Safari", "Firefox", "Edge"];
const systems = ["Windows", "Mac OS X", "Linux", "iOS", "Android"];
const zones = ["Europe/Berlin", "America/New_York", "Asia/Tokyo", "Europe/London", "America/Sao_Paulo"];
const languages = ["de-DE", "en-US", "ja", "en-GB", "pt-BR"];
const viewports = [1_280, 1_440, 1_920, 390, 412];
const visitsPerPerson = 8;
const eventsPerVisit = 6;
const secondMs = 1_000;

const at = <Item>(items: readonly Item[], index: number): Item => items[index % items.length]!;

/** A number that looks random and depends on nothing else. */
const scramble = (number: number) => (Math.imul(number + 1, 2_654_435_761) >>> 7) & 0xffff;

/**
 * Events `from` to `to` of `count`, in order of time: five page views and a `$pageleave` per visit.
 * @param endMs the time of the last one; the first is `spanMs` earlier
 */
export function webTraffic(
  [from, to]: readonly [number, number],
  { count, endMs, spanMs }: { count: number; endMs: number; spanMs: number },
): Record<string, unknown>[] {
  const persons = Math.max(1, Math.ceil(count / eventsPerVisit / visitsPerPerson));
  return Array.from({ length: to - from }, (_, index) => {
    const position = from + index;
    const visit = Math.floor(position / eventsPerVisit);
    const step = position % eventsPerVisit;
    const person = (scramble(visit) * 37 + visit) % persons;
    const drawn = scramble(visit * 7 + 3);
    const page = scramble(position);
    const path = page % 3 === 0 ? `blog/post-${page % 500}` : at(paths, page);
    const startMs = endMs - spanMs + (visit * eventsPerVisit * spanMs) / count;
    return {
      event: step === eventsPerVisit - 1 ? "$pageleave" : "$pageview",
      distinct_id: `visitor-${person}`,
      timestamp: new Date(Math.min(endMs, startMs + step * 20 * secondMs)).toISOString(),
      properties: {
        $session_id: `0198c0de-0000-7000-8000-${visit.toString(16).padStart(12, "0")}`,
        $current_url: `https://shop.example/${path}`,
        $host: "shop.example",
        $pathname: `/${path}`,
        $referring_domain: step === 0 ? at(referrers, drawn) : "shop.example",
        $browser: at(browsers, person),
        $os: at(systems, person),
        $device_type: person % 4 === 0 ? "Mobile" : "Desktop",
        $browser_language: at(languages, person),
        $timezone: at(zones, person),
        $viewport_width: at(viewports, person),
        $viewport_height: 700 + (person % 30) * 10,
        ...(step === 0 && drawn % 5 === 0
          ? { utm_source: "newsletter", utm_medium: "email", utm_campaign: `week-${drawn % 12}` }
          : {}),
        $lib: "web",
      },
    };
  });
}
