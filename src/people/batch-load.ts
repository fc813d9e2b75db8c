/** Reads what batches of events may touch, once: each kind of row in one query per project and batch. */

import type { Database } from "bun:sqlite";
import type { PlannedEvent } from "./batch.ts";
import { GroupState } from "./identity/group-rules.ts";
import { changesPersons } from "./identity/operations.ts";
import { PeopleState, Person, type StoredDistinctId } from "./identity/people-state.ts";
import type { PropertyBag } from "./identity/property-bag.ts";
import { PersonlessIds } from "./personless-ids.ts";
import { readBag } from "./property-columns.ts";

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

/** Persons of the ids in ?2, with their properties when ?3. */
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

/** The persons, group types and groups that the events of a step name, as they become. */
export class StepState {
  readonly people: PeopleState;
  readonly groups = new GroupState();
  readonly personlessIds: PersonlessIds;
  /** Search texts as stored, by person number; for those that have one and whose properties were read. */
  readonly searchTexts = new Map<number, string>();
  /** Characters of the properties that were read. */
  loadedCharacters = 0;
  private readonly loadedPersons = new Map<number, Person>();
  /** Ids of persons and keys of groups that were looked for, per project. */
  private readonly soughtIds = new Map<number, Set<string>>();
  private readonly soughtGroups = new Map<number, Set<string>>();

  /** @param client the store as it is until the state is written: nobody else changes it meanwhile. */
  constructor(private readonly client: Database) {
    this.personlessIds = new PersonlessIds(client);
    this.people = new PeopleState(storedIdsOf(client), rowIds(client), this.personlessIds);
  }

  /** Reads what the events name and is not here yet. */
  load(planned: readonly PlannedEvent[]): void {
    this.personlessIds.load(planned);
    this.loadPeople(planned);
    this.loadGroups(planned);
  }

  private loadPeople(planned: readonly PlannedEvent[]): void {
    const query = this.client.query<PersonRow, [number, string, number]>(personsOfIds);
    for (const [projectId, { changing, others }] of idsByProject(planned)) {
      // The ids whose events change something go first: their persons come with properties.
      for (const ids of [changing, others]) {
        const wanted = this.unsought(projectId, ids);
        if (wanted.length === 0) continue;
        const list = JSON.stringify(wanted);
        for (const row of query.values(projectId, list, ids === changing ? 1 : 0) as PersonRow[]) {
          const person = this.loadedPersons.get(row[2]) ?? this.addPerson(projectId, row);
          this.people.addStoredId(person, { distinctId: row[0], joined: row[1] });
        }
      }
    }
  }

  /** Notes that ids are looked for. @returns those that were not before; what the step itself has added is known. */
  private unsought(projectId: number, ids: Iterable<string>): string[] {
    const sought = this.soughtIds.get(projectId) ?? new Set();
    this.soughtIds.set(projectId, sought);
    const wanted: string[] = [];
    for (const id of ids) {
      if (sought.has(id) || this.people.find(projectId, id) !== undefined) continue;
      sought.add(id);
      wanted.push(id);
    }
    return wanted;
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
    const person = new Person(stored, false, () => this.bagOf(rowId, columns));
    this.loadedPersons.set(rowId, person);
    this.people.addStored(person);
    return person;
  }

  /** @param columns as read with the person; null where they are wanted only now. */
  private bagOf(rowId: number, columns: NullablePropertyRow): PropertyBag {
    const [properties, propertyTimes, unsetTimes, searchText] =
      columns[0] === null ? this.propertiesOf(rowId) : (columns as PropertyRow);
    this.loadedCharacters += properties.length;
    if (searchText !== null) this.searchTexts.set(rowId, searchText);
    return readBag(properties, propertyTimes, unsetTimes);
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
      const keys = groupKeysOf(this.groups, projectId, planned).filter(([type, key]) => {
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
      const bag = readBag(properties, times, null);
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
  /** Ids of events that merge persons or write properties. */
  changing: Set<string>;
  /** Ids of events that only make a person when there is none. */
  others: Set<string>;
}

function idsByProject(planned: readonly PlannedEvent[]): Map<number, WantedIds> {
  const byProject = new Map<number, WantedIds>();
  for (const { event, operations } of planned) {
    let wanted = byProject.get(event.projectId);
    if (wanted === undefined) {
      wanted = { changing: new Set(), others: new Set() };
      byProject.set(event.projectId, wanted);
    }
    (changesPersons(operations) ? wanted.changing : wanted.others).add(operations.distinctId);
    if (operations.merge !== undefined) wanted.changing.add(operations.merge.otherId);
  }
  for (const { changing, others } of byProject.values()) {
    for (const id of changing) others.delete(id);
  }
  return byProject;
}

function storedIdsOf(client: Database): (person: Person) => StoredDistinctId[] {
  const query = client.query<StoredDistinctId, [number]>(
    "SELECT distinct_id AS distinctId, joined FROM distinct_id WHERE person_id = ? ORDER BY joined",
  );
  return (person) => query.all(person.rowId);
}

/** Row numbers that no person ever had: SQLite remembers the highest. */
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

/** Keys of groups whose type is known; others cannot be stored yet. */
function groupKeysOf(
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
