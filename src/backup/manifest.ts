/** The first entry of a backup: what is in it, and how to check it. */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { BackupDamaged, BackupFromNewerVersion } from "./errors.ts";

/** The newest format of backups that this version reads; it reads all older ones. */
export const backupFormat = 1;

export const manifestName = "manifest.json";

const count = Type.Integer({ minimum: 0 });
/** Null: there was no such file. */
const schemaVersion = Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]);
const projectCounts = Type.Object({
  project_id: Type.Integer(),
  name: Type.String(),
  events: count,
  persons: count,
  groups: count,
  flags: count,
  cohorts: count,
});
const lanePosition = Type.Object({
  lane: Type.Union([Type.Literal("realtime"), Type.Literal("historical")]),
  /** The last entry that is in the event store. */
  loaded_seq: count,
  /** The last entry that is in the store of persons. */
  applied_seq: count,
  /** The last entry of the backup, in a store or in its part of the journal. */
  last_seq: count,
});
const part = Type.Object({
  name: Type.String({
    pattern:
      "^(flagkeep\\.sqlite|people\\.sqlite|payload\\.key|events\\.duckdb(\\.wal)?|journal/(realtime|historical)/\\d{16}\\.ndjson)$",
  }),
  bytes: count,
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
});
const manifest = Type.Object({
  format: count,
  created_at: Type.String(),
  versions: Type.Object({ flagkeep: Type.String(), duckdb: Type.String(), sqlite: Type.String() }),
  schemas: Type.Object({ metadata: schemaVersion, people: schemaVersion, events: schemaVersion }),
  positions: Type.Array(lanePosition),
  organizations: count,
  users: count,
  keys: count,
  projects: Type.Array(projectCounts),
  parts: Type.Array(part),
});

/** For what commands tell of a manifest. */
export const manifestMembers = manifest.properties;
export type Manifest = Static<typeof manifest>;
export type Part = Static<typeof part>;
export type ProjectCounts = Static<typeof projectCounts>;
export type LanePosition = Static<typeof lanePosition>;
export type Counts = Pick<Manifest, "organizations" | "users" | "keys" | "projects">;

/**
 * @throws {BackupFromNewerVersion} this version cannot restore it.
 * @throws {BackupDamaged}          it is not a manifest.
 */
export function parseManifest(text: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BackupDamaged(manifestName, "it is no JSON");
  }
  const { format, versions } = (value ?? {}) as { format?: unknown; versions?: { flagkeep?: unknown } };
  // Of a newer format nothing else is known.
  if (typeof format === "number" && format > backupFormat) {
    throw new BackupFromNewerVersion("format", format, backupFormat, String(versions?.flagkeep));
  }
  if (!Value.Check(manifest, value)) {
    const first = Value.Errors(manifest, value).First();
    throw new BackupDamaged(manifestName, `${first?.path ?? "it"} is not as it should be`);
  }
  return value;
}

/** Bytes of all parts, unpacked. */
export function unpackedBytes({ parts }: Manifest): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

export function totalEvents({ projects }: Pick<Manifest, "projects">): number {
  return projects.reduce((sum, { events }) => sum + events, 0);
}
