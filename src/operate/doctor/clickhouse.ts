/** Doctor checks of events in ClickHouse: the server, its tables, replicas and clock. */

import { existsSync } from "node:fs";
import { ClickHouseConnection } from "../../events/clickhouse/connection.ts";
import { deduplicationWindow, eventRows, oldestVersion } from "../../events/clickhouse/schema.ts";
import { type Lane, lanes } from "../../journal/segment.ts";
import { firstLine } from "../../lib/errors.ts";
import { type ClickHouseAddress, redactUrl } from "../../lib/store-urls.ts";
import { paths } from "../../paths.ts";
import { ExternalEvents, hasExternalEvents } from "../../persons/external-events.ts";
import { openPersons } from "../../persons/open.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";

const clockToleranceMs = 5_000;
const delaySecondsMax = 60;
const timeoutSeconds = 10;

/** Whether the events of a data directory are in an external store; false when that cannot be read. */
export function hasExternalStore(dataDir: string): boolean {
  return withPeople(dataDir, (people) => hasExternalEvents(people)) ?? false;
}

function withPeople<Result>(
  dataDir: string,
  work: (people: ReturnType<typeof openPersons>) => Result,
): Result | undefined {
  const path = paths(dataDir).people;
  if (!existsSync(path)) return undefined;
  try {
    const people = openPersons(path, { readonly: true });
    try {
      return work(people);
    } finally {
      people.$client.close();
    }
  } catch {
    // The check of that file reports it, or the file is of an older version.
    return undefined;
  }
}

/** Changes nothing on the server. */
export async function checkClickHouse(address: ClickHouseAddress, dataDir: string): Promise<Finding[]> {
  const connection = new ClickHouseConnection(address);
  const ask = (sql: string) => connection.rows(sql, { timeoutSeconds });
  try {
    return [
      await checkVersion(ask, address),
      ...(await checkTable(ask, address)),
      ...(await checkReplicas(ask, address)),
      await checkServerClock(ask),
      ...(await checkLoaded(ask, dataDir)),
    ];
  } catch (error) {
    const hint = "Check that it runs, and the address, user and database in --events-url.";
    return [failure("events", `${redactUrl(address)} cannot be checked: ${firstLine(error)}`, hint)];
  } finally {
    await connection.close();
  }
}

type Ask = (sql: string) => Promise<unknown[][]>;

async function checkVersion(ask: Ask, address: ClickHouseAddress): Promise<Finding> {
  const [[version] = []] = await ask("SELECT version()");
  const [major = 0, minor = 0] = String(version).split(".").map(Number);
  const isOld = major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1]);
  if (isOld) {
    const message = `ClickHouse ${version} is older than ${oldestVersion.join(".")}.`;
    return failure("events", message, "Install a newer version.");
  }
  return ok("events", `The events are in ClickHouse ${version}, ${redactUrl(address)}.`);
}

async function checkTable(ask: Ask, { database, cluster }: ClickHouseAddress): Promise<Finding[]> {
  const table = eventRows({ database, cluster });
  const [[engine, full] = []] = await ask(
    `SELECT engine, engine_full FROM system.tables WHERE database = '${database}' AND name = '${table}'`,
  );
  if (engine === undefined) {
    return [
      warning("events", `The table ${table} does not exist yet.`, "The next start of Flagkeep creates it."),
    ];
  }
  const findings: Finding[] = [];
  const isReplacing = String(engine).endsWith("ReplacingMergeTree");
  const isReplicated = /^(Replicated|Shared)/.test(String(engine));
  if (!isReplacing || (cluster !== null && !isReplicated)) {
    const message = `The table ${table} has the engine ${engine}.`;
    const wanted = cluster === null ? "ReplacingMergeTree" : "ReplicatedReplacingMergeTree";
    findings.push(failure("events", message, `Let Flagkeep create it in an empty database: ${wanted}.`));
  } else findings.push(ok("events", `The table ${table} has the engine ${engine}.`));
  const setting = isReplicated ? "replicated_deduplication_window" : "non_replicated_deduplication_window";
  // Without a setting on the table, a replicated one uses the server's.
  const window = Number(
    new RegExp(`\\b${setting} = (\\d+)`).exec(String(full))?.[1] ?? (isReplicated ? 10_000 : 0),
  );
  if (window < deduplicationWindow / 10) {
    const message = `The table ${table} deduplicates only the last ${window} inserts: a retried insert may be stored twice.`;
    findings.push(
      failure("events", message, `ALTER TABLE ${table} MODIFY SETTING ${setting} = ${deduplicationWindow}`),
    );
  } else findings.push(ok("events", `The last ${window} inserts are deduplicated.`));
  if (!/\bfsync_after_insert = 1\b/.test(String(full))) {
    const message = `The table ${table} is not synced after an insert: a power failure may lose acknowledged events.`;
    findings.push(warning("events", message, `ALTER TABLE ${table} MODIFY SETTING fsync_after_insert = 1`));
  }
  return findings;
}

async function checkReplicas(ask: Ask, { database, cluster }: ClickHouseAddress): Promise<Finding[]> {
  if (cluster === null) return [];
  const rows = await ask(
    `SELECT table, is_readonly, absolute_delay, queue_size, active_replicas, total_replicas
     FROM system.replicas WHERE database = '${database}' ORDER BY table`,
  );
  const hint = "Check system.replicas, system.replication_queue and Keeper.";
  return rows.map(([table, isReadonly, delay, queue, active, total]) => {
    const facts = `${active} of ${total} replicas of ${table} are active, ${delay} s behind, ${queue} parts to fetch`;
    if (Number(isReadonly) !== 0)
      return failure("events", `The table ${table} cannot be written: ${facts}.`, hint);
    const isLagging = Number(active) < Number(total) || Number(delay) > delaySecondsMax;
    return isLagging ? warning("events", `${facts}.`, hint) : ok("events", `${facts}.`);
  });
}

async function checkServerClock(ask: Ask): Promise<Finding> {
  const before = Date.now();
  const [[there] = []] = await ask("SELECT toUnixTimestamp64Milli(now64(3))");
  const aheadMs = Math.round(Number(there) - (before + Date.now()) / 2);
  const message = `ClickHouse's clock is ${Math.abs(aheadMs)} ms ${aheadMs < 0 ? "behind" : "ahead of"} this one.`;
  if (Math.abs(aheadMs) <= clockToleranceMs) return ok("clock", message);
  return warning("clock", message, "Synchronize both clocks, for example with chrony.");
}

async function checkLoaded(ask: Ask, dataDir: string): Promise<Finding[]> {
  const outside = withPeople(dataDir, (people) => {
    const { loaded, started } = new ExternalEvents(people);
    return { loaded, started };
  });
  if (outside === undefined) return [];
  const findings: Finding[] = [];
  for (const lane of lanes) {
    const [[last] = []] = await ask(
      `SELECT max(seq) FROM events WHERE historical = ${lane === "historical"}`,
    );
    findings.push(checkLane(lane, Number(last), outside));
  }
  return findings;
}

function checkLane(
  lane: Lane,
  last: number,
  { loaded, started }: Pick<ExternalEvents, "loaded" | "started">,
): Finding {
  const known = started?.lane === lane ? started.last : loaded[lane];
  if (last <= known) return ok("events", `The ${lane} entries are loaded up to ${loaded[lane]}.`);
  const message = `ClickHouse has ${lane} entries up to ${last}, this data directory has loaded ${known}: the directory is older.`;
  return failure(
    "events",
    message,
    "Restore the newest backup of the data directory, or also restore ClickHouse.",
  );
}
