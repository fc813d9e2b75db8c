/** Looks at a data directory and its machine, changes nothing, and says what is wrong and how to mend it. */

import type { Config } from "../../config/settings.ts";
import { eventsAddress, postgresAddress } from "../../config/store-addresses.ts";
import type { ClickHouseAddress } from "../../lib/clickhouse-address.ts";
import { tryLock } from "../../lock.ts";
import { paths } from "../../paths.ts";
import { askControl } from "../../rpc/control.ts";
import type { Status } from "../status-shape.ts";
import { checkClickHouse, isKeptOutside } from "./clickhouse.ts";
import { checkArchive, checkEventStore } from "./event-store.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";
import { checkClock, checkDisk, checkPermissions, checkPort } from "./host.ts";
import { checkPostgres } from "./postgres.ts";
import { checkJournal, checkQuarantine, checkSqliteFiles } from "./stores.ts";

/** @param config the settings that the appliance is started with. */
export async function examine(
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
  const sharedAt = postgresAddress(config, process.env);
  const isOutside = eventsAt !== null || isKeptOutside(dataDir);
  const running = await askControl<Status>(dataDir, "status");
  // Nobody starts the appliance while its files are looked at.
  const lock = running === undefined ? tryLock(paths(dataDir).lock, dataDir) : undefined;
  const isInUse = lock === undefined;
  try {
    return [
      ...checkPermissions(dataDir),
      ...(await checkDisk(dataDir, config["journal-reserve"])),
      ...checkClock(dataDir),
      ...checkSqliteFiles(dataDir),
      ...(isInUse ? checkEngine(running) : isOutside ? [] : await checkEventStore(dataDir)),
      ...(isOutside ? await checkOutside(eventsAt, dataDir) : []),
      ...(sharedAt === null ? [] : await checkPostgres(sharedAt)),
      ...checkJournal(dataDir, isInUse),
      ...(isOutside ? [] : await checkArchive(dataDir)),
      ...checkQuarantine(dataDir),
      ...(isInUse ? [] : await checkPort(config.host, config.port)),
    ];
  } finally {
    lock?.release();
  }
}

async function checkOutside(eventsAt: ClickHouseAddress | null, dataDir: string): Promise<Finding[]> {
  if (eventsAt !== null) return await checkClickHouse(eventsAt, dataDir);
  const message = "The events of this data directory are kept in ClickHouse.";
  return [warning("events", message, "Name the database with --events-url to have it looked at.")];
}

/** The part of the running appliance that holds the event store answers. */
function checkEngine(running: Status | undefined): Finding[] {
  if (running === undefined) {
    const message = "Another process uses the data directory and does not answer on its control socket.";
    return [warning("events", message, "Wait until it has started or stopped, then look again.")];
  }
  const { trouble, rebuilding } = running.engine;
  if (trouble !== null) return [failure("events", trouble.message, trouble.hint)];
  if (rebuilding !== null) {
    const message = `The event store is made again: ${rebuilding.done} of ${rebuilding.total} entries are in it.`;
    return [warning("events", message, "Wait until it is done; events are taken meanwhile.")];
  }
  if (!running.engine.up) {
    const message = "The event store is not open: events are taken but cannot be read.";
    return [failure("events", message, "It is opened again by itself; when it stays so, see the log.")];
  }
  const times = running.engine.restarts;
  if (times === 0) return [ok("events", "The event store answers.")];
  const message = `The event store answers, but had to be opened again ${times} times.`;
  return [warning("events", message, "See the log for why; a higher --duckdb-memory-limit may help.")];
}
