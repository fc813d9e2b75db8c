/** Entries of the activity log as sentences, collapsed and side by side. */

import { expect, test } from "bun:test";
import {
  type ActivityEntry,
  collapseEntries,
  getSentence,
  sideBySide,
  summarizeEntry,
} from "../../src/console/page/model/activity.ts";

let lastId = 0;
const entry = (
  activity: string,
  minute: number,
  changes: [field: string, before: unknown, after: unknown][] = [],
  more: Partial<ActivityEntry> = {},
): ActivityEntry => ({
  id: String(++lastId),
  user: { first_name: "Ann", email: "ann@example.com" },
  activity,
  scope: "FeatureFlag",
  item_id: String(lastId),
  detail: {
    changes: changes.map(([field, before, after]) => ({
      type: "FeatureFlag",
      action: "changed",
      field,
      before,
      after,
    })),
    name: `flag-${lastId}`,
  },
  created_at: new Date(Date.UTC(2026, 10, 14, 12, minute)).toISOString(),
  ...more,
});
const sizes = (entries: ActivityEntry[]) => collapseEntries(entries).map(({ length }) => length);

test("a change of the switch alone is a verb; other changes are lines", () => {
  expect(
    getSentence(
      entry("updated", 0, [
        ["active", false, true],
        ["version", 1, 2],
      ]),
    ),
  ).toEqual({
    verb: "turned on",
    isSwitch: true,
    lines: [],
  });
  expect(
    getSentence(
      entry("updated", 0, [
        ["active", true, false],
        ["name", "a", "b"],
      ]),
    ),
  ).toEqual({
    verb: "updated",
    isSwitch: false,
    lines: ["turned off", "name: a → b"],
  });
});

test("an action on the whole object is a verb without lines", () => {
  const restored = entry("restored", 0, [["deleted", true, false]]);
  expect(getSentence(restored)).toEqual({ verb: "restored", isSwitch: false, lines: [] });
  const created = entry("created", 0, [["key", null, "a"]]);
  expect([restored, created, entry("deleted", 0)].map(summarizeEntry)).toEqual([
    "restored",
    "created",
    "deleted",
  ]);
  expect(summarizeEntry(entry("updated", 0, [["active", true, false]]))).toBe("turned off");
  expect(summarizeEntry(entry("updated", 0, [["name", "a", "b"]]))).toBe("name: a → b");
});

test("equal entries within ten minutes of the newest are one", () => {
  const created = (minute: number, more = {}) =>
    entry("created", minute, [["key", null, `k${minute}`]], more);
  expect(sizes([created(10), created(5), created(0)])).toEqual([3]);
  expect(sizes([created(21), created(12), created(10), created(1)])).toEqual([2, 2]);
  const bob = { user: { first_name: "Bob", email: null } };
  expect(sizes([created(3), created(2, bob), created(1)])).toEqual([1, 1, 1]);
  expect(sizes([created(3), created(2, { scope: "Cohort" })])).toEqual([1, 1]);
  // Changes that differ are not equal.
  const renamed = (name: string) => entry("updated", 1, [["name", "a", name]]);
  expect(sizes([renamed("b"), renamed("c"), renamed("c")])).toEqual([1, 2]);
  const off = () => entry("updated", 1, [["active", true, false]]);
  expect(sizes([off(), off(), entry("updated", 1, [["active", false, true]])])).toEqual([2, 1]);
});

test("filters are compared by lines of text, other fields by their values", () => {
  const filters = (share: number) => ({
    groups: [{ properties: [{ key: "plan", value: ["pro"] }], rollout_percentage: share }],
    multivariate: { variants: [{ key: "a", rollout_percentage: 100 }] },
    payloads: { a: "[1]" },
  });
  const changed = entry("updated", 0, [
    ["filters", filters(10), filters(50)],
    ["name", "", "new"],
  ]);
  const rest = ["Variant a: 100%", "Payload for a: [1]"];
  expect(sideBySide(changed)).toEqual([
    {
      field: "Release",
      before: ["Condition set 1: 10% of plan = pro", ...rest],
      after: ["Condition set 1: 50% of plan = pro", ...rest],
    },
    { field: "name", before: [], after: ["new"] },
  ]);
});
