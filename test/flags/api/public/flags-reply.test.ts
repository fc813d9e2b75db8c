import { describe, expect, test } from "bun:test";
import { renderEvaluationReasons, renderMyFlags } from "../../../../src/flags/api/management-views.ts";
import { evaluate } from "../../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../../src/flags/evaluate/flag-set.ts";
import { getReplyForm, renderFlags } from "../../../../src/flags/sdk/flags-reply.ts";
import { flag, inCohort, requestFor, when } from "../../make.ts";

const variants = { multivariate: { variants: [{ key: "control", rollout_percentage: 100 }] } };
const flags = [
  flag(1, "on", { ...when([]), payloads: { true: '{"a":1}' } }, { version: 3 }),
  flag(2, "off", when([], 0)),
  flag(3, "many", { ...when([]), ...variants, payloads: { control: "2" } }),
  flag(4, "broken", when([inCohort(9)])),
  flag(5, "asleep", when([]), { active: false }),
  flag(6, "__proto__", when([])),
];
const set = compileFlagSet(flags, [], []);
const evaluation = evaluate(set, requestFor("user"));
const stamp = { requestId: "0190a1b2-0000-7000-8000-000000000000", evaluatedAt: new Date(1_767_225_600_000) };
const common = {
  errorsWhileComputingFlags: true,
  requestId: stamp.requestId,
  evaluatedAt: 1_767_225_600_000,
};

/** What a client reads: through JSON, so that nothing undefined and no special name slips through. */
function onTheWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

describe("bodies", () => {
  test("with details", () => {
    expect(onTheWire(renderFlags(evaluation, "details", stamp))).toEqual(
      onTheWire({
        ...common,
        flags: Object.fromEntries([
          [
            "on",
            {
              key: "on",
              enabled: true,
              variant: null,
              reason: { code: "condition_match", condition_index: 0, description: "Matched condition set 1" },
              metadata: { id: 1, version: 3, description: null, payload: '{"a":1}' },
            },
          ],
          [
            "off",
            {
              key: "off",
              enabled: false,
              variant: null,
              reason: {
                code: "out_of_rollout_bound",
                condition_index: 0,
                description: "Out of rollout bound",
              },
              metadata: { id: 2, version: 1, description: null, payload: null },
            },
          ],
          [
            "many",
            {
              key: "many",
              enabled: true,
              variant: "control",
              reason: { code: "condition_match", condition_index: 0, description: "Matched condition set 1" },
              metadata: { id: 3, version: 1, description: null, payload: "2" },
            },
          ],
          [
            "broken",
            {
              key: "broken",
              enabled: false,
              variant: null,
              reason: {
                code: "dependency_not_found_cohort",
                condition_index: null,
                description: "Cohort 9 does not exist",
              },
              metadata: { id: 4, version: 1, description: null, payload: null },
              failed: true,
            },
          ],
          [
            "__proto__",
            {
              key: "__proto__",
              enabled: true,
              variant: null,
              reason: { code: "condition_match", condition_index: 0, description: "Matched condition set 1" },
              metadata: { id: 6, version: 1, description: null, payload: null },
            },
          ],
        ]),
      }),
    );
  });

  test("all values: failed flags are left out, so that clients keep what they know", () =>
    expect(onTheWire(renderFlags(evaluation, "values", stamp))).toEqual(
      JSON.parse(
        JSON.stringify({ ...common, featureFlagPayloads: { on: '{"a":1}', many: "2" } }).replace(
          /\}$/,
          ',"featureFlags":{"on":true,"off":false,"many":"control","__proto__":true}}',
        ),
      ),
    ));

  test("enabled ones, and their keys", () => {
    expect(onTheWire(renderFlags(evaluation, "on", stamp))).toEqual(
      JSON.parse(
        JSON.stringify(common).replace(
          /\}$/,
          ',"featureFlags":{"on":true,"many":"control","__proto__":true}}',
        ),
      ),
    );
    expect(renderFlags(evaluation, "keys", stamp)).toEqual({
      ...common,
      featureFlags: ["on", "many", "__proto__"],
    });
  });
});

describe("form by route and version", () => {
  const cases: ["flags" | "decide", { v?: string; config?: string }, string, boolean][] = [
    ["flags", {}, "details", true],
    ["flags", { v: "2" }, "details", false],
    ["flags", { v: "2", config: "true" }, "details", true],
    ["flags", { v: "3", config: "1" }, "details", true],
    ["flags", { v: "2", config: "false" }, "details", false],
    ["flags", { v: "1" }, "values", false],
    ["flags", { v: "x" }, "values", false],
    ["flags", { v: "" }, "values", false],
    ["flags", { config: "true" }, "values", true],
    ["decide", {}, "keys", true],
    ["decide", { v: "1" }, "keys", true],
    ["decide", { v: "2" }, "on", true],
    ["decide", { v: "3" }, "values", true],
    ["decide", { v: "4" }, "details", true],
    ["decide", { v: "17", config: "false" }, "details", false],
    ["decide", { v: "x" }, "keys", true],
  ];
  for (const [route, parameters, shape, withConfig] of cases) {
    test(`${route} ${JSON.stringify(parameters)}`, () =>
      expect(getReplyForm(route, parameters)).toEqual({ shape: shape as never, withConfig }));
  }
});

describe("management views", () => {
  test("evaluation reasons name inactive flags as disabled", () => {
    const rendered = onTheWire(renderEvaluationReasons(set, evaluation)) as Record<string, unknown>;
    expect(rendered.many).toEqual({
      value: "control",
      evaluation: { reason: "condition_match", condition_index: 0, description: "Matched condition set 1" },
    });
    expect(rendered.asleep).toEqual({
      value: false,
      evaluation: { reason: "disabled", condition_index: null, description: "Feature flag is disabled" },
    });
    expect(Object.keys(rendered).sort()).toEqual(["__proto__", "asleep", "broken", "many", "off", "on"]);
    const asked = evaluate(set, requestFor("user", { selection: { flagKeys: ["on"] } }));
    expect(Object.keys(renderEvaluationReasons(set, asked, ["on"]))).toEqual(["on"]);
    expect(Object.keys(renderEvaluationReasons(set, asked, ["asleep", "on"]))).toEqual(["on", "asleep"]);
  });

  test("my flags: newest first, inactive ones off, deleted and survey flags not at all", () => {
    const more = [
      ...flags,
      flag(7, "gone", when([]), { deleted: true }),
      flag(8, "survey-targeting-x", when([])),
    ];
    const rendered = renderMyFlags(more, evaluation, 42);
    expect(rendered.map(({ feature_flag, value }) => [feature_flag.key, value] as const)).toEqual([
      ["__proto__", true],
      ["asleep", false],
      ["broken", false],
      ["many", "control"],
      ["off", false],
      ["on", true],
    ]);
    expect(rendered[1]!.feature_flag).toMatchObject({ id: 5, team_id: 42, active: false });
  });
});
