/** Definitions fit the types that SDKs have for them, whatever is stored: one misfit costs some of them all flags. */

import { expect, test } from "bun:test";
import { type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import fc from "fast-check";
import {
  localEvaluationBody,
  localEvaluationReply,
} from "../../../src/flags/definitions/local-evaluation.ts";
import { anyProject } from "../random-flags.ts";

const text = Type.String();
const scalar = Type.Union([text, Type.Boolean(), Type.Number()]);
const Compared = Type.Union([Type.Null(), text, Type.Boolean(), Type.Integer(), Type.Array(scalar)]);
const orNull = (schema: TSchema) => Type.Optional(Type.Union([schema, Type.Null()]));

/** A filter of a condition, for posthog-go, -rs, -dotnet and -server at once. */
const Property = Type.Object({
  key: text,
  value: Compared,
  type: Type.Optional(Type.Union(["person", "group", "cohort", "flag"].map((type) => Type.Literal(type)))),
  operator: Type.Optional(text),
  negation: Type.Optional(Type.Boolean()),
  group_type_index: Type.Optional(Type.Integer()),
  dependency_chain: Type.Optional(Type.Array(text)),
});
const Condition = Type.Object({
  properties: Type.Array(Property),
  rollout_percentage: orNull(Type.Number()),
  variant: orNull(text),
  aggregation_group_type_index: orNull(Type.Integer()),
});
const Variant = Type.Object({ key: text, name: orNull(text), rollout_percentage: Type.Number() });
const Filters = Type.Object({
  groups: Type.Array(Condition),
  multivariate: Type.Optional(Type.Union([Type.Object({ variants: Type.Array(Variant) }), Type.Null()])),
  payloads: Type.Optional(Type.Record(text, text)),
  early_exit: Type.Optional(Type.Boolean()),
  aggregation_group_type_index: orNull(Type.Integer()),
});
const Member = Type.Object({
  key: text,
  type: Type.Union([Type.Literal("person"), Type.Literal("cohort")]),
  operator: text,
  value: Compared,
  negation: Type.Optional(Type.Boolean()),
});
/** A list holds filters or groups, never both: SDKs look at the first. Without members it is everybody, so only at the top. */
const Group = Type.Recursive((Self) =>
  Type.Object({
    type: Type.Union([Type.Literal("AND"), Type.Literal("OR")]),
    values: Type.Union([Type.Array(Member, { minItems: 1 }), Type.Array(Self, { minItems: 1 })]),
  }),
);
const Everybody = Type.Object({ type: Type.Literal("AND"), values: Type.Tuple([]) });
const Definitions = Type.Object({
  flags: Type.Array(
    Type.Object({
      id: Type.Integer(),
      name: text,
      key: text,
      active: Type.Boolean(),
      deleted: Type.Boolean(),
      version: Type.Integer(),
      ensure_experience_continuity: Type.Boolean(),
      filters: Filters,
    }),
  ),
  group_type_mapping: Type.Record(text, text),
  cohorts: Type.Record(text, Type.Union([Everybody, Group])),
});

test("of any project, with cohorts and without", () => {
  fc.assert(
    fc.property(anyProject, fc.boolean(), (project, sendCohorts) => {
      const { text: body } = localEvaluationReply(
        localEvaluationBody({ ...project, projectId: 1, sendCohorts }),
      );
      const [misfit] = [...Value.Errors(Definitions, JSON.parse(body))];
      expect(
        misfit && `${misfit.path}: ${misfit.message}, not ${JSON.stringify(misfit.value)}`,
      ).toBeUndefined();
    }),
    { numRuns: 2_000 },
  );
});
