import { describe, expect, test } from "bun:test";
import type { JournalEvent } from "../../src/journal/entry.ts";
import { alias, event, identify, newYearMicros, secondMicros, set, TestPersons } from "./support.ts";

const now = newYearMicros;
const lastYear = newYearMicros - 365 * 86_400 * secondMicros;
const twoYearsAgo = lastYear - 365 * 86_400 * secondMicros;

const live = { timeMicros: now };
const loaded = (timeMicros: number) => ({ timeMicros, historical: true });
const unset = (names: string[], more: object) =>
  event({ event: "$unset", properties: { $unset: names }, ...more });
const setOnce = (values: object, more: object) => event({ properties: { $set_once: values }, ...more });

interface Case {
  name: string;
  items: () => JournalEvent[];
  properties: Record<string, unknown>;
  id?: string;
}

const cases: Case[] = [
  {
    name: "an old $set does not replace what was written later",
    items: () => [
      set("a", { plan: "pro" }, live),
      set("a", { plan: "trial", city: "Kyiv" }, loaded(lastYear)),
    ],
    properties: { plan: "pro", city: "Kyiv" },
  },
  {
    name: "a repeated value counts as written at the later time",
    items: () => [
      set("a", { plan: "pro" }, { timeMicros: twoYearsAgo }),
      set("a", { plan: "pro" }, live),
      set("a", { plan: "trial" }, loaded(lastYear)),
    ],
    properties: { plan: "pro" },
  },
  {
    name: "among historical events the last to arrive wins, whatever their times say",
    items: () => [
      set("a", { plan: "pro", seats: 1 }, loaded(lastYear)),
      set("a", { plan: "trial" }, loaded(twoYearsAgo)),
      set("a", { seats: 2 }, loaded(lastYear + 1)),
    ],
    properties: { plan: "trial", seats: 2 },
  },
  {
    name: "an $unset of history too",
    items: () => [
      set("a", { plan: "pro", seats: 1 }, loaded(lastYear)),
      unset(["plan"], loaded(twoYearsAgo)),
      unset(["seats"], loaded(lastYear)),
      set("a", { seats: 2 }, loaded(twoYearsAgo)),
    ],
    properties: { seats: 2 },
  },
  {
    name: "a realtime write still protects when younger history has replaced its value",
    items: () => [
      set("a", { plan: "live", city: "live", seats: "live" }, { timeMicros: lastYear }),
      set("a", { plan: "younger" }, loaded(lastYear + 1)),
      set("a", { plan: "older" }, loaded(twoYearsAgo)),
      unset(["city"], loaded(lastYear)),
      set("a", { city: "older" }, loaded(twoYearsAgo)),
      setOnce({ city: "older" }, loaded(lastYear - 1)),
      unset(["seats"], loaded(lastYear - 1)),
    ],
    properties: { plan: "younger", seats: "live" },
  },
  {
    name: "of equal times the last to arrive wins",
    items: () => [set("a", { plan: "pro" }, loaded(lastYear)), set("a", { plan: "team" }, loaded(lastYear))],
    properties: { plan: "team" },
  },
  {
    name: "a realtime event wins and brings its own time, even an older one",
    items: () => [
      set("a", { plan: "pro" }, live),
      set("a", { plan: "late" }, { timeMicros: twoYearsAgo }),
      set("a", { plan: "loaded" }, loaded(lastYear)),
    ],
    properties: { plan: "loaded" },
  },
  {
    name: "in a merge what a realtime event wrote beats what only history wrote, on either side",
    items: () => [
      set("user", { plan: "history", city: "live", seats: "history" }, loaded(lastYear)),
      set("user", { city: "live" }, { timeMicros: twoYearsAgo }),
      set("anon", { plan: "live" }, { timeMicros: twoYearsAgo }),
      set("anon", { city: "history", seats: "other history" }, loaded(now)),
      identify("user", "anon", live),
    ],
    id: "user",
    properties: { plan: "live", city: "live", seats: "history" },
  },
  {
    name: "and what a realtime event unset does not come back from what only history wrote",
    items: () => [
      set("user", { plan: "history" }, loaded(lastYear)),
      event({
        distinctId: "user",
        event: "$unset",
        properties: { $unset: ["phone"] },
        timeMicros: twoYearsAgo,
      }),
      event({
        distinctId: "anon",
        event: "$unset",
        properties: { $unset: ["plan"] },
        timeMicros: twoYearsAgo,
      }),
      set("anon", { phone: "history" }, loaded(lastYear)),
      identify("user", "anon", live),
    ],
    id: "user",
    properties: {},
  },
  {
    name: "an old $unset does not remove what was written later",
    items: () => [set("a", { plan: "pro", old: 1 }, live), unset(["plan"], loaded(lastYear))],
    properties: { plan: "pro", old: 1 },
  },
  {
    name: "what was unset is not brought back by older history",
    items: () => [
      set("a", { plan: "pro" }, { timeMicros: twoYearsAgo }),
      unset(["plan", "city"], live),
      set("a", { plan: "trial", city: "Kyiv", seats: 1 }, loaded(lastYear)),
      setOnce({ plan: "trial", city: "Kyiv" }, loaded(lastYear)),
    ],
    properties: { seats: 1 },
  },
  {
    name: "but by later history, and by anything live",
    items: () => [
      unset(["plan", "city"], { timeMicros: twoYearsAgo }),
      set("a", { plan: "trial" }, loaded(lastYear)),
      set("a", { city: "Kyiv" }, { timeMicros: 5 }),
    ],
    properties: { plan: "trial", city: "Kyiv" },
  },
  {
    name: "$set_once of an absent name is written",
    items: () => [
      set("a", { plan: "pro" }, live),
      setOnce({ source: "ad", plan: "trial" }, loaded(lastYear)),
    ],
    properties: { plan: "pro", source: "ad" },
  },
  {
    name: "times travel with merged properties",
    items: () => [
      set("anon", { plan: "pro" }, live),
      event({ distinctId: "user", ...live }),
      identify("user", "anon", live),
      set("user", { plan: "trial" }, loaded(lastYear)),
    ],
    id: "user",
    properties: { plan: "pro" },
  },
  {
    name: "a loaded merge keeps a value that was written after it",
    items: () => [
      set("user", { plan: "pro", city: "Lviv" }, live),
      set("anon", { plan: "trial", city: "Kyiv", seats: 1 }, loaded(twoYearsAgo)),
      alias("anon", "user", loaded(lastYear)),
    ],
    id: "user",
    properties: { plan: "pro", city: "Lviv", seats: 1 },
  },
  {
    name: "a loaded merge does not bring back what was unset after it",
    items: () => [
      event({ distinctId: "user", event: "$unset", properties: { $unset: ["phone"] }, ...live }),
      set("anon", { phone: "1" }, loaded(twoYearsAgo)),
      identify("user", "anon", loaded(lastYear)),
    ],
    id: "user",
    properties: {},
  },
  {
    name: "in a history loaded in order the target's value wins a merge, as live",
    items: () => [
      set("a", { plan: "of a" }, loaded(twoYearsAgo)),
      set("b", { plan: "of b" }, loaded(twoYearsAgo + 1)),
      alias("a", "b", loaded(lastYear)),
    ],
    properties: { plan: "of a" },
  },
];

describe("historical events", () => {
  for (const { name, items, id = "a", properties } of cases) {
    test(name, () => {
      using people = new TestPersons();
      people.applyOneByOne(...items());
      expect(people.properties(id)).toEqual(properties);
      using together = new TestPersons();
      const all = items();
      const step = together.store.start("realtime");
      step.add({ items: all, duplicates: [] });
      step.commit(all.at(-1)!.seq);
      expect(together.properties(id)).toEqual(properties);
    });
  }

  test("automatic properties follow the same rule", () => {
    using people = new TestPersons();
    people.applyOneByOne(
      event({ ...live, event: "$pageview", properties: { $browser: "Firefox" } }),
      event({
        ...loaded(lastYear),
        event: "$pageview",
        properties: { $browser: "Opera", utm_source: "mail" },
      }),
    );
    expect(people.properties("a")).toEqual({
      $browser: "Firefox",
      $initial_browser: "Firefox",
      utm_source: "mail",
      $initial_utm_source: "mail",
    });
  });
});
