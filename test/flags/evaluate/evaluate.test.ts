import { describe, expect, test } from "bun:test";
import { clientValue } from "../../../src/flags/evaluate/evaluate.ts";
import type { EvaluationRequest } from "../../../src/flags/evaluate/model.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { when } from "../make.ts";
import { aboutCompany, getResult, isStaff, short, staff, twoVariants } from "./support.ts";

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
      "a person who does not match, and no group named",
      { groups: [{ properties: [isStaff] }, aboutCompany] },
      {},
      [false, "no_condition_match", 0],
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
      const result = getResult(filters, request);
      expect(short(result)).toEqual(expected);
      expect(result.reason.description).toBe(description);
      expect(result.failed).toBe(false);
    });
  }
});

describe("conditions", () => {
  test("a flag may have a single variant, and that for a part of its users", () => {
    const evaluateAt = (percentage: number) =>
      getResult({
        ...when([]),
        multivariate: { variants: [{ key: "only", rollout_percentage: percentage }] },
      });
    expect(evaluateAt(100).variant).toBe("only");
    expect(evaluateAt(0)).toMatchObject({ enabled: true, variant: null });
  });
  test("stored order, without moving forced variants to the front", () => {
    const filters: JsonObject = { groups: [{}, { variant: "test" }], ...twoVariants };
    const values = new Set(
      Array.from({ length: 40 }, (_, i) => clientValue(getResult(filters, { distinctId: `u${i}` }))),
    );
    expect(values).toEqual(new Set(["control", "test"]));
  });
  test("an override that names no variant is ignored", () =>
    expect(["control", "test"]).toContain(
      getResult({ groups: [{ variant: "gone" }], ...twoVariants }).variant!,
    ));
  test("a variant with an empty key is ignored, forced or not", () => {
    const nameless = { multivariate: { variants: [{ key: "", rollout_percentage: 100 }] } };
    for (const variant of ["", null]) {
      expect(short(getResult({ groups: [{ variant }], ...nameless }))).toEqual([true, "condition_match", 0]);
    }
  });
  test("a forced variant of a boolean flag is ignored", () =>
    expect(short(getResult({ groups: [{ variant: "test" }] }))).toEqual([true, "condition_match", 0]));
  test("shares under 100 leave some without a variant, but on", () => {
    const filters = { ...when([]), multivariate: { variants: [{ key: "a", rollout_percentage: 0 }] } };
    expect(short(getResult(filters))).toEqual([true, "condition_match", 0]);
  });
  test("early exit passes a property mismatch", () => {
    const filters: JsonObject = {
      groups: [{ properties: [isStaff], rollout_percentage: 0 }, {}],
      early_exit: true,
    };
    expect(short(getResult(filters))).toEqual([true, "condition_match", 1]);
    expect(short(getResult(filters, staff))).toEqual([false, "out_of_rollout_bound", 0]);
  });
  test("groups by text or number, not by anything else", () => {
    const filters = { ...when([]), ...aboutCompany };
    for (const key of ["acme", 5])
      expect(getResult(filters, { groups: { company: key } }).enabled).toBe(true);
    for (const key of ["", null, true, {}, []]) {
      expect(getResult(filters, { groups: { company: key } }).reason.code).toBe("no_group_type");
    }
    expect(
      getResult({ ...when([]), aggregation_group_type_index: 4 }, { groups: { company: "a" } }).reason.code,
    ).toBe("no_group_type");
  });
  test("rollout and variant of a group condition follow the group key", () => {
    const filters = { ...when([], 50), ...aboutCompany, ...twoVariants };
    const value = (distinctId: string, company: string) =>
      clientValue(getResult(filters, { distinctId, groups: { company } }));
    const values = Array.from({ length: 60 }, (_, i) => value("ann", `c${i}`));
    expect(values).toEqual(Array.from({ length: 60 }, (_, i) => value(`someone-${i}`, `c${i}`)));
    expect(new Set(values)).toEqual(new Set([false, "control", "test"]));
  });
  test("an explicit null makes a condition of a group flag about the person", () => {
    const filters = { groups: [{ aggregation_group_type_index: null }], ...aboutCompany };
    expect(getResult(filters).enabled).toBe(true);
  });
});

describe("devices", () => {
  const byDevice = { bucketingIdentifier: "device_id" };
  test("the field, then the property, else out of rollout", () => {
    expect(getResult(when([]), { deviceId: "d" }, byDevice).enabled).toBe(true);
    expect(getResult(when([]), { personPropertyOverrides: { $device_id: "d" } }, byDevice).enabled).toBe(
      true,
    );
    for (const request of [
      {},
      { deviceId: "" },
      { deviceId: null },
      { person: { properties: { $device_id: "d" } } },
    ]) {
      expect(short(getResult(when([]), request, byDevice))).toEqual([false, "out_of_rollout_bound", 0]);
    }
  });
  test("beats stored overrides, and groups ignore it", () => {
    const inHalf = (request: Partial<EvaluationRequest>) =>
      getResult(when([], 50), request, byDevice).enabled;
    const devices = Array.from({ length: 20 }, (_, i) => `d${i}`);
    const plain = devices.map((deviceId) => inHalf({ deviceId }));
    expect(new Set(plain).size).toBe(2);
    expect(
      devices.map((deviceId) => inHalf({ deviceId, hashKeyOverrides: new Map([["f", "fixed"]]) })),
    ).toEqual(plain);
    expect(getResult({ ...when([]), ...aboutCompany }, { groups: { company: "a" } }, byDevice).enabled).toBe(
      true,
    );
  });
});

describe("payloads", () => {
  const payloads = { payloads: { true: '{"a": 1}', test: "2" } };
  test("by value, only when on", () => {
    expect(getResult({ ...when([]), ...payloads }).payload).toBe('{"a": 1}');
    expect(getResult({ ...when([], 0), ...payloads }).payload).toBeNull();
    expect(getResult({ groups: [{ variant: "test" }], ...twoVariants, ...payloads }).payload).toBe("2");
    expect(getResult({ groups: [{ variant: "control" }], ...twoVariants, ...payloads }).payload).toBeNull();
    expect(getResult({ ...when([]), payloads: { test: "2" } }).payload).toBeNull();
  });
  test("raw values of imported data become text, encrypted ones are hidden", () => {
    expect(getResult({ ...when([]), payloads: { true: { b: [1, null] } } }).payload).toBe('{"b":[1,null]}');
    expect(getResult({ ...when([]), ...payloads }, {}, { hasEncryptedPayloads: true }).payload).toBe(
      '"********* (encrypted)"',
    );
  });
});
