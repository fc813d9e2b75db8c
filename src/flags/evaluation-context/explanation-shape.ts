/** The explanation of a flag's value in the API and on the command line. */

import { type Static, Type } from "@sinclair/typebox";
import type { Json } from "../../lib/json/value.ts";
import { nullable, strictObject } from "../../lib/schema.ts";

const AnyJson = Type.Unsafe<Json>(Type.Unknown());

const ExplainedRollout = strictObject({
  /** 0 to 100. */
  percentage: Type.Number(),
  /** The text that was hashed. */
  hashed: Type.String(),
  /** Its position from 0 to 1. */
  place: Type.Number(),
  is_in: Type.Boolean(),
});
export type ExplainedRollout = Static<typeof ExplainedRollout>;

const ExplainedFilter = strictObject({
  type: Type.String(),
  key: nullable(Type.String()),
  operator: Type.String(),
  /** Value of the filter. */
  value: AnyJson,
  /** Actual value; null when missing, see `source`. */
  found: AnyJson,
  /** `stored`, `override`, `request`, `geoip`, `derived`, `cohort`, `flag`, or `missing`. */
  source: Type.String(),
  /** `match`, `mismatch`, `error` (the two cannot be compared) or `failed`. */
  result: Type.String(),
  note: nullable(Type.String()),
});
export type ExplainedFilter = Static<typeof ExplainedFilter>;

const ExplainedCondition = strictObject({
  index: Type.Integer(),
  /** A reason code, or `failed`. */
  outcome: Type.String(),
  /** The subject of the condition; null when the request does not name such a group or device. */
  identity: nullable(strictObject({ kind: Type.String(), id: Type.String() })),
  filters: Type.Array(ExplainedFilter),
  rollout: nullable(ExplainedRollout),
});
export type ExplainedCondition = Static<typeof ExplainedCondition>;

export const ExplanationBody = strictObject({
  flag_key: Type.String(),
  flag_id: nullable(Type.Integer()),
  distinct_id: Type.String(),
  person: nullable(strictObject({ uuid: Type.String() })),
  /** `evaluated`, `inactive`, `left_out` or `unknown_flag`. */
  status: Type.String(),
  /** The variant, or on or off; null when the flag was not computed. */
  value: AnyJson,
  payload: nullable(Type.String()),
  reason: nullable(
    strictObject({
      code: Type.String(),
      condition_index: nullable(Type.Integer()),
      description: Type.String(),
    }),
  ),
  failed: Type.Boolean(),
  dependencies: Type.Array(
    strictObject({ id: nullable(Type.Integer()), key: nullable(Type.String()), value: AnyJson }),
  ),
  enrollment: nullable(strictObject({ key: Type.String(), found: AnyJson, is_decisive: Type.Boolean() })),
  super_condition: nullable(ExplainedCondition),
  holdouts: Type.Array(strictObject({ variant: Type.String(), rollout: ExplainedRollout })),
  conditions: Type.Array(ExplainedCondition),
  variant: nullable(
    strictObject({
      chosen: nullable(Type.String()),
      is_forced: Type.Boolean(),
      hashed: Type.String(),
      place: Type.Number(),
      shares: Type.Array(strictObject({ key: Type.String(), from: Type.Number(), below: Type.Number() })),
    }),
  ),
});
export type ExplanationBody = Static<typeof ExplanationBody>;
