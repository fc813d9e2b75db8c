import { describe, expect, test } from "bun:test";
import {
  getRolloutSummary,
  getStatus,
  getStatusField,
  isStale,
  type StatusFacts,
} from "../../src/flags/rules/status.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { person, when } from "./make.ts";

const now = new Date("2026-06-01T12:00:00Z");
const daysAgo = (days: number, ms = 0) => new Date(now.getTime() - days * 86_400_000 - ms);
const variants = (...shares: number[]): JsonObject => ({
  multivariate: { variants: shares.map((share, i) => ({ key: `v${i}`, rollout_percentage: share })) },
});

function facts(rest: Partial<StatusFacts>): StatusFacts {
  return {
    active: true,
    deleted: false,
    filters: when([], 50),
    createdAt: daysAgo(60),
    lastCalledAt: null,
    ...rest,
  };
}

describe("status", () => {
  const cases: [string, Partial<StatusFacts>, string, string][] = [
    ["deleted", { deleted: true, active: false }, "deleted", "Flag has been deleted"],
    [
      "switched off",
      { active: false, lastCalledAt: daysAgo(90) },
      "active",
      "Flag is disabled (not evaluated for staleness)",
    ],
    ["called 31 days ago", { lastCalledAt: daysAgo(31) }, "stale", "Flag has not been called in 31 days"],
    [
      "called 30 days and 1 ms ago",
      { lastCalledAt: daysAgo(30, 1) },
      "stale",
      "Flag has not been called in 30 days",
    ],
    [
      "called exactly 30 days ago",
      { lastCalledAt: daysAgo(30) },
      "active",
      "Flag was last called 30 days ago",
    ],
    ["called today", { lastCalledAt: daysAgo(0, 5_000) }, "active", "Flag was called today"],
    ["called in the future", { lastCalledAt: daysAgo(-1) }, "active", "Flag was called today"],
    ["called yesterday", { lastCalledAt: daysAgo(1) }, "active", "Flag was last called 1 day ago"],
    ["called 2 days ago", { lastCalledAt: daysAgo(2) }, "active", "Flag was last called 2 days ago"],
    ["half rolled out", {}, "active", "Flag has no usage data yet"],
    ["rolled out", { filters: when([], 100) }, "stale", 'This boolean flag will always evaluate to "true"'],
    ["no filters: on for nobody", { filters: {} }, "active", "Flag has no usage data yet"],
    [
      "rolled out, but young",
      { filters: when([], 100), createdAt: daysAgo(30) },
      "active",
      "Flag has no usage data yet",
    ],
    [
      "100 percent of some",
      { filters: when([person("a", "exact", "b")], 100) },
      "active",
      "Flag has no usage data yet",
    ],
    ["no percentage is not exactly 100", { filters: when([], null) }, "active", "Flag has no usage data yet"],
    [
      "second set rolled out",
      { filters: { groups: [{ rollout_percentage: 3 }, { rollout_percentage: 100 }] } },
      "stale",
      'This boolean flag will always evaluate to "true"',
    ],
    [
      "one variant for all",
      { filters: { ...when([], 100), ...variants(0, 100) } },
      "stale",
      'This flag will always use the variant "v1"',
    ],
    [
      "the forced variant is named",
      { filters: { ...when([], 100, { variant: "v0" }), ...variants(0, 100) } },
      "stale",
      'This flag will always use the variant "v0"',
    ],
    [
      "two variants",
      { filters: { ...when([], 100), ...variants(50, 50) } },
      "active",
      "Flag has no usage data yet",
    ],
  ];
  for (const [name, rest, status, reason] of cases) {
    test(name, () => {
      const found = getStatus(facts(rest), now);
      expect([found.status, found.reason]).toEqual([status as never, reason]);
      expect(getStatusField(facts(rest), now)).toBe(status.toUpperCase());
      expect(isStale(facts(rest), now)).toBe(status === "stale");
    });
  }
});

test("rollout in short", () => {
  expect(
    getRolloutSummary({ groups: [{ rollout_percentage: 3 }, { properties: [person("a", "exact", "b")] }] }),
  ).toEqual({
    isFullRollout: false,
    hasTargetingConditions: true,
    maxRolloutPercentage: 100,
    isMultivariate: false,
  });
  expect(getRolloutSummary({ groups: [], ...variants(100) })).toEqual({
    isFullRollout: false,
    hasTargetingConditions: false,
    maxRolloutPercentage: 0,
    isMultivariate: true,
  });
});
