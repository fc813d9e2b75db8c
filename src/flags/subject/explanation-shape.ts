/** The explanation of a flag's value as the API returns it and the command line prints it. */

import { type Static, Type } from "@sinclair/typebox";
import type { Json } from "../../lib/json.ts";
import { exactly, orNull } from "../../lib/schema.ts";

const AnyJson = Type.Unsafe<Json>(Type.Unknown());

const ExplainedRollout = exactly({
  /** 0 to 100. */
  percentage: Type.Number(),
  /** The text that was hashed. */
  hashed: Type.String(),
  /** Its place from 0 to 1. */
  place: Type.Number(),
  is_in: Type.Boolean(),
});
export type ExplainedRollout = Static<typeof ExplainedRollout>;

const ExplainedFilter = exactly({
  type: Type.String(),
  key: orNull(Type.String()),
  operator: Type.String(),
  /** What the filter wants. */
  value: AnyJson,
  /** What was found; null when nothing was, see `source`. */
  found: AnyJson,
  /** `stored`, `override`, `request`, `geoip`, `derived`, `cohort`, `flag`, or `missing`. */
  source: Type.String(),
  /** `match`, `mismatch`, `error` (the two cannot be compared) or `failed`. */
  result: Type.String(),
  note: orNull(Type.String()),
});
export type ExplainedFilter = Static<typeof ExplainedFilter>;

const ExplainedCondition = exactly({
  index: Type.Integer(),
  /** A reason code, or `failed`. */
  outcome: Type.String(),
  /** Whom the condition is about; null when the request does not name such a group or device. */
  identity: orNull(exactly({ kind: Type.String(), id: Type.String() })),
  filters: Type.Array(ExplainedFilter),
  rollout: orNull(ExplainedRollout),
});
export type ExplainedCondition = Static<typeof ExplainedCondition>;

export const ExplanationBody = exactly({
  flag_key: Type.String(),
  flag_id: orNull(Type.Integer()),
  distinct_id: Type.String(),
  person: orNull(exactly({ uuid: Type.String() })),
  /** `evaluated`, `inactive`, `left_out` or `unknown_flag`. */
  status: Type.String(),
  /** The variant, or on or off; null when the flag was not computed. */
  value: AnyJson,
  payload: orNull(Type.String()),
  reason: orNull(
    exactly({ code: Type.String(), condition_index: orNull(Type.Integer()), description: Type.String() }),
  ),
  failed: Type.Boolean(),
  dependencies: Type.Array(
    exactly({ id: orNull(Type.Integer()), key: orNull(Type.String()), value: AnyJson }),
  ),
  enrollment: orNull(exactly({ key: Type.String(), found: AnyJson, is_decisive: Type.Boolean() })),
  super_condition: orNull(ExplainedCondition),
  holdouts: Type.Array(exactly({ variant: Type.String(), rollout: ExplainedRollout })),
  conditions: Type.Array(ExplainedCondition),
  variant: orNull(
    exactly({
      chosen: orNull(Type.String()),
      is_forced: Type.Boolean(),
      hashed: Type.String(),
      place: Type.Number(),
      shares: Type.Array(exactly({ key: Type.String(), from: Type.Number(), below: Type.Number() })),
    }),
  ),
});
export type ExplanationBody = Static<typeof ExplanationBody>;
