/** The first entry of a backup: its contents, and how to verify them. */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { BackupCorruptError, BackupFromNewerVersionError } from "./errors.ts";

/** The newest backup format that this version reads; it reads all older ones. */
export const backupFormat = 1;

export const manifestName = "manifest.json";

const count = Type.Integer({ minimum: 0 });
/** Null: the file did not exist. */
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
  /** The last entry in the event store. */
  loaded_seq: count,
  /** The last entry in the persons store. */
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

/** Schema members for commands that print parts of a manifest. */
export const manifestMembers = manifest.properties;
export type Manifest = Static<typeof manifest>;
export type Part = Static<typeof part>;
export type ProjectCounts = Static<typeof projectCounts>;
export type LanePosition = Static<typeof lanePosition>;
export type Counts = Pick<Manifest, "organizations" | "users" | "keys" | "projects">;

/**
 * @throws {BackupFromNewerVersionError} this version cannot restore it.
 * @throws {BackupCorruptError}          it is not a manifest.
 */
export function parseManifest(text: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BackupCorruptError(manifestName, "it is not valid JSON");
  }
  const { format, versions } = (value ?? {}) as { format?: unknown; versions?: { flagkeep?: unknown } };
  // A newer format may differ in everything else.
  if (typeof format === "number" && format > backupFormat) {
    throw new BackupFromNewerVersionError("format", format, backupFormat, String(versions?.flagkeep));
  }
  if (!Value.Check(manifest, value)) {
    const first = Value.Errors(manifest, value).First();
    throw new BackupCorruptError(manifestName, `${first?.path ?? "it"} is invalid`);
  }
  return value;
}

/** Total size of all parts, unpacked. */
export function unpackedBytes({ parts }: Manifest): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

export function totalEvents({ projects }: Pick<Manifest, "projects">): number {
  return projects.reduce((sum, { events }) => sum + events, 0);
}
