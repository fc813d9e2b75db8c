/** Whether a data directory has data of its own, or copies of what several fronts share. */

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/settings.ts";
import { lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { WrongSetting } from "../lib/setting-kinds.ts";
import { paths } from "../paths.ts";
import { isCopy } from "../postgres/copy-mark.ts";

/** What PostgreSQL knows the key of encrypted payloads by. */
export const payloadKeyName = "payload key";

/** The data directory has data that are not in PostgreSQL. */
class OwnData extends AppError {
  readonly code = "own_data";
  override readonly hint =
    "Take it over with `flagkeep migrate-to-cluster --postgres-url … --events-url …`, or name an empty --data-dir.";
}

/** The data directory holds nothing but copies. */
class OnlyCopies extends AppError {
  readonly code = "only_copies";
  override readonly hint =
    "Give --postgres-url (and --events-url), or make a directory of its own with `flagkeep migrate-from-cluster`.";
  constructor(dataDir: string) {
    super(`The data directory ${dataDir} is that of one of several fronts, whose data are in PostgreSQL.`);
  }
}

/** @throws {WrongSetting} several fronts share flags, but not the events. */
export function requireEventsUrl(config: Config): void {
  if (config["postgres-url"] !== null && config["events-url"] === null)
    throw new WrongSetting("--postgres-url needs --events-url: several fronts share the events, too.");
}

/** @throws {OnlyCopies} the data directory cannot be used alone. */
export function requireOwnData(dataDir: string): void {
  if (isCopy(paths(dataDir).metadata)) throw new OnlyCopies(dataDir);
}

/**
 * Whether the store of persons is gone from a data directory that was used: an empty one would hide the loss.
 *
 * Source: contract, third round C13.
 */
export function arePeopleMissing(dataDir: string): boolean {
  const { people, events, journal, archive } = paths(dataDir);
  if (existsSync(people)) return false;
  const hasSegments = [...lanes.map((lane) => join(journal, lane)), archive].some(
    (folder) => existsSync(folder) && readdirSync(folder).length > 0,
  );
  return existsSync(events) || hasSegments;
}

/** The data directory holds nothing but copies of what is backed up elsewhere. */
class BackedUpElsewhere extends AppError {
  readonly code = "backed_up_elsewhere";
  override readonly hint =
    "Back up PostgreSQL and ClickHouse: docs/operations/cluster.md says how, and in which order.";
  constructor(dataDir: string) {
    super(`The data directory ${dataDir} is that of one of several fronts, and holds only copies.`);
  }
}

/** @throws {BackedUpElsewhere} */
export function requireBackedUpHere(dataDir: string): void {
  if (isCopy(paths(dataDir).metadata)) throw new BackedUpElsewhere(dataDir);
}

/** @throws {OwnData} what is in the data directory is not in PostgreSQL. */
export function requireNoOwnData(dataDir: string): void {
  const { metadata } = paths(dataDir);
  if (existsSync(metadata) && !isCopy(metadata))
    throw new OwnData(`The data directory ${dataDir} has data of its own.`);
}
