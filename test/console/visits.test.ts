/** Visits of a person: what belongs together, how long it took, where it came from. */

import { expect, test } from "bun:test";
import type { StoredEvent } from "../../src/console/page/model/events.ts";
import { toVisits } from "../../src/console/page/model/visits.ts";

const start = Date.parse("2026-11-14T10:00:00Z");
const event = (minute: number, properties: object = {}, name = "$pageview") =>
  ({
    uuid: `${minute} ${name}`,
    event: name,
    distinct_id: "user-1",
    timestamp: new Date(start + minute * 60_000).toISOString(),
    properties,
  }) as unknown as StoredEvent;

test("events of a session are one visit, others are split at gaps of more than 30 minutes", () => {
  const visits = toVisits(
    [
      event(0, { $session_id: "a", $referring_domain: "www.google.com" }),
      event(2, { $session_id: "b", utm_source: "newsletter", $referring_domain: "t.co" }),
      event(50, { $session_id: "a", $referring_domain: "$direct" }, "paid"),
      event(100, { $referring_domain: "$direct" }, "opened"),
      event(130, {}, "closed"),
      event(161, {}),
    ].reverse(),
  );
  expect(
    visits.map(({ from, to, pages, channel, events }) => [
      (from - start) / 60_000,
      (to - start) / 60_000,
      pages,
      channel,
      events.length,
    ]),
  ).toEqual([
    [161, 161, 1, "Direct", 1],
    [100, 130, 0, "Direct", 2],
    [0, 50, 1, "Search", 2],
    [2, 2, 1, "Social", 1],
  ]);
  expect(toVisits([])).toEqual([]);
});
