/** Reads persons from `people.sqlite`. */

import { sanitizeString } from "../lib/json/canonical.ts";
import {
  cohortMembersPage,
  cohortsOfPerson,
  cohortsOfPersons,
  countCohortMembers,
} from "./cohort-members.ts";
import {
  findGroup,
  type GroupPageOptions,
  groupJsonPage,
  listGroups,
  listGroupTypes,
  searchGroups,
} from "./groups.ts";
import { hasHashKeyOverrides, hashKeyOverrides, pendingHashKeyOverrides } from "./hash-key-overrides.ts";
import type { PersonsDb } from "./open.ts";
import type { Person, PersonJson } from "./person.ts";
import type { GroupKey, OverriddenId, PersonReader, StoredSubject, SubjectQuery } from "./person-reader.ts";
import {
  distinctIdOwners,
  getDistinctIds,
  personByDistinctId,
  personByUuid,
  personJsonByDistinctId,
  personJsonByDistinctIds,
  personsPage,
  personsWithIds,
} from "./reader.ts";
import { listPersons, type PageOptions, searchPersons } from "./search.ts";

export class SqlitePersonReader implements PersonReader {
  /** @param db opened read-only: every statement sees what is committed at that time. */
  constructor(private readonly db: PersonsDb) {}

  /** Synchronous: most requests need at most one statement. */
  subject(query: SubjectQuery): StoredSubject {
    const { db } = this;
    const { projectId, distinctIds, withCohorts } = query;
    const person = distinctIds.length === 0 ? undefined : this.personOf(projectId, distinctIds[0]!);
    return {
      person,
      staticCohortIds: withCohorts && person !== undefined ? cohortsOfPerson(db, person.id) : undefined,
      overridden: query.withOverrides ? this.overridden(query, person) : [],
      groups: query.groups.map(({ typeIndex, key }) =>
        findGroup(db, projectId, typeIndex, sanitizeString(key)),
      ),
    };
  }

  hasHashKeyOverrides(): boolean {
    return hasHashKeyOverrides(this.db);
  }

  async personByDistinctId(projectId: number, distinctId: string) {
    return personByDistinctId(this.db, projectId, distinctId);
  }

  async personByUuid(projectId: number, uuid: string) {
    return personByUuid(this.db, projectId, uuid);
  }

  async listPersons(projectId: number, page?: PageOptions) {
    return listPersons(this.db, projectId, page);
  }

  async searchPersons(projectId: number, search: string, page?: PageOptions) {
    return await searchPersons(this.db, projectId, search, page);
  }

  async personsByDistinctIds(projectId: number, distinctIds: Iterable<string>) {
    return personJsonByDistinctIds(this.db, projectId, distinctIds);
  }

  async distinctIdOwners(projectId: number, distinctIds: readonly string[]) {
    return distinctIdOwners(this.db, projectId, distinctIds);
  }

  async personsWithIds(projectId: number, distinctIds: readonly string[]) {
    return personsWithIds(this.db, projectId, distinctIds);
  }

  async personPage(projectId: number, page?: { afterId?: number; limit?: number }) {
    return personsPage(this.db, projectId, page);
  }

  async distinctIds(persons: readonly Pick<Person, "id" | "mainDistinctId">[]) {
    return getDistinctIds(this.db, persons);
  }

  async cohortMembers(cohortId: number, page?: { afterId?: number; limit?: number }) {
    return cohortMembersPage(this.db, cohortId, page);
  }

  async cohortsOfPersons(personIds: readonly number[]) {
    return cohortsOfPersons(this.db, personIds);
  }

  async hashKeyOverrides(projectId: number, distinctIds: readonly string[]) {
    const found = distinctIds.map((id) => [id, hashKeyOverrides(this.db, projectId, [id])] as const);
    return new Map(found.filter(([, overrides]) => overrides.size > 0));
  }

  async cohortSizes(cohortIds: readonly number[]) {
    return new Map(cohortIds.map((id) => [id, countCohortMembers(this.db, id)]));
  }

  async groupTypes(projectId: number) {
    return listGroupTypes(this.db, projectId);
  }

  async findGroup(projectId: number, typeIndex: number, key: string) {
    return findGroup(this.db, projectId, typeIndex, key);
  }

  async listGroups(projectId: number, typeIndex: number, page?: GroupPageOptions) {
    return listGroups(this.db, projectId, typeIndex, page);
  }

  async groupPage(projectId: number, after: GroupKey | undefined, limit: number) {
    return groupJsonPage(this.db, projectId, after, limit);
  }

  async searchGroups(projectId: number, typeIndex: number, search: string, page?: GroupPageOptions) {
    return await searchGroups(this.db, projectId, typeIndex, search, page);
  }

  private personOf(projectId: number, distinctId: string): PersonJson | undefined {
    // An empty ID belongs to no person, and capture stores no NUL.
    return distinctId === ""
      ? undefined
      : personJsonByDistinctId(this.db, projectId, sanitizeString(distinctId));
  }

  private overridden(query: SubjectQuery, person: PersonJson | undefined): OverriddenId[] {
    const [distinctId, former] = query.distinctIds as [string, string?];
    const found = distinctId === "" ? [] : [this.overridesOf(query, distinctId, person)];
    if (former === undefined) return found;
    const formerPerson = this.personOf(query.projectId, former);
    if (formerPerson === undefined || formerPerson.id !== person?.id)
      found.push(this.overridesOf(query, former, formerPerson));
    return found;
  }

  /**
   * The person's overrides win; the ID's own apply until the person gets them, which may take a moment in a cluster.
   */
  private overridesOf(
    { projectId, nowMicros }: SubjectQuery,
    distinctId: string,
    person: PersonJson | undefined,
  ): OverriddenId {
    const stored = sanitizeString(distinctId);
    const own = pendingHashKeyOverrides(this.db, projectId, stored, nowMicros);
    if (person === undefined)
      return { distinctId, hasPerson: false, isOld: own.isOld, overrides: own.overrides };
    const ofPerson = hashKeyOverrides(this.db, projectId, [stored]);
    const overrides = own.overrides.size === 0 ? ofPerson : new Map([...own.overrides, ...ofPerson]);
    return { distinctId, hasPerson: true, isOld: false, overrides };
  }
}
