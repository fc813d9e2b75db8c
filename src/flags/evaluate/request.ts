/**
 * State of one request for flag values.
 *
 * All stored data comes in with the request; evaluation reads no store and no clock.
 */

import { formatNumber } from "../../lib/json/exact.ts";
import { getOwnProperty, isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { Clock } from "../../lib/values/dates.ts";
import type { MatchResult } from "../operators/matchers.ts";
import { rolloutPosition, variantPosition } from "./bucketing.ts";
import { cachedPositions, type HashPositions, isKnown, rolloutSlot, variantSlot } from "./caches.ts";
import type { CohortSubject } from "./cohorts.ts";
import type { CompiledFlag, EvaluationRequest, FlagSet, FlagValue, Identity, PersonFilter } from "./model.ts";
import { GroupView, PersonView, type PropertyView } from "./person-view.ts";

const noCohorts: ReadonlySet<number> = new Set();

/** State of one request; everything in it is derived from the request and cached. */
export class Run {
  readonly person: PersonView;
  readonly clock: Clock;
  readonly cohortSubject: CohortSubject;
  /** Values of the flags computed so far; flags excluded by the selection count as off. */
  readonly values = new Map<number, FlagValue>();
  private readonly deviceId: string | undefined;
  private readonly plainIdentity: Identity;
  private positionsId: string | undefined;
  private positions: HashPositions | undefined;
  private readonly personValues = new Map<string, Json | undefined>();
  private readonly results: (MatchResult | undefined)[] = [];
  private readonly groupViews = new Map<number, PropertyView>();
  private readonly groupIdentities = new Map<number, Identity | null>();

  constructor(
    readonly set: FlagSet,
    readonly request: EvaluationRequest,
  ) {
    const { person, personPropertyOverrides: overrides } = request;
    this.person = new PersonView(request.distinctId, person?.properties, overrides, request.geoipProperties);
    this.clock = { now: request.now, timezone: request.timezone };
    this.cohortSubject = {
      person: this.person,
      staticCohortIds: person?.staticCohortIds ?? noCohorts,
      clock: this.clock,
      answers: new Map(),
    };
    this.plainIdentity = { id: request.distinctId, kind: "distinct_id" };
    this.deviceId = formatId(request.deviceId) ?? formatId(getOwnProperty(overrides, "$device_id"));
  }

  /** A property of the person, looked up once for all flags. */
  personValue(name: string): Json | undefined {
    const known = this.personValues.get(name);
    if (known !== undefined || this.personValues.has(name)) return known;
    const value = this.person.get(name);
    this.personValues.set(name, value);
    return value;
  }

  /** Whether a filter about the person matches, computed once for all flags with the same filter. */
  personResult({ key, test, slot }: PersonFilter): MatchResult {
    if (slot === undefined) return test(this.personValue(key), this.clock);
    const known = this.results[slot];
    if (known !== undefined) return known;
    const result = test(this.personValue(key), this.clock);
    this.results[slot] = result;
    return result;
  }

  /** The person's ID for a flag: device, stored override, former ID, distinct ID. Undefined for an unknown device. */
  personIdentity(flag: CompiledFlag): Identity | undefined {
    if (flag.usesDeviceId)
      return this.deviceId === undefined ? undefined : { id: this.deviceId, kind: "device_id" };
    const { anonDistinctId, hashKeyOverrides, hashKeyOverridesFailed } = this.request;
    if (hashKeyOverridesFailed) return this.plainIdentity;
    const override = hashKeyOverrides?.get(flag.key);
    if (override !== undefined) return { id: override, kind: "hash_key_override" };
    if (flag.hasContinuity && anonDistinctId) return { id: anonDistinctId, kind: "anon_distinct_id" };
    return this.plainIdentity;
  }

  /** Cached `rolloutPosition`. */
  rolloutPosition(flag: CompiledFlag, id: string): number {
    const positions = this.getPositions(id);
    const slot = rolloutSlot(flag.position);
    const known = positions?.[slot];
    if (isKnown(known)) return known;
    const position = rolloutPosition(flag.key, id);
    if (positions !== undefined) positions[slot] = position;
    return position;
  }

  /** Cached `variantPosition`. */
  variantPosition(flag: CompiledFlag, id: string): number {
    const positions = this.getPositions(id);
    const slot = variantSlot(flag.position);
    const known = positions?.[slot];
    if (isKnown(known)) return known;
    const position = variantPosition(flag.key, id);
    if (positions !== undefined) positions[slot] = position;
    return position;
  }

  /** Nearly all flags of a request use one ID. */
  private getPositions(id: string): HashPositions | undefined {
    if (id !== this.positionsId) {
      this.positionsId = id;
      this.positions = id === "" ? undefined : cachedPositions(this.set, id);
    }
    return this.positions;
  }

  /** The key of the request's group of a type; undefined without one. */
  groupIdentity(groupTypeIndex: number): Identity | undefined {
    const known = this.groupIdentities.get(groupTypeIndex);
    if (known !== undefined) return known ?? undefined;
    const name = this.set.groupTypeNames.get(groupTypeIndex);
    const id = name === undefined ? undefined : formatId(getOwnProperty(this.request.groups, name));
    const identity: Identity | null = id === undefined ? null : { id, kind: "group" };
    this.groupIdentities.set(groupTypeIndex, identity);
    return identity ?? undefined;
  }

  group(groupTypeIndex: number): PropertyView {
    const known = this.groupViews.get(groupTypeIndex);
    if (known !== undefined) return known;
    const name = this.set.groupTypeNames.get(groupTypeIndex);
    const key = name === undefined ? undefined : getOwnProperty(this.request.groups, name);
    const stored = name === undefined ? undefined : getOwnProperty(this.request.groupProperties, name);
    const overrides =
      name === undefined ? undefined : getOwnProperty(this.request.groupPropertyOverrides, name);
    const view = new GroupView(key ?? undefined, objectOrNone(stored), objectOrNone(overrides));
    this.groupViews.set(groupTypeIndex, view);
    return view;
  }
}

function formatId(value: Json | undefined): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : formatNumber(value);
}

function objectOrNone(value: Json | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}
