/** Writes the persons and groups of a step as rows in PostgreSQL, with few statements per step. */

import { formatList, type Transaction } from "../../cluster/connection.ts";
import { getSearchString } from "../batch-write.ts";
import type { GroupState } from "../identity/group-rules.ts";
import type { Person, PersonsState } from "../identity/persons-state.ts";
import { timeColumns } from "../property-columns.ts";
import { serializeObject } from "../property-key-sets.ts";
import { toHash } from "./hashes.ts";
import { assignJoined, moveOwnedRows } from "./merge-rows.ts";
import type { RowState } from "./row-state.ts";

/** Names and types of the columns of a statement, in order. */
export type Columns = readonly (readonly [name: string, type: string])[];
export type Value = string | number | boolean | null;

const identityColumns: Columns = [
  ["id", "bigint"],
  ["version", "integer"],
  ["main_distinct_id", "text"],
  ["is_main_alias", "boolean"],
  ["is_identified", "boolean"],
  ["joined_count", "integer"],
  ["properties", "text"],
  ["property_times", "bytea"],
  ["unset_times", "text"],
  ["search_text", "text"],
];
const insertedColumns: Columns = [
  ...identityColumns,
  ["created_at", "bigint"],
  ["project_id", "integer"],
  ["uuid", "uuid"],
];
const updatedColumns: Columns = [...identityColumns, ["created_at", "bigint"]];
const idColumns: Columns = [
  ["project_id", "integer"],
  ["id_hash", "uuid"],
  ["distinct_id", "text"],
  ["person_id", "bigint"],
  ["joined", "integer"],
];
const typeColumns: Columns = [
  ["project_id", "integer"],
  ["type_index", "integer"],
  ["name", "text"],
  ["created_at", "bigint"],
];
const groupColumns: Columns = [
  ["project_id", "integer"],
  ["type_index", "integer"],
  ["key_hash", "uuid"],
  ["group_key", "text"],
  ["created_at", "bigint"],
  ["version", "integer"],
  ["properties", "text"],
  ["property_times", "bytea"],
];
const personlessColumns: Columns = [
  ["project_id", "integer"],
  ["id_hash", "bigint"],
];
const changeColumns: Columns = [
  ["project_id", "integer"],
  ["person_uuid", "uuid"],
  ["distinct_id", "text"],
  ["is_deleted", "boolean"],
];

/** Rows and characters per statement. */
const rowsAtOnce = 10_000;
const charactersAtOnce = 16 * 1024 * 1024;

/** Writes the state of a step, in the step's transaction. */
export async function writeRows(t: Transaction, state: RowState): Promise<void> {
  await writePersonRows(t, state);
  await writeOtherRows(t, state);
}

/** Writes persons and their IDs, which only steps of the project's engine write. */
export async function writePersonRows(t: Transaction, state: RowState): Promise<void> {
  await writePersons(t, state);
  await insertRows(t, "distinct_id", idColumns, idRows(state.people), {
    conflict: "(project_id, id_hash) DO UPDATE SET person_id = excluded.person_id, joined = excluded.joined",
  });
}

/**
 * Writes the rest under the store's lock: requests of other nodes may change the same rows, and readers of changes rely
 * on numbers in the order of commits.
 */
export async function writeOtherRows(t: Transaction, state: RowState): Promise<void> {
  const { people, groups, personlessIds } = state;
  await writeFolds(t, people);
  await writeGroups(t, groups);
  const personless = [...personlessIds.added.values()].map(({ projectId, hash }): Value[] => [
    projectId,
    String(hash),
  ]);
  await insertRows(t, "personless_id", personlessColumns, personless, { conflict: "DO NOTHING" });
  await insertRows(t, "person_change", changeColumns, changeRows(people));
}

async function writePersons(t: Transaction, state: RowState): Promise<void> {
  const inserted: Value[][] = [];
  const updated: Value[][] = [];
  for (const person of state.people.touched) {
    if (!person.isDirty || person.isFolded) continue;
    const { bag } = person;
    const properties = serializeObject(bag.content);
    const { propertyTimes, unsetTimes } = timeColumns(bag);
    const searchText = getSearchString(bag);
    const row = [
      person.rowId,
      person.version,
      person.mainDistinctId,
      person.isMainAlias,
      person.isIdentified,
      person.joinedCount,
      properties,
      toHex(propertyTimes),
      unsetTimes,
      searchText,
      person.createdMicros,
    ];
    if (person.isNew) inserted.push([...row, person.projectId, person.uuid]);
    else updated.push(row);
    state.persons.recordWritten(person, searchText, properties.length);
  }
  await insertRows(t, "person", insertedColumns, inserted);
  const set = updatedColumns.slice(1).map(([name]) => `${name} = x.${name}`);
  await forRows(updatedColumns, updated, async (list, values) => {
    await t.unsafe(`UPDATE flagkeep.person p SET ${set.join(", ")} FROM ${list} WHERE p.id = x.id`, values);
  });
}

const idRows = (people: PersonsState) =>
  people
    .changedIds()
    .map(({ person: { projectId, rowId }, distinctId, joined }): Value[] => [
      projectId,
      toHash(distinctId),
      distinctId,
      rowId,
      joined,
    ]);

/**
 * Moves what belongs to merged persons to the surviving ones, whose rows win, and pending overrides of new IDs to the
 * persons that got them, in event order.
 */
async function writeFolds(t: Transaction, { folds, joins }: PersonsState): Promise<void> {
  const assign = await assignJoined(t, joins);
  const move = await moveOwnedRows(t, folds);
  let assigned = 0;
  const assignBefore = async (fold: number) => {
    for (; assigned < joins.length && joins[assigned]!.foldsBefore <= fold; assigned++)
      if (await assign(joins[assigned]!)) move.owners.add(joins[assigned]!.personId);
  };
  for (const [index, { from, into }] of folds.entries()) {
    await assignBefore(index);
    await move(from, into);
  }
  await assignBefore(folds.length);
  const deleted = folds.flatMap(({ from }) => (from.isNew ? [] : [from.rowId]));
  if (deleted.length > 0)
    await t`DELETE FROM flagkeep.person WHERE id = ANY(${`{${deleted.join(",")}}`}::text::bigint[])`;
}

async function writeGroups(t: Transaction, { newTypes, groups }: GroupState): Promise<void> {
  const types = newTypes.map(({ projectId, typeIndex, name, createdMicros }): Value[] => [
    projectId,
    typeIndex,
    name,
    createdMicros,
  ]);
  await insertRows(t, "group_type", typeColumns, types);
  const rows: Value[][] = [];
  for (const { isDirty, projectId, typeIndex, key, createdMicros, version, bag } of groups) {
    if (!isDirty) continue;
    const properties = serializeObject(bag.content);
    const times = toHex(timeColumns(bag).propertyTimes);
    rows.push([projectId, typeIndex, toHash(key), key, createdMicros, version, properties, times]);
  }
  await insertRows(t, "project_group", groupColumns, rows, {
    conflict: `(project_id, type_index, key_hash) DO UPDATE SET version = excluded.version,
      properties = excluded.properties, property_times = excluded.property_times`,
  });
}

/** A replica reads a distinct ID together with its person, so each person is recorded only once per step. */
function changeRows(people: PersonsState): Value[][] {
  const rows: Value[][] = [];
  for (const person of people.touched) rows.push(...changesOf(person));
  return rows;
}

function changesOf({ projectId, uuid, isFolded, isNew, isVisiblyChanged, joinedNow }: Person): Value[][] {
  if (isFolded) return isNew ? [] : [[projectId, uuid, null, true]];
  if (joinedNow.length === 0) return isVisiblyChanged ? [[projectId, uuid, null, false]] : [];
  return joinedNow.map(({ distinctId }) => [projectId, uuid, distinctId, false]);
}

/** Inserts rows, many per statement. */
export async function insertRows(
  t: Transaction,
  table: string,
  columns: Columns,
  rows: readonly Value[][],
  { conflict }: { conflict?: string } = {},
): Promise<void> {
  const names = columns.map(([name]) => name).join(", ");
  await forRows(columns, rows, async (list, values) => {
    await t.unsafe(
      `INSERT INTO flagkeep.${table} (${names}) SELECT ${names} FROM ${list}${conflict === undefined ? "" : ` ON CONFLICT ${conflict}`}`,
      values,
    );
  });
}

/** @param work receives a table expression `x` with the columns, and its parameters */
async function forRows(
  columns: Columns,
  rows: readonly Value[][],
  work: (list: string, values: string[]) => Promise<void>,
): Promise<void> {
  const lists = columns.map(([, type], index) => `$${index + 1}::text::${type}[]`).join(", ");
  const names = columns.map(([name]) => name).join(", ");
  for (const part of toParts(rows)) {
    const values = columns.map((_, index) =>
      formatList(part.map((row) => (row[index] === null ? null : String(row[index])))),
    );
    await work(`unnest(${lists}) AS x(${names})`, values);
  }
}

function* toParts(rows: readonly Value[][]): Generator<readonly Value[][]> {
  let start = 0;
  let characters = 0;
  for (let end = 0; end < rows.length; end++) {
    for (const value of rows[end]!) if (typeof value === "string") characters += value.length;
    if (end - start + 1 < rowsAtOnce && characters < charactersAtOnce) continue;
    yield rows.slice(start, end + 1);
    start = end + 1;
    characters = 0;
  }
  if (start < rows.length) yield rows.slice(start);
}

/** Bytes as `bytea` literal. */
export const toHex = (bytes: Uint8Array): string => `\\x${Buffer.from(bytes).toString("hex")}`;
