/**
 * Reads stored data about the subject of one request: its person, its groups, its hash-key overrides.
 *
 * Reads only what the flags use, always by primary key; most requests need at most one statement. Source: contract,
 * flag-evaluation 9, 10 and 13.
 */

import type { MaybePromise } from "../../lib/concurrency.ts";
import { formatNumber, parseExactJson } from "../../lib/json/exact.ts";
import { getOwnProperty, isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import type { PersonJson } from "../../persons/person.ts";
import type {
  GroupKey,
  OverriddenId,
  StoredSubject,
  SubjectQuery,
  SubjectReader,
} from "../../persons/person-reader.ts";
import { type Evaluation, evaluate } from "../evaluate/evaluate.ts";
import { coversPersonKeys } from "../evaluate/flag-set.ts";
import { planHashKeyOverrides } from "../evaluate/hash-key-overrides.ts";
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
  overridden: OverriddenId[];
}

/** How long "no override was ever stored" is cached, in milliseconds. */
const noOverridesMs = 1_000;

/**
 * Reads synchronously if the person store can, as on a single machine; persons whose events are not applied yet are
 * unknown.
 */
export class ContextReader {
  private hasOverrides: MaybePromise<boolean> = false;
  private overridesCheckedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly persons: SubjectReader) {}

  /** @throws the store's error when it cannot be read, also as a rejected promise. */
  read(set: FlagSet, subject: EvaluationContext): MaybePromise<StoredContext> {
    const withOverrides = set.needs.continuity || this.areOverridesStored();
    // Not `andThen`: its closure would be allocated for each request.
    if (typeof withOverrides === "boolean") return this.readWith(set, subject, withOverrides);
    return withOverrides.then((areStored) => this.readWith(set, subject, areStored));
  }

  private readWith(
    set: FlagSet,
    subject: EvaluationContext,
    withOverrides: boolean,
  ): MaybePromise<StoredContext> {
    const { needs } = set;
    const needsPerson =
      needs.staticCohorts ||
      (needs.personProperties && !coversPersonKeys(set, subject.personProperties ?? nothing));
    const groups = needs.groupProperties ? wantedGroups(set, subject) : noGroups;
    if (!needsPerson && !withOverrides && groups.length === 0)
      return { person: undefined, groupProperties: {}, overridden: [] };
    const { projectId, distinctId, anonDistinctId, now } = subject;
    const isRenamed = withOverrides && Boolean(anonDistinctId) && anonDistinctId !== distinctId;
    const query: SubjectQuery = {
      projectId,
      distinctIds:
        !needsPerson && !withOverrides ? [] : isRenamed ? [distinctId, anonDistinctId!] : [distinctId],
      withCohorts: needs.staticCohorts,
      withOverrides,
      groups,
      nowMicros: now * 1_000,
    };
    const stored = this.persons.subject(query);
    if (!(stored instanceof Promise)) return toContext(stored, needsPerson, groups);
    return stored.then((found) => toContext(found, needsPerson, groups));
  }

  /** Overrides apply even after their flag's continuity was switched off, but most projects never have any. */
  private areOverridesStored(): MaybePromise<boolean> {
    if (this.hasOverrides === true) return true;
    const now = performance.now();
    if (now - this.overridesCheckedAt >= noOverridesMs) {
      this.overridesCheckedAt = now;
      this.hasOverrides = this.persons.hasHashKeyOverrides();
    }
    const { hasOverrides } = this;
    if (typeof hasOverrides === "boolean") return hasOverrides;
    return hasOverrides.then(
      (found) => {
        this.hasOverrides = found;
        return found;
      },
      (error) => {
        // The next request checks again.
        this.hasOverrides = false;
        this.overridesCheckedAt = Number.NEGATIVE_INFINITY;
        throw error;
      },
    );
  }
}

interface NamedGroup extends GroupKey {
  /** Of the group type. */
  name: string;
}

const noGroups: NamedGroup[] = [];

/** The groups of the subject whose stored properties can matter. */
function wantedGroups(set: FlagSet, { groups, groupProperties }: EvaluationContext): NamedGroup[] {
  const wanted: NamedGroup[] = [];
  for (const [typeIndex, keys] of set.needs.groupKeys) {
    const name = set.groupTypeNames.get(typeIndex);
    if (name === undefined || keys.size === 0) continue;
    const sentKey = getOwnProperty(groups, name);
    const key =
      typeof sentKey === "number"
        ? String(sentKey)
        : typeof sentKey === "string"
          ? sentKey
          : formatNumber(sentKey);
    if (key === undefined) continue;
    const sent = getOwnProperty(groupProperties, name);
    if (isJsonObject(sent) && [...keys].every((key) => Object.hasOwn(sent, key))) continue;
    wanted.push({ typeIndex, key, name });
  }
  return wanted;
}

function toContext(
  { person, staticCohortIds, overridden, groups }: StoredSubject,
  needsPerson: boolean,
  wanted: readonly NamedGroup[],
): StoredContext {
  // A group type may have the name of a member of every object.
  const groupProperties: Record<string, JsonObject> = Object.create(null);
  for (const [at, { name }] of wanted.entries()) {
    const group = groups[at];
    if (group !== undefined) groupProperties[name] = group.properties as JsonObject;
  }
  return {
    person: person && needsPerson ? new PersonWithJson(person, staticCohortIds) : undefined,
    groupProperties,
    overridden,
  };
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
export async function evaluateStored(
  persons: SubjectReader,
  set: FlagSet,
  question: StoredContextQuery,
): Promise<Evaluation> {
  const { distinctId, groups, flagKeys, now, timezone } = question;
  const stored = await new ContextReader(persons).read(set, { ...question, now: now.getTime() });
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
