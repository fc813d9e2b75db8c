/** What evaluation talks about: requests, compiled flags, results and traces. Types only. */

import type { Json, JsonObject } from "../../lib/json.ts";
import type { ValueTest } from "../operators/value-tests.ts";
import type { FlagDefinition } from "../rules/types.ts";
import type { VariantShare } from "./bucketing.ts";
import type { CompiledCohort, CompiledCohorts } from "./cohorts.ts";
import type { PropertySource } from "./person-view.ts";
import type { Failure, Reason, ReasonCode } from "./reasons.ts";

export interface FlagResult {
  id: number;
  key: string;
  version: number;
  enabled: boolean;
  /** The variant's key; null for boolean flags, flags that are off, and ids past the last variant's share. */
  variant: string | null;
  reason: Reason;
  /** JSON text, only when enabled and defined. */
  payload: string | null;
  /** The flag could not be computed; clients keep the value they know. */
  failed: boolean;
}

/** `slot` is where a run of the set keeps the verdict, the same for equal filters; undefined outside of a set. */
export type CompiledFilter = { written: JsonObject } & (
  | { kind: "person"; key: string; test: ValueTest; slot: number | undefined }
  | { kind: "group"; groupTypeIndex: number; key: string; test: ValueTest }
  | { kind: "cohort"; cohort: CompiledCohort | Failure; isInverted: boolean }
  | { kind: "flag"; flagId: number | undefined; wanted: Json | undefined }
  /** Can never match: unknown type, or an operator that its type does not have. */
  | { kind: "unusable" }
);

export type PersonFilter = Extract<CompiledFilter, { kind: "person" }>;

export interface CompiledCondition {
  index: number;
  /** Cohorts last: they cost most, and a failing cohort matters only when everything else matches. */
  filters: readonly CompiledFilter[];
  /** 0 to 100; null is everyone, NaN nobody. */
  rolloutPercentage: number | null;
  /** An existing variant that this condition forces. */
  variant: string | null;
  /** The group type the condition is about; null is persons. */
  groupTypeIndex: number | null;
}

export interface CompiledHoldout {
  variant: string;
  percentage: number | null;
  filters: readonly CompiledFilter[];
}

export interface CompiledFlag {
  id: number;
  /** Place among the active flags of its set; -1 for others. */
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
  /** The person property that decides about early access, when enrolment is on. */
  enrollmentKey: string | null;
  /** The old form of early access: decides when any of its properties is known of the person. */
  superCondition: CompiledCondition | null;
  holdouts: readonly CompiledHoldout[];
  conditions: readonly CompiledCondition[];
  variants: readonly VariantShare[];
  endsAtFirstRolloutMiss: boolean;
  payloads: ReadonlyMap<string, string>;
  /** Ids of the flags this one looks at; undefined stands for a reference that is no id. */
  dependencies: readonly (number | undefined)[];
  /** The result follows from the request and the person's properties alone: no clock, groups, lists or other flags. */
  isRepeatable: boolean;
  /** Results that came out so far, to be given again. */
  outcomes: FlagResult[];
}

export interface FlagSet {
  /** Active flags; each stands after the flags it depends on. */
  active: readonly CompiledFlag[];
  /** Flags that are switched off; never evaluated, but listed by the management API. */
  inactive: readonly CompiledFlag[];
  byId: ReadonlyMap<number, CompiledFlag>;
  byKey: ReadonlyMap<string, CompiledFlag>;
  cohorts: CompiledCohorts;
  /** Names of group types by their index. */
  groupTypeNames: ReadonlyMap<number, string>;
  /** Whether the dependencies of an active flag can be computed; keyed by flag id. */
  resolutions: ReadonlyMap<number, Resolution>;
  needs: StoredDataNeeds;
  /** Whether the results of all active flags follow from the request and the person's properties alone. */
  isRepeatable: boolean;
  /** Whether some active flag looks at the value of another one. */
  hasDependencies: boolean;
}

/** What the active flags look at, so that a caller reads from its stores no more than that. */
export interface StoredDataNeeds {
  personProperties: boolean;
  /** Names of person properties; derived ones bring their source along. */
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
  /** `$device_id` of the request; else `$device_id` among the person property overrides is used. */
  deviceId?: string | null;
  /** `$anon_distinct_id`: the id the person had before it was identified. */
  anonDistinctId?: string | null;
  /** Group keys by the name of the group type. */
  groups?: Readonly<JsonObject>;
  /** The stored person; absent when the distinct id is not known. */
  person?: StoredPerson;
  personPropertyOverrides?: Readonly<JsonObject>;
  /** Stored properties of the groups named in `groups`, by the name of the group type. */
  groupProperties?: Readonly<Record<string, JsonObject>>;
  /** `group_properties` of the request, by the name of the group type. */
  groupPropertyOverrides?: Readonly<JsonObject>;
  /** `$geoip_…` properties of the caller's address; fill gaps only. */
  geoipProperties?: Readonly<JsonObject>;
  /** Hash ids by flag key, as `planHashKeyOverrides` returns them. */
  hashKeyOverrides?: ReadonlyMap<string, string>;
  /** The overrides could not be read or written: hash plainly and tell the client that the answer is partial. */
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
  /** Ids of the static cohorts that list the person. */
  staticCohortIds?: ReadonlySet<number>;
}

/** What a dependency may ask of a flag computed before. */
export type FlagValue = boolean | string | Failure;

/** Whom a condition is about. */
export type Identity = {
  id: string;
  kind: "distinct_id" | "hash_key_override" | "anon_distinct_id" | "device_id" | "group";
};

export interface FlagSelection {
  /** Compute only these and what they depend on. Absent or empty: all flags. Unknown keys are ignored. */
  flagKeys?: readonly string[] | null;
  /** Absent: no filter by runtime. */
  runtime?: RequestRuntime | null;
  /** Absent or empty: no filter by context. */
  contexts?: readonly string[] | null;
  /** Only the flags that surveys made for themselves. */
  surveysOnly?: boolean;
}

export interface FilterTrace {
  type: string;
  key: string | null;
  operator: string;
  /** The filter's value. */
  wanted: Json;
  /** The property's value, the cohort membership or the other flag's value; undefined when there is none. */
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
  /** Its place from 0 to 1; in the rollout up to percentage / 100. */
  place: number;
  isIn: boolean;
}

export interface ConditionTrace {
  index: number;
  /** Whom the condition was computed for; null when the request does not name such a group or device. */
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
 * What happened while one flag was computed, for people who ask why.
 *
 * Evaluation fills a trace only when it is given one; with a trace it looks at every filter of a condition instead of
 * stopping at the first mismatch, and comes to the same result.
 */
export interface FlagTrace {
  enrollment: { key: string; found: Json | undefined; isDecisive: boolean } | null;
  superCondition: ConditionTrace | null;
  holdouts: HoldoutTrace[];
  conditions: ConditionTrace[];
  variant: VariantTrace | null;
}

/** `missing`: some flag on the way down does not exist. `cycle`: the way down leads into a circle. */
export type Resolution = "ok" | "missing" | "cycle";

/** `unknown` keeps only the flags meant for every runtime. */
export type RequestRuntime = "all" | "client" | "server" | "unknown";
