/** Writes the changes of a batch, and records them for replication to the event store. */

import type { Database } from "bun:sqlite";
import type { BatchState } from "./batch-state.ts";
import { pendingOverrideAssigner } from "./hash-key-overrides.ts";
import type { GroupState } from "./identity/group-rules.ts";
import type { PersonsState } from "./identity/persons-state.ts";
import type { PropertyState } from "./identity/property-state.ts";
import { nameProperties } from "./person.ts";
import { timeColumns } from "./property-columns.ts";
import { KeySetWriter, serializeObject } from "./property-key-sets.ts";

/** Longer search strings are truncated: such long searches are not typed. */
const searchTextLengthMax = 500;

/** Writes the state of a step, in the step's transaction. */
export function writeState(client: Database, state: BatchState): void {
  const { people, groups, personlessIds } = state;
  writePersons(client, state);
  writeDistinctIds(client, people);
  moveFolded(client, people);
  writeGroups(client, groups);
  personlessIds.write();
  writeChanges(client, people);
}

function writePersons(client: Database, state: BatchState): void {
  const insert = client.query(`
    INSERT INTO person (main_distinct_id, is_main_alias, joined_count, is_identified, version,
                        properties, property_times, unset_times, created_at, search_text, id, project_id, uuid)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const update = client.query(`
    UPDATE person SET main_distinct_id = ?, is_main_alias = ?, joined_count = ?, is_identified = ?, version = ?,
                      properties = ?, property_times = ?, unset_times = ?
    WHERE id = ?`);
  // Separate statement: SQLite rewrites an index whenever its column is assigned, even with the same value.
  const updateIndexed = client.query("UPDATE person SET created_at = ?, search_text = ? WHERE id = ?");
  const lists = new KeySetWriter(client);
  const updateTimes = client.query("UPDATE person SET property_times = ?, unset_times = ? WHERE id = ?");
  for (const person of state.people.touched) {
    if (!person.isDirty || person.isFolded) continue;
    // Reading the properties also updates `stored`.
    const { bag } = person;
    const { rowId, createdMicros, stored } = person;
    if (!person.isVisiblyChanged && bag.changes === 0 && person.isMainAlias === stored.isMainAlias) {
      const { propertyTimes, unsetTimes } = timeColumns(bag);
      updateTimes.run(propertyTimes, unsetTimes, rowId);
      continue;
    }
    const properties = lists.toJson(bag.content);
    const { propertyTimes, unsetTimes } = timeColumns(bag);
    const { mainDistinctId, isMainAlias, joinedCount, isIdentified, version } = person;
    const identity = [mainDistinctId, isMainAlias ? 1 : 0, joinedCount, isIdentified ? 1 : 0, version];
    const searchText = getSearchString(bag);
    if (person.isNew) {
      const fixed = [createdMicros, searchText, rowId, person.projectId, person.uuid];
      insert.run(...identity, properties, propertyTimes, unsetTimes, ...fixed);
    } else {
      update.run(...identity, properties, propertyTimes, unsetTimes, rowId);
      if (createdMicros !== stored.createdMicros || searchText !== stored.searchText)
        updateIndexed.run(createdMicros, searchText, rowId);
    }
    state.persons.recordWritten(person, searchText, properties.length);
  }
}

/** The searchable string in addition to distinct IDs; null if empty. */
export function getSearchString(bag: PropertyState): string | null {
  let text = "";
  for (const json of bag.textsOf(nameProperties)) {
    if (json.startsWith('"') && json !== '""') text += `${JSON.parse(json)}\n`;
  }
  return text === "" ? null : text.slice(0, searchTextLengthMax).toLowerCase();
}

function writeDistinctIds(client: Database, people: PersonsState): void {
  const insert = client.query(
    "INSERT INTO distinct_id (person_id, joined, project_id, distinct_id) VALUES (?, ?, ?, ?)",
  );
  const move = client.query(
    "UPDATE distinct_id SET person_id = ?, joined = ? WHERE project_id = ? AND distinct_id = ?",
  );
  for (const { person, joined, distinctId, isNew } of people.changedIds()) {
    (isNew ? insert : move).run(person.rowId, joined, person.projectId, distinctId);
  }
}

/**
 * Moves rows of a merged person to the surviving one, whose rows win, and pending overrides of new IDs to the persons
 * that got them, in event order.
 */
function moveFolded(client: Database, { folds, joins }: PersonsState): void {
  const assign = pendingOverrideAssigner(client);
  let assigned = 0;
  const assignBefore = (fold: number) => {
    for (; assigned < joins.length && joins[assigned]!.foldsBefore <= fold; assigned++)
      assign?.(joins[assigned]!);
  };
  for (const [index, { from, into }] of folds.entries()) {
    assignBefore(index);
    // Also for a new person, which may have got rows by an earlier merge of the batch.
    for (const table of ["cohort_member", "hash_key_override"]) {
      client
        .query(`UPDATE OR IGNORE ${table} SET person_id = ? WHERE person_id = ?`)
        .run(into.rowId, from.rowId);
      client.query(`DELETE FROM ${table} WHERE person_id = ?`).run(from.rowId);
    }
    client.query("DELETE FROM person WHERE id = ?").run(from.rowId);
  }
  assignBefore(folds.length);
}

function writeGroups(client: Database, { newTypes, groups }: GroupState): void {
  const insertType = client.query(
    "INSERT INTO group_type (project_id, type_index, name, created_at) VALUES (?, ?, ?, ?)",
  );
  for (const { projectId, typeIndex, name, createdMicros } of newTypes) {
    insertType.run(projectId, typeIndex, name, createdMicros);
  }
  const upsert = client.query(`
    INSERT INTO project_group (project_id, type_index, group_key, created_at, version, properties, property_times)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (project_id, type_index, group_key) DO UPDATE SET version = excluded.version,
      properties = excluded.properties, property_times = excluded.property_times`);
  for (const group of groups) {
    if (!group.isDirty) continue;
    const properties = serializeObject(group.bag.content);
    const { propertyTimes } = timeColumns(group.bag);
    upsert.run(
      group.projectId,
      group.typeIndex,
      group.key,
      group.createdMicros,
      group.version,
      properties,
      propertyTimes,
    );
  }
}

/** A replica reads a distinct ID together with its person, so each person is recorded only once per batch. */
function writeChanges(client: Database, people: PersonsState): void {
  const insert = client.query(
    "INSERT INTO change (project_id, person_uuid, distinct_id, is_deleted) VALUES (?, ?, ?, ?)",
  );
  for (const person of people.touched) {
    const { projectId, uuid } = person;
    if (person.isFolded) {
      if (!person.isNew) insert.run(projectId, uuid, null, 1);
      continue;
    }
    for (const { distinctId } of person.joinedNow) insert.run(projectId, uuid, distinctId, 0);
    if (person.isVisiblyChanged && person.joinedNow.length === 0) insert.run(projectId, uuid, null, 0);
  }
}
