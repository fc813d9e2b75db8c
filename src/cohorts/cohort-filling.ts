/** Looks for the members of a cohort after the answer has gone out. */

import type { Metadata } from "../accounts/metadata.ts";
import type { Person } from "../people/person.ts";
import { markCalculating, recordCalculation } from "./cohorts.ts";

/** Fills cohorts. Each method resolves with the number of members when it is done. */
export interface CohortFiller {
  /** Adds every person for whom the flag is on now. */
  addPersonsWithFlag(projectId: number, cohortId: number, flagId: number): Promise<number>;
  /** Adds the persons of these distinct ids; ids that nobody has are passed over. */
  addDistinctIds(projectId: number, cohortId: number, distinctIds: readonly string[]): Promise<number>;
  /** Counts the members of a dynamic cohort as it is defined now. */
  countMembers(projectId: number, cohortId: number): Promise<number>;
  /** Members of a cohort of either kind, by number: go on after the last one's `id`. */
  members(projectId: number, cohortId: number, page: { afterId?: number; limit: number }): Promise<Person[]>;
}

/** What looking for members needs. */
export interface FillingDeps {
  metadata: Metadata;
  cohortFiller: CohortFiller;
  /** Where failures of work that goes on after the answer are written. */
  log: { error(facts: Record<string, unknown>, message: string): void };
}

/**
 * Starts to look for members and remembers how that ended; never throws.
 *
 * @param find resolves with the number of members.
 * @returns    resolves when the outcome is stored; nobody has to wait for it.
 */
export function fillInBackground(
  deps: FillingDeps,
  cohortId: number,
  find: () => Promise<number>,
): Promise<void> {
  const { metadata, log } = deps;
  markCalculating(metadata, cohortId);
  return find()
    .then(
      (count) => recordCalculation(metadata, cohortId, count, new Date()),
      (error: unknown) => {
        log.error({ cohortId, error: String(error) }, "the members of a cohort could not be computed");
        recordCalculation(metadata, cohortId, undefined, new Date());
      },
    )
    .catch((error: unknown) => {
      // The disk may be full, or another process hold the store. Thrown here, nobody would catch it.
      log.error(
        { cohortId, error: String(error) },
        "how the search for a cohort's members ended could not be stored",
      );
    });
}

/** First cells of a comma-separated file; a heading is left out. One distinct id per line. */
export function distinctIdsOfCsv(csv: string): string[] {
  const cells = csv
    .replace(/^\uFEFF/, "")
    .split(/\r\n|\r|\n/)
    .map(firstCell)
    .filter((cell) => cell !== "");
  return [...new Set(isHeading(cells[0]) ? cells.slice(1) : cells)];
}

function isHeading(cell: string | undefined): boolean {
  return cell !== undefined && /^(distinct[_ -]?ids?|person[_ -]?ids?|user[_ -]?ids?)$/i.test(cell);
}

function firstCell(line: string): string {
  const quoted = /^\s*"((?:[^"]|"")*)"/.exec(line);
  return (quoted ? quoted[1]!.replaceAll('""', '"') : (line.split(",", 1)[0] ?? "")).trim();
}
