/** Lists and searches persons. */

import { desc, eq } from "drizzle-orm";
import type { PersonsDb } from "./open.ts";
import { fittingCount, type Person } from "./person.ts";
import { personFields, personSize, readPerson } from "./reader.ts";
import { person } from "./schema.ts";

/** A search stops at this number of matches. */
export const searchMatchesMax = 2_000;

/** Index entries per slice of a search, which takes a few milliseconds. */
const sliceEntries = 10_000;

export interface PersonList {
  persons: Person[];
  /** Whether more persons follow. */
  hasMore: boolean;
}

export interface PageOptions {
  limit?: number;
  offset?: number;
}

/**
 * Persons of a project, newest first; fewer than the limit if they are large.
 * @param options.search as in `searchPersons`, which is preferable if it would block other work
 */
export function listPersons(
  db: PersonsDb,
  projectId: number,
  { search = "", limit = 100, offset = 0 }: PageOptions & { search?: string } = {},
): PersonList {
  if (search !== "") {
    const found = new Set<number>();
    for (const _ of findMatches(db, projectId, search, found));
    return getNewest(db, found, { limit, offset });
  }
  const ofProject = eq(person.projectId, projectId);
  const newest = [desc(person.createdMicros), desc(person.id)];
  const sizes = db
    .select(personSize)
    .from(person)
    .where(ofProject)
    .orderBy(...newest)
    .limit(limit + 1)
    .offset(offset)
    .all();
  const count = fittingCount(sizes.slice(0, limit).map(({ bytes }) => bytes));
  const persons = db
    .select(personFields)
    .from(person)
    .where(ofProject)
    .orderBy(...newest)
    .limit(count)
    .offset(offset)
    .all()
    .map((row) => readPerson(db, row));
  return { persons, hasMore: sizes.length > count };
}

/**
 * Persons with `search` in e-mail, name, username or a distinct ID, ignoring case; newest first. With a million persons
 * this takes most of a second, so it yields every few milliseconds. With more than `searchMatchesMax` matches, the
 * result is the newest of those found first.
 */
export async function searchPersons(
  db: PersonsDb,
  projectId: number,
  search: string,
  { limit = 100, offset = 0 }: PageOptions = {},
): Promise<PersonList> {
  const found = new Set<number>();
  for (const _ of findMatches(db, projectId, search, found)) await new Promise(setImmediate);
  return getNewest(db, found, { limit, offset });
}

/** An index with searchable strings: avoids reading the large rows of persons. */
interface SearchedIndex {
  from: string;
  text: string;
  person: string;
  /** Prefilter for ?4; its matches are verified. */
  isMatch: string;
  parameter: string;
}

/** Strings with a non-ASCII character. */
const beyondAscii = "*[^\u0001-\u007f]*";

/** @param wanted in lower case */
function searchedIndexes(wanted: string): SearchedIndex[] {
  // SQLite lowercases ASCII only: other searches prefilter strings with any non-ASCII character, which are few.
  const isAscii = Buffer.byteLength(wanted) === wanted.length;
  return [
    {
      from: "person INDEXED BY person_by_text",
      text: "search_text",
      person: "id",
      isMatch: "instr(search_text, ?4) > 0",
      parameter: wanted,
    },
    {
      from: "distinct_id",
      text: "distinct_id",
      person: "person_id",
      isMatch: isAscii ? "instr(lower(distinct_id), ?4) > 0" : "distinct_id GLOB ?4",
      parameter: isAscii ? wanted : beyondAscii,
    },
  ];
}

/** SQLite sorts blobs after strings. */
const afterAllText = new Uint8Array(1);

/** Adds IDs of matching persons to `found`; yields after each slice. */
function* findMatches(db: PersonsDb, projectId: number, search: string, found: Set<number>): Generator<void> {
  const wanted = search.toLowerCase();
  for (const { from, text, person, isMatch, parameter } of searchedIndexes(wanted)) {
    const boundary = db.$client.query<[string], [number, string]>(`
      SELECT ${text} FROM ${from} WHERE project_id = ?1 AND ${text} > ?2
      ORDER BY ${text} LIMIT 1 OFFSET ${sliceEntries}`);
    const slice = db.$client.query<[number, string], [number, string, string | Uint8Array, string]>(`
      SELECT ${person}, ${text} FROM ${from}
      WHERE project_id = ?1 AND ${text} > ?2 AND ${text} <= ?3 AND ${isMatch}`);
    let after = "";
    for (;;) {
      const [end] = boundary.values(projectId, after) as [string][];
      const upTo = end === undefined ? afterAllText : end[0];
      const matches = slice.values(projectId, after, upTo, parameter) as [number, string][];
      for (const [id, match] of matches) {
        if (!match.toLowerCase().includes(wanted)) continue;
        found.add(id);
        if (found.size >= searchMatchesMax) return;
      }
      if (end === undefined) break;
      after = end[0];
      yield;
    }
  }
}

function getNewest(
  db: PersonsDb,
  ids: ReadonlySet<number>,
  { limit, offset }: { limit: number; offset: number },
): PersonList {
  const newest = db.$client.query<{ id: number; bytes: number }, [string, number, number]>(`
    SELECT p.id, octet_length(p.properties) AS bytes FROM json_each(?1) AS found CROSS JOIN person AS p ON p.id = found.value
    ORDER BY p.created_at DESC, p.id DESC LIMIT ?2 OFFSET ?3`);
  const page = newest.all(JSON.stringify([...ids]), limit + 1, offset);
  const count = fittingCount(page.slice(0, limit).map(({ bytes }) => bytes));
  const persons = page.slice(0, count).flatMap(({ id }) => {
    const row = db.select(personFields).from(person).where(eq(person.id, id)).get();
    return row === undefined ? [] : [readPerson(db, row)];
  });
  return { persons, hasMore: page.length > count };
}
