/** Versions of the executable and of what is built into it. The build puts the values in; a source checkout asks the packages. */

import { Database } from "bun:sqlite";
import { type Static, Type } from "@sinclair/typebox";
import { strictObject } from "./lib/schema.ts";

// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_VERSION: string | undefined;
// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_DUCKDB_VERSION: string | undefined;

/** Version of Flagkeep, from package.json. */
export const version: string = typeof FLAGKEEP_VERSION === "string" ? FLAGKEEP_VERSION : "0.0.0-source";

/** What `flagkeep version --json` prints. */
export const Versions = strictObject({
  version: Type.String(),
  bun: Type.String(),
  duckdb: Type.String(),
  sqlite: Type.String(),
});

export function versions(): Static<typeof Versions> {
  const db = new Database(":memory:");
  const row = db.query("SELECT sqlite_version() AS sqlite").get() as { sqlite: string };
  db.close();
  const duckdb = typeof FLAGKEEP_DUCKDB_VERSION === "string" ? FLAGKEEP_DUCKDB_VERSION : "source";
  return { version, bun: Bun.version, duckdb, sqlite: row.sqlite };
}
