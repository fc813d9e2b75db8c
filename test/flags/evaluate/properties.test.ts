import { describe, expect, test } from "bun:test";
import { clientValue, evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet, coversPersonKeys } from "../../../src/flags/evaluate/flag-set.ts";
import type { EvaluationRequest } from "../../../src/flags/evaluate/model.ts";
import { GroupView, PersonView } from "../../../src/flags/evaluate/person-view.ts";
import { compileMatcher } from "../../../src/flags/operators/matchers.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { cohort, flag, inCohort, person, requestFor, testNow, when } from "../make.ts";

const groupTypes = [
  { index: 0, name: "company" },
  { index: 1, name: "project" },
];

describe("a person's properties", () => {
  const geoip = { $geoip_country_code: "DE", other: "x" };
  const view = (stored: JsonObject, overrides: JsonObject = {}) =>
    new PersonView("user", stored, overrides, geoip);

  const cases: [string, JsonObject, JsonObject, string, Json | undefined, string][] = [
    ["stored", { a: 1 }, {}, "a", 1, "stored"],
    ["an override wins", { a: 1 }, { a: null }, "a", null, "override"],
    ["the request knows its id", { distinct_id: "old" }, {}, "distinct_id", "user", "request"],
    ["an override of the id wins", {}, { distinct_id: "mine" }, "distinct_id", "mine", "override"],
    ["geoip fills a gap", {}, {}, "$geoip_country_code", "DE", "geoip"],
    ["geoip fills null", { $geoip_country_code: null }, {}, "$geoip_country_code", "DE", "geoip"],
    ["geoip does not overwrite", { $geoip_country_code: "FR" }, {}, "$geoip_country_code", "FR", "stored"],
    ["only geoip properties are filled", {}, {}, "other", undefined, "missing"],
    [
      "first value from the current one",
      { $browser: "Firefox" },
      {},
      "$initial_browser",
      "Firefox",
      "derived",
    ],
    ["first value of a parameter", {}, { utm_source: "ad" }, "$initial_utm_source", "ad", "derived"],
    ["first value known", { $initial_os: "Linux", $os: "macOS" }, {}, "$initial_os", "Linux", "stored"],
    ["first value known to be null", { $initial_os: null, $os: "macOS" }, {}, "$initial_os", null, "stored"],
    ["not derived: utm_name", { utm_name: "x" }, {}, "$initial_utm_name", undefined, "missing"],
    ["not derived: $os_name", { $os_name: "x" }, {}, "$initial_os_name", undefined, "missing"],
    ["not derived: others", { plan: "x" }, {}, "$initial_plan", undefined, "missing"],
    ["names of every object are no properties", {}, {}, "constructor", undefined, "missing"],
  ];
  for (const [name, stored, overrides, key, value, source] of cases) {
    test(name, () => {
      expect(view(stored, overrides).get(key)).toEqual(value as Json);
      expect(view(stored, overrides).findSource(key)).toBe(source as never);
    });
  }

  test("a property called __proto__ is one like any other", () => {
    const stored = JSON.parse('{"__proto__":"x"}');
    expect(new PersonView("u", stored, undefined).get("__proto__")).toBe("x");
    expect(new PersonView("u", {}, undefined).get("__proto__")).toBeUndefined();
  });

  test("a group's key is from the request, overrides take precedence over stored values", () => {
    const group = new GroupView("acme", { $group_key: "old", plan: "free", size: 3 }, { plan: null });
    expect([group.get("$group_key"), group.get("plan"), group.get("size"), group.get("x")]).toEqual([
      "acme",
      null,
      3,
      undefined,
    ]);
  });
});

describe("properties in conditions", () => {
  function isOn(filters: JsonObject, request: Partial<EvaluationRequest>): boolean {
    const set = compileFlagSet([flag(1, "f", filters)], [], groupTypes);
    return evaluate(set, requestFor("user", request)).results.get("f")!.enabled;
  }
  const ofGroup = (key: string, value: Json, index?: number) => ({
    key,
    type: "group",
    value,
    ...(index === undefined ? {} : { group_type_index: index }),
  });

  test("of the condition's group, of another group, by key", () => {
    const request = {
      groups: { company: "acme", project: "p1" },
      groupProperties: { company: { plan: "pro" }, project: { plan: "free" } },
    };
    const about = (property: JsonObject) => ({ ...when([property]), aggregation_group_type_index: 0 });
    expect(isOn(about(ofGroup("plan", "pro")), request)).toBe(true);
    expect(isOn(about(ofGroup("plan", "pro", 0)), request)).toBe(true);
    expect(isOn(about(ofGroup("plan", "pro", 1)), request)).toBe(false);
    expect(isOn(about(ofGroup("plan", "free", 1)), request)).toBe(true);
    expect(isOn(about(ofGroup("$group_key", "acme")), request)).toBe(true);
    expect(isOn(when([ofGroup("plan", "free", 1)]), request)).toBe(true);
    expect(isOn(when([ofGroup("plan", "free")]), request)).toBe(false);
    const overridden = { ...request, groupPropertyOverrides: { company: { plan: "trial" } } };
    expect(isOn(about(ofGroup("plan", "trial")), overridden)).toBe(true);
  });

  test("all must match; unusable ones never do, not even inverted", () => {
    const request = { personPropertyOverrides: { a: "1", b: "x" } };
    expect(isOn(when([person("a", "exact", "1"), person("b", "exact", "x")]), request)).toBe(true);
    expect(isOn(when([person("a", "exact", "1"), person("b", "exact", "y")]), request)).toBe(false);
    for (const bad of [
      person("a", "unknown_operator", "1"),
      person("a", "exact", null),
      person("a", "in", "1"),
      person("b", "gt", "1"),
      person("a", "not_between", ["x", "y"]),
      person("a", "not_regex", "(?=x)"),
      { key: "a", type: "behavioral", value: "1" },
      { type: "person", value: "1" },
      "not an object",
    ] as Json[]) {
      expect([bad, isOn({ groups: [{ properties: [bad] }] }, request)]).toEqual([bad, false]);
    }
    expect(isOn({ groups: [{ properties: { a: 1 } }] }, request)).toBe(false);
  });

  test("what a set needs from the stores", () => {
    const cohorts = [
      cohort(1, { type: "AND", values: [person("in_cohort", "exact", 1), inCohort(2)] }),
      cohort(2, null, { isStatic: true }),
    ];
    const definitions = [
      flag(1, "a", when([person("email", "exact", "x"), person("distinct_id", "exact", "x")])),
      flag(2, "b", when([person("$initial_browser", "exact", "x"), inCohort(1)])),
      flag(3, "c", {
        ...when([ofGroup("plan", "x"), ofGroup("$group_key", "x")]),
        aggregation_group_type_index: 1,
      }),
      flag(4, "d", { ...when([]), feature_enrollment: true }, { ensureExperienceContinuity: true }),
      flag(5, "e", when([person("unused", "exact", "x")]), { active: false }),
    ];
    const { needs } = compileFlagSet(definitions, cohorts, groupTypes);
    expect([...needs.personKeys].sort()).toEqual([
      "$browser",
      "$feature_enrollment/d",
      "$initial_browser",
      "email",
      "in_cohort",
    ]);
    expect(needs.personProperties && needs.groupProperties && needs.staticCohorts && needs.continuity).toBe(
      true,
    );
    expect([...needs.groupKeys]).toEqual([[1, new Set(["plan"])]]);
    expect(needs.continuityKeys).toEqual(["d"]);

    const nothing = compileFlagSet([flag(1, "a", when([], 50))], cohorts, groupTypes).needs;
    expect([
      nothing.personProperties,
      nothing.groupProperties,
      nothing.staticCohorts,
      nothing.continuity,
    ]).toEqual([false, false, false, false]);
  });

  test("overrides for every needed key make the store unnecessary", () => {
    const set = compileFlagSet(
      [flag(1, "a", when([person("a", "exact", "x"), person("b", "is_set", "")]))],
      [],
      [],
    );
    expect(coversPersonKeys(set, { a: 1, b: null })).toBe(true);
    expect(coversPersonKeys(set, { a: 1 })).toBe(false);
  });
});

describe("operators beyond the vectors", () => {
  const clock = { now: testNow, timezone: "Europe/Berlin" };
  const cases: [string, Json, Json | undefined, boolean | "error"][] = [
    ["exact", false, "hello", true],
    ["exact", "false", 0, true],
    ["exact", "FALSE", null, true],
    ["exact", "false", true, false],
    ["exact", true, "TRUE", true],
    ["exact", ["true", true], ["True"], true],
    ["exact", "true", 1, false],
    ["exact", [], true, "error"],
    ["exact", [], "true", "error"],
    ["exact", [], "x", "error"],
    ["exact", ["true", "x"], "TRUE", true],
    ["exact", 1, "1", true],
    ["exact", "1.0", 1, false],
    ["exact", { b: 1, a: [2] }, { a: [2], b: 1 }, "error"],
    ["exact", "null", null, true],
    ["exact", "a", undefined, false],
    ["exact", "İ", "i̇", false],
    ["exact", "ẞ", "ß", false],
    ["exact", "É", "é", false],
    ["exact", "AÉ", "aÉ", true],
    ["is_not", true, "x", true],
    ["is_not", "a", undefined, true],
    ["is_not", null, "x", "error"],
    ["is_set", null, null, true],
    ["is_set", "is_set", undefined, false],
    ["is_not_set", null, null, false],
    ["icontains", "true", true, true],
    ["icontains", "[1,", [1, 2], true],
    ["icontains", "x", undefined, false],
    ["not_icontains", "x", undefined, true],
    ["not_starts_with", "x", undefined, true],
    ["not_ends_with", "x", undefined, true],
    ["icontains_multi", [], "x", "error"],
    ["not_icontains_multi", [], "x", "error"],
    ["icontains_multi", "john", "John Doe", "error"],
    ["not_icontains_multi", "john", "Jane", "error"],
    ["regex", 4, "4", "error"],
    ["not_icontains_multi", ["a"], undefined, true],
    ["regex", "x", undefined, false],
    ["not_regex", "x", undefined, true],
    ["not_regex", "[", "x", false],
    ["not_regex", "[", undefined, false],
    ["regex", "(?i)acme", "ACME", true],
    ["regex", "(?P<year>\\d{4})", "in 2024", true],
    ["regex", "\\A\\w+\\z", "José", true],
    ["regex", "^\\h+$", "c0ffee", true],
    ["gt", "1e2", 101, true],
    ["gt", "1", "x", "error"],
    ["gt", "1", " 2", "error"],
    ["gt", "0x1", 2, "error"],
    ["gt", "1", true, "error"],
    ["gt", "1", null, "error"],
    ["gt", "1", undefined, false],
    ["lt", "inf", 5, true],
    ["gt", "1", "NaN", false],
    ["between", ["1", 2], 2, true],
    ["between", [1, 2], "NaN", false],
    ["not_between", [1, 2], "NaN", false],
    ["between", [1, 2], undefined, false],
    ["between", "1,2", 1, "error"],
    ["is_date_before", 1700000000, "2020-01-01", "error"],
    ["is_date_before", "2024-01-01", "-3d", false],
    ["is_date_before", "2024-01-01", true, false],
    ["is_date_before", "2024-01-01", undefined, false],
    ["is_date_exact", "2024-06-01", "2024-05-31T22:00:00Z", true],
    ["is_date_exact", "2024-03-21T10:00:00Z", "Thu, 21 Mar 2024 11:00:00 +0100", true],
    ["is_date_exact", "2024-03-21T00:00:00Z", "1710979200", true],
    ["is_date_after", "2024-06-01T00:00:00.000100Z", "2024-06-01T00:00:00.000200Z", true],
    ["semver_neq", "1.0.0", "x", false],
    ["semver_eq", "1.0.0", undefined, false],
    ["semver_eq", "1.0.0", "1.0.0+build7", true],
    ["semver_eq", "1.2.3.4", "1.2.3", "error"],
    ["semver_eq", "1.2.0", "1.2.", false],
    ["semver_eq", "1.2.3", "1.2.3.4", false],
    ["semver_gt", "1.0.0", "-1.0.0", false],
    ["semver_gt", "1.0.0-alpha", "1.0.0-beta", true],
    ["semver_gte", "1", 2, true],
    ["semver_eq", "0.0.0", null, false],
    ["semver_caret", "0.2.3", "0.2.9", true],
    ["semver_caret", "0.2.3", "0.3.0", false],
    ["semver_caret", "0.0.3", "0.0.3", true],
    ["semver_caret", "0.0.3", "0.0.4", false],
    ["semver_wildcard", "*", "x", false],
    // Numbers past 2^53, such as build times, are compared to the last digit.
    ["semver_eq", "1.20240101123045678.0", "1.20240101123045678.0", true],
    ["semver_eq", "1.20240101123045678.0", "1.20240101123045679.0", false],
    ["semver_gt", "1.20240101123045678.0", "2.0.0", true],
    ["semver_gt", "1.20240101123045678.0", "1.20240101123045679", true],
    ["semver_lt", "1.20240101123045678.0", "1.9007199254740991.0", true],
    ["semver_lt", "20240101123045678.0.0", "20240101123045678.0.0-rc.1", true],
    ["semver_tilde", "1.20240101123045678.2", "1.20240101123045678.9", true],
    ["semver_tilde", "1.20240101123045678.2", "1.20240101123045679.0", false],
    ["semver_tilde", "1.9007199254740991.0", "1.9007199254740992.0", false],
    ["semver_caret", "0.20240101123045678.2", "0.20240101123045678.3", true],
    ["semver_caret", "0.0.20240101123045678", "0.0.20240101123045679", false],
    ["semver_wildcard", "1.20240101123045678.*", "1.20240101123045678.5", true],
    ["semver_wildcard", "20240101123045678.*", "20240101123045679.0.0", false],
    ["semver_wildcard", "1.2.3", "1.2.3", "error"],
    ["in", "x", "x", "error"],
    ["not_in", "x", "y", "error"],
    ["flag_evaluates_to", true, true, false],
    ["min", 1, 2, "error"],
  ];
  for (const [operator, wanted, found, expected] of cases) {
    test(`${operator} ${JSON.stringify(wanted)} of ${JSON.stringify(found)}`, () =>
      expect(compileMatcher(operator, wanted)(found, clock)).toBe(expected));
  }
  test("no operator is exact", () => {
    expect(compileMatcher(null, "A")("a", clock)).toBe(true);
    expect(compileMatcher(undefined, "A")("b", clock)).toBe(false);
  });
});

describe("dates across changes of the clock in Berlin", () => {
  const at = (now: string) => ({ now: Date.parse(now), timezone: "Europe/Berlin" });
  const before = (wanted: string, found: string, now: string) =>
    compileMatcher("is_date_before", wanted)(found, at(now));

  test("a relative date that the clock skipped matches nothing", () => {
    // 04:30 local; two hours earlier on the wall is 02:30, which did not exist that night.
    expect(before("2h", "1990-01-01", "2024-03-31T02:30:00Z")).toBe(false);
    expect(compileMatcher("is_date_after", "2h")("2030-01-01", at("2024-03-31T02:30:00Z"))).toBe(false);
    expect(before("3h", "1990-01-01", "2024-03-31T02:30:00Z")).toBe(true);
  });
  test("a relative date that occurred twice is the earlier one", () => {
    // 04:30 local winter time; two hours earlier on the wall is 02:30, first at 00:30Z, then at 01:30Z.
    const exact = compileMatcher("is_date_exact", "2h");
    expect(exact("2024-10-27T00:30:00Z", at("2024-10-27T03:30:00Z"))).toBe(true);
    expect(exact("2024-10-27T01:30:00Z", at("2024-10-27T03:30:00Z"))).toBe(false);
  });
  test("a day back keeps the time on the wall", () =>
    expect(compileMatcher("is_date_exact", "1d")("2024-03-30T11:00:00Z", at("2024-03-31T10:00:00Z"))).toBe(
      true,
    ));
  test("the same test serves different clocks", () => {
    const exact = compileMatcher("is_date_exact", "2024-06-01");
    expect(exact("2024-06-01T00:00:00Z", { now: 0, timezone: "UTC" })).toBe(true);
    expect(exact("2024-06-01T00:00:00Z", { now: 0, timezone: "Europe/Berlin" })).toBe(false);
    expect(exact("2024-06-01T00:00:00Z", { now: 0, timezone: "no/such" })).toBe(true);
  });
});

describe("hostile values take no time and throw nothing", () => {
  const clock = { now: testNow, timezone: "UTC" };
  const result = (operator: string, wanted: Json, found: Json) =>
    compileMatcher(operator, wanted)(found, clock);
  const nested = (depth: number) => {
    let list: Json = true;
    for (let i = 0; i < depth; i++) list = [list];
    return list;
  };
  const cases: [string, string, Json, Json, boolean | "error"][] = [
    ["a million digits and a letter", "gt", "1", `${"1".repeat(1_000_000)}x`, "error"],
    [
      "a million digits and a letter, as a date",
      "is_date_after",
      "2020-01-01",
      `${"1".repeat(1_000_000)}x`,
      false,
    ],
    [
      "a million blanks in a date",
      "is_date_after",
      "2020-01-01",
      `2024-1-1${" ".repeat(1_000_000)}\nx`,
      false,
    ],
    ["a million numbers in a version", "semver_gt", "1.0.0", "1.".repeat(500_000), false],
    ["a million blanks around a version", "semver_gt", "1.0.0", `${" ".repeat(1_000_000)}2`, true],
    ["lists in lists against true", "exact", true, nested(20_000), false],
    ["lists in lists against text", "exact", "x", nested(20_000), "error"],
    ["lists in lists in the filter", "exact", nested(20_000), "x", "error"],
    ["lists in lists in the filter, as text", "icontains", nested(20_000), "x", "error"],
  ];
  for (const [name, operator, wanted, found, expected] of cases) {
    test(name, () => {
      const started = performance.now();
      expect(result(operator, wanted, found)).toBe(expected);
      expect(performance.now() - started).toBeLessThan(5_000);
    });
  }
});

test("a filter without a type has the type of its condition", () => {
  const set = compileFlagSet(
    [
      flag(1, "person", when([{ key: "a", value: "1" }])),
      flag(2, "group", { ...when([{ key: "a", value: "2" }]), aggregation_group_type_index: 0 }),
    ],
    [],
    groupTypes,
  );
  const request = requestFor("u", {
    personPropertyOverrides: { a: "1" },
    groups: { company: "acme" },
    groupPropertyOverrides: { company: { a: "2" } },
  });
  expect([...evaluate(set, request).results.values()].map(({ enabled }) => enabled)).toEqual([true, true]);
});

test("values and their texts differ only by the contract's rules", () => {
  const set = compileFlagSet([flag(1, "f", when([person("n", "exact", ["7"])]))], [], []);
  const value = (n: Json) =>
    clientValue(evaluate(set, requestFor("u", { personPropertyOverrides: { n } })).results.get("f")!);
  expect([value(7), value("7"), value(7.5), value([7])]).toEqual([true, true, false, false]);
});
