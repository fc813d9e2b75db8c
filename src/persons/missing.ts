/** Detects that the person store of a used data directory was lost. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { paths } from "../paths.ts";

/** An empty store would hide the loss and reuse IDs of other persons. */
class PersonsMissingError extends AppError {
  readonly code = "people_missing";
  override readonly hint =
    "Put a copy of people.sqlite back, restore the last backup with `flagkeep backup restore FILE --force --replay`, " +
    "or accept the loss with `flagkeep persons recreate --accept-loss`.";
  constructor(path: string) {
    super(`${path} is missing, but the data directory was used: persons and groups cannot be read.`);
  }
}

/**
 * Whether the file is missing or empty although events were received. Nothing may create the file then, so that every
 * start reports the loss. Source: contract, third round C13.
 */
export function arePersonsMissing(dataDir: string): boolean {
  const { people, events, journal, archive } = paths(dataDir);
  // An interrupted start leaves an empty log; one with pages belongs to a file that was never checkpointed.
  const bytes = [people, `${people}-wal`].map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  if (existsSync(people) && bytes.some((size) => size > 0)) return false;
  const hasSegments = [...lanes.map((lane) => join(journal, lane)), archive].some(
    (folder) => existsSync(folder) && readdirSync(folder).length > 0,
  );
  return existsSync(events) || hasSegments;
}

/** @throws {PersonsMissingError} */
export function assertPersonsPresent(dataDir: string): void {
  if (arePersonsMissing(dataDir)) throw new PersonsMissingError(paths(dataDir).people);
}
