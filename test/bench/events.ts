/** Events of about 900 bytes, as a browser SDK sends them. */

const paths = ["/", "/pricing", "/docs/install", "/blog/a-longer-title-of-a-post", "/account/settings"];

/** One event; `number` makes it differ from others. */
export function benchEvent(number: number, timestamp = new Date()): Record<string, unknown> {
  const path = paths[number % paths.length]!;
  return {
    uuid: Bun.randomUUIDv7(),
    event: number % 3 === 0 ? "$pageview" : "button clicked",
    distinct_id: `user-${number % 5_000}`,
    timestamp: timestamp.toISOString(),
    properties: {
      $lib: "web",
      $lib_version: "1.434.18",
      $os: "Linux",
      $os_version: "6.1",
      $browser: "Chrome",
      $browser_version: 156,
      $device_type: "Desktop",
      $current_url: `https://shop.example.com${path}?utm_source=newsletter`,
      $host: "shop.example.com",
      $pathname: path,
      $screen_height: 1080,
      $screen_width: 1920,
      $viewport_height: 950,
      $viewport_width: 1280,
      $session_id: "01a1fb87-8ea9-71da-a728-780e77655af4",
      $window_id: "01a1fb87-8ea9-71da-a728-780f20d1c3aa",
      $raw_user_agent:
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0",
      utm_source: "newsletter",
      plan: number % 7 === 0 ? "enterprise" : "free",
      price: number % 100,
      cart: { items: number % 5, currency: "EUR" },
    },
  };
}

/** The body of a batch of events. */
export function benchBatch(token: string, size: number, from = 0): Uint8Array {
  const batch = Array.from({ length: size }, (_, index) => benchEvent(from + index));
  return Buffer.from(JSON.stringify({ api_key: token, batch, sent_at: new Date().toISOString() }));
}

/**
 * Makes requests from ready bytes whose uuids are made new each time, so that no event is a duplicate.
 *
 * Only the last 12 digits of each uuid change; finding their places is done once.
 */
export function withFreshUuids(bytes: Uint8Array): () => Uint8Array {
  const buffer = Buffer.from(bytes);
  const places: number[] = [];
  const mark = Buffer.from('"uuid":"');
  for (let at = buffer.indexOf(mark); at !== -1; at = buffer.indexOf(mark, at + 1))
    places.push(at + mark.length + 24);
  let counter = Math.floor(Math.random() * 0xffff) * 0x1_0000_0000;
  return () => {
    const copy = Buffer.from(buffer);
    for (const place of places) copy.write((counter++).toString(16).padStart(12, "0"), place, "latin1");
    return copy;
  };
}
