/** A shop's flags, people and events, for pictures of the console: the same ones each time. */

const dayMs = 86_400_000;
const personsCount = 400;
const names = ["signed up", "viewed page", "added to cart", "paid"];

/** The same numbers each time, and those of the pictures that were kept. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const others = [
  { key: "old-banner", name: "Banner of the spring sale", tags: ["web"], share: 100, active: false },
  { key: "dark-mode", name: "Dark colors in the shop", tags: ["web"], share: 100, active: true },
  { key: "billing-v2", name: "Invoices from the new service", tags: ["payments"], share: 25, active: true },
  { key: "search-ranking", name: "Ranking learned from clicks", tags: ["search"], share: 50, active: true },
  { key: "support-chat", name: "Chat beside the cart", tags: ["support"], share: 10, active: true },
].map(({ share, ...flag }) => ({
  ...flag,
  filters: { groups: [{ properties: [], rollout_percentage: share }] },
}));

/** The flag that has everything. */
export const checkout = {
  key: "new-checkout",
  name: "The new checkout in three steps",
  tags: ["payments", "critical"],
  active: true,
  filters: {
    groups: [
      {
        properties: [
          { key: "plan", type: "person", operator: "exact", value: ["pro", "team"] },
          { key: "email", type: "person", operator: "icontains", value: "@acme.example" },
        ],
        rollout_percentage: 40,
      },
      {
        properties: [{ key: "country", type: "person", operator: "exact", value: ["DE"] }],
        rollout_percentage: 100,
      },
    ],
    multivariate: {
      variants: [
        { key: "control", rollout_percentage: 50 },
        { key: "test", rollout_percentage: 50 },
      ],
    },
  },
};

/** The flags, the oldest first. */
export const shopFlags = [...others, checkout];

const batchSize = 1_000;

/** Thirty days of events up to a moment, in batches. */
export function shopEvents(now: number): object[][] {
  const random = randomFrom(7);
  const people = Array.from({ length: personsCount }, (_, number) => ({
    event: "$identify",
    distinct_id: `user-${number}`,
    timestamp: new Date(now - 31 * dayMs).toISOString(),
    properties: {
      $set: {
        email: `user-${number}@${number % 4 === 0 ? "mail.example" : "acme.example"}`,
        plan: ["free", "pro", "team"][number % 3],
        country: ["DE", "FR", "US"][number % 3],
      },
    },
  }));
  const events = Array.from({ length: 9_000 }, (_, number) => {
    const age = random() ** 1.3 * 30 * dayMs;
    const who = Math.floor(random() * personsCount);
    const isCall = number % 4 === 0;
    return {
      event: isCall ? "$feature_flag_called" : names[Math.floor(random() ** 1.7 * names.length)]!,
      distinct_id: `user-${who}`,
      timestamp: new Date(now - age).toISOString(),
      properties: isCall
        ? {
            $feature_flag: [checkout, ...others][Math.floor(random() ** 1.5 * 6)]!.key,
            $feature_flag_response: who % 2 === 0 ? "test" : "control",
            $lib: "posthog-node",
          }
        : {
            plan: ["free", "pro", "team"][who % 3],
            $browser: ["Chrome", "Firefox", "Safari"][who % 3],
            $lib: "web",
          },
    };
  });
  const all = [...people, ...events];
  return Array.from({ length: Math.ceil(all.length / batchSize) }, (_, place) =>
    all.slice(place * batchSize, (place + 1) * batchSize),
  );
}

const pages = ["/", "/pricing", "/features", "/docs", "/blog/launch", "/signup"];
const referrers = [
  "www.google.com",
  "$direct",
  "$direct",
  "news.ycombinator.com",
  "chatgpt.com",
  "github.com",
];
const visitsCount = 2_500;

/** Visits of the shop's website in the thirty days up to a moment, in batches. */
export function shopVisits(now: number): object[][] {
  const random = randomFrom(11);
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() ** 1.4 * values.length)]!;
  const visits = Array.from({ length: visitsCount }, (_, number) => {
    // More visits lately, fewer at weekends.
    let started = now - random() ** 1.2 * 30 * dayMs;
    if ([0, 6].includes(new Date(started).getUTCDay()) && random() < 0.5) started -= 2 * dayMs;
    const shared = {
      $session_id: `visit-${number}`,
      $host: "shop.example",
      $referring_domain: pick(referrers),
      $browser: pick(["Chrome", "Safari", "Firefox", "Edge"]),
      $os: pick(["Mac OS X", "Windows", "iOS", "Android", "Linux"]),
      $device_type: pick(["Desktop", "Mobile"]),
      $browser_language: pick(["de-DE", "en-US", "fr-FR"]),
      $timezone: pick(["Europe/Berlin", "America/New_York", "Europe/Paris", "Europe/London"]),
      $lib: "web",
    };
    return Array.from({ length: 1 + Math.floor(random() ** 2 * 6) }, (_, index) => ({
      event: "$pageview",
      distinct_id: `user-${number % (3 * personsCount)}`,
      timestamp: new Date(Math.min(now, started + index * 40_000)).toISOString(),
      properties: { ...shared, $pathname: index === 0 ? pick(pages) : pick([...pages].reverse()) },
    }));
  }).flat();
  return Array.from({ length: Math.ceil(visits.length / batchSize) }, (_, place) =>
    visits.slice(place * batchSize, (place + 1) * batchSize),
  );
}
