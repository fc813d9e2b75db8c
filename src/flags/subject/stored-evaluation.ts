/** Evaluates flags with what is stored about a person, for the management API. */

import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { storableText } from "../../lib/unicode.ts";
import { cohortsOfPerson } from "../../people/cohort-members.ts";
import { findGroup, listGroupTypes } from "../../people/groups.ts";
import { hashKeyOverrides } from "../../people/hash-key-overrides.ts";
import type { PeopleDb } from "../../people/open.ts";
import { personByDistinctId } from "../../people/reader.ts";
import { type Evaluation, evaluate } from "../evaluate/evaluate.ts";
import type { FlagSet } from "../evaluate/model.ts";
import type { GroupType } from "../rules/types.ts";
import type { GroupTypeSource } from "../store/flag-sets.ts";

export interface StoredSubject {
  projectId: number;
  timezone: string;
  distinctId: string;
  /** Group keys by the name of the group type. */
  groups: JsonObject;
  /** Only these flags and what they depend on. */
  flagKeys?: readonly string[];
  now: Date;
}

/** The values of a project's active flags for one distinct id. */
export function evaluateStored(people: PeopleDb, set: FlagSet, subject: StoredSubject): Evaluation {
  const { projectId, distinctId, groups } = subject;
  const storedId = storableText(distinctId);
  const person = personByDistinctId(people, projectId, storedId);
  return evaluate(set, {
    distinctId,
    groups,
    person: person && {
      uuid: person.uuid,
      properties: person.properties as JsonObject,
      staticCohortIds: set.needs.staticCohorts ? cohortsOfPerson(people, person.id) : undefined,
    },
    groupProperties: groupPropertiesOf(people, set, projectId, groups),
    hashKeyOverrides: hashKeyOverrides(people, projectId, [storedId]),
    now: subject.now.getTime(),
    timezone: subject.timezone,
    selection: subject.flagKeys?.length ? { flagKeys: subject.flagKeys } : undefined,
  });
}

function groupPropertiesOf(people: PeopleDb, set: FlagSet, projectId: number, groups: JsonObject) {
  const properties: Record<string, JsonObject> = {};
  if (!set.needs.groupProperties) return properties;
  for (const [index, name] of set.groupTypeNames) {
    const key = Object.hasOwn(groups, name) ? groups[name] : undefined;
    if (typeof key !== "string" && typeof key !== "number") continue;
    const group = findGroup(people, projectId, index, storableText(String(key)));
    if (group && isJsonObject(group.properties)) properties[name] = group.properties;
  }
  return properties;
}

/** How long a new group type may stay unnoticed, in milliseconds. */
const checkEveryMs = 2;

/** Reads group types only when the people store changed since the last time. */
export function groupTypesFrom(people: PeopleDb): GroupTypeSource {
  const dataVersion = people.$client.query<{ data_version: number }, []>("PRAGMA data_version");
  const known = new Map<number, { version: number; types: readonly GroupType[] }>();
  let version = 0;
  let checkedAt = Number.NEGATIVE_INFINITY;
  return (projectId) => {
    const now = performance.now();
    if (now - checkedAt >= checkEveryMs) {
      version = dataVersion.get()?.data_version ?? 0;
      checkedAt = now;
    }
    const before = known.get(projectId);
    if (before?.version === version) return before.types;
    const types = listGroupTypes(people, projectId).map(({ typeIndex, name }) => ({
      index: typeIndex,
      name,
    }));
    const isSame = before !== undefined && Bun.deepEquals(before.types, types);
    known.set(projectId, { version, types: isSame ? before.types : types });
    return isSame ? before.types : types;
  };
}
