/** One table says which values each operator takes; flags, cohorts, previews and lists of persons use it. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compileMatcher } from "../../../src/flags/operators/matchers.ts";
import { filtersOfNewFlag } from "../../../src/flags/rules/filters.ts";
import type { FlagFact } from "../../../src/flags/rules/types.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { type OperatorName, operatorNames } from "../../../src/lib/operator-table.ts";
import { fitsOperator, fitsOperatorInFlag } from "../../../src/lib/values/operators.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";
import { dependsOn, person, when } from "../make.ts";
import { condition, context, rejection } from "./support.ts";

const semver = ["semver_eq", "semver_neq", "semver_gt", "semver_gte", "semver_lt", "semver_lte"];
const rejected: [operators: string[], values: Json[]][] = [
  [
    ["exact", "is_not"],
    [null, [], {}, [null], [["a"]], [{}]],
  ],
  [
    ["icontains", "not_icontains", "starts_with", "not_starts_with"],
    [null, 5, true, ["a"], {}],
  ],
  [
    ["ends_with", "not_ends_with"],
    [null, 5, true, ["a"], {}],
  ],
  [
    ["icontains_multi", "not_icontains_multi"],
    [null, "a", "", [], [1], ["a", null], {}],
  ],
  [
    ["regex", "not_regex"],
    [null, 5, ["a"], {}],
  ],
  [
    ["gt", "gte", "lt", "lte"],
    [null, "abc", "", " 5", "0x10", "NaN", 5, true, ["5"], {}],
  ],
  [
    ["between", "not_between"],
    [null, 5, "5", [], [1], [1, 2, 3], [2, 1], ["b", "c"], [1, null], ["", ""], { 0: 1, 1: 2 }],
  ],
  [
    [...semver, "semver_tilde", "semver_caret"],
    [null, "", "junk", "1.x", "1.2.3.4", 1, ["1.0"], "1.*"],
  ],
  [["semver_wildcard"], [null, "", "junk", "1.2.3", "1.*.2", "*.1", 1, ["1.*"]]],
];
const accepted: [operator: string, value: Json | undefined][] = [
  ["exact", "a"],
  ["exact", ""],
  ["exact", 5],
  ["exact", false],
  ["exact", ["a", 1, true]],
  ["is_set", undefined],
  ["is_set", null],
  ["is_not_set", "is_not_set"],
  ["icontains_multi", ["a"]],
  ["gt", "1e3"],
  ["lt", "-.5"],
  ["between", [1, 1]],
  ["not_between", ["1.5", 2]],
  ["is_date_before", "-7d"],
  ["is_date_after", "2024-01-31"],
  ["semver_gte", "v1.2"],
  ["semver_caret", "0.3.0-rc.1"],
  ["semver_wildcard", "1.*"],
];

describe("values of operators in flags", () => {
  for (const [operators, values] of rejected) {
    for (const operator of operators) {
      test(`${operator} rejects values that it cannot compare`, () => {
        for (const value of values) {
          for (const list of ["groups", "super_groups", "holdout_groups"]) {
            const sent = { groups: [], [list]: [{ properties: [person("p", operator, value)] }] };
            expect(rejection(() => filtersOfNewFlag(sent, context()))).toEqual({
              code: "invalid_value",
              detail: `Invalid value for operator ${operator}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
              attr: "filters",
            });
          }
        }
      });
    }
  }
  for (const [operator, value] of accepted) {
    test(`${operator} accepts ${JSON.stringify(value)}`, () => {
      const property: JsonObject = { key: "p", type: "person", operator };
      if (value !== undefined) property.value = value;
      expect(rejection(() => filtersOfNewFlag(condition(property), context()))).toBe("accepted");
    });
  }

  test("a key without a visible character, in conditions about persons and groups", () => {
    for (const key of ["", " ", "\t\n"]) {
      const group = { key, type: "group", group_type_index: 0, value: "x" };
      for (const sent of [
        condition(person(key, "exact", "x")),
        { ...condition(group), aggregation_group_type_index: 0 },
      ])
        expect(rejection(() => filtersOfNewFlag(sent, context()))).toMatchObject({ code: "invalid_value" });
    }
  });

  test("a flag evaluates to true, to false, or to one of its variants", () => {
    const variants = [
      { key: "control", rollout_percentage: 50 },
      { key: "true", rollout_percentage: 50 },
    ];
    const flags = new Map<number, FlagFact>([
      [1, { id: 1, key: "plain", active: true, deleted: false, filters: when([]) }],
      [
        2,
        {
          id: 2,
          key: "many",
          active: true,
          deleted: false,
          filters: { groups: [], multivariate: { variants } },
        },
      ],
    ]);
    const saving = (id: number, value: Json | undefined) =>
      rejection(() =>
        filtersOfNewFlag(
          when([{ ...dependsOn(String(id)), value: value! }]),
          context({ flags: { find: (flagId) => flags.get(flagId) } }),
        ),
      );
    for (const value of [null, "true", "false", "control", "", 1, ["true"], [], {}])
      expect([value, saving(1, value)]).toMatchObject([value, { code: "invalid_value", attr: "filters" }]);
    for (const value of [null, "other", "false", 0, ["control"]])
      expect([value, saving(2, value)]).toMatchObject([value, { code: "invalid_value" }]);
    for (const value of [true, false]) expect(saving(1, value)).toBe("accepted");
    for (const value of [true, false, "control", "true"]) expect(saving(2, value)).toBe("accepted");
  });

  test("values that do not fit match nothing, for any property; values that flags accept fit", () => {
    const operator = fc.constantFrom(...operatorNames);
    fc.assert(
      fc.property(operator, fc.jsonValue(), fc.jsonValue(), (name: OperatorName, wanted, found) => {
        const value = wanted as Json;
        const property = found as Json;
        if (fitsOperatorInFlag(name, value)) expect(fitsOperator(name, value)).toBe(true);
        if (fitsOperator(name, value)) return;
        const matches = compileMatcher(name, value);
        for (const one of [property, undefined])
          expect(matches(one, { now: 0, timezone: "UTC" })).toBe("error");
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the same table, over HTTP", () => {
  const probes: Json[] = [
    "",
    "abc",
    "5",
    "1.2.3",
    "1.*",
    "2026-01-01",
    "-7d",
    "(",
    5,
    true,
    null,
    {},
    [],
    ["a"],
    [1, 2],
    [2, 1],
    [null],
  ];
  const owners = new Set<OperatorName>(["in", "not_in", "flag_evaluates_to"]);
  const code = (operator: OperatorName, value: Json): string => {
    if (owners.has(operator)) return "invalid_operator";
    if (operator.endsWith("regex") && value === "(") return "invalid_input";
    return operator.startsWith("is_date_") ? "invalid_date" : "invalid_value";
  };
  /** What no flag may save, for all operators; a number is compared in cohorts and lists only. */
  const misfits = operatorNames.flatMap((operator) =>
    probes
      .filter(
        (value) =>
          owners.has(operator) ||
          (operator.endsWith("regex") && value === "(") ||
          !fitsOperatorInFlag(operator, value),
      )
      .map((value) => ({
        operator,
        value,
        isForFlags: value !== "(" && !owners.has(operator) && fitsOperator(operator, value),
      })),
  );

  test("covers every operator that compares a value", () => {
    const covered = new Set(misfits.map(({ operator }) => operator));
    expect(operatorNames.filter((name) => !covered.has(name))).toEqual(["is_set", "is_not_set"]);
  });

  test("saving, previews, cohorts, changes for later and lists of persons reject the same", async () => {
    using server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "known" } });
    const api = "/api/projects/1";
    await server.ask("POST", `${api}/cohorts/`, {
      body: {
        name: "known",
        filters: {
          properties: { type: "OR", values: [{ type: "AND", values: [person("p", "exact", "a")] }] },
        },
      },
    });
    for (const { operator, value, isForFlags } of misfits) {
      const property = person("p", operator, value);
      const filters = { groups: [{ properties: [property] }] };
      const cohort = { properties: { type: "OR", values: [{ type: "AND", values: [property] }] } };
      const change = (payload: object) => ({
        model_name: "FeatureFlag",
        record_id: 1,
        payload,
        scheduled_at: "2099-01-01T00:00:00Z",
      });
      const ofFlags: [method: string, path: string, body: object][] = [
        ["POST", flagsPath, { key: "new", filters }],
        ["PATCH", `${flagsPath}1/`, { filters }],
        ["POST", `${flagsPath}user_blast_radius/`, { filters }],
        ["POST", `${flagsPath}user_blast_radius/`, { condition: filters.groups[0] }],
        ["POST", `${flagsPath}reach/`, { filters }],
        ["POST", `${flagsPath}explain/`, { key: "new", filters, subjects: [{ distinct_id: "a" }] }],
        ["POST", `${api}/change_requests/`, { flag_id: 1, changes: { filters } }],
        ["POST", `${api}/scheduled_changes/`, change({ operation: "update", value: { filters } })],
        ["POST", `${api}/scheduled_changes/`, change({ operation: "add_release_condition", value: filters })],
      ];
      const ofAll: typeof ofFlags = [
        ["POST", `${api}/cohorts/`, { name: "c", filters: cohort }],
        ["PATCH", `${api}/cohorts/1/`, { filters: cohort }],
        ["POST", `${api}/change_requests/`, { cohort_id: 1, changes: { filters: cohort } }],
      ];
      const found: unknown[] = [];
      const expected: unknown[] = [];
      for (const [method, path, body] of [...ofFlags, ...(isForFlags ? [] : ofAll)]) {
        const answer = await server.ask(method, path, { body });
        found.push([path, answer.status, answer.body.code, answer.body.attr]);
        expected.push([path, 400, code(operator, value), "filters"]);
      }
      if (!isForFlags) {
        const query = encodeURIComponent(JSON.stringify([property]));
        const answer = await server.ask("GET", `${api}/persons/?properties=${query}`);
        found.push(["persons", answer.status, answer.body.code, answer.body.attr]);
        expected.push(["persons", 400, code(operator, value), "properties"]);
      }
      expect({ operator, value, found }).toEqual({ operator, value, found: expected });
    }
  }, 120_000);
});
