import { describe, expect, test } from "bun:test";
import {
  localEvaluationBody,
  localEvaluationReply,
} from "../../../src/flags/definitions/local-evaluation.ts";
import type { CohortDefinition, FlagDefinition } from "../../../src/flags/rules/types.ts";
import { isNotModified } from "../../../src/http/route-response.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { cohort, dependsOn, flag, inCohort, person, when } from "../make.ts";

const a = person("a", "exact", "1");
const b = person("b", "exact", "1");
const all = (...values: JsonObject[]): JsonObject => ({ type: "AND", values });
const any = (...values: JsonObject[]): JsonObject => ({ type: "OR", values });

function getBody(flags: FlagDefinition[], cohorts: CohortDefinition[] = [], sendCohorts = true) {
  return localEvaluationBody({
    flags,
    cohorts,
    groupTypes: [{ index: 1, name: "company" }],
    projectId: 7,
    sendCohorts,
  });
}

/** The groups of the only flag. */
function groupsIn(filters: JsonObject, cohorts: CohortDefinition[], sendCohorts: boolean): Json | undefined {
  return (getBody([flag(1, "f", filters)], cohorts, sendCohorts).flags[0]!.filters as JsonObject).groups;
}

test("a flag has every field, and none is null where SDKs require a value", () => {
  const stored = flag(
    3,
    "f",
    {
      groups: [{ properties: [{ key: "a", type: "person", operator: "is_set" }] }, {}],
      payloads: { true: { a: 1 } },
    },
    { evaluationRuntime: null, bucketingIdentifier: null, evaluationTags: ["app"], name: "Text" },
  );
  expect(getBody([stored])).toEqual({
    flags: [
      {
        id: 3,
        team_id: 7,
        name: "Text",
        key: "f",
        filters: {
          groups: [
            { properties: [{ key: "a", type: "person", operator: "is_set", value: null }] },
            { properties: [] },
          ],
          payloads: { true: '{"a":1}' },
        },
        deleted: false,
        active: true,
        ensure_experience_continuity: false,
        has_encrypted_payloads: false,
        version: 1,
        evaluation_runtime: "all",
        bucketing_identifier: "distinct_id",
        evaluation_tags: ["app"],
        evaluation_contexts: ["app"],
        local_evaluation_issues: [],
      },
    ],
    group_type_mapping: { "1": "company" },
    cohorts: {},
    local_evaluation_issues: {},
  });
});

test("types unknown to SDKs are omitted, conditions without matches are left to the server", () => {
  const sent = (filters: JsonObject) => getBody([flag(1, "f", filters)]).flags[0]!.filters;
  expect(
    sent({
      groups: [
        {
          properties: [
            { ...a, negation: null, group_type_index: null },
            { ...a, negation: true },
            { key: 7, value: null },
            { ...a, value: [1.5, "2", true] },
            "x",
            { ...a, value: 1.5 },
            { ...a, value: { b: 1 } },
            { ...a, value: ["1", null] },
            { ...a, type: "event" },
          ],
        },
        { properties: "x", rollout_percentage: "30", variant: 5 },
        { properties: null, rollout_percentage: {}, variant: null },
        null,
      ],
      multivariate: { variants: [{ key: "test", name: null }, { name: "nobody" }, 3] },
      payloads: null,
      early_exit: null,
      aggregation_group_type_index: null,
    }),
  ).toEqual({
    groups: [
      {
        properties: [
          a,
          a,
          inCohort(0),
          { ...a, value: [1.5, "2", true] },
          inCohort(0),
          inCohort(0),
          inCohort(0),
          inCohort(0),
          inCohort(0),
        ],
      },
      { properties: [inCohort(0)], rollout_percentage: 30 },
      { properties: [], rollout_percentage: 0, variant: null },
    ],
    multivariate: { variants: [{ key: "test", name: null, rollout_percentage: 0 }] },
    aggregation_group_type_index: null,
  });
  for (const multivariate of [{}, { variants: null }, null, "x"] as Json[]) {
    expect(sent({ ...when([]), multivariate })).toEqual({ ...when([]), multivariate: null });
  }
});

test("ordered by key; inactive flags are in, deleted, encrypted and survey flags out", () => {
  const flags = [
    flag(1, "b", when([]), { active: false }),
    flag(2, "a", when([])),
    flag(3, "B", when([])),
    flag(4, "gone", when([]), { deleted: true }),
    flag(5, "secret", when([]), { hasEncryptedPayloads: true }),
    flag(6, "survey-targeting-x", when([])),
  ];
  expect(getBody(flags).flags.map(({ key }) => key!)).toEqual(["B", "a", "b"]);
});

describe("dependencies", () => {
  test("are named by key, with the chain in the order of computing", () => {
    const flags = [
      flag(1, "top", when([dependsOn("2"), a])),
      flag(2, "middle", when([dependsOn(4), dependsOn("3", false)])),
      flag(3, "left", when([dependsOn("4", "test")])),
      flag(4, "base", when([])),
    ];
    const [, , , top] = getBody(flags).flags;
    expect((top!.filters as JsonObject).groups).toEqual([
      {
        properties: [{ ...dependsOn("middle"), dependency_chain: ["base", "left", "middle"] }, a],
        rollout_percentage: 100,
      },
    ] as never);
  });

  const chains: [string, FlagDefinition[], string, string[]][] = [
    ["missing", [flag(1, "f", when([dependsOn("9")]))], "9", []],
    ["a key instead of an id", [flag(1, "f", when([dependsOn("x")]))], "x", []],
    [
      "deleted",
      [flag(1, "f", when([dependsOn("2")])), flag(2, "gone", when([]), { deleted: true })],
      "2",
      [],
    ],
    ["circle", [flag(1, "f", when([dependsOn("2")])), flag(2, "g", when([dependsOn("1")]))], "g", []],
    ["over a circle", [flag(1, "f", when([dependsOn("2")])), flag(2, "g", when([dependsOn("2")]))], "g", []],
    [
      "over a missing one",
      [flag(1, "f", when([dependsOn("2")])), flag(2, "g", when([dependsOn("9")]))],
      "g",
      [],
    ],
    [
      "switched off: what it needs does not matter",
      [
        flag(1, "f", when([dependsOn("2")])),
        flag(2, "g", when([dependsOn("9"), dependsOn("1")]), { active: false }),
      ],
      "g",
      ["g"],
    ],
    [
      "over one that is switched off",
      [
        flag(1, "f", when([dependsOn("2")])),
        flag(2, "g", when([dependsOn("3")])),
        flag(3, "h", when([dependsOn("4")]), { active: false }),
        flag(4, "i", when([])),
      ],
      "g",
      ["h", "g"],
    ],
  ];
  for (const [name, flags, key, chain] of chains) {
    test(name, () => {
      const first = getBody(flags).flags.find(({ id }) => id === 1)!;
      const groups = (first.filters as JsonObject).groups as JsonObject[];
      expect((groups[0]!.properties as JsonObject[])[0]).toMatchObject({ key, dependency_chain: chain });
    });
  }
});

describe("cohorts that are sent", () => {
  test("all that are used, nested ones too; static, missing and unused ones not", () => {
    const cohorts = [
      cohort(1, all(inCohort(2), inCohort(3), inCohort(9))),
      cohort(2, any(a)),
      cohort(3, null, { isStatic: true }),
      cohort(4, any(b)),
    ];
    const filters = when([inCohort(1)]);
    const body = getBody(
      [flag(1, "f", filters), flag(2, "g", when([inCohort(3)]), { active: false })],
      cohorts,
    );
    expect(Object.keys(body.cohorts)).toEqual(["1", "2"]);
    expect(body.cohorts["2"]).toEqual(any(a));
    expect((body.flags[0]!.filters as JsonObject).groups).toEqual(filters.groups!);
  });

  const forms: [string, Json, JsonObject][] = [
    ["no definition", null, all()],
    ["empty", {}, all()],
    ["only empty groups", any(all(), any()), all()],
    ["an empty group is nobody, but everybody to SDKs", any(all(), all(a)), any(all(a))],
    ["an empty object is nobody, but everybody to SDKs", any({}, all(a)), any(all(a))],
    ["an empty group within a group within", any(all(a, any()), all(b)), any(all(b))],
    ["a filter by itself", a, all(a)],
    ["another word for AND", { type: "property", values: [a] }, all(a)],
    ["null where a member is not", all({ ...a, operator: null, negation: null }), all(a)],
    ["no type", all({ key: "a", value: "1" }), all(a)],
    ["an inverted filter", all({ ...a, negation: true }), all({ ...a, negation: true })],
    ["an inverted group, which means nothing", all({ ...any(a), negation: true }), all(any(a))],
    ["nested, outside", all(inCohort(2, { operator: "not_in" })), all(inCohort(2, { negation: true }))],
    ["nested, inverted twice", all(inCohort(2, { operator: "not_in", negation: true })), all(inCohort(2))],
    ["nested, in an older word", all(inCohort(2, { operator: "exact" })), all(inCohort(2))],
    ["nested, by digits", all(inCohort("2")), all(inCohort(2))],
    ["filters beside groups become groups", all(a, any(b)), all(all(a), any(b))],
    [
      "a filter without a value gets one",
      all({ key: "a", type: "person", operator: "is_set" }),
      all({ key: "a", type: "person", operator: "is_set", value: null }),
    ],
  ];
  for (const [name, definition, sent] of forms) {
    test(name, () =>
      expect(getBody([flag(1, "f", when([inCohort(1)]))], [cohort(1, definition)]).cohorts["1"]).toEqual(
        sent,
      ),
    );
  }

  const unsayable: [string, Json][] = [
    ["a group that can match nobody", all(a, any())],
    ["what persons did", any(a, { type: "behavioral", key: "x", value: "y" })],
    ["a property of groups", all({ ...a, type: "group", group_type_index: 0 })],
    ["an operator that not all know", all({ ...a, operator: "between", value: [1, 2] })],
    ["a cohort by no number", all(inCohort("two"))],
    ["groups joined by an unknown word", { type: "XOR", values: [a] }],
    ["a group without a list", { type: "AND", values: "a" }],
    ["a fraction to compare with", all({ ...a, value: 1.5 })],
    ["no object", all("a" as never)],
  ];
  for (const [name, definition] of unsayable) {
    test(`not sent, so that SDKs query the server: ${name}`, () => {
      const { flags, cohorts } = getBody(
        [flag(1, "f", when([inCohort(1, { operator: "not_in" })]))],
        [cohort(1, definition)],
      );
      expect(cohorts).toEqual({});
      expect((flags[0]!.filters as JsonObject).groups).toEqual(
        when([inCohort(1, { operator: "not_in" })]).groups!,
      );
    });
  }

  test("a circle of cohorts ends", () => {
    const cohorts = [cohort(1, all(inCohort(2))), cohort(2, all(inCohort(1)))];
    expect(Object.keys(getBody([flag(1, "f", when([inCohort(1)]))], cohorts).cohorts)).toEqual(["1", "2"]);
  });

  test("persons outside of a cohort are in its complement, because SDKs support no inversion", () => {
    const { flags, cohorts } = getBody(
      [
        flag(
          1,
          "f",
          when([
            inCohort(1, { operator: "not_in" }),
            inCohort(1, { negation: true }),
            inCohort(1, { operator: "not_in", negation: true }),
          ]),
        ),
      ],
      [cohort(1, all(a))],
    );
    expect((flags[0]!.filters as JsonObject).groups).toEqual(
      when([inCohort(-1), inCohort(-1, { negation: false }), inCohort(1, { negation: false })]).groups!,
    );
    expect(cohorts).toEqual({ "1": all(a), "-1": all(inCohort(1, { negation: true })) });
  });

  test("a cohort filter without matches is left to the server", () => {
    const [only] = groupsIn(when([inCohort(1, { operator: "exact" })]), [cohort(1, all(a))], true) as never[];
    expect(only).toEqual({ properties: [inCohort(0)], rollout_percentage: 100 } as never);
  });
});

describe("cohorts that are not sent are written into the flag", () => {
  const written: [string, JsonObject, JsonObject[][]][] = [
    ["AND", all(a, b), [[a, b]]],
    ["OR", any(a, b), [[a], [b]]],
    ["OR of ANDs", any(all(a, b), all(a)), [[a, b], [a]]],
    ["a single filter, deep", any(all(any(a))), [[a]]],
  ];
  for (const [name, definition, alternatives] of written) {
    test(name, () =>
      expect(groupsIn(when([inCohort(1)], 30, { description: "x" }), [cohort(1, definition)], false)).toEqual(
        alternatives.map((properties) => ({ properties, rollout_percentage: 30, description: "x" })) as never,
      ),
    );
  }

  test("next to other conditions, which stay where they are", () => {
    const filters = { groups: [{ properties: [b] }, { properties: [inCohort(1)] }, { properties: [] }] };
    expect(groupsIn(filters, [cohort(1, any(a, b))], false)).toEqual([
      { properties: [b] },
      { properties: [a] },
      { properties: [b] },
      { properties: [] },
    ] as never);
  });

  const variants = { multivariate: { variants: [{ key: "test", rollout_percentage: 100 }] } };
  const retained: [string, JsonObject, CohortDefinition[]][] = [
    ["static", when([inCohort(1)]), [cohort(1, null, { isStatic: true })]],
    ["missing", when([inCohort(1)]), []],
    ["empty", when([inCohort(1)]), [cohort(1, {})]],
    ["beside another property", when([inCohort(1), a]), [cohort(1, all(a))]],
    [
      "with a forced variant",
      { ...when([inCohort(1)], 100, { variant: "test" }), ...variants },
      [cohort(1, all(a))],
    ],
    ["not in", when([inCohort(1, { operator: "not_in" })]), [cohort(1, all(a))]],
    ["an inverted filter", when([inCohort(1)]), [cohort(1, all({ ...a, negation: true }))]],
    ["nested", when([inCohort(1)]), [cohort(1, all(inCohort(2))), cohort(2, all(a))]],
    ["events", when([inCohort(1)]), [cohort(1, any(a, { type: "behavioral", key: "x", value: "y" }))]],
    ["AND of ORs", when([inCohort(1)]), [cohort(1, all(any(a, b), any(a)))]],
    [
      "two cohorts",
      { groups: [{ properties: [inCohort(1)] }, { properties: [inCohort(2)] }] },
      [cohort(1, all(a)), cohort(2, all(b))],
    ],
    ["about groups", { ...when([inCohort(1)]), aggregation_group_type_index: 1 }, [cohort(1, all(a))]],
  ];
  for (const [name, filters, cohorts] of retained) {
    test(`but not: ${name}`, () => {
      expect(groupsIn(filters, cohorts, false)).toEqual(filters.groups!);
      expect(getBody([flag(1, "f", filters)], cohorts, false).cohorts).toEqual({});
    });
  }
});

describe("entity tags", () => {
  const tag = (filters: JsonObject) => localEvaluationReply(getBody([flag(1, "f", filters)])).etag;
  test("are weak and quoted, stay the same for the same definitions, and change with them", () => {
    expect(tag(when([a]))).toMatch(/^W\/"[0-9a-f]{32}"$/);
    expect(tag(when([a]))).toBe(tag(when([a])));
    expect(tag(when([a]))).not.toBe(tag(when([b])));
  });
  for (const [header, expected] of [
    ['W/"x"', true],
    ['"x"', true],
    ['"y", W/"x"', true],
    ["*", true],
    ['"y"', false],
    ["x", false],
    ["", false],
    [null, false],
    [undefined, false],
  ] as const) {
    test(`If-None-Match ${header}`, () => expect(isNotModified(header, 'W/"x"')).toBe(expected));
  }
});
