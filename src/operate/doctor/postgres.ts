/** Doctor checks of a cluster: PostgreSQL, its standby, the nodes, waiting entries and the clock. */

import { Postgres } from "../../cluster/connection.ts";
import { countPartitions } from "../../cluster/loading.ts";
import { describeHeldBack, type HeldBack, readHeldBack } from "../../cluster/safe-number.ts";
import { firstLine } from "../../lib/errors.ts";
import { type PostgresAddress, redactPostgresUrl } from "../../lib/store-urls.ts";
import { type Finding, failure, ok, warning } from "./finding.ts";

const clockToleranceMs = 5_000;
const timeoutMs = 10_000;
/** Waiting entries up to here need no warning. */
const typicalEntries = 1_000_000;

interface Server {
  version: string;
  standbys: number;
  /** Without this privilege no standbys are visible. */
  sees_standbys: boolean;
  standby_names: string;
  syncs: string;
  now: Date;
  fronts: number;
  versions: number;
  is_held: boolean;
  entries: number;
  /** Partitions that no node loads. */
  unheld: number;
}

/** Changes nothing on the server. */
export async function checkPostgres(address: PostgresAddress): Promise<Finding[]> {
  const postgres = new Postgres(address, { connections: 1, name: "doctor" });
  try {
    const [row] = await postgres.run(
      (sql) => sql`
        SELECT current_setting('server_version') AS version, current_setting('synchronous_commit') AS syncs,
          (SELECT count(*)::int FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS standbys,
          pg_has_role('pg_read_all_stats', 'usage') AS sees_standbys, current_setting('synchronous_standby_names') AS standby_names,
          clock_timestamp() AS now,
          (SELECT count(*)::int FROM flagkeep.front WHERE seen_at > clock_timestamp() - interval '10 seconds') AS fronts,
          (SELECT count(DISTINCT version)::int FROM flagkeep.front WHERE seen_at > clock_timestamp() - interval '10 seconds') AS versions,
          (SELECT holder IS NOT NULL AND beat_at > clock_timestamp() - interval '6 seconds' FROM flagkeep.lease) AS is_held,
          (SELECT coalesce(sum(entries), 0)::float8 FROM flagkeep.journal) AS entries`,
      timeoutMs,
    );
    const unheld = await countUnheldPartitions(postgres);
    return getFindings({ ...(row as unknown as Server), unheld }, address, await readHeldBack(postgres));
  } catch (error) {
    const hint = "Check that it runs, and the address, user and database in --postgres-url.";
    return [failure("fronts", `${redactPostgresUrl(address)} cannot be checked: ${firstLine(error)}`, hint)];
  } finally {
    await postgres.close();
  }
}

/** @returns 0 also if one node loads everything, or the cluster's tables are of an older version */
async function countUnheldPartitions(postgres: Postgres): Promise<number> {
  const [table] = await postgres.run(
    (sql) => sql`SELECT to_regclass('flagkeep.partition') IS NOT NULL AS exists`,
    timeoutMs,
  );
  return table!.exists === true ? (await countPartitions(postgres)).unheld : 0;
}

function getFindings(server: Server, address: PostgresAddress, heldBack: HeldBack | null): Finding[] {
  const { version, fronts: nodes, entries } = server;
  const findings = [ok("fronts", `The cluster uses PostgreSQL ${version}, ${redactPostgresUrl(address)}.`)];
  if (!server.sees_standbys && server.standby_names !== "") {
    const message = `Every commit waits for a standby (synchronous_standby_names is ${server.standby_names}).`;
    findings.push(ok("fronts", message));
  } else if (server.standbys === 0) {
    const message = "PostgreSQL has no synchronous standby: acknowledged events are on one machine only.";
    findings.push(warning("fronts", message, "Add a standby and set synchronous_standby_names."));
  } else findings.push(ok("fronts", `${server.standbys} synchronous standbys have every commit.`));
  if (server.syncs === "off" || server.syncs === "local") {
    const message = `synchronous_commit is ${server.syncs}: an acknowledged event may be lost with a machine.`;
    findings.push(failure("fronts", message, "Set it to on for Flagkeep's user."));
  }
  const apartMs = Math.abs(new Date(server.now).getTime() - Date.now());
  if (apartMs > clockToleranceMs) {
    const message = `PostgreSQL's clock and this machine's are ${Math.round(apartMs / 1_000)} s apart.`;
    findings.push(warning("fronts", message, "Synchronize both with a time server."));
  }
  if (server.versions > 1) {
    const message = "The running nodes have different versions.";
    findings.push(warning("fronts", message, "Upgrade all nodes to the newest version."));
  }
  if (heldBack !== null) {
    const hint = "End it, and use a PostgreSQL server for Flagkeep alone.";
    findings.push(warning("fronts", describeHeldBack(heldBack), hint));
  }
  if (nodes > 0 && !server.is_held) {
    const message = "No node is loading events.";
    findings.push(
      warning("fronts", message, "Run doctor again in ten seconds; then see the logs of the nodes."),
    );
  } else if (nodes > 0 && server.unheld > 0) {
    const message = `No node loads ${server.unheld} of the partitions.`;
    findings.push(
      warning("fronts", message, "Run doctor again in ten seconds; then see `flagkeep cluster status`."),
    );
  } else if (entries > typicalEntries) {
    const message = `${entries} journal entries are not loaded yet.`;
    findings.push(warning("fronts", message, "Check whether ClickHouse keeps up."));
  } else findings.push(ok("fronts", `${nodes} nodes run; ${entries} journal entries are not loaded yet.`));
  return findings;
}
