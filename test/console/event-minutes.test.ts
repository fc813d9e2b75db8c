/** Bars of the last minutes: all of them, also empty ones and those of a server whose clock is ahead. */

import { expect, test } from "bun:test";
import { fillMinutes, minutesShown } from "../../src/console/page/model/events.ts";

const minuteMs = 60_000;
const now = Date.parse("2026-11-14T10:00:30Z");
const minute = Math.floor(now / minuteMs);

test("the current minute is the last of thirty, and minutes without events are 0", () => {
  const filled = fillMinutes([{ minute: minute - 2, events: 4 }], now);
  expect(filled).toHaveLength(minutesShown);
  expect(filled.at(-1)).toEqual({ at: minute * minuteMs, events: 0 });
  expect(filled.map(({ events }) => events).filter((count) => count > 0)).toEqual([4]);
  expect(filled.at(-3)!.events).toBe(4);
});

test("minutes of a server whose clock is ahead are shown", () => {
  expect(fillMinutes([{ minute: minute + 1, events: 2 }], now).at(-1)).toEqual({
    at: (minute + 1) * minuteMs,
    events: 2,
  });
});
