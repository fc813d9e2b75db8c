/**
 * Reads stored data about the subject of one request: its person, its groups, its hash-key overrides.
 *
 * Reads only what the flags use, always by primary key; most requests need at most one statement. Source: contract,
 * flag-evaluation 9, 10 and 13.
 */

import { sanitizeString } from "../../lib/json/canonical.ts";
import { formatNumber, parseExactJson } from "../../lib/json/exact.ts";
import { getOwnProperty, isJsonObject, type JsonObject } from "../../lib/json.ts";
import { cohortsOfPerson } from "../../persons/cohort-members.ts";
import { findGroup } from "../../persons/groups.ts";
import {
  hasHashKeyOverrides,
  hashKeyOverrides,
  pendingHashKeyOverrides,
} from "../../persons/hash-key-overrides.ts";
import type { PeopleDb } from "../../persons/open.ts";
import type { PersonJson } from "../../persons/person.ts";
import { personJsonByDistinctId } from "../../persons/reader.ts";
import { type Evaluation, evaluate } from "../evaluate/evaluate.ts";
import { coversPersonKeys } from "../evaluate/flag-set.ts";
import { type IdOverrides, planHashKeyOverrides } from "../evaluate/hash-key-overrides.ts";
import type { FlagSet, StoredPerson } from "../evaluate/model.ts";

/** The subject of a request, as sent. */
export interface EvaluationContext {
  projectId: number;
  distinctId: string;
  /** The ID of the person before it was identified. */
  anonDistinctId?: string;
  groups?: Readonly<JsonObject>;
  personProperties?: Readonly<JsonObject>;
  groupProperties?: Readonly<JsonObject>;
  /** Milliseconds since 1970. */
  now: number;
}

export interface StoredContext {
  person: (StoredPerson & Pick<PersonJson, "storedProperties">) | undefined;
  /** By the name of the group type. */
  groupProperties: Record<string, JsonObject>;
  /**
   * The distinct ID and the former ID, with the overrides of their persons or their own; empty when none can matter.
   */
  overridden: IdOverrides[];
}

/** How long "no override was ever stored" is cached, in milliseconds. */
const noOverridesMs = 1_000;

/** Reads synchronously; persons whose events are not applied yet are unknown. */
export class ContextReader {
  private hasOverrides = false;
  private overridesCheckedAt = Number.NEGATIVE_INFINITY;

  /** @param people opened read-only: every statement sees what is committed at that time. */
  constructor(private readonly people: PeopleDb) {}

  /** @throws SQLite's error when the store cannot be read. */
  read(set: FlagSet, subject: EvaluationContext): StoredContext {
    const { needs } = set;
    const needsOverrides = needs.continuity || this.areOverridesStored();
    const needsPerson =
      needs.staticCohorts ||
      (needs.personProperties && !coversPersonKeys(set, subject.personProperties ?? nothing));
    const person =
      needsPerson || needsOverrides ? this.person(subject.projectId, subject.distinctId) : undefined;
    return {
      person:
        person && needsPerson
          ? new PersonWithJson(
              person,
              needs.staticCohorts ? cohortsOfPerson(this.people, person.id) : undefined,
            )
          : undefined,
      groupProperties: needs.groupProperties ? this.groups(set, subject) : {},
      overridden: needsOverrides ? this.overridden(subject, person) : [],
    };
  }

  private person(projectId: number, distinctId: string): PersonJson | undefined {
    // An empty ID belongs to no person, and capture stores no NUL.
    return distinctId === ""
      ? undefined
      : personJsonByDistinctId(this.people, projectId, sanitizeString(distinctId));
  }

  private overridden(subject: EvaluationContext, person: PersonJson | undefined): IdOverrides[] {
    const { projectId, distinctId, anonDistinctId } = subject;
    // An empty ID belongs to no person.
    const found = distinctId === "" ? [] : [this.overridesOf(subject, distinctId, person)];
    if (!anonDistinctId || anonDistinctId === distinctId) return found;
    const former = this.person(projectId, anonDistinctId);
    if (former === undefined || former.id !== person?.id)
      found.push(this.overridesOf(subject, anonDistinctId, former));
    return found;
  }

  /**
   * The person's overrides win; the ID's own apply until the person gets them, which may take a moment in a cluster.
   */
  private overridesOf(
    { projectId, now }: EvaluationContext,
    id: string,
    person: PersonJson | undefined,
  ): IdOverrides {
    const stored = sanitizeString(id);
    const own = pendingHashKeyOverrides(this.people, projectId, stored, now * 1_000);
    if (person === undefined)
      return { distinctId: id, hasPerson: false, isOld: own.isOld, overrides: own.overrides };
    const ofPerson = hashKeyOverrides(this.people, projectId, [stored]);
    const overrides = own.overrides.size === 0 ? ofPerson : new Map([...own.overrides, ...ofPerson]);
    return { distinctId: id, hasPerson: true, isOld: false, overrides };
  }

  private groups(
    set: FlagSet,
    { projectId, groups, groupProperties }: EvaluationContext,
  ): Record<string, JsonObject> {
    // A group type may have the name of a member of every object.
    const found: Record<string, JsonObject> = Object.create(null);
    for (const [index, keys] of set.needs.groupKeys) {
      const name = set.groupTypeNames.get(index);
      if (name === undefined || keys.size === 0) continue;
      const key = getOwnProperty(groups, name);
      const keyText =
        typeof key === "number" ? String(key) : typeof key === "string" ? key : formatNumber(key);
      if (keyText === undefined) continue;
      const sent = getOwnProperty(groupProperties, name);
      if (isJsonObject(sent) && [...keys].every((wanted) => Object.hasOwn(sent, wanted))) continue;
      const group = findGroup(this.people, projectId, index, sanitizeString(keyText));
      if (group) found[name] = group.properties as JsonObject;
    }
    return found;
  }

  /** Overrides apply even after their flag's continuity was switched off, but most projects never have any. */
  private areOverridesStored(): boolean {
    if (this.hasOverrides) return true;
    const now = performance.now();
    if (now - this.overridesCheckedAt < noOverridesMs) return false;
    this.overridesCheckedAt = now;
    this.hasOverrides = hasHashKeyOverrides(this.people);
    return this.hasOverrides;
  }
}

/** Parses the properties lazily. */
class PersonWithJson implements StoredPerson {
  private readProperties: JsonObject | undefined;

  constructor(
    private readonly person: PersonJson,
    readonly staticCohortIds: ReadonlySet<number> | undefined,
  ) {}

  get uuid(): string {
    return this.person.uuid;
  }

  get storedProperties(): string {
    return this.person.storedProperties;
  }

  get properties(): JsonObject {
    this.readProperties ??= parseExactJson(this.person.propertiesText) as JsonObject;
    return this.readProperties;
  }
}

const nothing: JsonObject = {};

/** The subject of an evaluation with stored data only. */
export interface StoredContextQuery {
  projectId: number;
  /** IANA name. */
  timezone: string;
  distinctId: string;
  /** Group keys by the name of the group type. */
  groups: JsonObject;
  /** Only these flags and their dependencies. */
  flagKeys?: readonly string[];
  now: Date;
}

/** The values of a project's active flags for one distinct ID, for the management API. */
export function evaluateStored(people: PeopleDb, set: FlagSet, question: StoredContextQuery): Evaluation {
  const { distinctId, groups, flagKeys, now, timezone } = question;
  const stored = new ContextReader(people).read(set, { ...question, now: now.getTime() });
  return evaluate(set, {
    distinctId,
    groups,
    timezone,
    now: now.getTime(),
    person: stored.person,
    groupProperties: stored.groupProperties,
    hashKeyOverrides: planHashKeyOverrides(set, stored.overridden, undefined).effective,
    selection: flagKeys?.length ? { flagKeys } : undefined,
  });
}
