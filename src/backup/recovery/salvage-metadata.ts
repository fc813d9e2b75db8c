/** Copies the metadata store of an older data directory, if it can be trusted. */

import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { metadataSchemaVersion } from "../../accounts/db.ts";
import { openMetadata } from "../../accounts/metadata.ts";
import { listOrganizations } from "../../accounts/organizations.ts";
import { patientClient } from "../../lib/sqlite/open.ts";
import { paths } from "../../paths.ts";

/** `ok`: it has replaced the restored one. Otherwise the reason; `foreign`: it contains none of the organizations. */
export type MetadataSalvage = "ok" | "missing" | "damaged" | "newer" | "foreign";

/** Replaces the restored metadata store and payload key with copies of the old ones. */
export function salvageMetadata(oldDir: string, restoredDir: string): MetadataSalvage {
  const from = paths(oldDir);
  const to = paths(restoredDir);
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

function copyIfUsable(path: string, copy: string, known: readonly string[]): MetadataSalvage {
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
    // Opening migrates the schema: only that of the copy.
    return organizationIds(copy).some((id) => known.includes(id)) ? "ok" : "foreign";
  } catch {
    return "damaged";
  }
}

function removeStore(path: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
}

/** IDs of all projects, including archived ones. */
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
