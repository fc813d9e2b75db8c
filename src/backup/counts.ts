/** Counts the contents of the stores in a folder, for the manifest and for comparison with it. */

import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { DuckDBConnection } from "@duckdb/node-api";
import { isOutOfMemory } from "../events/duckdb/open-error.ts";
import { paths } from "../paths.ts";
import type { Counts, ProjectCounts } from "./manifest.ts";

/** Per project id. */
export type PerProject = ReadonlyMap<number, number>;

/** Counts the SQLite stores; the process that has DuckDB open counts the events. */
export function countStores(folder: string, events: PerProject): Counts {
  const dataPaths = paths(folder);
  const people = existsSync(dataPaths.people)
    ? withSqlite(dataPaths.people, (db) => ({
        persons: grouped(db, "SELECT project_id, count(*) FROM person GROUP BY project_id"),
        groups: grouped(db, "SELECT project_id, count(*) FROM project_group GROUP BY project_id"),
      }))
    : { persons: new Map(), groups: new Map() };
  return withSqlite(dataPaths.metadata, (db) => {
    const flags = grouped(db, "SELECT project_id, count(*) FROM flag GROUP BY project_id");
    const cohorts = grouped(db, "SELECT project_id, count(*) FROM cohort GROUP BY project_id");
    const projects = db.query("SELECT id, name FROM project ORDER BY id").values() as [number, string][];
    return {
      organizations: single(db, "SELECT count(*) FROM organization"),
      users: single(db, "SELECT count(*) FROM user"),
      keys: single(db, "SELECT count(*) FROM personal_key"),
      projects: projects.map(
        ([id, name]): ProjectCounts => ({
          project_id: id,
          name,
          events: events.get(id) ?? 0,
          persons: people.persons.get(id) ?? 0,
          groups: people.groups.get(id) ?? 0,
          flags: flags.get(id) ?? 0,
          cohorts: cohorts.get(id) ?? 0,
        }),
      ),
    };
  });
}

/**
 * Counts the events of each project.
 *
 * @param everything reads every value of every event and person, to find any corrupt block; values that do not fit
 *                   into memory are not corruption.
 */
export async function countEvents(connection: DuckDBConnection, everything = false): Promise<PerProject> {
  if (everything) {
    for (const table of ["person", "events"]) {
      await connection.runAndReadAll(`SELECT bit_xor(hash(t)) FROM ${table} AS t`).catch(unlessOutOfMemory);
    }
  }
  const rows = await connection.runAndReadAll(
    "SELECT project_id, count(*) FROM events WHERE project_id > 0 GROUP BY project_id",
  );
  return new Map(rows.getRows().map(([id, count]) => [Number(id), Number(count)]));
}

function unlessOutOfMemory(error: unknown): void {
  if (!isOutOfMemory(error)) throw error;
}

/** The differences as a sentence for an operator; undefined without any. */
export function getDifference(expected: Counts, found: Counts): string | undefined {
  for (const name of ["organizations", "users", "keys"] as const) {
    if (expected[name] !== found[name]) return `${found[name]} ${name} instead of ${expected[name]}`;
  }
  const byId = new Map(found.projects.map((project) => [project.project_id, project]));
  for (const project of expected.projects) {
    const other = byId.get(project.project_id);
    if (other === undefined) return `project ${project.project_id} is missing`;
    for (const name of ["events", "persons", "groups", "flags", "cohorts"] as const) {
      if (project[name] !== other[name]) {
        return `${other[name]} ${name} instead of ${project[name]} in project ${project.project_id}`;
      }
    }
  }
  return found.projects.length === expected.projects.length ? undefined : "unexpected additional projects";
}

function withSqlite<Result>(path: string, work: (db: Database) => Result): Result {
  const db = new Database(path);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

function grouped(db: Database, sql: string): PerProject {
  return new Map(db.query(sql).values() as [number, number][]);
}

function single(db: Database, sql: string): number {
  return (db.query(sql).values() as [[number]])[0][0];
}
