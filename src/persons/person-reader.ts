/**
 * The port for reading persons: who they are, their groups, cohorts and overrides. Readers use it instead of a store, which
 * is SQLite on a single machine. An implementation passes `test/persons/person-reader-conformance.ts`.
 */

import type { MaybePromise } from "../lib/concurrency.ts";
import type { Group, GroupJson, GroupPage, GroupPageOptions, GroupType } from "./groups.ts";
import type { Person, PersonJson } from "./person.ts";
import type { DistinctIdOwner, PersonWithIds } from "./reader.ts";
import type { PageOptions, PersonList } from "./search.ts";

/** What evaluating flags for one subject reads. */
export interface SubjectQuery {
  projectId: number;
  /** The subject's ID, then the one it had before it was identified; empty if no person is needed. */
  distinctIds: readonly string[];
  withCohorts: boolean;
  withOverrides: boolean;
  groups: readonly GroupKey[];
  nowMicros: number;
}

export interface GroupKey {
  typeIndex: number;
  key: string;
}

export interface StoredSubject {
  /** The person of the first ID. */
  person: PersonJson | undefined;
  /** The person's static cohorts; undefined unless requested. */
  staticCohortIds: ReadonlySet<number> | undefined;
  /** By distinct ID, except for a second ID of the same person; empty unless requested. */
  overridden: OverriddenId[];
  /** In the order of the query. */
  groups: (Group | undefined)[];
}

/** A distinct ID with the hash keys of its person, or its own until it gets a person. */
export interface OverriddenId {
  distinctId: string;
  hasPerson: boolean;
  /** They expire soon unless they are requested again; never those of a person. */
  isOld: boolean;
  /** Hash keys by flag key. */
  overrides: ReadonlyMap<string, string>;
}

/** What is known of one distinct ID. */
export interface StoredId {
  person: PersonJson | undefined;
  /** The person's static cohorts; empty without a person. */
  staticCohortIds: ReadonlySet<number>;
  /** Undefined for an empty ID. */
  overridden: OverriddenId | undefined;
}

/** Reads what flag evaluation needs for many requests at once. */
export interface SubjectSource {
  /** In the order of the IDs. @throws when the store cannot be read */
  storedIds(
    ids: readonly { projectId: number; distinctId: string }[],
    nowMicros: number,
  ): Promise<StoredId[]>;
  /** In the order of the keys. @throws when the store cannot be read */
  storedGroups(keys: readonly (GroupKey & { projectId: number })[]): Promise<(Group | undefined)[]>;
  /** See `SubjectReader`. */
  hasHashKeyOverrides(): MaybePromise<boolean>;
}

/** Combines what is known of a query's IDs. @param ids in the order of the query */
export function toSubject(
  query: Pick<SubjectQuery, "withCohorts" | "withOverrides">,
  ids: readonly StoredId[],
  groups: (Group | undefined)[],
): StoredSubject {
  const person = ids[0]?.person;
  const others = ids.filter(
    (id, index) => index === 0 || id.person === undefined || id.person.id !== person?.id,
  );
  return {
    person,
    staticCohortIds: query.withCohorts && person !== undefined ? ids[0]!.staticCohortIds : undefined,
    overridden: query.withOverrides ? others.flatMap(({ overridden }) => overridden ?? []) : [],
    groups,
  };
}

/** Reads for flag evaluation. Synchronous if the store or a cache has the values. */
export interface SubjectReader {
  /** @throws when the store cannot be read, also as a rejected promise */
  subject(query: SubjectQuery): MaybePromise<StoredSubject>;
  /** Whether any override was ever stored, for a person or pending. */
  hasHashKeyOverrides(): MaybePromise<boolean>;
}

export interface PersonReader extends SubjectReader {
  personByDistinctId(projectId: number, distinctId: string): Promise<Person | undefined>;
  personByUuid(projectId: number, uuid: string): Promise<Person | undefined>;
  /** Newest first; fewer than the limit if they are large. */
  listPersons(projectId: number, page?: PageOptions): Promise<PersonList>;
  /**
   * Like `listPersons`, for persons with `search` in e-mail, name, username or a distinct ID, ignoring case. With more
   * than `searchMatchesMax` matches, the result is the newest of those found first.
   */
  searchPersons(projectId: number, search: string, page?: PageOptions): Promise<PersonList>;
  /** The persons with these distinct IDs, which may be thousands; IDs without a person are omitted. */
  personsByDistinctIds(projectId: number, distinctIds: Iterable<string>): Promise<Map<string, PersonJson>>;
  /** Who has these distinct IDs; IDs without a person are omitted. */
  distinctIdOwners(projectId: number, distinctIds: readonly string[]): Promise<DistinctIdOwner[]>;
  /** The persons with any of these distinct IDs, each with all distinct IDs. */
  personsWithIds(projectId: number, distinctIds: readonly string[]): Promise<PersonWithIds[]>;
  /**
   * All persons of a project in pages ordered by ID: continue with the last `id` until a page is empty. Pages of large
   * persons are shorter than the limit.
   */
  personPage(projectId: number, page?: { afterId?: number; limit?: number }): Promise<Person[]>;
  /** The distinct IDs of persons by person, main ID first, then by order of joining. */
  distinctIds(persons: readonly Pick<Person, "id" | "mainDistinctId">[]): Promise<Map<number, string[]>>;
  /** Members of a static cohort in pages ordered by ID: continue with the last `id`. */
  cohortMembers(cohortId: number, page?: { afterId?: number; limit?: number }): Promise<Person[]>;
  /** The static cohorts of each person. */
  cohortsOfPersons(personIds: readonly number[]): Promise<Map<number, ReadonlySet<number>>>;
  /** Hash keys by flag key of the person of each distinct ID; IDs without any are omitted. */
  hashKeyOverrides(
    projectId: number,
    distinctIds: readonly string[],
  ): Promise<Map<string, ReadonlyMap<string, string>>>;
  /** Current number of members of each static cohort; 0 if it does not exist. */
  cohortSizes(cohortIds: readonly number[]): Promise<Map<number, number>>;
  /** The group types of a project, by index. */
  groupTypes(projectId: number): Promise<GroupType[]>;
  findGroup(projectId: number, typeIndex: number, key: string): Promise<Group | undefined>;
  /** A page of the groups of one type, newest first; shorter than the limit if groups are large. */
  listGroups(projectId: number, typeIndex: number, page?: GroupPageOptions): Promise<GroupPage>;
  /** Like `listGroups`, for groups with `search` in their key or their property `name`, ignoring case. */
  searchGroups(
    projectId: number,
    typeIndex: number,
    search: string,
    page?: GroupPageOptions,
  ): Promise<GroupPage>;
  /** All groups of a project with serialized properties, ordered by type and key. */
  groupPage(projectId: number, after: GroupKey | undefined, limit: number): Promise<GroupJson[]>;
}
