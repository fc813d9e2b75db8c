/**
 * The tables in ClickHouse, by version. All statements are idempotent, because they are repeated after errors. On a
 * cluster, events are sharded by distinct ID, and replicas of persons are on every node, so that joins are local.
 */

import { OperatorActionError } from "../../lib/errors.ts";
import { NewerDataVersionError } from "../../lib/sqlite.ts";
import type { ClickHouseAddress } from "../../lib/store-urls.ts";
import type { ClickHouseConnection } from "./connection.ts";

/** Parameters of the statements. */
export interface TableLocation {
  database: string;
  cluster: string | null;
}

interface ClickHouseMigration {
  version: number;
  name: string;
  statements: (location: TableLocation) => string[];
}

/**
 * Insert tokens remembered by ClickHouse: a batch repeated after a lost response is stored once. A batch starts when
 * the previous one is finished, so ten would suffice, except for an insert that arrives much later.
 */
export const deduplicationWindow = 10_000;

/** Events with malicious timestamps share one partition instead of one per month. */
const partition =
  "if(time >= 1420070400000000 AND time < 2208988800000000, toYYYYMM(fromUnixTimestamp64Micro(time, 'UTC')), 0)";

/** Acknowledged rows are on disk before the journal deletes them. */
const durable = "fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1";

const onCluster = ({ cluster }: TableLocation) => (cluster === null ? "" : ` ON CLUSTER \`${cluster}\``);

/** @param spread whether rows are sharded; otherwise every node has all */
function engine(location: TableLocation, table: string, parameters: string, spread: boolean): string {
  if (location.cluster === null) return `ReplacingMergeTree(${parameters})`;
  const path = `/clickhouse/tables/${spread ? "{shard}" : "all"}/${location.database}/${table}`;
  const replica = spread ? "{replica}" : "{shard}-{replica}";
  const own = [`'${path}'`, `'${replica}'`, ...(parameters === "" ? [] : [parameters])].join(", ");
  return `ReplicatedReplacingMergeTree(${own})`;
}

/** The table with the rows of events. */
export const eventRows = ({ cluster }: TableLocation): string =>
  cluster === null ? "events" : "events_shard";

const windowSetting = ({ cluster }: TableLocation) =>
  cluster === null ? "non_replicated_deduplication_window" : "replicated_deduplication_window";

function window(location: TableLocation): string {
  const own = `${windowSetting(location)} = ${deduplicationWindow}`;
  return location.cluster === null ? own : `${own}, replicated_deduplication_window_seconds = 604800`;
}

function eventTables(location: TableLocation): string[] {
  const rows = `CREATE TABLE IF NOT EXISTS ${eventRows(location)}${onCluster(location)} (
    project_id Int32,
    historical Bool,
    seq Int64,
    uuid UUID,
    uuid_time Nullable(Int64),
    event String CODEC(ZSTD(1)),
    distinct_id String CODEC(ZSTD(1)),
    time Int64 CODEC(Delta, ZSTD(1)),
    received Int64 CODEC(Delta, ZSTD(1)),
    mode LowCardinality(String),
    elements_chain Nullable(String) CODEC(ZSTD(1)),
    properties_text String CODEC(ZSTD(1)),
    properties_read String CODEC(ZSTD(1)),
    properties String ALIAS if(properties_read = '', properties_text, properties_read),
    timestamp DateTime64(6, 'UTC') ALIAS fromUnixTimestamp64Micro(time, 'UTC'),
    received_at DateTime64(6, 'UTC') ALIAS fromUnixTimestamp64Micro(received, 'UTC'),
    INDEX seq_range seq TYPE minmax GRANULARITY 1,
    INDEX uuid_time_range uuid_time TYPE minmax GRANULARITY 1,
    INDEX uuid_filter uuid TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX distinct_id_filter distinct_id TYPE bloom_filter(0.01) GRANULARITY 1
  ) ENGINE = ${engine(location, "events", "", true)}
  PARTITION BY ${partition}
  ORDER BY (project_id, intDiv(time, 86400000000), event, historical, seq)
  SETTINGS ${window(location)}, ${durable}`;
  if (location.cluster === null) return [rows];
  const { database, cluster } = location;
  return [
    rows,
    `CREATE TABLE IF NOT EXISTS events${onCluster(location)} AS ${eventRows(location)}
     ENGINE = Distributed('${cluster}', '${database}', '${eventRows(location)}', cityHash64(project_id, distinct_id))`,
  ];
}

const migrations: readonly ClickHouseMigration[] = [
  {
    version: 1,
    name: "events and persons",
    statements: (location) => [
      ...eventTables(location),
      `CREATE TABLE IF NOT EXISTS persons${onCluster(location)} (
        project_id Int32,
        uuid UUID,
        created Int64,
        properties String CODEC(ZSTD(1)),
        main_distinct_id String,
        version Int64,
        is_deleted UInt8
      ) ENGINE = ${engine(location, "persons", "version, is_deleted", false)}
      ORDER BY (project_id, uuid) SETTINGS ${durable}`,
      `CREATE TABLE IF NOT EXISTS person_distinct_ids${onCluster(location)} (
        project_id Int32,
        distinct_id String,
        person_uuid UUID,
        joined Int64,
        version Int64,
        is_deleted UInt8
      ) ENGINE = ${engine(location, "person_distinct_ids", "version, is_deleted", false)}
      ORDER BY (project_id, distinct_id) SETTINGS ${durable}`,
    ],
  },
];

/** Statements that create all tables. */
export function schemaStatements(location: TableLocation): string[] {
  return [...baseTables(location), ...migrations.flatMap(({ statements }) => statements(location))];
}

/** Tables with the store's metadata. */
function baseTables(location: TableLocation): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS schema_migration${onCluster(location)} (version Int64, name String)
     ENGINE = ${engine(location, "schema_migration", "", false)} ORDER BY version SETTINGS ${durable}`,
    `CREATE TABLE IF NOT EXISTS store${onCluster(location)} (id String)
     ENGINE = ${engine(location, "store", "", false)} ORDER BY id SETTINGS ${durable}`,
  ];
}

/** The server is older than `oldestVersion`. */
class ClickHouseTooOldError extends OperatorActionError {
  readonly code = "clickhouse_too_old";
  override readonly hint = "Install a newer ClickHouse.";
  constructor(found: string) {
    super(`ClickHouse ${found} is too old: Flagkeep requires ${oldestVersion.join(".")} or newer.`);
  }
}

/** Provides all features used here; see docs/operations/cluster.md. */
export const oldestVersion: readonly [number, number] = [25, 3];

/**
 * Creates or migrates the tables.
 * @throws {NewerDataVersionError} @throws {ClickHouseTooOldError} nothing was changed
 */
export async function migrateClickHouse(
  connection: ClickHouseConnection,
  { database, cluster }: ClickHouseAddress,
): Promise<void> {
  const location = { database, cluster };
  const [[found] = []] = await connection.rows("SELECT version()");
  const [major = 0, minor = 0] = String(found).split(".").map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1]))
    throw new ClickHouseTooOldError(String(found));
  for (const statement of baseTables(location)) await connection.command(statement);
  const [[version] = []] = await connection.rows("SELECT coalesce(max(version), 0) FROM schema_migration");
  const newest = Number(version);
  if (newest > migrations.length) throw new NewerDataVersionError("event store", newest, migrations.length);
  for (const { version, name, statements } of migrations.slice(newest)) {
    for (const statement of statements(location)) await connection.command(statement);
    await connection.command(`INSERT INTO schema_migration (version, name) VALUES (${version}, '${name}')`);
  }
  await widenWindow(connection, location);
}

/** Tables of earlier versions remember fewer tokens. A larger window of the operator is kept. */
async function widenWindow(connection: ClickHouseConnection, location: TableLocation): Promise<void> {
  const [[full] = []] = await connection.rows(
    `SELECT engine_full FROM system.tables WHERE database = '${location.database}' AND name = '${eventRows(location)}'`,
  );
  const setting = windowSetting(location);
  const found = new RegExp(`\\b${setting} = (\\d+)`).exec(String(full))?.[1];
  if (found !== undefined && Number(found) < deduplicationWindow)
    await connection.command(
      `ALTER TABLE ${eventRows(location)}${onCluster(location)} MODIFY SETTING ${setting} = ${deduplicationWindow}`,
    );
}
