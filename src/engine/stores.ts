/** Opens the engine's stores: persons, and events in DuckDB. */

import { existsSync } from "node:fs";
import type { EventDatabase } from "../events/duckdb/database.ts";
import type { EventLoader } from "../events/duckdb/loader.ts";
import { DuckdbPersonReplica } from "../events/duckdb/person-replica.ts";
import { once } from "../lib/concurrency.ts";
import type { OperatorActionError } from "../lib/errors.ts";
import { paths } from "../paths.ts";
import { assertLocalEvents } from "../persons/external-events.ts";
import { openPersons, type PersonsDb } from "../persons/open.ts";
import { PersonStore } from "../persons/store.ts";
import type { FatalErrorHandler } from "./fatal-errors.ts";
import type { EngineStart } from "./messages.ts";
import { log, report } from "./report.ts";

const progressIntervalMs = 2_000;

/** How the engine opens an event store that may be corrupt; provided by the caller of `runEngine`. */
export interface StoreRecovery {
  /**
   * Opens the event store, rebuilding it if required and possible without data loss.
   * @param people opens the person store; called after DuckDB has locked the data
   * @throws {OperatorActionError} an operator has to act
   */
  open(
    start: EngineStart,
    people: () => PersonStore,
    callbacks: RecoveryCallbacks,
  ): Promise<{ database: EventDatabase; people: PersonStore; loader: EventLoader }>;
  /** Requests a rebuild of a data directory's event store at the next start. */
  markCorrupt(dataDir: string, reason: unknown): void;
}

export interface RecoveryCallbacks {
  onStep: (message: string, fields: Record<string, unknown>) => void;
  onProgress: (done: number, total: number) => void;
  /** Something could not be read or used; the rest continues. */
  onCorruption: (error: Error) => void;
  /** The store cannot be rebuilt completely; it was opened as it is, so that most of it is readable. */
  onIncomplete: (error: OperatorActionError) => void;
}

/** Opens the stores of a data directory, rebuilding the event store if required and possible without data loss. */
export async function openStores(
  start: EngineStart,
  recovery: StoreRecovery,
  fatalErrors: FatalErrorHandler,
) {
  const dataPaths = paths(start.dataDir);
  let reportedAt = Number.NEGATIVE_INFINITY;
  withPeople(dataPaths.people, assertLocalEvents);
  const openPersonsOnce = once(() => getPersonStore(start, openPersons(dataPaths.people, getCache(start))));
  const { database, people, loader } = await recovery.open(start, openPersonsOnce, {
    onStep: (message, fields) => log("warn", message, fields),
    onCorruption: (error) => log("error", error.message),
    onProgress: (done, total) => {
      report({ type: "rebuilding", done, total });
      if (performance.now() - reportedAt < progressIntervalMs && done < total) return;
      reportedAt = performance.now();
      log("info", "rebuilding the event store", { entries: done, of: total });
    },
    onIncomplete: ({ message, hint }) => {
      report({ type: "trouble", message, hint, isStopped: false });
      fatalErrors.isLimping = true;
    },
  });
  const mirror = await DuckdbPersonReplica.open(database, people.db);
  if (mirror.isCutOff) {
    const persons = await mirror.refill();
    if (persons > 0) log("info", "person replica in the event store rebuilt", { persons });
  }
  return { database, people, events: loader, mirror, follow: () => mirror.follow() };
}

/** Reads the person store, if it exists. */
function withPeople(path: string, look: (people: PersonsDb) => void): void {
  if (!existsSync(path)) return;
  const people = openPersons(path, { readonly: true });
  try {
    look(people);
  } finally {
    people.$client.close();
  }
}

export const getCache = ({ memory }: EngineStart) => ({ cacheBytes: memory?.personCacheBytes });

export function getPersonStore({ spikes }: EngineStart, db: PersonsDb): PersonStore {
  return new PersonStore(db, {
    ...spikes,
    historyMinutes: 60,
    historyMinutesMin: 2,
  });
}
