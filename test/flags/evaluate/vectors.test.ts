import { describe, expect, test } from "bun:test";
import {
  hashPosition,
  isWithin,
  rolloutPosition,
  variantAt,
  variantPosition,
} from "../../../src/flags/evaluate/bucketing.ts";
import { clientValue, evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import { compileMatcher } from "../../../src/flags/operators/matchers.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { instantBefore, parseRelativeDate } from "../../../src/lib/values/dates.ts";
import { flag, requestFor } from "../make.ts";
import operatorRows from "../testdata/operators.json";
import places from "../testdata/places.json";
import relativeDates from "../testdata/relative-dates.json";
import simple from "../testdata/rollout-45-percent.json";
import multivariate from "../testdata/rollout-55-percent-five-variants.json";
import wholeFlags from "../testdata/whole-flags.json";

describe("hashing is bit compatible with the SDKs", () => {
  for (const [text, place] of Object.entries(places)) {
    // The published figures have 15 to 17 digits.
    test(`place of ${text}`, () => expect(Math.abs(hashPosition(text) - place)).toBeLessThan(1e-15));
  }

  test("500 ids within a rollout of 45 percent", () => {
    const found = Array.from({ length: 500 }, (_, i) =>
      isWithin(simple.percentage, rolloutPosition(simple.flagKey, `${simple.idPrefix}${i}`)) ? "1" : "0",
    );
    expect(found.join("")).toBe(simple.isOn.join(""));
  });

  test("500 ids among five variants, through a whole evaluation", () => {
    const filters = {
      groups: [{ properties: [], rollout_percentage: multivariate.percentage }],
      multivariate: { variants: multivariate.variants },
    };
    const set = compileFlagSet([flag(1, multivariate.flagKey, filters)], [], []);
    const found = Array.from({ length: 500 }, (_, i) => {
      const result = evaluate(set, requestFor(`${multivariate.idPrefix}${i}`)).results.get(
        multivariate.flagKey,
      )!;
      const value = clientValue(result);
      return value === false ? 0 : multivariate.variants.findIndex(({ key }) => key === value) + 1;
    });
    expect(found.join("")).toBe(multivariate.variantNumbers.join(""));
  });

  test("an empty id is in every rollout, and past the last share there is no variant", () => {
    expect(isWithin(0, rolloutPosition("a", ""))).toBe(true);
    expect(isWithin(0, rolloutPosition("a", "x"))).toBe(false);
    const third = { key: "a", rolloutPercentage: 100 / 3 };
    expect(variantAt(0.34, [third])).toBeNull();
    expect(variantAt(variantPosition("a", ""), [third])).toBe("a");
    const halves = ["a", "b"].map((key) => ({ key, rolloutPercentage: 50 }));
    // A border belongs to the variant above it, and to the rollout below it.
    expect([variantAt(0.5, halves), variantAt(0.4999999, halves)]).toEqual(["b", "a"]);
    expect([isWithin(50, 0.5), isWithin(50, 0.5000001)]).toEqual([true, false]);
  });
});

describe("relative dates", () => {
  for (const { now, text, instant } of relativeDates.readable) {
    test(`${text} before ${now}`, () => {
      const date = parseRelativeDate(text);
      expect(date && new Date(instantBefore(Date.parse(now), date, "UTC")!).toISOString()).toBe(instant);
    });
  }
  for (const text of relativeDates.unreadable) {
    test(`${text} is invalid`, () => expect(parseRelativeDate(text)).toBeUndefined());
  }
  for (const text of relativeDates.readableToo) {
    test(`${text} is one`, () => expect(parseRelativeDate(text)).toBeDefined());
  }
});

interface OperatorRow {
  operator: string;
  value: Json;
  clock?: { timezone: string; now?: string };
  matches?: Json[];
  rejects?: Json[];
  errors?: Json[];
  matchesMissing?: boolean;
  /** Needs look-around or back-references: no match here, because patterns run in linear time. */
  needsBacktracking?: boolean;
  matchesSecondsBeforeNow?: number;
}

describe("operators", () => {
  for (const row of operatorRows as OperatorRow[]) {
    const clock = {
      timezone: row.clock?.timezone ?? "UTC",
      now: Date.parse(row.clock?.now ?? "2026-01-01T00:00:00Z"),
    };
    const name = `${row.operator} ${JSON.stringify(row.value)} ${row.clock?.timezone ?? ""}`;
    const matchResult = (property: Json | undefined) =>
      compileMatcher(row.operator, row.value)(property, clock);
    for (const property of row.matches ?? []) {
      const expected = row.needsBacktracking !== true;
      test(`${name}: ${JSON.stringify(property)} is ${expected}`, () =>
        expect(matchResult(property)).toBe(expected));
    }
    for (const property of row.rejects ?? []) {
      test(`${name}: ${JSON.stringify(property)} is false`, () =>
        expect(matchResult(property)).not.toBe(true));
    }
    for (const property of row.errors ?? []) {
      const expected = row.needsBacktracking ? false : "error";
      test(`${name}: ${JSON.stringify(property)} is unusable`, () =>
        expect(matchResult(property)).toBe(expected));
    }
    if (row.matchesMissing) test(`${name}: missing`, () => expect(matchResult(undefined)).toBe(true));
    if (row.matchesSecondsBeforeNow !== undefined) {
      const seconds = clock.now / 1000 - row.matchesSecondsBeforeNow;
      test(`${name}: seconds`, () => expect(matchResult(seconds)).toBe(true));
    }
  }

  for (const [operator, wanted, property, expected] of [
    ["gt", 100, "90", false],
    ["lt", 9, "10", false],
    ["gt", "9", 10, true],
    ["gt", 5, 6, true],
    ["gt", "b", "c", "error"],
  ] as const) {
    test(`${operator} ${JSON.stringify(wanted)} of ${JSON.stringify(property)}`, () =>
      expect(compileMatcher(operator, wanted)(property, { now: 0, timezone: "UTC" })).toBe(expected));
  }
});

describe("whole flags", () => {
  for (const c of wholeFlags) {
    test(c.name, () => {
      const cohorts = (c.cohorts ?? []).map((cohort) => ({
        ...(cohort as { id: number; filters: JsonObject }),
        name: "",
        isStatic: false,
      }));
      const set = compileFlagSet([flag(1, c.key, c.filters as JsonObject)], cohorts, [
        { index: 0, name: "company" },
      ]);
      const request = { ...requestFor(c.distinctId), groups: (c.groups ?? {}) as JsonObject };
      const result = evaluate(set, {
        ...request,
        personPropertyOverrides: c.person as unknown as JsonObject,
      }).results.get(c.key)!;
      expect(clientValue(result)).toBe(c.value);
      expect(result.reason.conditionIndex).toBe(c.conditionIndex);
    });
  }

  test("users of one device get the same value", () => {
    const filters = { groups: [{ properties: [], rollout_percentage: 50 }] };
    const set = compileFlagSet(
      [{ ...flag(1, "by-device", filters), bucketingIdentifier: "device_id" }],
      [],
      [],
    );
    const seen = new Set<boolean | string>();
    for (let device = 0; device < 20; device++) {
      const values = ["ann", "bob"].map((distinctId) =>
        clientValue(
          evaluate(set, { ...requestFor(distinctId), deviceId: `d${device}` }).results.get("by-device")!,
        ),
      );
      expect(values[0]).toBe(values[1]!);
      seen.add(values[0]!);
    }
    expect(seen.size).toBe(2);
  });
});
