/** Loads what batches of events may touch, with one query per project, batch and kind of row. */

import type { Database } from "bun:sqlite";
import { AnonymousIds } from "./anonymous-ids.ts";
import type { PlannedEvent } from "./batch.ts";
import { CachedPersons } from "./cached-persons.ts";
import { GroupState } from "./identity/group-rules.ts";
import { changesPersons } from "./identity/operations.ts";
import { Person, PersonsState, type StoredDistinctId } from "./identity/persons-state.ts";
import type { PropertyState } from "./identity/property-state.ts";
import { readPropertyState } from "./property-columns.ts";

type PersonRow = [
  distinctId: string,
  joined: number,
  rowId: number,
  uuid: string,
  mainDistinctId: string,
  isMainAlias: number,
  joinedCount: number,
  isIdentified: number,
  createdMicros: number,
  version: number,
  ...NullablePropertyRow,
];

type PropertyRow = [
  properties: string,
  propertyTimes: Uint8Array,
  unsetTimes: string | null,
  searchText: string | null,
];
type NullablePropertyRow = PropertyRow | [null, null, null, null];

/** Persons by the distinct IDs in ?2, with properties if ?3. */
const personsOfIds = `
  SELECT d.distinct_id, d.joined, p.id, p.uuid, p.main_distinct_id, p.is_main_alias, p.joined_count,
         p.is_identified, p.created_at, p.version,
         iif(?3, p.properties, NULL), iif(?3, p.property_times, NULL), iif(?3, p.unset_times, NULL),
         iif(?3, p.search_text, NULL)
  FROM json_each(?2) AS wanted
  CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
  CROSS JOIN person AS p ON p.id = d.person_id`;

type GroupRow = [
  typeIndex: number,
  key: string,
  createdMicros: number,
  version: number,
  properties: string,
  propertyTimes: Uint8Array,
];

const groupsOfKeys = `
  SELECT g.type_index, g.group_key, g.created_at, g.version, g.properties, g.property_times
  FROM json_each(?2) AS wanted
  CROSS JOIN project_group AS g
    ON g.project_id = ?1 AND g.type_index = wanted.value ->> 0 AND g.group_key = wanted.value ->> 1`;

/** The persons, group types and groups that the events of a step refer to, and cached persons of earlier steps. */
export class BatchState {
  readonly people: PersonsState;
  groups = new GroupState();
  readonly personlessIds: AnonymousIds;
  /** Characters of properties read in this step. */
  loadedCharacters = 0;
  /** Persons in memory, by ID. */
  readonly persons = new CachedPersons();
  /** Distinct IDs and group keys already looked up, per project. */
  private readonly soughtIds = new Map<number, Set<string>>();
  private readonly soughtGroups = new Map<number, Set<string>>();

  /** @param client must not be written by others until the state is written */
  constructor(private readonly client: Database) {
    this.personlessIds = new AnonymousIds(client);
    this.people = new PersonsState(getStoredIds(client), rowIds(client), this.personlessIds);
  }

  /** Reads what the events refer to and is not in memory. */
  load(planned: readonly PlannedEvent[]): void {
    this.personlessIds.load(planned);
    this.loadPeople(planned);
    this.loadGroups(planned);
  }

  /**
   * Called when the state is written, to be reused by the next step.
   * @returns false if the state is so large that the next step should start with an empty one
   */
  settle(): boolean {
    for (const person of this.people.touched) {
      if (person.isFolded) this.persons.remove(person);
      else this.persons.add(person);
    }
    this.people.settle();
    this.personlessIds.settle();
    this.groups = new GroupState();
    this.soughtIds.clear();
    this.soughtGroups.clear();
    this.loadedCharacters = 0;
    return this.persons.isReusable(this.people);
  }

  private loadPeople(planned: readonly PlannedEvent[]): void {
    const query = this.client.query<PersonRow, [number, string, number]>(personsOfIds);
    for (const [projectId, { changing, others }] of this.unsoughtIds(planned)) {
      // Changing IDs first: their persons are read with properties.
      for (const ids of [changing, others]) {
        if (ids.size === 0) continue;
        const list = JSON.stringify([...ids]);
        for (const row of query.values(projectId, list, ids === changing ? 1 : 0) as PersonRow[]) {
          const person = this.persons.get(row[2]) ?? this.addPerson(projectId, row);
          this.people.addStoredId(person, { distinctId: row[0], joined: row[1] });
        }
      }
    }
  }

  /** Assigns known IDs to events. @returns the other IDs that events refer to, without those already looked up */
  private unsoughtIds(planned: readonly PlannedEvent[]): Map<number, WantedIds> {
    const byProject = new Map<number, WantedIds>();
    const want = (projectId: number, id: string, isChanging: boolean) => {
      const sought = this.soughtIds.get(projectId) ?? new Set();
      this.soughtIds.set(projectId, sought);
      const wanted = byProject.get(projectId) ?? { changing: new Set(), others: new Set() };
      byProject.set(projectId, wanted);
      if (!sought.has(id)) {
        sought.add(id);
        (isChanging ? wanted.changing : wanted.others).add(id);
      } else if (isChanging && wanted.others.delete(id)) wanted.changing.add(id);
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
    return byProject;
  }

  private addPerson(projectId: number, row: PersonRow): Person {
    const [, , rowId, uuid, mainDistinctId, isMainAlias, joinedCount, isIdentified, createdMicros, version] =
      row;
    const stored = {
      rowId,
      projectId,
      uuid,
      mainDistinctId,
      isMainAlias: isMainAlias === 1,
      joinedCount,
      isIdentified: isIdentified === 1,
      createdMicros,
      version,
    };
    const columns = row.slice(10) as NullablePropertyRow;
    const person = new Person(stored, false, (self) => this.bagOf(self, columns));
    this.persons.add(person);
    return person;
  }

  /** @param columns as read with the person; null if they were not read */
  private bagOf(person: Person, columns: NullablePropertyRow): PropertyState {
    const [properties, propertyTimes, unsetTimes, searchText] =
      columns[0] === null ? this.propertiesOf(person.rowId) : (columns as PropertyRow);
    const { length: characters } = properties;
    this.loadedCharacters += characters;
    this.persons.recordRead(person, searchText, characters);
    return readPropertyState(this.client, properties, propertyTimes, unsetTimes);
  }

  private propertiesOf(rowId: number): PropertyRow {
    return this.client
      .query<PropertyRow, [number]>(
        "SELECT properties, property_times, unset_times, search_text FROM person WHERE id = ?",
      )
      .values(rowId)[0] as PropertyRow;
  }

  private loadGroups(planned: readonly PlannedEvent[]): void {
    const projects = new Set<number>();
    for (const { event, operations } of planned) {
      if (operations.groupTypes.length > 0 || operations.groupIdentify !== undefined)
        projects.add(event.projectId);
    }
    for (const projectId of projects) {
      if (!this.soughtGroups.has(projectId)) this.loadGroupTypes(projectId);
      const sought = this.soughtGroups.get(projectId)!;
      const keys = getGroupKeys(this.groups, projectId, planned).filter(([type, key]) => {
        const isNew = !sought.has(`${type}:${key}`) && this.groups.find(projectId, type, key) === undefined;
        if (isNew) sought.add(`${type}:${key}`);
        return isNew;
      });
      if (keys.length > 0) this.loadGroupsOf(projectId, keys);
    }
  }

  private loadGroupTypes(projectId: number): void {
    this.soughtGroups.set(projectId, new Set());
    const types = this.client.query<{ name: string; typeIndex: number }, [number]>(
      "SELECT name, type_index AS typeIndex FROM group_type WHERE project_id = ?",
    );
    for (const { name, typeIndex } of types.all(projectId))
      this.groups.addStoredType(projectId, name, typeIndex);
  }

  private loadGroupsOf(projectId: number, keys: readonly [number, string][]): void {
    const query = this.client.query<GroupRow, [number, string]>(groupsOfKeys);
    for (const row of query.values(projectId, JSON.stringify(keys)) as GroupRow[]) {
      const [typeIndex, key, createdMicros, version, properties, times] = row;
      const bag = readPropertyState(this.client, properties, times, null);
      this.groups.add({
        projectId,
        typeIndex,
        key,
        createdMicros,
        version,
        bag,
        isNew: false,
        isDirty: false,
      });
    }
  }
}

interface WantedIds {
  /** IDs of events that merge persons or write properties. */
  changing: Set<string>;
  /** IDs of events that only create a missing person. */
  others: Set<string>;
}

function getStoredIds(client: Database): (person: Person) => StoredDistinctId[] {
  const query = client.query<StoredDistinctId, [number]>(
    "SELECT distinct_id AS distinctId, joined FROM distinct_id WHERE person_id = ? ORDER BY joined",
  );
  return (person) => query.all(person.rowId);
}

/** Unused row IDs: SQLite stores the highest one. */
function rowIds(client: Database): () => number {
  const highest = client
    .query<{ seq: number }, []>("SELECT seq FROM sqlite_sequence WHERE name = 'person'")
    .get();
  let last = highest?.seq ?? 0;
  return () => {
    last += 1;
    return last;
  };
}

/** Keys of groups with a known type; others cannot be stored yet. */
function getGroupKeys(
  state: GroupState,
  projectId: number,
  planned: readonly PlannedEvent[],
): [number, string][] {
  const keys = new Map<string, [number, string]>();
  for (const { event, operations } of planned) {
    if (event.projectId !== projectId || operations.groupIdentify === undefined) continue;
    const { type, key } = operations.groupIdentify;
    const typeIndex = state.typeIndex(projectId, type);
    if (typeIndex !== undefined) keys.set(`${typeIndex}:${key}`, [typeIndex, key]);
  }
  return [...keys.values()];
}
