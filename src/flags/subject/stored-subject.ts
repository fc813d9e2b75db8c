/**
 * Reads what the stores know about the subject of one request: its person, its groups, its hash-key overrides.
 *
 * Asks for no more than the flags look at, and each time by primary key; most requests need one statement or none.
 * Source: contract, flag-evaluation 9, 10 and 13.
 */

import { numberText, parseExactJson } from "../../lib/exact-json.ts";
import { isJsonObject, type JsonObject, ownMember } from "../../lib/json.ts";
import { storableText } from "../../lib/unicode.ts";
import { cohortsOfPerson } from "../../people/cohort-members.ts";
import { findGroup } from "../../people/groups.ts";
import {
  hasHashKeyOverrides,
  hashKeyOverrides,
  pendingHashKeyOverrides,
} from "../../people/hash-key-overrides.ts";
import type { PeopleDb } from "../../people/open.ts";
import type { PersonText } from "../../people/person.ts";
import { personTextByDistinctId } from "../../people/reader.ts";
import { type Evaluation, evaluate } from "../evaluate/evaluate.ts";
import { coversPersonKeys } from "../evaluate/flag-set.ts";
import { type IdOverrides, planHashKeyOverrides } from "../evaluate/hash-key-overrides.ts";
import type { FlagSet, StoredPerson } from "../evaluate/model.ts";

/** Whom a request is about, in its own words. */
export interface Subject {
  projectId: number;
  distinctId: string;
  /** The id the person had before it was identified. */
  anonDistinctId?: string;
  groups?: Readonly<JsonObject>;
  personProperties?: Readonly<JsonObject>;
  groupProperties?: Readonly<JsonObject>;
  /** Milliseconds since 1970. */
  now: number;
}

export interface StoredSubject {
  person: (StoredPerson & Pick<PersonText, "storedProperties">) | undefined;
  /** By the name of the group type. */
  groupProperties: Record<string, JsonObject>;
  /** The distinct ID and the former ID, with the overrides of their persons or their own; empty when none can matter. */
  overridden: IdOverrides[];
}

/** How long "no override was ever stored" is believed, in milliseconds. */
const noOverridesMs = 1_000;

/** Reads at once and synchronously; whose events are still on their way is not known yet. */
export class SubjectReader {
  private hasOverrides = false;
  private overridesCheckedAt = Number.NEGATIVE_INFINITY;

  /** @param people opened for reading only: every statement sees what is committed at that moment. */
  constructor(private readonly people: PeopleDb) {}

  /** @throws whatever SQLite throws when the store cannot be read. */
  read(set: FlagSet, subject: Subject): StoredSubject {
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
          ? new PersonWithText(
              person,
              needs.staticCohorts ? cohortsOfPerson(this.people, person.id) : undefined,
            )
          : undefined,
      groupProperties: needs.groupProperties ? this.groups(set, subject) : {},
      overridden: needsOverrides ? this.overridden(subject, person) : [],
    };
  }

  private person(projectId: number, distinctId: string): PersonText | undefined {
    // An empty id is nobody's, and capture keeps no NUL.
    return distinctId === ""
      ? undefined
      : personTextByDistinctId(this.people, projectId, storableText(distinctId));
  }

  private overridden(subject: Subject, person: PersonText | undefined): IdOverrides[] {
    const { projectId, distinctId, anonDistinctId } = subject;
    // An empty ID is nobody's.
    const found = distinctId === "" ? [] : [this.overridesOf(subject, distinctId, person)];
    if (!anonDistinctId || anonDistinctId === distinctId) return found;
    const former = this.person(projectId, anonDistinctId);
    if (former === undefined || former.id !== person?.id)
      found.push(this.overridesOf(subject, anonDistinctId, former));
    return found;
  }

  /** What the person has wins; the ID's own are valid until the person gets them, which may take a moment in a cluster. */
  private overridesOf({ projectId, now }: Subject, id: string, person: PersonText | undefined): IdOverrides {
    const stored = storableText(id);
    const own = pendingHashKeyOverrides(this.people, projectId, stored, now * 1_000);
    if (person === undefined)
      return { distinctId: id, hasPerson: false, isOld: own.isOld, overrides: own.overrides };
    const ofPerson = hashKeyOverrides(this.people, projectId, [stored]);
    const overrides = own.overrides.size === 0 ? ofPerson : new Map([...own.overrides, ...ofPerson]);
    return { distinctId: id, hasPerson: true, isOld: false, overrides };
  }

  private groups(set: FlagSet, { projectId, groups, groupProperties }: Subject): Record<string, JsonObject> {
    // A group type may have the name of a member of every object.
    const found: Record<string, JsonObject> = Object.create(null);
    for (const [index, keys] of set.needs.groupKeys) {
      const name = set.groupTypeNames.get(index);
      if (name === undefined || keys.size === 0) continue;
      const key = ownMember(groups, name);
      const keyText = typeof key === "number" ? String(key) : typeof key === "string" ? key : numberText(key);
      if (keyText === undefined) continue;
      const sent = ownMember(groupProperties, name);
      if (isJsonObject(sent) && [...keys].every((wanted) => Object.hasOwn(sent, wanted))) continue;
      const group = findGroup(this.people, projectId, index, storableText(keyText));
      if (group) found[name] = group.properties as JsonObject;
    }
    return found;
  }

  /** Overrides count even after their flag's continuity was switched off, but most projects never have any. */
  private areOverridesStored(): boolean {
    if (this.hasOverrides) return true;
    const now = performance.now();
    if (now - this.overridesCheckedAt < noOverridesMs) return false;
    this.overridesCheckedAt = now;
    this.hasOverrides = hasHashKeyOverrides(this.people);
    return this.hasOverrides;
  }
}

/** Takes the properties apart only when they are looked at. */
class PersonWithText implements StoredPerson {
  private readProperties: JsonObject | undefined;

  constructor(
    private readonly person: PersonText,
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

/** Whose values are asked for, with what is stored alone. */
export interface StoredQuestion {
  projectId: number;
  /** IANA name. */
  timezone: string;
  distinctId: string;
  /** Group keys by the name of the group type. */
  groups: JsonObject;
  /** Only these flags and what they depend on. */
  flagKeys?: readonly string[];
  now: Date;
}

/** The values of a project's active flags for one distinct id, for the management API. */
export function evaluateStored(people: PeopleDb, set: FlagSet, question: StoredQuestion): Evaluation {
  const { distinctId, groups, flagKeys, now, timezone } = question;
  const stored = new SubjectReader(people).read(set, { ...question, now: now.getTime() });
  return evaluate(set, {
    ...{ distinctId, groups, timezone, now: now.getTime() },
    ...{ person: stored.person, groupProperties: stored.groupProperties },
    hashKeyOverrides: planHashKeyOverrides(set, stored.overridden, undefined).effective,
    selection: flagKeys?.length ? { flagKeys } : undefined,
  });
}
