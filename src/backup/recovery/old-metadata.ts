/** Takes the metadata store of an older data directory along, when it can be trusted. */

import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { metadataSchemaVersion } from "../../accounts/db.ts";
import { openMetadata } from "../../accounts/metadata.ts";
import { listOrganizations } from "../../accounts/organizations.ts";
import { patientClient } from "../../lib/sqlite/open.ts";
import { paths } from "../../paths.ts";

/** `ok`: it is in the place of the restored one now. Else why not; `foreign`: it knows none of the organisations. */
export type TakenAlong = "ok" | "missing" | "damaged" | "newer" | "foreign";

/** Puts a copy of the old metadata store, and of the key of its payloads, in the place of the restored ones. */
export function takeMetadataAlong(oldDir: string, restoredDir: string): TakenAlong {
  const [from, to] = [paths(oldDir), paths(restoredDir)];
  if (!existsSync(from.metadata)) return "missing";
  const copy = `${to.metadata}.old`;
  const result = copyIfUsable(from.metadata, copy, organizationIds(to.metadata));
  if (result === "ok") {
    removeStore(to.metadata);
    renameSync(copy, to.metadata);
    if (existsSync(from.payloadKey)) copyFileSync(from.payloadKey, to.payloadKey);
  }
  removeStore(copy);
  return result;
}

function copyIfUsable(path: string, copy: string, known: readonly string[]): TakenAlong {
  try {
    const db = patientClient(path, { readwrite: true, create: false });
    try {
      const [first] = db.query("PRAGMA quick_check(1)").values() as [[string]];
      if (first[0] !== "ok") return "damaged";
      const { version } = db.query("SELECT max(version) AS version FROM schema_migration").get() as {
        version: number;
      };
      if (version > metadataSchemaVersion) return "newer";
      db.run("VACUUM INTO ?", [copy]);
    } finally {
      db.close();
    }
    // Opening it brings its schema up to date: of the copy alone.
    return organizationIds(copy).some((id) => known.includes(id)) ? "ok" : "foreign";
  } catch {
    return "damaged";
  }
}

function removeStore(path: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
}

/** Of all projects, archived ones too. */
export function projectIds(dataDir: string): Set<number> {
  const metadata = openMetadata(paths(dataDir).metadata);
  try {
    return new Set(metadata.projects.list({ includeArchived: true }).map(({ id }) => id));
  } finally {
    metadata.close();
  }
}

function organizationIds(path: string): string[] {
  const metadata = openMetadata(path);
  try {
    return listOrganizations(metadata.db).map(({ id }) => id);
  } finally {
    metadata.close();
  }
}
