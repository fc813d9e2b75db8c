/** Days and hours of trends in zones whose clocks change, against the runtime's own idea of each zone. */

import { beforeAll, expect, test } from "bun:test";
import { computeInsight } from "../../src/events/api/compute-query.ts";
import { wallTimeAt } from "../../src/lib/time-zone.ts";
import { TestStores } from "../support/event-store.ts";
import { randomFrom } from "../support/seeded-random.ts";
import { stores, useStores } from "../support/use-stores.ts";

const hour = 3_600_000;
const day = 24 * hour;
const start = Date.UTC(2025, 0, 1);
const now = Date.UTC(2026, 5, 1);
const times: number[] = [];

useStores();
beforeAll(async () => {
  const random = randomFrom(7);
  for (let at = start; at < now; at += 2 * hour + random() * hour) times.push(Math.floor(at));
  await stores.load(times.map((time) => ({ event: "call", time })));
});

const zones = [
  "UTC",
  "Europe/Berlin",
  "America/Santiago",
  "America/St_Johns",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Africa/Cairo",
  "Asia/Beirut",
  "Africa/Casablanca",
  "Pacific/Kiritimati",
];
const ranges = [
  { date_from: "2025-01-05", date_to: "2026-05-20" },
  // Around changes of the clock, and beginning at one.
  { date_from: "2025-03-29", date_to: "2025-03-31" },
  { date_from: "2025-03-30", date_to: "2025-03-30" },
  { date_from: "2025-10-26T01:30:00", date_to: "2025-10-26T05:30:00" },
  { date_from: "2025-04-25", date_to: "2025-04-26" },
  { date_from: "2025-09-07", date_to: "2025-11-02" },
];

test.each(zones)("in %s every event is in its bucket, and only those of the range", async (timezone) => {
  await stores.ask(async (store) => {
    for (const dateRange of ranges) {
      for (const interval of ["hour", "day"] as const) {
        if (interval === "hour" && dateRange === ranges[0]) continue;
        const query = { kind: "TrendsQuery", series: [{ event: "call" }], dateRange, interval };
        const results = await computeInsight(store, { projectId: 1, timezone, now, query });
        const [{ days, data }] = results as unknown as [{ days: string[]; data: number[] }];
        const unit = interval === "hour" ? hour : day;
        const from = Date.parse(
          `${dateRange.date_from.padEnd(10)}${dateRange.date_from.includes("T") ? "" : "T00:00:00"}Z`,
        );
        const to = dateRange.date_to.includes("T")
          ? Date.parse(`${dateRange.date_to}Z`)
          : Date.parse(`${dateRange.date_to}T00:00:00Z`) + day;
        const counts = new Map<number, number>();
        for (const time of times) {
          const wall = wallTimeAt(time, timezone);
          const bucket = wall - (((wall % unit) + unit) % unit);
          if (wall >= from && wall < to) counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
        }
        const moment = (text: string) =>
          Date.parse(text.length === 10 ? `${text}T00:00:00Z` : `${text.replace(" ", "T")}Z`);
        expect(days.map((text) => counts.get(moment(text)) ?? 0)).toEqual(data);
      }
    }
  });
});

test.each([...zones, "America/Vancouver", "Pacific/Apia"])(
  "in %s queries over all time have the same days as those over a range",
  async (timezone) => {
    const late = Date.UTC(2026, 11, 20);
    const moments = Array.from({ length: 48 }, (_, index) => late - index * 37 * hour);
    await using own = await TestStores.open();
    // Everybody comes once: whoever is new on a day was there on that day.
    await own.load(moments.map((time, index) => ({ event: "call", distinctId: `user ${index}`, time })));
    await own.mirror.follow();
    const query = {
      kind: "LifecycleQuery",
      series: [{ event: "call" }],
      dateRange: { date_from: "2026-09-01", date_to: "2026-12-31" },
    };
    const results = await own.ask((store) =>
      computeInsight(store, { projectId: 1, timezone, now: late + day, query }),
    );
    const [{ days, data }] = results as unknown as [{ days: string[]; data: number[] }];
    const counts = new Map<string, number>();
    for (const time of moments) {
      const local = new Date(wallTimeAt(time, timezone)).toISOString().slice(0, 10);
      counts.set(local, (counts.get(local) ?? 0) + 1);
    }
    expect(data).toEqual(days.map((text) => counts.get(text) ?? 0));
  },
);
