/** Replaces a lost or corrupt `people.sqlite` with an empty one when an operator accepts the loss. */

import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { eq } from "drizzle-orm";
import { type EventDatabaseOptions, openEventDatabase } from "../../events/duckdb/database.ts";
import { EventLoader } from "../../events/duckdb/loader.ts";
import { setNativeFolder } from "../../events/duckdb/native-folder.ts";
import { lanes } from "../../journal/segment.ts";
import { AppError } from "../../lib/errors.ts";
import { NonNegativeInt, strictObject } from "../../lib/schema.ts";
import { checkSqlite } from "../../lib/sqlite.ts";
import { acquireStoresLock } from "../../lock.ts";
import { paths } from "../../paths.ts";
import { openPersons } from "../../persons/open.ts";
import { laneCursor } from "../../persons/schema.ts";
import { moveToQuarantine } from "./quarantine.ts";
import { getCursors } from "./recovery-source.ts";

/** As `persons recreate --json` prints it. */
export const RecreatedPersons = strictObject({
  data_dir: Type.String(),
  /** Paths of the quarantined files. */
  quarantined: Type.Array(Type.String()),
  /** Per lane, the last journal entry in the event store; the next start continues after it. */
  loaded: strictObject({ realtime: NonNegativeInt, historical: NonNegativeInt }),
});
export type RecreatedPersons = Static<typeof RecreatedPersons>;

/** The persons store is usable: discarding it would lose data for nothing. */
class PersonsIntactError extends AppError {
  readonly code = "persons_intact";
  override readonly hint = "Run `flagkeep doctor` to see what is wrong with the data directory.";
  constructor(path: string) {
    super(`${path} is present and readable; it was not replaced.`);
  }
}

export interface RecreatePersonsOptions {
  dataDir: string;
  settings: Omit<EventDatabaseOptions, "temporaryFolder">;
}

/**
 * Creates an empty persons store with the cursors of the event store: stored events are kept, and entries waiting in
 * the journal are loaded once. Corrupt files are quarantined.
 *
 * @throws {PersonsIntactError} @throws {DirectoryInUseError}
 */
export async function recreatePersons({
  dataDir,
  settings,
}: RecreatePersonsOptions): Promise<RecreatedPersons> {
  const dataPaths = paths(dataDir);
  const lock = await acquireStoresLock(dataPaths, dataDir);
  try {
    if (existsSync(dataPaths.people) && checkSqlite(dataPaths.people) === null)
      throw new PersonsIntactError(dataPaths.people);
    const loaded = await loadedSeqs(dataDir, settings);
    const files = ["", "-wal", "-shm"]
      .map((end) => dataPaths.people + end)
      .filter((path) => existsSync(path));
    const quarantined = files.map((path) => moveToQuarantine(dataDir, path));
    const people = openPersons(dataPaths.people);
    try {
      for (const lane of lanes)
        people.update(laneCursor).set({ seq: loaded[lane] }).where(eq(laneCursor.lane, lane)).run();
    } finally {
      people.$client.close();
    }
    return { data_dir: dataDir, quarantined, loaded };
  } finally {
    rmSync(dataPaths.work, { recursive: true, force: true });
    lock.release();
  }
}

async function loadedSeqs(
  dataDir: string,
  options: RecreatePersonsOptions["settings"],
): Promise<RecreatedPersons["loaded"]> {
  const storePaths = paths(dataDir);
  if (!existsSync(storePaths.events)) return { realtime: 0, historical: 0 };
  setNativeFolder(storePaths.native);
  mkdirSync(storePaths.work, { recursive: true, mode: 0o700 });
  const temporaryFolder = join(storePaths.work, "duckdb");
  const database = await openEventDatabase(storePaths.events, { ...options, temporaryFolder });
  try {
    return { ...getCursors(await EventLoader.open(database)) };
  } finally {
    database.close();
  }
}
