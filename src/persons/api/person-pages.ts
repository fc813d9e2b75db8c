/** Persons in API responses. */

import type { Static } from "@sinclair/typebox";
import { readPage } from "../../http/pagination.ts";
import { microsToApiTime } from "../../lib/api-time.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { PeopleDb } from "../open.ts";
import { displayName, type Person, pageBytesMax } from "../person.ts";
import { getDistinctIds } from "../reader.ts";
import { type PersonBody, type PersonPage, peoplePerPageMax } from "./person-schemas.ts";

/** Persons in API format; reads all their distinct IDs in one query. */
export function personBodies(people: PeopleDb, persons: readonly Person[]): Static<typeof PersonBody>[] {
  const ids = getDistinctIds(people, persons);
  return persons.map((person) => ({
    id: person.uuid,
    uuid: person.uuid,
    name: displayName(person),
    distinct_ids: ids.get(person.id) ?? [person.mainDistinctId],
    properties: person.properties as Static<typeof PersonBody>["properties"],
    is_identified: person.isIdentified,
    created_at: microsToApiTime(person.createdMicros),
  }));
}

/** The ID in the parameter `after`. @throws {InvalidFieldError} not a number */
export function readAfter(query: URLSearchParams): number | undefined {
  const after = query.get("after") ?? "";
  if (!/^\d{0,15}$/.test(after))
    throw new InvalidFieldError("after", "invalid_input", "Invalid cursor for this list.");
  return after === "" ? undefined : Number(after);
}

/** Maximum found persons in memory. */
const foundAtOnce = 100;

/**
 * A page of persons found by testing them one by one: `after` continues after an ID, `offset` skips.
 * @param find returns persons ordered by ID, after `afterId`
 * @throws {InvalidFieldError}
 */
export async function foundPersons(
  deps: { people: PeopleDb },
  call: { url: string; query: URLSearchParams },
  find: (page: { afterId?: number; limit: number }) => Promise<readonly Person[]>,
): Promise<Static<typeof PersonPage>> {
  const { limit, offset } = readPage(call.query, peoplePerPageMax);
  let afterId = readAfter(call.query);
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
    const taken = found.slice(0, wanted);
    for (const { properties } of taken) bytes += JSON.stringify(properties).length;
    shown.push(...taken);
    afterId = taken.at(-1)?.id;
  }
  const last = hasMore ? shown.at(-1) : undefined;
  return {
    next: last ? behind(call.url, last.id) : null,
    previous: null,
    results: personBodies(deps.people, shown),
  };
}

function behind(url: string, id: number): string {
  const target = new URL(url);
  target.searchParams.delete("offset");
  target.searchParams.set("after", String(id));
  return target.href;
}
