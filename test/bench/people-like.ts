/**
 * Events like people's: 30 properties, client uuids, 20,000 users with sessions, a share of `$identify`, `$set` and groups, and
 * mostly one character that is not ASCII. No two are the same.
 */

import { randomFrom } from "../support/seeded-random.ts";

const users = 20_000;
const paths = [
  "/",
  "/pricing",
  "/docs/install",
  "/blog/a-longer-title-of-a-post",
  "/account/settings",
  "/straße",
];
const cities = ["Köln", "São Paulo", "Kraków", "Zürich", "Reykjavík", "Málaga", "Boston", "Lyon"];
const names = ["button clicked", "$pageview", "$autocapture", "search used", "$pageleave", "item added"];

export interface PeopleLikeEvent {
  uuid: string;
  event: string;
  distinct_id: string;
  timestamp: string;
  properties: Record<string, unknown>;
}

/** Makes events one after the other; `timeMs` moves on with each. */
export function peopleLike(seed = 1, timeMs = Date.now()): () => PeopleLikeEvent {
  const random = randomFrom(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  let number = 0;
  return () => {
    number += 1;
    const user = Math.floor(random() ** 2 * users);
    const path = pick(paths);
    const kind = random();
    const distinctId = `user-${seed}-${user}@shop.example`;
    const session = `01a1fb87-8ea9-71da-a728-${(seed * users + user).toString(16).padStart(12, "0")}`;
    const properties: Record<string, unknown> = {
      $lib: "web",
      $lib_version: "1.434.18",
      $os: user % 3 === 0 ? "Linux" : "Mac OS X",
      $os_version: user % 3 === 0 ? "6.1" : "10.15.7",
      $browser: user % 5 === 0 ? "Firefox" : "Chrome",
      $browser_version: 140 + (user % 20),
      $device_type: user % 4 === 0 ? "Mobile" : "Desktop",
      $current_url: `https://shop.example${path}?page=${number % 97}`,
      $host: "shop.example",
      $pathname: path,
      $screen_height: 1080,
      $screen_width: 1920,
      $viewport_height: 950,
      $viewport_width: 1280 + (user % 7),
      $session_id: session,
      $window_id: session,
      $device_id: session,
      $referrer: "https://search.example/",
      $referring_domain: "search.example",
      $raw_user_agent:
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0",
      $insert_id: number.toString(36),
      $time: timeMs / 1_000,
      plan: user % 7 === 0 ? "enterprise" : "free",
      price: Math.round(random() * 10_000) / 100,
      cart: { items: number % 5, currency: "EUR" },
      city: random() < 0.9 ? pick(cities) : "Boston",
      variant: user % 2 === 0 ? "control" : "test",
      position: number % 50,
      isTrial: user % 2 === 0,
      referrer_code: null,
    };
    let event = pick(names);
    if (kind < 0.02) {
      event = "$identify";
      properties.$anon_distinct_id = `anon-${seed}-${user}`;
      properties.$set = { email: distinctId, plan: properties.plan };
    } else if (kind < 0.05) properties.$set = { last_order: number, city: properties.city };
    else if (kind < 0.15) properties.$groups = { company: `company-${user % 500}` };
    timeMs += 1;
    return {
      uuid: Bun.randomUUIDv7("hex", timeMs),
      event,
      distinct_id: distinctId,
      timestamp: new Date(timeMs).toISOString(),
      properties,
    };
  };
}
