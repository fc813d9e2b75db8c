/** Which schema each store has and which one this version knows. */

import { existsSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { metadataSchemaVersion } from "../accounts/db.ts";
import { eventsSchemaVersion, readEventsVersion } from "../events/duckdb/database.ts";
import { setNativeFolder } from "../events/duckdb/native-folder.ts";
import { Count, exactly, orNull } from "../lib/schema.ts";
import { sqliteVersion } from "../lib/sqlite/migrate.ts";
import { paths } from "../paths.ts";
import { peopleSchemaVersion } from "../people/open.ts";
import { askControl } from "../rpc/control.ts";
import { BackupFromNewerVersion } from "./errors.ts";
import type { Manifest } from "./manifest.ts";

const stores = ["metadata", "people", "events"] as const;
export type StoreName = (typeof stores)[number];
const states = ["current", "older", "newer", "absent"] as const;

export const SchemaVersion = exactly({
  store: Type.Union(stores.map((store) => Type.Literal(store))),
  /** Null when there is no such file yet. */
  found: orNull(Count),
  known: Count,
  /** `older`: brought up to date at the next start. `newer`: written by a newer Flagkeep, which is needed to open it. */
  state: Type.Union(states.map((state) => Type.Literal(state))),
});
export type SchemaVersion = Static<typeof SchemaVersion>;

/** The schema versions that this executable makes. */
export function knownVersions(): Record<StoreName, number> {
  return { metadata: metadataSchemaVersion, people: peopleSchemaVersion, events: eventsSchemaVersion };
}

/** @throws {BackupFromNewerVersion} a store in the backup has a schema that this version does not know. */
export function requireKnownSchemas({ schemas, versions }: Manifest): void {
  const known = knownVersions();
  const names = { metadata: "metadata store", people: "store of persons", events: "event store" } as const;
  for (const store of ["metadata", "people", "events"] as const) {
    const found = schemas[store] ?? 0;
    if (found > known[store]) {
      throw new BackupFromNewerVersion(names[store], found, known[store], versions.flagkeep);
    }
  }
}

/** Reads the versions without changing anything; a running appliance tells what its event store has. */
export async function schemaVersions(dataDir: string): Promise<SchemaVersion[]> {
  const place = paths(dataDir);
  const known = knownVersions();
  const found: Record<StoreName, number | null> = {
    metadata: sqliteVersion(place.metadata),
    people: sqliteVersion(place.people),
    events: await eventsVersion(dataDir, place),
  };
  return (Object.keys(known) as StoreName[]).map((store) => ({
    store,
    found: found[store],
    known: known[store],
    state: stateOf(found[store], known[store]),
  }));
}

function stateOf(found: number | null, known: number): SchemaVersion["state"] {
  if (found === null) return "absent";
  return found === known ? "current" : found < known ? "older" : "newer";
}

async function eventsVersion(dataDir: string, place: ReturnType<typeof paths>): Promise<number | null> {
  // The file cannot be opened a second time; who opened it brought it to the version it knows.
  const running = await askControl<Record<StoreName, number>>(dataDir, "schema");
  if (running !== undefined) return running.events;
  if (!existsSync(place.events)) return null;
  setNativeFolder(place.native);
  return await readEventsVersion(place.events);
}
