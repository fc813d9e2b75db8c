import { describe, expect, test } from "bun:test";
import { clientValue, evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import type { EvaluationRequest, FlagResult } from "../../../src/flags/evaluate/model.ts";
import type { FlagDefinition } from "../../../src/flags/rules/types.ts";
import type { Json, JsonObject } from "../../../src/lib/json.ts";
import { dependsOn, flag, person, requestFor, when } from "../make.ts";

const groupTypes = [
  { index: 0, name: "company" },
  { index: 1, name: "project" },
];

function resultOf(
  filters: JsonObject,
  request: Partial<EvaluationRequest> = {},
  definition: Partial<FlagDefinition> = {},
): FlagResult {
  const set = compileFlagSet([flag(1, "f", filters, definition)], [], groupTypes);
  return evaluate(set, requestFor("user", request)).results.get("f")!;
}

/** Value, reason and condition index of a result. */
function short({ reason, ...result }: FlagResult): [boolean | string, string, number | null] {
  return [clientValue(result as FlagResult), reason.code, reason.conditionIndex];
}

const twoVariants: JsonObject = {
  multivariate: {
    variants: [
      { key: "control", rollout_percentage: 50 },
      { key: "test", rollout_percentage: 50 },
    ],
  },
};
const isStaff = person("staff", "exact", "yes");
const staff = { personPropertyOverrides: { staff: "yes" } };
const aboutCompany = { aggregation_group_type_index: 0 };

describe("reasons", () => {
  const cases: [
    string,
    JsonObject,
    Partial<EvaluationRequest>,
    [boolean | string, string, number | null],
    string,
  ][] = [
    ["match", when([]), {}, [true, "condition_match", 0], "Matched condition set 1"],
    ["no match", when([isStaff]), {}, [false, "no_condition_match", 0], "No matching condition set"],
    ["out of rollout", when([], 0), {}, [false, "out_of_rollout_bound", 0], "Out of rollout bound"],
    ["no conditions", { groups: [] }, {}, [false, "no_condition_match", null], "No matching condition set"],
    [
      "the most informative reason wins",
      { groups: [{ rollout_percentage: 0 }, { properties: [isStaff] }] },
      {},
      [false, "out_of_rollout_bound", 0],
      "Out of rollout bound",
    ],
    [
      "on a tie the later condition is told",
      { groups: [{ properties: [isStaff] }, { properties: [isStaff] }] },
      {},
      [false, "no_condition_match", 1],
      "No matching condition set",
    ],
    ["no group named", { ...when([]), ...aboutCompany }, {}, [false, "no_group_type", 0], "No group type"],
    [
      "no group named, and a person who does not match",
      { groups: [aboutCompany, { properties: [isStaff], aggregation_group_type_index: null }] },
      {},
      [false, "no_condition_match", 1],
      "No matching condition set (group conditions were not evaluated because no group type was provided)",
    ],
    [
      "second condition",
      { groups: [{ rollout_percentage: 0 }, {}] },
      {},
      [true, "condition_match", 1],
      "Matched condition set 2",
    ],
  ];
  for (const [name, filters, request, expected, description] of cases) {
    test(name, () => {
      const result = resultOf(filters, request);
      expect(short(result)).toEqual(expected);
      expect(result.reason.description).toBe(description);
      expect(result.failed).toBe(false);
    });
  }
});

describe("enrolment decides first", () => {
  const filters = { ...when([], 0), feature_enrollment: true, payloads: { true: '"early"' } };
  const enrolled = (value: Json) => ({ personPropertyOverrides: { "$feature_enrollment/f": value } });
  for (const value of [true, "true"]) {
    test(`${JSON.stringify(value)} is in, with the payload`, () => {
      const result = resultOf(filters, enrolled(value));
      expect(short(result)).toEqual([true, "super_condition_value", 0]);
      expect(result.payload).toBe('"early"');
    });
  }
  for (const value of [false, "false", "True", 1, null]) {
    test(`${JSON.stringify(value)} is out, even at 100 percent`, () =>
      expect(short(resultOf({ ...when([]), feature_enrollment: true }, enrolled(value)))).toEqual([
        false,
        "super_condition_value",
        0,
      ]));
  }
  test("a stored property counts, a missing one does not decide", () => {
    const stored = { person: { properties: { "$feature_enrollment/f": true } } };
    expect(short(resultOf(filters, stored))).toEqual([true, "super_condition_value", 0]);
    expect(short(resultOf(filters))).toEqual([false, "out_of_rollout_bound", 0]);
  });
  test("variants play no part, and super groups none either", () => {
    const both = {
      ...filters,
      ...twoVariants,
      super_groups: [{ properties: [isStaff], rollout_percentage: 100 }],
    };
    expect(short(resultOf(both, enrolled(true)))).toEqual([true, "super_condition_value", 0]);
    expect(short(resultOf(both, staff))).toEqual([false, "out_of_rollout_bound", 0]);
  });

  const superGroups = (rollout: number) => ({
    ...when([]),
    ...twoVariants,
    super_groups: [
      { properties: [person("$feature_enrollment/f", "exact", ["true"])], rollout_percentage: rollout },
    ],
  });
  test("old super groups decide when the property is known, match or not", () => {
    expect(short(resultOf(superGroups(100), enrolled("true")))).toEqual([true, "super_condition_value", 0]);
    expect(short(resultOf(superGroups(100), enrolled("false")))).toEqual([false, "super_condition_value", 0]);
    expect(short(resultOf(superGroups(0), enrolled("true")))).toEqual([false, "super_condition_value", 0]);
    expect(resultOf(superGroups(100)).reason.code).toBe("condition_match");
  });
  test("super groups without properties are none", () =>
    expect(resultOf({ ...when([]), super_groups: [{ properties: [], rollout_percentage: 0 }] }).enabled).toBe(
      true,
    ));
});

describe("holdouts", () => {
  const held = { holdout: { id: 3, exclusion_percentage: 100 }, payloads: { "holdout-3": "0", true: "1" } };
  test("everyone in", () => {
    const result = resultOf({ ...when([]), ...held });
    expect(short(result)).toEqual(["holdout-3", "holdout_condition_value", null]);
    expect([result.enabled, result.payload]).toEqual([true, "0"]);
  });
  test("by the place of the id alone, the border included", () => {
    // The place of `holdout-some_distinct_id` is 0.7270002403585725.
    const at = (percentage: Json, distinctId = "some_distinct_id") =>
      resultOf({ ...when([]), holdout: { id: 1, exclusion_percentage: percentage } }, { distinctId }).reason
        .code;
    expect(at(72.7)).toBe("condition_match");
    expect(at(72.70002403585725)).toBe("holdout_condition_value");
    expect(at(72.8)).toBe("holdout_condition_value");
    expect(at(-5)).toBe("condition_match");
    expect(at(500)).toBe("holdout_condition_value");
    expect(at(null)).toBe("condition_match");
    expect(at("x")).toBe("condition_match");
    expect(at(0, "")).toBe("holdout_condition_value");
  });
  test("enrolment comes before", () =>
    expect(
      resultOf(
        { ...when([]), ...held, feature_enrollment: true },
        { personPropertyOverrides: { "$feature_enrollment/f": false } },
      ).reason.code,
    ).toBe("super_condition_value"));
  test("old holdout groups are read when there is no holdout", () => {
    const groups = {
      holdout_groups: [{ properties: [isStaff], rollout_percentage: 100, variant: "holdout-8" }],
    };
    expect(short(resultOf({ ...when([]), ...groups }, staff))).toEqual([
      "holdout-8",
      "holdout_condition_value",
      null,
    ]);
    expect(resultOf({ ...when([]), ...groups }).variant).toBeNull();
    expect(resultOf({ ...when([]), ...groups, ...held }, staff).variant).toBe("holdout-3");
  });
  test("a flag about groups holds groups out, and nobody without one", () => {
    const filters = { ...when([]), ...aboutCompany, ...held };
    expect(resultOf(filters, { groups: { company: "acme" } }).variant).toBe("holdout-3");
    expect(resultOf(filters).reason.code).toBe("no_group_type");
  });
});

describe("conditions", () => {
  test("stored order, without moving forced variants to the front", () => {
    const filters: JsonObject = { groups: [{}, { variant: "test" }], ...twoVariants };
    const values = new Set(
      Array.from({ length: 40 }, (_, i) => clientValue(resultOf(filters, { distinctId: `u${i}` }))),
    );
    expect(values).toEqual(new Set(["control", "test"]));
  });
  test("an override that names no variant is ignored", () =>
    expect(["control", "test"]).toContain(
      resultOf({ groups: [{ variant: "gone" }], ...twoVariants }).variant!,
    ));
  test("a variant whose key is empty is none, forced or not", () => {
    const nameless = { multivariate: { variants: [{ key: "", rollout_percentage: 100 }] } };
    for (const variant of ["", null]) {
      expect(short(resultOf({ groups: [{ variant }], ...nameless }))).toEqual([true, "condition_match", 0]);
    }
  });
  test("a forced variant of a boolean flag is none", () =>
    expect(short(resultOf({ groups: [{ variant: "test" }] }))).toEqual([true, "condition_match", 0]));
  test("shares under 100 leave some without a variant, but on", () => {
    const filters = { ...when([]), multivariate: { variants: [{ key: "a", rollout_percentage: 0 }] } };
    expect(short(resultOf(filters))).toEqual([true, "condition_match", 0]);
  });
  test("early exit passes a property mismatch", () => {
    const filters: JsonObject = {
      groups: [{ properties: [isStaff], rollout_percentage: 0 }, {}],
      early_exit: true,
    };
    expect(short(resultOf(filters))).toEqual([true, "condition_match", 1]);
    expect(short(resultOf(filters, staff))).toEqual([false, "out_of_rollout_bound", 0]);
  });
  test("groups by text or number, not by anything else", () => {
    const filters = { ...when([]), ...aboutCompany };
    for (const key of ["acme", 5]) expect(resultOf(filters, { groups: { company: key } }).enabled).toBe(true);
    for (const key of ["", null, true, {}, []]) {
      expect(resultOf(filters, { groups: { company: key } }).reason.code).toBe("no_group_type");
    }
    expect(
      resultOf({ ...when([]), aggregation_group_type_index: 4 }, { groups: { company: "a" } }).reason.code,
    ).toBe("no_group_type");
  });
  test("rollout and variant of a group condition follow the group key", () => {
    const filters = { ...when([], 50), ...aboutCompany, ...twoVariants };
    const value = (distinctId: string, company: string) =>
      clientValue(resultOf(filters, { distinctId, groups: { company } }));
    const values = Array.from({ length: 60 }, (_, i) => value("ann", `c${i}`));
    expect(values).toEqual(Array.from({ length: 60 }, (_, i) => value(`someone-${i}`, `c${i}`)));
    expect(new Set(values)).toEqual(new Set([false, "control", "test"]));
  });
  test("an explicit null makes a condition of a group flag about the person", () => {
    const filters = { groups: [{ aggregation_group_type_index: null }], ...aboutCompany };
    expect(resultOf(filters).enabled).toBe(true);
  });
});

describe("devices", () => {
  const byDevice = { bucketingIdentifier: "device_id" };
  test("the field, then the property, else out of rollout", () => {
    expect(resultOf(when([]), { deviceId: "d" }, byDevice).enabled).toBe(true);
    expect(resultOf(when([]), { personPropertyOverrides: { $device_id: "d" } }, byDevice).enabled).toBe(true);
    for (const request of [
      {},
      { deviceId: "" },
      { deviceId: null },
      { person: { properties: { $device_id: "d" } } },
    ]) {
      expect(short(resultOf(when([]), request, byDevice))).toEqual([false, "out_of_rollout_bound", 0]);
    }
  });
  test("beats stored overrides, and groups ignore it", () => {
    const inHalf = (request: Partial<EvaluationRequest>) => resultOf(when([], 50), request, byDevice).enabled;
    const devices = Array.from({ length: 20 }, (_, i) => `d${i}`);
    const plain = devices.map((deviceId) => inHalf({ deviceId }));
    expect(new Set(plain).size).toBe(2);
    expect(
      devices.map((deviceId) => inHalf({ deviceId, hashKeyOverrides: new Map([["f", "fixed"]]) })),
    ).toEqual(plain);
    expect(resultOf({ ...when([]), ...aboutCompany }, { groups: { company: "a" } }, byDevice).enabled).toBe(
      true,
    );
  });
});

describe("dependencies", () => {
  const flags = (...definitions: FlagDefinition[]) => compileFlagSet(definitions, [], groupTypes);
  const valueIn = (set: ReturnType<typeof flags>, key: string, request: Partial<EvaluationRequest> = {}) => {
    const { results, errorsWhileComputing } = evaluate(set, requestFor("user", request));
    return [...short(results.get(key)!), errorsWhileComputing];
  };
  const forced = (variant: string) => ({ groups: [{ variant }], ...twoVariants });
  const table: [Json, JsonObject, boolean][] = [
    ["control", forced("control"), true],
    [true, forced("control"), true],
    [false, when([], 0), true],
    [true, when([]), true],
    [false, when([]), false],
    [true, when([], 0), false],
    ["control", forced("test"), false],
    ["Control", forced("control"), false],
    ["true", when([]), false],
    ["false", when([], 0), false],
    [123, forced("control"), false],
    [null, when([]), false],
    ["", when([], 0), false],
    [["control"], forced("control"), false],
  ];
  for (const [wanted, base, expected] of table) {
    test(`wanted ${JSON.stringify(wanted)} of ${JSON.stringify(base).slice(0, 60)}`, () => {
      const set = flags(flag(2, "top", when([dependsOn("1", wanted)])), flag(1, "base", base));
      expect(valueIn(set, "top")[0]).toBe(expected);
    });
  }
  test("order of ids does not matter, ids may be numbers", () => {
    const set = flags(
      flag(1, "a", when([dependsOn(2)])),
      flag(2, "b", when([dependsOn("3", false)])),
      flag(3, "c", when([isStaff])),
    );
    expect(valueIn(set, "a")).toEqual([true, "condition_match", 0, false]);
    expect(valueIn(set, "a", staff)).toEqual([false, "no_condition_match", 0, false]);
  });
  test("another operator matches nothing", () =>
    expect(
      valueIn(
        flags(flag(1, "a", when([])), flag(2, "b", when([dependsOn("1", true, { operator: "exact" })]))),
        "b",
      ),
    ).toEqual([false, "no_condition_match", 0, false]));
  test("switched off counts as off, whatever it depends on", () => {
    const set = flags(
      flag(1, "off", when([dependsOn("99")]), { active: false }),
      flag(2, "top", when([dependsOn("1", false)])),
    );
    expect(valueIn(set, "top")).toEqual([true, "condition_match", 0, false]);
    expect(evaluate(set, requestFor("user")).results.has("off")).toBe(false);
  });
  test("missing and deleted ones make the flag and all above it unresolvable, silently", () => {
    const set = flags(
      flag(1, "gone", when([]), { deleted: true }),
      flag(2, "middle", when([dependsOn("1", false)])),
      flag(3, "top", when([dependsOn("2", false)])),
      flag(4, "by-key", when([dependsOn("middle", false)])),
      flag(5, "fine", when([])),
    );
    for (const key of ["middle", "top", "by-key"]) {
      expect(valueIn(set, key)).toEqual([false, "missing_dependency", null, false]);
    }
    expect(valueIn(set, "fine")[0]).toBe(true);
    expect(evaluate(set, requestFor("user")).results.has("gone")).toBe(false);
  });
  test("a circle, and all above it, is off and reported", () => {
    const set = flags(
      flag(1, "a", when([dependsOn("2")])),
      flag(2, "b", when([dependsOn("1", false)])),
      flag(3, "self", when([dependsOn("3", false)])),
      flag(4, "above", { groups: [{ properties: [dependsOn("1", false)] }, {}] }),
      flag(5, "fine", when([])),
    );
    for (const key of ["a", "b", "self", "above"]) {
      expect(valueIn(set, key)).toEqual([false, "missing_dependency", null, true]);
    }
    expect(valueIn(set, "fine")[0]).toBe(true);
  });
  test("a chain of 20,000 flags neither overflows nor takes long", () => {
    const chain = Array.from({ length: 20_000 }, (_, i) =>
      flag(i + 1, `f${i + 1}`, i === 0 ? when([]) : when([dependsOn(String(i))])),
    );
    expect(valueIn(flags(...chain.reverse()), "f20000")).toEqual([true, "condition_match", 0, false]);
  });
});

describe("payloads", () => {
  const payloads = { payloads: { true: '{"a": 1}', test: "2" } };
  test("by value, only when on", () => {
    expect(resultOf({ ...when([]), ...payloads }).payload).toBe('{"a": 1}');
    expect(resultOf({ ...when([], 0), ...payloads }).payload).toBeNull();
    expect(resultOf({ groups: [{ variant: "test" }], ...twoVariants, ...payloads }).payload).toBe("2");
    expect(resultOf({ groups: [{ variant: "control" }], ...twoVariants, ...payloads }).payload).toBeNull();
    expect(resultOf({ ...when([]), payloads: { test: "2" } }).payload).toBeNull();
  });
  test("raw values of imported data become text, encrypted ones are hidden", () => {
    expect(resultOf({ ...when([]), payloads: { true: { b: [1, null] } } }).payload).toBe('{"b":[1,null]}');
    expect(resultOf({ ...when([]), ...payloads }, {}, { hasEncryptedPayloads: true }).payload).toBe(
      '"********* (encrypted)"',
    );
  });
});
