/** One table says which values each operator takes; flags, cohorts, previews and lists of persons use it. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compileValueTest } from "../../../src/flags/operators/value-tests.ts";
import { filtersOfNewFlag } from "../../../src/flags/rules/filters.ts";
import type { FlagFact } from "../../../src/flags/rules/types.ts";
import type { Json, JsonObject } from "../../../src/lib/json.ts";
import { fitsOperator, fitsOperatorInFlag } from "../../../src/lib/operator-values.ts";
import { type OperatorName, operatorNames } from "../../../src/lib/operators.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";
import { dependsOn, person, when } from "../make.ts";
import { condition, context, refusal } from "./support.ts";

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
      test(`${operator} rejects what it cannot compare with`, () => {
        for (const value of values) {
          for (const list of ["groups", "super_groups", "holdout_groups"]) {
            const sent = { groups: [], [list]: [{ properties: [person("p", operator, value)] }] };
            expect(refusal(() => filtersOfNewFlag(sent, context()))).toEqual({
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
    test(`${operator} takes ${JSON.stringify(value)}`, () => {
      const property: JsonObject = { key: "p", type: "person", operator };
      if (value !== undefined) property.value = value;
      expect(refusal(() => filtersOfNewFlag(condition(property), context()))).toBe("accepted");
    });
  }

  test("a key without a visible character, in conditions about persons and groups", () => {
    for (const key of ["", " ", "\t\n"]) {
      const group = { key, type: "group", group_type_index: 0, value: "x" };
      for (const sent of [
        condition(person(key, "exact", "x")),
        { ...condition(group), aggregation_group_type_index: 0 },
      ])
        expect(refusal(() => filtersOfNewFlag(sent, context()))).toMatchObject({ code: "invalid_value" });
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
      refusal(() =>
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

  test("what does not fit matches nothing, whatever the property; what flags take fits", () => {
    const operator = fc.constantFrom(...operatorNames);
    fc.assert(
      fc.property(operator, fc.jsonValue(), fc.jsonValue(), (name: OperatorName, wanted, found) => {
        const [value, property] = [wanted as Json, found as Json];
        if (fitsOperatorInFlag(name, value)) expect(fitsOperator(name, value)).toBe(true);
        if (fitsOperator(name, value)) return;
        const matches = compileValueTest(name, value);
        for (const one of [property, undefined])
          expect(matches(one, { now: 0, timezone: "UTC" })).toBe("error");
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the same table, over HTTP", () => {
  const misfits: [operator: string, value: Json, code: string][] = [
    ["gt", "abc", "invalid_value"],
    ["between", [3, 1], "invalid_value"],
    ["icontains_multi", "a", "invalid_value"],
    ["semver_gt", "junk", "invalid_value"],
    ["exact", null, "invalid_value"],
    ["exact", [], "invalid_value"],
    ["is_date_before", "bazinga", "invalid_date"],
    ["regex", "(", "invalid_input"],
  ];
  test("saving, previews, cohorts, changes for later and lists of persons reject the same", async () => {
    using server = new TestServer();
    await server.ask("POST", flagsPath, { body: { key: "known" } });
    for (const [operator, value, code] of misfits) {
      const property = person("p", operator, value);
      const filters = { groups: [{ properties: [property] }] };
      const cohort = { properties: { type: "OR", values: [{ type: "AND", values: [property] }] } };
      const later = { operation: "update", value: { filters } };
      const asked: [path: string, body: object, attr: string][] = [
        [flagsPath, { key: "new", filters }, "filters"],
        [`${flagsPath}user_blast_radius/`, { filters }, "filters"],
        [`${flagsPath}user_blast_radius/`, { condition: filters.groups[0] }, "filters"],
        [`${flagsPath}reach/`, { filters }, "filters"],
        [`${flagsPath}explain/`, { key: "new", filters, subjects: [{ distinct_id: "a" }] }, "filters"],
        ["/api/projects/1/cohorts/", { name: "c", filters: cohort }, "filters"],
        ["/api/projects/1/change_requests/", { flag_id: 1, changes: { filters } }, "filters"],
        [
          "/api/projects/1/scheduled_changes/",
          { model_name: "FeatureFlag", record_id: 1, payload: later, scheduled_at: "2099-01-01T00:00:00Z" },
          "filters",
        ],
      ];
      for (const [path, body, attr] of asked) {
        const answer = await server.ask("POST", path, { body });
        expect([path, operator, answer.status, answer.body]).toMatchObject([
          path,
          operator,
          400,
          { code, attr },
        ]);
      }
      const query = encodeURIComponent(JSON.stringify([property]));
      const answer = await server.ask("GET", `/api/projects/1/persons/?properties=${query}`);
      expect([operator, answer]).toMatchObject([
        operator,
        { status: 400, body: { code, attr: "properties" } },
      ]);
    }
  });
});
