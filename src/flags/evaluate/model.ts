/** Types of evaluation: requests, compiled flags, results and traces. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import type { Matcher } from "../operators/matchers.ts";
import type { FlagDefinition } from "../rules/types.ts";
import type { VariantRange } from "./bucketing.ts";
import type { CompiledCohort, CompiledCohorts } from "./cohorts.ts";
import type { PropertySource } from "./person-view.ts";
import type { Failure, Reason, ReasonCode } from "./reasons.ts";

export interface FlagResult {
  id: number;
  key: string;
  version: number;
  enabled: boolean;
  /** The variant's key; null for boolean flags, flags that are off, and IDs past the last variant's range. */
  variant: string | null;
  reason: Reason;
  /** JSON text, only when enabled and defined. */
  payload: string | null;
  /** The flag could not be computed; clients keep the value they have. */
  failed: boolean;
}

/** `slot` is the index of the cached verdict in a run, shared by equal filters; undefined outside of a set. */
export type CompiledFilter = { written: JsonObject } & (
  | { kind: "person"; key: string; test: Matcher; slot: number | undefined }
  | { kind: "group"; groupTypeIndex: number; key: string; test: Matcher }
  | { kind: "cohort"; cohort: CompiledCohort | Failure; isInverted: boolean }
  | { kind: "flag"; flagId: number | undefined; wanted: Json | undefined }
  /** Can never match: unknown type, or an operator that its type does not have. */
  | { kind: "unusable" }
);

export type PersonFilter = Extract<CompiledFilter, { kind: "person" }>;

export interface CompiledCondition {
  index: number;
  /** Cohorts last: they are the most expensive, and a failing cohort matters only when everything else matches. */
  filters: readonly CompiledFilter[];
  /** 0 to 100; null includes every user, NaN none. */
  rolloutPercentage: number | null;
  /** An existing variant that this condition forces. */
  variant: string | null;
  /** The group type of the condition's subject; null: persons. */
  groupTypeIndex: number | null;
}

export interface CompiledHoldout {
  variant: string;
  percentage: number | null;
  filters: readonly CompiledFilter[];
}

export interface CompiledFlag {
  id: number;
  /** Index among the active flags of its set; -1 for others. */
  position: number;
  key: string;
  version: number;
  active: boolean;
  definition: FlagDefinition;
  runtime: "all" | "client" | "server";
  contexts: readonly string[];
  usesDeviceId: boolean;
  hasContinuity: boolean;
  groupTypeIndex: number | null;
  /** The person property for early access, when enrollment is on. */
  enrollmentKey: string | null;
  /** The older form of early access: decides when the person has any of its properties. */
  superCondition: CompiledCondition | null;
  holdouts: readonly CompiledHoldout[];
  conditions: readonly CompiledCondition[];
  variants: readonly VariantRange[];
  endsAtFirstRolloutMiss: boolean;
  payloads: ReadonlyMap<string, string>;
  /** IDs of the flags this one depends on; undefined for a reference that is not an ID. */
  dependencies: readonly (number | undefined)[];
  /** The result depends only on the request and the person's properties: no clock, groups, lists or other flags. */
  isRepeatable: boolean;
  /** Results so far, for reuse. */
  cachedResults: FlagResult[];
}

export interface FlagSet {
  /** Active flags; each follows the flags it depends on. */
  active: readonly CompiledFlag[];
  /** Inactive flags; never evaluated, but listed by the management API. */
  inactive: readonly CompiledFlag[];
  byId: ReadonlyMap<number, CompiledFlag>;
  byKey: ReadonlyMap<string, CompiledFlag>;
  cohorts: CompiledCohorts;
  /** Names of group types by index. */
  groupTypeNames: ReadonlyMap<number, string>;
  /** Whether the dependencies of an active flag can be computed; keyed by flag ID. */
  resolutions: ReadonlyMap<number, Resolution>;
  needs: StoredDataNeeds;
  /** Whether the results of all active flags depend only on the request and the person's properties. */
  isRepeatable: boolean;
  /** Whether some active flag depends on another one. */
  hasDependencies: boolean;
}

/** Stored data that the active flags use, so that a caller reads no more than that. */
export interface StoredDataNeeds {
  personProperties: boolean;
  /** Names of person properties; derived ones include their source. */
  personKeys: ReadonlySet<string>;
  groupProperties: boolean;
  /** Names of group properties by group type index. */
  groupKeys: ReadonlyMap<number, ReadonlySet<string>>;
  /** Whether some flag uses a static cohort, directly or through others. */
  staticCohorts: boolean;
  /** Whether hash-key overrides may have to be stored for this project's flags. */
  continuity: boolean;
  continuityKeys: readonly string[];
}

export interface EvaluationRequest {
  distinctId: string;
  /** `$device_id` of the request; by default, `$device_id` of the person property overrides. */
  deviceId?: string | null;
  /** `$anon_distinct_id`: the ID of the person before it was identified. */
  anonDistinctId?: string | null;
  /** Group keys by the name of the group type. */
  groups?: Readonly<JsonObject>;
  /** The stored person; absent for an unknown distinct ID. */
  person?: StoredPerson;
  personPropertyOverrides?: Readonly<JsonObject>;
  /** Stored properties of the groups named in `groups`, by the name of the group type. */
  groupProperties?: Readonly<Record<string, JsonObject>>;
  /** `group_properties` of the request, by the name of the group type. */
  groupPropertyOverrides?: Readonly<JsonObject>;
  /** `$geoip_…` properties of the client's address; only fill gaps. */
  geoipProperties?: Readonly<JsonObject>;
  /** Hash keys by flag key, as returned by `planHashKeyOverrides`. */
  hashKeyOverrides?: ReadonlyMap<string, string>;
  /** The overrides could not be read or written: hash without them, and mark the response as partial. */
  hashKeyOverridesFailed?: boolean;
  /** Milliseconds since 1970. */
  now: number;
  /** The project's time zone, an IANA name. */
  timezone: string;
  selection?: FlagSelection;
}

export interface StoredPerson {
  uuid?: string;
  properties: Readonly<JsonObject>;
  /** IDs of the static cohorts that contain the person. */
  staticCohortIds?: ReadonlySet<number>;
}

/** The value of a flag that was computed earlier, for dependent flags. */
export type FlagValue = boolean | string | Failure;

/** The subject of a condition. */
export type Identity = {
  id: string;
  kind: "distinct_id" | "hash_key_override" | "anon_distinct_id" | "device_id" | "group";
};

export interface FlagSelection {
  /** Compute only these and their dependencies. Absent or empty: all flags. Unknown keys are ignored. */
  flagKeys?: readonly string[] | null;
  /** Absent: no filter by runtime. */
  runtime?: RequestRuntime | null;
  /** Absent or empty: no filter by context. */
  contexts?: readonly string[] | null;
  /** Only survey flags. */
  surveysOnly?: boolean;
}

export interface FilterTrace {
  type: string;
  key: string | null;
  operator: string;
  /** The filter's value. */
  wanted: Json;
  /** The property's value, the cohort membership or the other flag's value; undefined if missing. */
  found: Json | undefined;
  source: PropertySource | "cohort" | "flag";
  /** `error`: the two cannot be compared. `failed`: the whole flag cannot be computed. */
  result: "match" | "mismatch" | "error" | "failed";
  note?: string;
}

export interface RolloutTrace {
  percentage: number;
  /** The text that was hashed. */
  hashed: string;
  /** Its position from 0 to 1; in the rollout up to percentage / 100. */
  place: number;
  isIn: boolean;
}

export interface ConditionTrace {
  index: number;
  /** The subject of the condition; null when the request does not name such a group or device. */
  identity: Identity | null;
  filters: FilterTrace[];
  rollout: RolloutTrace | null;
  outcome: ReasonCode | "failed";
}

interface VariantTrace {
  chosen: string | null;
  /** True when the condition names the variant, so that no hash decided. */
  isForced: boolean;
  hashed: string;
  place: number;
  shares: { key: string; from: number; below: number }[];
}

interface HoldoutTrace {
  variant: string;
  rollout: RolloutTrace;
}

/**
 * Records how one flag was computed, for explanations.
 *
 * Evaluation fills a trace only if one is passed; it then evaluates every filter of a condition instead of stopping at
 * the first mismatch, with the same result.
 */
export interface FlagTrace {
  enrollment: { key: string; found: Json | undefined; isDecisive: boolean } | null;
  superCondition: ConditionTrace | null;
  holdouts: HoldoutTrace[];
  conditions: ConditionTrace[];
  variant: VariantTrace | null;
}

/** `missing`: some flag among the dependencies does not exist. `cycle`: the dependencies contain a cycle. */
export type Resolution = "ok" | "missing" | "cycle";

/** `unknown` selects only the flags for every runtime. */
export type RequestRuntime = "all" | "client" | "server" | "unknown";
