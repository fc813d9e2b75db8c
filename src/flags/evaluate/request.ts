/**
 * One request for flag values, and what evaluation knows while it answers it.
 *
 * All stored data comes in with the request; evaluation reads no store and no clock.
 */

import { numberText } from "../../lib/exact-json.ts";
import { isJsonObject, type Json, type JsonObject, ownMember } from "../../lib/json.ts";
import type { Clock } from "../../lib/values/dates.ts";
import type { Verdict } from "../operators/value-tests.ts";
import { rolloutPlace, variantPlace } from "./bucketing.ts";
import { isKnown, knownPlaces, type Places, rolloutSlot, variantSlot } from "./caches.ts";
import type { CohortSubject } from "./cohorts.ts";
import type { CompiledFlag, EvaluationRequest, FlagSet, FlagValue, Identity, PersonFilter } from "./model.ts";
import { GroupView, PersonView, type PropertyView } from "./person-view.ts";

const nobody: ReadonlySet<number> = new Set();

/** State of one request; everything in it is computed from the request and may be asked any number of times. */
export class Run {
  readonly person: PersonView;
  readonly clock: Clock;
  readonly cohortSubject: CohortSubject;
  /** Values of the flags computed so far; flags left out by the selection count as off. */
  readonly values = new Map<number, FlagValue>();
  private readonly deviceId: string | undefined;
  private readonly plainIdentity: Identity;
  private placesId: string | undefined;
  private places: Places | undefined;
  private readonly personValues = new Map<string, Json | undefined>();
  private readonly verdicts: (Verdict | undefined)[] = [];
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
      staticCohortIds: person?.staticCohortIds ?? nobody,
      clock: this.clock,
      answers: new Map(),
    };
    this.plainIdentity = { id: request.distinctId, kind: "distinct_id" };
    this.deviceId = idText(request.deviceId) ?? idText(ownMember(overrides, "$device_id"));
  }

  /** A property of the person, looked up once however many flags ask. */
  personValue(name: string): Json | undefined {
    const known = this.personValues.get(name);
    if (known !== undefined || this.personValues.has(name)) return known;
    const value = this.person.get(name);
    this.personValues.set(name, value);
    return value;
  }

  /** Whether a filter about the person matches, computed once however many flags ask the same. */
  personVerdict({ key, test, slot }: PersonFilter): Verdict {
    if (slot === undefined) return test(this.personValue(key), this.clock);
    const known = this.verdicts[slot];
    if (known !== undefined) return known;
    const verdict = test(this.personValue(key), this.clock);
    this.verdicts[slot] = verdict;
    return verdict;
  }

  /** The person's id for a flag: device, stored override, former id, distinct id. Undefined when a device is wanted but unknown. */
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

  /** As the function of the same name, from memory where possible. */
  rolloutPlace(flag: CompiledFlag, id: string): number {
    const places = this.placesOf(id);
    const slot = rolloutSlot(flag.position);
    const known = places?.[slot];
    if (isKnown(known)) return known;
    const place = rolloutPlace(flag.key, id);
    if (places !== undefined) places[slot] = place;
    return place;
  }

  /** As the function of the same name, from memory where possible. */
  variantPlace(flag: CompiledFlag, id: string): number {
    const places = this.placesOf(id);
    const slot = variantSlot(flag.position);
    const known = places?.[slot];
    if (isKnown(known)) return known;
    const place = variantPlace(flag.key, id);
    if (places !== undefined) places[slot] = place;
    return place;
  }

  /** Nearly all flags of a request are about one id. */
  private placesOf(id: string): Places | undefined {
    if (id !== this.placesId) {
      this.placesId = id;
      this.places = id === "" ? undefined : knownPlaces(this.set, id);
    }
    return this.places;
  }

  /** The key of the request's group of a type; undefined when the request names none. */
  groupIdentity(groupTypeIndex: number): Identity | undefined {
    const known = this.groupIdentities.get(groupTypeIndex);
    if (known !== undefined) return known ?? undefined;
    const name = this.set.groupTypeNames.get(groupTypeIndex);
    const id = name === undefined ? undefined : idText(ownMember(this.request.groups, name));
    const identity: Identity | null = id === undefined ? null : { id, kind: "group" };
    this.groupIdentities.set(groupTypeIndex, identity);
    return identity ?? undefined;
  }

  group(groupTypeIndex: number): PropertyView {
    const known = this.groupViews.get(groupTypeIndex);
    if (known !== undefined) return known;
    const name = this.set.groupTypeNames.get(groupTypeIndex);
    const key = name === undefined ? undefined : ownMember(this.request.groups, name);
    const stored = name === undefined ? undefined : ownMember(this.request.groupProperties, name);
    const overrides = name === undefined ? undefined : ownMember(this.request.groupPropertyOverrides, name);
    const view = new GroupView(key ?? undefined, objectOrNone(stored), objectOrNone(overrides));
    this.groupViews.set(groupTypeIndex, view);
    return view;
  }
}

function idText(value: Json | undefined): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : numberText(value);
}

function objectOrNone(value: Json | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}
