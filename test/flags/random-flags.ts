/** Random projects for property-based tests: what people save, and what imported data may look like. */

import fc from "fast-check";
import type { EvaluationRequest } from "../../src/flags/evaluate/model.ts";
import type { CohortDefinition, FlagDefinition, GroupType } from "../../src/flags/rules/types.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";
import { flag, requestFor } from "./make.ts";

export interface RandomProject {
  flags: FlagDefinition[];
  cohorts: CohortDefinition[];
  groupTypes: GroupType[];
  requests: EvaluationRequest[];
}

const groupTypes: GroupType[] = [
  { index: 0, name: "company" },
  { index: 1, name: "project" },
];

const word = fc.constantFrom(
  "alpha",
  "Alpha",
  "beta",
  "BETA",
  "alphabet",
  "a.b",
  "true",
  "False",
  "null",
  "x",
);
const formatNumber = fc.constantFrom("-3", "0", "1", "2.5", "10", "9", "100");
const version = fc.constantFrom("0.0.3", "0.2.3", "1.0.0", "1.2.3", "1.10.0", "2.0.0");
const date = fc.constantFrom("2020-05-01T00:00:00Z", "2024-02-29T12:30:00Z", "2030-01-01T00:00:00+02:00");

/** Kinds of properties: each has operators whose filter values and property values fit together in every SDK. */
const kinds = [
  {
    key: "word",
    found: fc.oneof({ weight: 8, arbitrary: word }, fc.constant(null), fc.boolean()),
    filter: fc.oneof(
      operator(["exact", "is_not"], fc.oneof(word, fc.array(word, { maxLength: 3 }), fc.boolean())),
      operator(
        ["icontains", "not_icontains", "starts_with", "not_starts_with", "ends_with", "not_ends_with"],
        word,
      ),
      operator(["regex", "not_regex"], fc.constantFrom("^al", "a$", "[ab]+t", "A|B", "\\.", "^(a+)+$")),
      operator(["is_set", "is_not_set"], fc.constant("")),
    ),
  },
  {
    key: "number",
    found: fc.oneof(formatNumber, fc.constantFrom(0.5, 2.5, -1.25, 99.9)),
    filter: operator(["gt", "gte", "lt", "lte"], formatNumber),
  },
  {
    key: "version",
    found: version,
    filter: fc.oneof(
      operator(["semver_eq", "semver_neq", "semver_gt", "semver_gte", "semver_lt", "semver_lte"], version),
      operator(["semver_tilde", "semver_caret"], version),
      operator(["semver_wildcard"], fc.constantFrom("1.*", "1.2.*", "0.*")),
    ),
  },
  {
    key: "date",
    found: date,
    filter: operator(
      ["is_date_before", "is_date_after"],
      fc.oneof(date, fc.constantFrom("-3d", "2y", "5m", "1w", "30h")),
    ),
  },
];

function operator(names: string[], value: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> {
  return fc.record({ operator: fc.constantFrom(...names), value });
}

const filterOfKind = fc.oneof(
  ...kinds.map(({ key, filter }) => filter.map((written): JsonObject => ({ ...written, key }))),
);
const personFilter = filterOfKind.map((filter): JsonObject => ({ ...filter, type: "person" }));
const properties = fc.record(
  Object.fromEntries(kinds.map(({ key, found }) => [key, found as fc.Arbitrary<Json>])),
);
const percentage = fc.oneof(
  fc.constantFrom(0, 100, null),
  fc.double({ min: 0, max: 100, noNaN: true }),
  fc.integer({ min: 0, max: 100 }),
);
const negation = fc.constantFrom<JsonObject>({}, { negation: false }, { negation: true });

/** Cohort `id` may refer to cohorts with smaller ids only. */
function cohortFilter(id: number, isInCohort: boolean): fc.Arbitrary<JsonObject> {
  const how = fc.constantFrom<JsonObject>({ operator: "in" }, { operator: "not_in" });
  return fc
    .record({
      value: fc.integer({ min: 1, max: Math.max(1, id - 1) }),
      how,
      negation: isInCohort ? negation : fc.constant({}),
    })
    .map(
      ({ value, how: operation, negation: sign }): JsonObject => ({
        key: "id",
        type: "cohort",
        value,
        ...operation,
        ...sign,
      }),
    );
}

function cohortDefinition(id: number): fc.Arbitrary<JsonObject> {
  const own = fc.tuple(personFilter, negation).map(([filter, sign]): JsonObject => ({ ...filter, ...sign }));
  const leaf = id > 1 ? fc.oneof({ weight: 4, arbitrary: own }, cohortFilter(id, true)) : own;
  const joint = fc.constantFrom("AND", "OR");
  // A list may be empty: no one, except in SDKs.
  const inner = fc.record({ type: joint, values: fc.array(leaf, { maxLength: 3 }) });
  return fc.record({
    type: joint,
    values: fc.array(fc.oneof({ weight: 2, arbitrary: leaf }, inner), {
      minLength: 1,
      maxLength: 3,
    }) as fc.Arbitrary<Json>,
  });
}

const cohortsOfProject = fc
  .tuple(cohortDefinition(1), cohortDefinition(2), cohortDefinition(3))
  .map((definitions) =>
    definitions.map(
      (definition, i): CohortDefinition => ({
        id: i + 1,
        name: `cohort ${i + 1}`,
        isStatic: false,
        filters: { properties: definition },
      }),
    ),
  );

const variantKeys = ["control", "test", "third"];

/** Flag `id` may depend on flags with smaller ids only. */
function getFilters(id: number): fc.Arbitrary<JsonObject> {
  const wanted = fc.constantFrom<Json>(true, false, "control", "test");
  const dependency = fc.record({ to: fc.integer({ min: 1, max: Math.max(1, id - 1) }), wanted }).map(
    ({ to, wanted: value }): JsonObject => ({
      key: String(to),
      type: "flag",
      operator: "flag_evaluates_to",
      value,
    }),
  );
  const aboutPerson = fc.oneof(
    { weight: 5, arbitrary: personFilter },
    { weight: 2, arbitrary: cohortFilter(4, false) },
    ...(id > 1 ? [{ weight: 2, arbitrary: dependency }] : []),
  );
  const condition = fc.record({
    properties: fc.array(aboutPerson, { maxLength: 3 }),
    rollout_percentage: percentage,
    variant: fc.constantFrom(null, "control", "test"),
  });
  const aboutGroup = filterOfKind.map(
    (filter): JsonObject => ({ ...filter, type: "group", group_type_index: 0 }),
  );
  const groupCondition = fc.record({
    properties: fc.array(aboutGroup, { maxLength: 2 }),
    rollout_percentage: percentage,
    aggregation_group_type_index: fc.constant(0),
  });
  const shares = fc.constantFrom([50, 50], [33.33, 33.33, 33.34], [100], []);
  const multivariate = shares.map(
    (all): Json =>
      all.length === 0
        ? null
        : { variants: all.map((share, i) => ({ key: variantKeys[i]!, rollout_percentage: share })) },
  );
  const extras = fc.constantFrom<JsonObject>(
    {},
    {},
    {},
    { early_exit: true },
    { holdout: { id: 3, exclusion_percentage: 20 } },
  );
  const whole = fc.record({ multivariate, extras });
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          fc.array(fc.oneof({ weight: 5, arbitrary: condition }, groupCondition), {
            minLength: 1,
            maxLength: 3,
          }),
          whole,
        )
        .map(
          ([groups, { multivariate: variants, extras: more }]): JsonObject => ({
            groups: groups as Json,
            multivariate: variants,
            ...more,
          }),
        ),
    },
    fc.tuple(fc.array(groupCondition, { minLength: 1, maxLength: 2 }), whole).map(
      ([groups, { multivariate: variants, extras: more }]): JsonObject => ({
        groups: groups as Json,
        multivariate: variants,
        aggregation_group_type_index: 0,
        ...more,
      }),
    ),
  );
}

function getFlag(id: number): fc.Arbitrary<FlagDefinition> {
  return fc
    .record({
      filters: getFilters(id),
      active: fc.boolean(),
      isOn: fc.integer({ min: 0, max: 5 }),
      byDevice: fc.integer({ min: 0, max: 6 }),
    })
    .map(({ filters, active, isOn, byDevice }) =>
      flag(id, `flag-${id}`, filters, {
        active: active || isOn > 0,
        bucketingIdentifier: byDevice === 0 ? "device_id" : "distinct_id",
      }),
    );
}

const oneRequest = fc
  .record({
    distinctId: fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }),
    person: properties,
    company: fc.option(fc.constantFrom("acme", "globex", "initech")),
    companyProperties: properties,
    device: fc.constantFrom("d1", "d2", "d3"),
  })
  .map(({ distinctId, person, company, companyProperties, device }) =>
    requestFor(distinctId, {
      now: Date.now(),
      personPropertyOverrides: { ...person, $device_id: device },
      groups: company === null ? {} : { company },
      groupPropertyOverrides: company === null ? {} : { company: companyProperties },
    }),
  );

/** Projects whose every flag an SDK can compute by itself: all properties are known, nothing is cyclic or missing. */
export const computableProject: fc.Arbitrary<RandomProject> = fc
  .record({
    flags: fc.tuple(getFlag(1), getFlag(2), getFlag(3), getFlag(4)) as fc.Arbitrary<FlagDefinition[]>,
    cohorts: cohortsOfProject,
    requests: fc.array(oneRequest, { minLength: 1, maxLength: 4 }),
  })
  .map((project) => ({ ...project, groupTypes }));

// Values in places where they do not belong, as imported or corrupt data may have them.
const junk = fc.oneof(
  fc.constantFrom<Json>(null, true, "", "x", -1, 1e308, [], {}, [null], { values: 1 }, "__proto__"),
  fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text) as Json),
);

function corrupted(filters: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return fc
    .tuple(filters, fc.nat(), junk, fc.integer({ min: 0, max: 3 }))
    .map(([whole, where, value, times]) => {
      const copy = structuredClone(whole);
      for (let i = 0; i < times; i++) replaceSome(copy, where + i * 7, value);
      return copy;
    });
}

function replaceSome(node: JsonObject, where: number, value: Json): void {
  const slots: [JsonObject, string][] = [];
  const open: Json[] = [node];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (typeof at !== "object" || at === null) continue;
    for (const name of Object.keys(at)) {
      slots.push([at as JsonObject, name]);
      open.push((at as JsonObject)[name] as Json);
    }
  }
  const slot = slots[where % slots.length];
  if (slot !== undefined) slot[0][slot[1]] = structuredClone(value);
}

/** Projects with unusable conditions, circles and missing references among usable ones. */
export const anyProject: fc.Arbitrary<RandomProject> = fc
  .record({
    project: computableProject,
    corruptFilters: fc.array(corrupted(getFilters(4)), { maxLength: 2 }),
    corruptCohort: corrupted(cohortDefinition(3)),
    toward: fc.integer({ min: 1, max: 9 }),
    stored: fc.dictionary(fc.constantFrom("word", "number", "version", "date", "other"), junk),
  })
  .map(({ project, corruptFilters, corruptCohort, toward, stored }) => {
    const circle: JsonObject = {
      key: String(toward),
      type: "flag",
      operator: "flag_evaluates_to",
      value: false,
    };
    return {
      ...project,
      flags: [
        ...project.flags,
        ...corruptFilters.map((filters, i) => flag(5 + i, `damaged-${i}`, filters)),
        flag(7, "circle", { groups: [{ properties: [circle] }, {}] }),
      ],
      cohorts: [
        ...project.cohorts.slice(0, 2),
        { id: 3, name: "damaged", isStatic: false, filters: { properties: corruptCohort } },
      ],
      requests: project.requests.map((request) => ({ ...request, person: { properties: stored } })),
    };
  });
