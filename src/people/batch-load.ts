/** Reads what a batch of events may touch: each kind of row in one query per project. */

import type { Database } from "bun:sqlite";
import type { PlannedEvent } from "./batch.ts";
import { GroupState } from "./identity/group-rules.ts";
import { changesPersons } from "./identity/operations.ts";
import { PeopleState, Person, type StoredDistinctId } from "./identity/people-state.ts";
import { PersonlessIds } from "./personless-ids.ts";
import { readBag } from "./property-columns.ts";

export interface BatchState {
  people: PeopleState;
  /** Search texts as stored, by person number; for those that have one. */
  searchTexts: Map<number, string>;
  groups: GroupState;
  personlessIds: PersonlessIds;
}

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
  properties: string | null,
  propertyTimes: Uint8Array | null,
  unsetTimes: string | null,
  searchText: string | null,
];

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

/** Loads the persons, group types and groups that the events name. */
export function loadState(client: Database, planned: readonly PlannedEvent[]): BatchState {
  const searchTexts = new Map<number, string>();
  const personlessIds = new PersonlessIds(client);
  personlessIds.load(planned);
  return {
    people: loadPeople(client, planned, searchTexts, personlessIds),
    searchTexts,
    groups: loadGroups(client, planned),
    personlessIds,
  };
}

function loadPeople(
  client: Database,
  planned: readonly PlannedEvent[],
  searchTexts: Map<number, string>,
  personlessIds: PersonlessIds,
): PeopleState {
  const state = new PeopleState(storedIdsOf(client), rowIds(client), personlessIds);
  const query = client.query<PersonRow, [number, string, number]>(personsOfIds);
  for (const [projectId, { changing, others }] of idsByProject(planned)) {
    const known = new Map<number, Person>();
    // The ids whose events change something go first: their persons must come with properties.
    for (const ids of [changing, others]) {
      if (ids.size === 0) continue;
      const list = JSON.stringify([...ids]);
      for (const row of query.values(projectId, list, ids === changing ? 1 : 0) as PersonRow[]) {
        const rowId = row[2];
        let person = known.get(rowId);
        if (person === undefined) {
          person = personOf(projectId, row);
          known.set(rowId, person);
          state.addStored(person);
          if (row[13] !== null) searchTexts.set(rowId, row[13]);
        }
        state.addStoredId(person, { distinctId: row[0], joined: row[1] });
      }
    }
  }
  return state;
}

function personOf(projectId: number, row: PersonRow): Person {
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
  const [properties, propertyTimes, unsetTimes] = row.slice(10, 13) as [
    string | null,
    Uint8Array | null,
    string | null,
  ];
  return new Person(stored, false, () => {
    if (properties === null || propertyTimes === null) throw new Error("The properties were not loaded.");
    return readBag(properties, propertyTimes, unsetTimes);
  });
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

function loadGroups(client: Database, planned: readonly PlannedEvent[]): GroupState {
  const state = new GroupState();
  const projects = new Set<number>();
  for (const { event, operations } of planned) {
    if (operations.groupTypes.length > 0 || operations.groupIdentify !== undefined)
      projects.add(event.projectId);
  }
  const types = client.query<{ name: string; typeIndex: number }, [number]>(
    "SELECT name, type_index AS typeIndex FROM group_type WHERE project_id = ?",
  );
  const groups = client.query<GroupRow, [number, string]>(groupsOfKeys);
  for (const projectId of projects) {
    for (const { name, typeIndex } of types.all(projectId)) state.addStoredType(projectId, name, typeIndex);
    const keys = groupKeysOf(state, projectId, planned);
    if (keys.length === 0) continue;
    for (const row of groups.values(projectId, JSON.stringify(keys)) as GroupRow[]) {
      const [typeIndex, key, createdMicros, version, properties, times] = row;
      const bag = readBag(properties, times, null);
      state.add({ projectId, typeIndex, key, createdMicros, version, bag, isNew: false, isDirty: false });
    }
  }
  return state;
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
