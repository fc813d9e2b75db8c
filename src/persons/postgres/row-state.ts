/** Loads what batches of events may touch from rows in PostgreSQL, with few statements per batch. */

import type { Sql } from "postgres";
import { anonymousIdHash } from "../anonymous-ids.ts";
import type { PlannedEvent } from "../batch.ts";
import { CachedPersons } from "../cached-persons.ts";
import { GroupState } from "../identity/group-rules.ts";
import { changesPersons } from "../identity/operations.ts";
import { mergedIdsMax } from "../identity/person-rules.ts";
import { Person, PersonsState, type StoredDistinctId, type StoredPerson } from "../identity/persons-state.ts";
import type { PropertyState } from "../identity/property-state.ts";
import { readObjectState } from "../property-columns.ts";
import { hashList, numberList } from "./hashes.ts";

/** Runs statements, on any connection or in a transaction. */
export type Run = <Result>(work: (sql: Sql) => Promise<Result>) => Promise<Result>;

export interface RowStateDeps {
  /** Group types by project. */
  groupTypes: (projectId: number) => { name: string; typeIndex: number }[];
}

interface PropertyRow {
  properties: string;
  propertyTimes: Uint8Array;
  unsetTimes: string | null;
  searchText: string | null;
}

type IdRow = StoredPerson & StoredDistinctId & { [Name in keyof PropertyRow]: PropertyRow[Name] | null };

/** Of `flagkeep.person AS p`. */
const propertyColumns = `p.properties, p.property_times AS "propertyTimes", p.unset_times AS "unsetTimes",
  p.search_text AS "searchText"`;
/** Distinct IDs per statement. */
const idsAtOnce = 10_000;
/** As many as a value of the sequence reserves. */
const reservedIds = 1_000;

interface WantedId {
  projectId: number;
  id: string;
  /** Whether its person's properties are needed: events merge or write them. */
  isChanging: boolean;
}

/** The persons, group types and groups that the events of a step refer to, and cached persons of earlier steps. */
export class RowState {
  readonly people: PersonsState;
  groups = new GroupState();
  readonly personlessIds = new PersonlessIds();
  /** Characters of properties read in this step. */
  loadedCharacters = 0;
  /** Persons in memory, by ID. */
  readonly persons = new CachedPersons();
  /** Read with a person, until its properties are used. */
  private readonly columns = new Map<number, PropertyRow>();
  /** Persons whose properties were read or used. */
  private readonly known = new WeakSet<Person>();
  /** IDs that persons had before the step, for merges. */
  private readonly idsBefore = new Map<number, StoredDistinctId[]>();
  /** Distinct IDs and groups already looked up in this step. */
  private readonly sought = new Set<string>();
  private readonly soughtTypes = new Set<number>();
  private readonly unusedIds: number[] = [];

  constructor(private readonly deps: RowStateDeps) {
    this.people = new PersonsState(
      (person) => this.idsBefore.get(person.rowId) ?? [],
      () => this.unusedIds.pop()!,
      this.personlessIds,
    );
  }

  /** Reads what the events refer to and is not in memory. */
  async load(planned: readonly PlannedEvent[], run: Run): Promise<void> {
    await this.personlessIds.load(planned, run);
    const wanted = this.wantedIds(planned);
    for (let at = 0; at < wanted.length; at += idsAtOnce)
      await this.loadPersons(wanted.slice(at, at + idsAtOnce), run);
    await this.loadProperties(planned, run);
    await this.loadIds(planned, run);
    await this.loadGroups(planned, run);
    await this.reserveIds(planned.length, run);
  }

  /**
   * Called when the state is written, to be reused by the next step.
   * @returns false if the state is so large that the next step should start with an empty one
   */
  settle(): boolean {
    for (const person of this.people.touched) {
      if (person.isFolded) this.drop(person);
      else {
        this.persons.add(person);
        if (person.isNew) this.known.add(person);
      }
    }
    this.people.settle();
    this.personlessIds.settle();
    this.groups = new GroupState();
    this.sought.clear();
    this.soughtTypes.clear();
    this.idsBefore.clear();
    this.loadedCharacters = 0;
    return this.persons.isReusable(this.people);
  }

  private drop(person: Person): void {
    this.persons.remove(person);
    this.columns.delete(person.rowId);
  }

  /** Assigns known IDs to events. @returns the others, without those already looked up */
  private wantedIds(planned: readonly PlannedEvent[]): WantedId[] {
    const wanted = new Map<string, WantedId>();
    const want = (projectId: number, id: string, isChanging: boolean) => {
      const key = `${projectId} ${id}`;
      const found = wanted.get(key);
      if (found !== undefined) found.isChanging ||= isChanging;
      else if (!this.sought.has(key)) wanted.set(key, { projectId, id, isChanging });
      this.sought.add(key);
    };
    for (const plannedEvent of planned) {
      const { operations } = plannedEvent;
      const { projectId } = plannedEvent.event;
      plannedEvent.own = this.people.id(projectId, operations.distinctId);
      if (plannedEvent.own === undefined) want(projectId, operations.distinctId, changesPersons(operations));
      if (operations.merge === undefined) continue;
      const { otherId } = operations.merge;
      if (this.people.id(projectId, otherId) === undefined) want(projectId, otherId, true);
    }
    return [...wanted.values()];
  }

  private async loadPersons(wanted: readonly WantedId[], run: Run): Promise<void> {
    const rows = await run(
      (sql) => sql<IdRow[]>`
        SELECT d.distinct_id AS "distinctId", d.joined, p.id::float8 AS "rowId", p.project_id AS "projectId", p.uuid,
          p.main_distinct_id AS "mainDistinctId", p.is_main_alias AS "isMainAlias", p.joined_count AS "joinedCount",
          p.is_identified AS "isIdentified", p.created_at::float8 AS "createdMicros", p.version,
          CASE WHEN w.changes THEN p.properties END AS properties,
          CASE WHEN w.changes THEN p.property_times END AS "propertyTimes",
          p.unset_times AS "unsetTimes", p.search_text AS "searchText"
        FROM unnest(${numberList(wanted.map(({ projectId }) => projectId))}::text::int[],
          ${hashList(wanted.map(({ id }) => id))}::text::uuid[],
          ${numberList(wanted.map(({ isChanging }) => Number(isChanging)))}::text::int[]::boolean[]) AS w(project_id, hash, changes)
        JOIN flagkeep.distinct_id d ON d.project_id = w.project_id AND d.id_hash = w.hash
        JOIN flagkeep.person p ON p.id = d.person_id`,
    );
    for (const { distinctId, joined, properties, propertyTimes, unsetTimes, searchText, ...stored } of rows) {
      const person = this.persons.get(stored.rowId) ?? this.addPerson(stored);
      if (properties !== null && !this.known.has(person))
        this.addProperties(person, { properties, propertyTimes: propertyTimes!, unsetTimes, searchText });
      this.people.addStoredId(person, { distinctId, joined });
    }
  }

  private addPerson(stored: StoredPerson): Person {
    const person = new Person(stored, false, (self) => this.bagOf(self));
    this.persons.add(person);
    return person;
  }

  private addProperties(person: Person, row: PropertyRow): void {
    this.columns.set(person.rowId, row);
    this.known.add(person);
    const { length: characters } = row.properties;
    this.loadedCharacters += characters;
    this.persons.recordRead(person, row.searchText, characters);
  }

  private bagOf({ rowId, uuid }: Person): PropertyState {
    const row = this.columns.get(rowId);
    if (row === undefined) throw new Error(`The properties of person ${uuid} were not read.`);
    this.columns.delete(rowId);
    return readObjectState(row.properties, row.propertyTimes, row.unsetTimes);
  }

  /** Properties of persons that are in memory without them and are changed now. */
  private async loadProperties(planned: readonly PlannedEvent[], run: Run): Promise<void> {
    const missing = new Map<number, Person>();
    for (const { event, operations } of planned) {
      if (!changesPersons(operations)) continue;
      for (const person of this.personsOf(event.projectId, operations))
        if (!person.isNew && !this.known.has(person)) missing.set(person.rowId, person);
    }
    if (missing.size === 0) return;
    const rows = await run(
      (sql) => sql<(PropertyRow & { id: number })[]>`
        SELECT p.id::float8 AS id, ${sql.unsafe(propertyColumns)} FROM flagkeep.person p
        WHERE p.id = ANY(${numberList(missing.keys())}::text::bigint[])`,
    );
    for (const { id, ...row } of rows) this.addProperties(missing.get(id)!, row);
  }

  /** The IDs of persons that may be merged into others. */
  private async loadIds(planned: readonly PlannedEvent[], run: Run): Promise<void> {
    const wanted = new Set<number>();
    for (const { event, operations } of planned) {
      if (operations.merge === undefined) continue;
      for (const { isNew, rowId, joinedCount } of this.personsOf(event.projectId, operations))
        if (!isNew && joinedCount <= mergedIdsMax && !this.idsBefore.has(rowId)) wanted.add(rowId);
    }
    if (wanted.size === 0) return;
    for (const id of wanted) this.idsBefore.set(id, []);
    const rows = await run(
      (sql) => sql<(StoredDistinctId & { personId: number })[]>`
        SELECT person_id::float8 AS "personId", distinct_id AS "distinctId", joined FROM flagkeep.distinct_id
        WHERE person_id = ANY(${numberList(wanted)}::text::bigint[]) ORDER BY person_id, joined`,
    );
    for (const { personId, ...id } of rows) this.idsBefore.get(personId)!.push(id);
  }

  private personsOf(projectId: number, { distinctId, merge }: PlannedEvent["operations"]): Person[] {
    const own = this.people.find(projectId, distinctId);
    const other = merge === undefined ? undefined : this.people.find(projectId, merge.otherId);
    return [own, other].filter((person) => person !== undefined);
  }

  private async loadGroups(planned: readonly PlannedEvent[], run: Run): Promise<void> {
    const wanted: { projectId: number; typeIndex: number; key: string }[] = [];
    for (const { event, operations } of planned) {
      const { projectId } = event;
      const { groupTypes, groupIdentify } = operations;
      if (groupTypes.length === 0 && groupIdentify === undefined) continue;
      this.loadGroupTypes(projectId);
      if (groupIdentify === undefined) continue;
      const { type, key } = groupIdentify;
      const typeIndex = this.groups.typeIndex(projectId, type);
      // Groups of a type that is new have no row.
      if (typeIndex === undefined || this.groups.find(projectId, typeIndex, key) !== undefined) continue;
      const name = `group ${projectId} ${typeIndex} ${key}`;
      if (!this.sought.has(name)) wanted.push({ projectId, typeIndex, key });
      this.sought.add(name);
    }
    if (wanted.length === 0) return;
    const rows = await run(
      (sql) => sql<GroupRow[]>`
        SELECT g.project_id AS "projectId", g.type_index AS "typeIndex", g.group_key AS key,
          g.created_at::float8 AS "createdMicros", g.version, g.properties, g.property_times AS "propertyTimes"
        FROM unnest(${numberList(wanted.map(({ projectId }) => projectId))}::text::int[],
          ${numberList(wanted.map(({ typeIndex }) => typeIndex))}::text::int[],
          ${hashList(wanted.map(({ key }) => key))}::text::uuid[]) AS w(project_id, type_index, hash)
        JOIN flagkeep.project_group g
          ON g.project_id = w.project_id AND g.type_index = w.type_index AND g.key_hash = w.hash`,
    );
    for (const { properties, propertyTimes, ...group } of rows) {
      const bag = readObjectState(properties, propertyTimes, null);
      this.groups.add({ ...group, bag, isNew: false, isDirty: false });
    }
  }

  private loadGroupTypes(projectId: number): void {
    if (this.soughtTypes.has(projectId)) return;
    this.soughtTypes.add(projectId);
    for (const { name, typeIndex } of this.deps.groupTypes(projectId))
      this.groups.addStoredType(projectId, name, typeIndex);
  }

  /** Each event creates at most one person. */
  private async reserveIds(count: number, run: Run): Promise<void> {
    const missing = count - this.unusedIds.length;
    if (missing <= 0) return;
    const rows = await run(
      (sql) => sql<{ last: number }[]>`
        SELECT nextval('flagkeep.person_ids')::float8 AS last
        FROM generate_series(1, ${Math.ceil(missing / reservedIds)}::int)`,
    );
    // The lowest one is used first.
    for (const { last } of rows.toReversed())
      for (let id = last + reservedIds - 1; id >= last; id--) this.unusedIds.push(id);
  }
}

interface GroupRow {
  projectId: number;
  typeIndex: number;
  key: string;
  createdMicros: number;
  version: number;
  properties: string;
  propertyTimes: Uint8Array;
}

/** Distinct IDs that had anonymous events (contract: ingestion 13.3, item 2). */
class PersonlessIds {
  private readonly known = new Set<string>();
  /** With project and hash. */
  readonly added = new Map<string, { projectId: number; hash: bigint }>();

  /** Reads the state of IDs that are to be merged. */
  async load(planned: readonly PlannedEvent[], run: Run): Promise<void> {
    const wanted = planned.flatMap(({ event: { projectId }, operations: { distinctId, merge } }) =>
      merge === undefined
        ? []
        : [distinctId, merge.otherId].map((id) => ({ projectId, hash: anonymousIdHash(id) })),
    );
    if (wanted.length === 0) return;
    const rows = await run(
      (sql) => sql<{ projectId: number; hash: string }[]>`
        SELECT i.project_id AS "projectId", i.id_hash::text AS hash
        FROM unnest(${numberList(wanted.map(({ projectId }) => projectId))}::text::int[],
          ${`{${wanted.map(({ hash }) => hash).join(",")}}`}::text::bigint[]) AS w(project_id, hash)
        JOIN flagkeep.personless_id i ON i.project_id = w.project_id AND i.id_hash = w.hash`,
    );
    for (const { projectId, hash } of rows) this.known.add(`${projectId} ${hash}`);
  }

  add(projectId: number, distinctId: string): void {
    const hash = anonymousIdHash(distinctId);
    this.added.set(`${projectId} ${hash}`, { projectId, hash });
  }

  has(projectId: number, distinctId: string): boolean {
    const key = `${projectId} ${anonymousIdHash(distinctId)}`;
    return this.known.has(key) || this.added.has(key);
  }

  /** Called when the batch is stored. */
  settle(): void {
    this.known.clear();
    this.added.clear();
  }
}
