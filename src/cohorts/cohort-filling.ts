/** Looks for the members of a cohort after the answer has gone out. */

import type { ManagementDeps } from "../serve/deps.ts";
import { markCalculating, recordCalculation } from "./cohorts.ts";

/**
 * Starts to look for members and remembers how that ended; never throws.
 *
 * @param find resolves with the number of members.
 * @returns    resolves when the outcome is stored; nobody has to wait for it.
 */
export function fillInBackground(
  deps: ManagementDeps,
  cohortId: number,
  find: () => Promise<number>,
): Promise<void> {
  markCalculating(deps.metadata, cohortId);
  return find().then(
    (count) => recordCalculation(deps.metadata, cohortId, count, new Date()),
    (error: unknown) => {
      recordCalculation(deps.metadata, cohortId, undefined, new Date());
      deps.log.error({ cohortId, error: String(error) }, "the members of a cohort could not be computed");
    },
  );
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
