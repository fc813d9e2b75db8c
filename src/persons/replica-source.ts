/** The port through which the event store replicates persons. */

import type { MaybePromise } from "../lib/concurrency.ts";
import { changeRange, changesAfter, type PersonChange, pruneChanges } from "./changes.ts";
import type { PersonsDb } from "./open.ts";
import {
  allDistinctIdRows,
  allPersonRows,
  changedDistinctIdRows,
  changedPersonRows,
  type DistinctIdKey,
  type DistinctIdRow,
  type PersonKey,
  type PersonRow,
  personsAtOnce,
} from "./replica-rows.ts";

type Pages<Row> = Iterable<Row[]> | AsyncIterable<Row[]>;

export interface PersonSource {
  /** The oldest existing change (or the next number if none exists), and the last number assigned. */
  range(): MaybePromise<{ oldest: number; last: number }>;
  /** Changes after `changeId`, oldest first, limited to one batch. @returns `last`: the number they are complete up to */
  changesAfter(changeId: number): MaybePromise<{ changes: PersonChange[]; last: number }>;
  /** Deletes replicated changes. */
  prune(changeId: number): MaybePromise<void>;
  /** Omits persons that no longer exist. */
  persons(keys: readonly PersonKey[]): Pages<PersonRow>;
  /** Omits IDs without a person. */
  distinctIds(keys: readonly DistinctIdKey[]): Pages<DistinctIdRow>;
  allPersons(): Pages<PersonRow>;
  allDistinctIds(): Pages<DistinctIdRow>;
}

export function sqlitePersonSource(people: PersonsDb): PersonSource {
  return {
    range: () => changeRange(people),
    changesAfter: (changeId) => {
      const changes = changesAfter(people, changeId);
      return { changes, last: changes.at(-1)?.changeId ?? changeId };
    },
    prune: (changeId) => pruneChanges(people, changeId),
    *persons(keys) {
      for (let start = 0; start < keys.length; start += personsAtOnce)
        yield [...changedPersonRows(people, keys.slice(start, start + personsAtOnce))];
    },
    *distinctIds(keys) {
      yield changedDistinctIdRows(people, keys);
    },
    allPersons: () => allPersonRows(people),
    allDistinctIds: () => allDistinctIdRows(people),
  };
}
