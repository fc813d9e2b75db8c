/** Schema version of each store, and the version that this executable supports. */

import { existsSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { metadataSchemaVersion } from "../accounts/db.ts";
import { eventsSchemaVersion, readEventsVersion } from "../events/duckdb/database.ts";
import { setNativeFolder } from "../events/duckdb/native-folder.ts";
import { NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";
import { sqliteVersion } from "../lib/sqlite.ts";
import { paths } from "../paths.ts";
import { personSchemaVersion } from "../persons/open.ts";
import { callControl } from "../rpc/control.ts";
import { BackupFromNewerVersionError } from "./errors.ts";
import type { Manifest } from "./manifest.ts";

const stores = ["metadata", "people", "events"] as const;
export type StoreName = (typeof stores)[number];
const states = ["current", "older", "newer", "absent"] as const;

export const SchemaVersion = strictObject({
  store: Type.Union(stores.map((store) => Type.Literal(store))),
  /** Null before the file exists. */
  found: nullable(NonNegativeInt),
  known: NonNegativeInt,
  /** `older`: migrated at the next start. `newer`: written by a newer Flagkeep, which is required to open it. */
  state: Type.Union(states.map((state) => Type.Literal(state))),
});
export type SchemaVersion = Static<typeof SchemaVersion>;

/** The schema versions that this executable creates. */
export function knownVersions(): Record<StoreName, number> {
  return { metadata: metadataSchemaVersion, people: personSchemaVersion, events: eventsSchemaVersion };
}

/** @throws {BackupFromNewerVersionError} a store in the backup has a schema that this version does not support. */
export function assertKnownSchemas({ schemas, versions }: Manifest): void {
  const known = knownVersions();
  const names = { metadata: "metadata store", people: "person store", events: "event store" } as const;
  for (const store of ["metadata", "people", "events"] as const) {
    const found = schemas[store] ?? 0;
    if (found > known[store]) {
      throw new BackupFromNewerVersionError(names[store], found, known[store], versions.flagkeep);
    }
  }
}

/** Reads the versions without changing anything; a running server reports that of its event store. */
export async function schemaVersions(dataDir: string): Promise<SchemaVersion[]> {
  const dataPaths = paths(dataDir);
  const known = knownVersions();
  const found: Record<StoreName, number | null> = {
    metadata: sqliteVersion(dataPaths.metadata),
    people: sqliteVersion(dataPaths.people),
    events: await eventsVersion(dataDir, dataPaths),
  };
  return (Object.keys(known) as StoreName[]).map((store) => ({
    store,
    found: found[store],
    known: known[store],
    state: getState(found[store], known[store]),
  }));
}

function getState(found: number | null, known: number): SchemaVersion["state"] {
  if (found === null) return "absent";
  return found === known ? "current" : found < known ? "older" : "newer";
}

async function eventsVersion(dataDir: string, files: ReturnType<typeof paths>): Promise<number | null> {
  // The file cannot be opened a second time; the server that has it open has migrated it.
  const running = await callControl<Record<StoreName, number>>(dataDir, "schema");
  if (running !== undefined) return running.events;
  if (!existsSync(files.events)) return null;
  setNativeFolder(files.native);
  return await readEventsVersion(files.events);
}
