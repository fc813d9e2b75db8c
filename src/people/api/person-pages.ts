/** Persons as the API lists them. */

import type { Static } from "@sinclair/typebox";
import { readPage } from "../../http/pagination.ts";
import { InvalidField } from "../../lib/errors.ts";
import { microsToWire } from "../../lib/wire-time.ts";
import type { PeopleDb } from "../open.ts";
import { displayName, type Person, pageBytesMax } from "../person.ts";
import { distinctIdsOf } from "../reader.ts";
import { type PersonBody, type PersonPage, peoplePerPageMax } from "./people-shapes.ts";

/** The wire form of persons; their distinct ids are read at once. */
export function personBodies(people: PeopleDb, persons: readonly Person[]): Static<typeof PersonBody>[] {
  const ids = distinctIdsOf(people, persons);
  return persons.map((person) => ({
    id: person.uuid,
    uuid: person.uuid,
    name: displayName(person),
    distinct_ids: ids.get(person.id) ?? [person.mainDistinctId],
    properties: person.properties as Static<typeof PersonBody>["properties"],
    is_identified: person.isIdentified,
    created_at: microsToWire(person.createdMicros),
  }));
}

/** Found persons that are held at once on their way. */
const foundAtOnce = 100;

/**
 * A page of persons that are found by testing one after the other: `after` goes on behind one, `offset` skips.
 *
 * @param find answers persons by number, behind `afterId`.
 * @throws {InvalidField} `after` is not a number.
 */
export async function foundPersons(
  deps: { people: PeopleDb },
  call: { url: string; query: URLSearchParams },
  find: (page: { afterId?: number; limit: number }) => Promise<readonly Person[]>,
): Promise<Static<typeof PersonPage>> {
  const { limit, offset } = readPage(call.query, peoplePerPageMax);
  const after = call.query.get("after") ?? "";
  if (!/^\d{0,15}$/.test(after))
    throw new InvalidField("after", "invalid_input", "It is not a place in this list.");
  let afterId = after === "" ? undefined : Number(after);
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
