/** Checks stored conditions of flags and cohorts: values that do not fit their operator match nothing. */

import { existsSync } from "node:fs";
import { getMisfits as cohortMisfits } from "../../cohorts/cohort-filters.ts";
import { getMisfits as flagMisfits } from "../../flags/rules/condition-rules.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { readonlyClient } from "../../lib/sqlite/open.ts";
import { paths } from "../../paths.ts";
import { type Finding, ok, warning } from "./finding.ts";

/** Conditions beyond this are only counted. */
const listedMax = 50;

const hint = "Edit the condition in the console or with `flagkeep flags set`.";

interface StoredFilters {
  label: string;
  project: string;
  filters: string;
}

/**
 * Lists conditions, imported or stored by an older version, that can never match.
 *
 * Source: contract, third round B1.
 */
export function checkDefinitions(dataDir: string): Finding[] {
  const path = paths(dataDir).metadata;
  if (!existsSync(path)) return [];
  const db = readonlyClient(path);
  try {
    const misfits = [
      ...misfitsIn(db.query(storedFlags).iterate() as Iterable<StoredFilters>, "flag", flagMisfits),
      ...misfitsIn(db.query(storedCohorts).iterate() as Iterable<StoredFilters>, "cohort", cohortMisfits),
    ];
    if (misfits.length === 0)
      return [ok("flags", "All stored conditions of flags and cohorts can be evaluated.")];
    const findings = misfits.slice(0, listedMax).map((message) => warning("flags", message, hint));
    const others = misfits.length - listedMax;
    return others > 0
      ? [...findings, warning("flags", `${others} more conditions match no user.`, hint)]
      : findings;
  } finally {
    db.close();
  }
}

const storedFlags = `SELECT flag.key AS label, project.name AS project, flag.filters AS filters
  FROM flag JOIN project ON project.id = flag.project_id WHERE NOT flag.deleted ORDER BY flag.id`;

const storedCohorts = `SELECT cohort.name AS label, project.name AS project, cohort.filters AS filters
  FROM cohort JOIN project ON project.id = cohort.project_id
  WHERE NOT cohort.deleted AND NOT cohort.is_static ORDER BY cohort.id`;

function misfitsIn(
  rows: Iterable<StoredFilters>,
  kind: "flag" | "cohort",
  getMisfits: (filters: JsonObject) => string[],
): string[] {
  return [...rows].flatMap(({ label, project, filters }) => {
    const parsed = JSON.parse(filters) as Json;
    if (!isJsonObject(parsed)) return [];
    return getMisfits(parsed).map(
      (detail) => `A condition of the ${kind} "${label}" (project ${project}) matches no user: ${detail}.`,
    );
  });
}
