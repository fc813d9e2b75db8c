/** Persons in API responses, in pages. */

import type { Static } from "@sinclair/typebox";
import { readPage } from "../../http/pagination.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { canonicalUuid } from "../../lib/ids.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import { microsToApiTime } from "../../lib/time.ts";
import { displayName, type Person, pageBytesMax } from "../person.ts";
import type { PersonReader } from "../person-reader.ts";
import { searchMatchesMax } from "../search.ts";
import { type PersonBody, personsPerPageMax } from "./person-schemas.ts";

export interface PersonFinder {
  /** Persons that match property filters joined by AND, ordered by ID; continue with `afterId` of the last one. */
  find(
    projectId: number,
    filters: readonly JsonObject[],
    page: { afterId?: number; limit: number },
  ): Promise<Person[]>;
}

/** Persons in API format; reads all their distinct IDs in one query. */
export async function personBodies(
  reader: PersonReader,
  persons: readonly Person[],
): Promise<Static<typeof PersonBody>[]> {
  const ids = await reader.distinctIds(persons);
  return persons.map((person) => ({
    id: person.uuid,
    uuid: person.uuid,
    name: displayName(person),
    distinct_ids: ids.get(person.id) ?? [person.mainDistinctId],
    properties: person.properties as Static<typeof PersonBody>["properties"],
    is_identified: person.isIdentified,
    created_at: microsToApiTime(person.createdMicros),
    version: person.version,
  }));
}

/** Parameters of a page of persons. */
export interface FoundQuery {
  limit: number;
  offset: number;
  /** Id of the last person of the previous page, unchecked. */
  after: string | null;
}

/** Finds persons ordered by id, after `afterId`. */
export type FindPersons = (page: { afterId?: number; limit: number }) => Promise<readonly Person[]>;

/** A page of persons; `next` has the parameters of the next one. */
export interface FoundPage {
  next: { after: number; offset: undefined } | null;
  previous: null;
  results: Static<typeof PersonBody>[];
}

export function readFoundQuery(query: URLSearchParams): FoundQuery {
  return { ...readPage(query, personsPerPageMax), after: query.get("after") };
}

/** The id in the parameter `after`. @throws {InvalidFieldError} not a number */
export function parseAfter(after: string | null): number | undefined {
  if (!/^\d{0,15}$/.test(after ?? ""))
    throw new InvalidFieldError("after", "invalid_input", "Invalid cursor for this list.");
  return after ? Number(after) : undefined;
}

/** Maximum found persons in memory. */
const foundAtOnce = 100;

/**
 * A page of persons found by testing them one by one: `after` continues after an ID, `offset` skips.
 *
 * @throws {InvalidFieldError} `after`.
 */
export async function foundPersons(
  reader: PersonReader,
  { limit, offset, after }: FoundQuery,
  find: FindPersons,
): Promise<FoundPage> {
  let afterId = parseAfter(after);
  for (let left = offset; left > 0; left -= foundAtOnce) {
    const skipped = await find({ afterId, limit: Math.min(left, foundAtOnce) });
    if (skipped.length === 0) break;
    afterId = skipped.at(-1)!.id;
  }
  const shown: Person[] = [];
  let hasMore = true;
  for (let bytes = 0; hasMore && shown.length < limit && bytes < pageBytesMax; ) {
    const wanted = Math.min(limit - shown.length, foundAtOnce);
    const found = await find({ afterId, limit: wanted + 1 });
    hasMore = found.length > wanted;
    const acquired = found.slice(0, wanted);
    for (const { properties } of acquired) bytes += JSON.stringify(properties).length;
    shown.push(...acquired);
    afterId = acquired.at(-1)?.id;
  }
  const last = hasMore ? shown.at(-1) : undefined;
  return {
    next: last ? { after: last.id, offset: undefined } : null,
    previous: null,
    results: await personBodies(reader, shown),
  };
}

/** A page of the persons that match filters, restricted to a named or to searched ones if requested. */
export async function filteredPersons(
  reader: PersonReader,
  query: FoundQuery & { projectId: number; named: Person | null | undefined; search: string | undefined },
  find: FindPersons,
): Promise<FoundPage> {
  const { projectId, named, search } = query;
  if (named !== undefined) {
    const [first] = named === null ? [] : await find({ afterId: named.id - 1, limit: 1 });
    const results = first !== undefined && first.id === named?.id ? await personBodies(reader, [first]) : [];
    return { next: null, previous: null, results };
  }
  if (search === undefined) return await foundPersons(reader, query, find);
  const { persons } = await reader.searchPersons(projectId, search, { limit: searchMatchesMax });
  const searched = new Set(persons.map(({ id }) => id));
  return await foundPersons(reader, query, async ({ afterId, limit }) => {
    const found: Person[] = [];
    for (let last = afterId; ; ) {
      const page = await find({ afterId: last, limit: searchMatchesMax });
      found.push(...page.filter(({ id }) => searched.has(id)));
      if (page.length < searchMatchesMax || found.length >= limit) return found.slice(0, limit);
      last = page.at(-1)!.id;
    }
  });
}

/** Parameters that name one person. */
export interface NamedQuery {
  distinctId: string | null;
  uuid: string | null;
  search: string | undefined;
}

/** The person named by a query; null if it does not exist, undefined if the query names no person. */
export async function namedPerson(
  reader: PersonReader,
  projectId: number,
  query: NamedQuery,
): Promise<Person | null | undefined> {
  const { distinctId, uuid } = query;
  if (distinctId) return (await reader.personByDistinctId(projectId, distinctId)) ?? null;
  if (uuid) return (await reader.personByUuid(projectId, canonicalUuid(uuid) ?? uuid)) ?? null;
  // A UUID without a person can still be a distinct ID.
  const search = canonicalUuid(query.search ?? "");
  return search === undefined ? undefined : await reader.personByUuid(projectId, search);
}
