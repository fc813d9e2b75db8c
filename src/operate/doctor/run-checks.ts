/** Checks a data directory and its machine without changing anything, and reports problems with their fixes. */

import { existsSync } from "node:fs";
import { type LastBackup, readLastBackup } from "../../backup/last-backup.ts";
import { getMisfits as cohortMisfits } from "../../cohorts/cohort-filters.ts";
import { eventsAddress, postgresAddress } from "../../config/secrets.ts";
import type { Config } from "../../config/settings.ts";
import { getMisfits as flagMisfits } from "../../flags/rules/condition-rules.ts";
import { firstLine } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { readonlyClient } from "../../lib/sqlite.ts";
import type { ClickHouseAddress } from "../../lib/store-urls.ts";
import { acquireSharedLock } from "../../lock.ts";
import { paths } from "../../paths.ts";
import { callControl } from "../../rpc/control.ts";
import type { Status } from "../status-schema.ts";
import { checkClickHouse, hasExternalStore } from "./clickhouse.ts";
import { checkArchive, checkEventStore } from "./event-store.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";
import { checkClock, checkDisk, checkPort } from "./host.ts";
import { checkPermissions } from "./permissions.ts";
import { checkPostgres } from "./postgres.ts";
import { checkJournal, checkPayloadKey, checkQuarantine, checkSqliteFiles } from "./stores.ts";

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

/** @param config the settings of the server. */
export async function runChecks(
  config: Pick<
    Config,
    | "data-dir"
    | "host"
    | "port"
    | "journal-reserve"
    | "events-url"
    | "events-password-file"
    | "postgres-url"
    | "postgres-password-file"
  >,
): Promise<Finding[]> {
  const dataDir = config["data-dir"];
  const eventsAt = eventsAddress(config, process.env);
  const clusterAddress = postgresAddress(config, process.env);
  const isExternal = eventsAt !== null || hasExternalStore(dataDir);
  const running = await callControl<Status>(dataDir, "status");
  // The lock prevents a server start during the checks. A shared lock writes nothing, so the folder may be read-only.
  const lock = running === undefined ? acquireSharedLock(paths(dataDir).lock, dataDir) : undefined;
  const isInUse = lock === undefined;
  try {
    return [
      ...(await looked("permissions", () => checkPermissions(dataDir))),
      ...(await looked("disk", () => checkDisk(dataDir, config["journal-reserve"]))),
      ...(await looked("clock", () => checkClock(dataDir))),
      ...(await looked("files", () => checkSqliteFiles(dataDir))),
      ...(await looked("files", () => checkPayloadKey(dataDir))),
      ...(await looked("flags", () => checkDefinitions(dataDir))),
      ...(await looked("events", () =>
        isInUse ? checkEngine(running) : isExternal ? [] : checkEventStore(dataDir),
      )),
      ...(isExternal ? await checkExternalStore(eventsAt, dataDir) : []),
      ...(clusterAddress === null ? [] : await checkPostgres(clusterAddress)),
      ...(await looked("journal", () => checkJournal(dataDir, isInUse))),
      ...(await looked("archive", () => (isExternal ? [] : checkArchive(dataDir)))),
      checkLastBackup(running?.last_backup ?? readLastBackup(dataDir)),
      ...(await looked("quarantine", () => checkQuarantine(dataDir))),
      ...(isInUse ? [] : await checkPort(config.host, config.port)),
    ];
  } finally {
    lock?.release();
  }
}

/** A check that throws does not prevent the others. */
async function looked(
  check: Finding["check"],
  work: () => Finding[] | Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await work();
  } catch (error) {
    return [failure(check, `This cannot be checked: ${firstLine(error)}`, "Fix the permissions first.")];
  }
}

/** A running server also knows of attempts that could not be recorded. */
function checkLastBackup(last: LastBackup | null): Finding {
  if (last === null) return ok("backup", "No backup has been created yet.");
  if (last.error === null) return ok("backup", `The last backup, of ${last.created_at}, is valid.`);
  const message = `The last backup, at ${last.failed_at}, failed: ${last.error}`;
  return failure("backup", message, "Fix the cause, then run `flagkeep backup create`.");
}

async function checkExternalStore(eventsAt: ClickHouseAddress | null, dataDir: string): Promise<Finding[]> {
  if (eventsAt !== null) return await checkClickHouse(eventsAt, dataDir);
  const message = "The events of this data directory are kept in ClickHouse.";
  return [warning("events", message, "Pass --events-url to check it.")];
}

/** The engine of the running server responds. */
function checkEngine(running: Status | undefined): Finding[] {
  if (running === undefined) {
    const message = "Another process uses the data directory and does not answer on its control socket.";
    return [warning("events", message, "Wait until it has started or stopped, then run doctor again.")];
  }
  const { trouble: problem, rebuilding } = running.engine;
  if (problem !== null) return [failure("events", problem.message, problem.hint)];
  if (rebuilding !== null) {
    const message = `Rebuilding the event store: ${rebuilding.done} of ${rebuilding.total} entries.`;
    return [warning("events", message, "Wait until it is done; events are accepted meanwhile.")];
  }
  if (!running.engine.up) {
    const message = "The event store is not open: events are accepted but cannot be queried.";
    return [failure("events", message, "It is reopened automatically; if not, see the log.")];
  }
  const times = running.engine.restarts;
  if (times === 0) return [ok("events", "The event store is open.")];
  const message = `The event store is open, but was reopened ${times} times.`;
  return [warning("events", message, "See the log for why; a higher --duckdb-memory-limit may help.")];
}
