/** Opens the stores of the engine: persons, and events in DuckDB. */

import { existsSync } from "node:fs";
import type { EventDatabase } from "../events/duckdb/database.ts";
import type { EventLoader } from "../events/duckdb/loader.ts";
import { PersonMirror } from "../events/duckdb/person-mirror.ts";
import type { OperatorNeeded } from "../lib/errors.ts";
import { once } from "../lib/once.ts";
import { paths } from "../paths.ts";
import { openPeople, type PeopleDb } from "../people/open.ts";
import { requireEventsInside } from "../people/outside-events.ts";
import { PeopleStore } from "../people/store.ts";
import type { Faults } from "./faults.ts";
import type { EngineStart } from "./messages.ts";
import { log, report } from "./report.ts";

const progressIntervalMs = 2_000;

/** How the engine opens the event store, whatever has become of its file; given by whoever starts it. */
export interface StoreRecovery {
  /**
   * Opens the event store, made again when that is needed and loses nothing.
   *
   * @param people opens the store of persons. Called when DuckDB has said that nobody else uses the data.
   * @throws {OperatorNeeded} nothing can be done without a person.
   */
  open(
    start: EngineStart,
    people: () => PeopleStore,
    hooks: RecoveryHooks,
  ): Promise<{ database: EventDatabase; people: PeopleStore; loader: EventLoader }>;
  /** Has the event store of a data directory made again at the next start. */
  markDamaged(dataDir: string, reason: unknown): void;
}

export interface RecoveryHooks {
  onStep: (message: string, fields: Record<string, unknown>) => void;
  onProgress: (done: number, total: number) => void;
  /** Something could not be read or used; the rest goes on. */
  onDamage: (error: Error) => void;
  /** The store cannot be made again in full; it was opened as it is, so that most of it can be read. */
  onIncomplete: (error: OperatorNeeded) => void;
}

/** Opens the stores of one data directory, and makes the event store again when that is needed and loses nothing. */
export async function openStores(start: EngineStart, recovery: StoreRecovery, faults: Faults) {
  const place = paths(start.dataDir);
  let reportedAt = Number.NEGATIVE_INFINITY;
  withPeople(place.people, requireEventsInside);
  const openPeopleOnce = once(() => peopleStoreOf(start, openPeople(place.people, cacheOf(start))));
  const { database, people, loader } = await recovery.open(start, openPeopleOnce, {
    onStep: (message, fields) => log("warn", message, fields),
    onDamage: (error) => log("error", error.message),
    onProgress: (done, total) => {
      report({ type: "rebuilding", done, total });
      if (performance.now() - reportedAt < progressIntervalMs && done < total) return;
      reportedAt = performance.now();
      log("info", "making the event store again", { entries: done, of: total });
    },
    onIncomplete: ({ message, hint }) => {
      report({ type: "trouble", message, hint, isStopped: false });
      faults.isLimping = true;
    },
  });
  const mirror = await PersonMirror.open(database, people.db);
  if (mirror.isCutOff) {
    log("info", "the event store's copies of persons are made again", { persons: await mirror.refill() });
  }
  return { database, people, events: loader, mirror, follow: () => mirror.follow() };
}

/** Looks into the store of persons, when there is one. */
function withPeople(path: string, look: (people: PeopleDb) => void): void {
  if (!existsSync(path)) return;
  const people = openPeople(path, { readonly: true });
  try {
    look(people);
  } finally {
    people.$client.close();
  }
}

export const cacheOf = ({ memory }: EngineStart) => ({ cacheBytes: memory?.peopleCacheBytes });

export function peopleStoreOf({ spikes }: EngineStart, db: PeopleDb): PeopleStore {
  return new PeopleStore(db, {
    ...{ ...spikes, historyMinutes: 60, historyMinutesMin: 2 },
  });
}
