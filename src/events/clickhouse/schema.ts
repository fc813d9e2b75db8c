/**
 * The tables in ClickHouse, in versions. A statement may be sent again after a failure: each does nothing when it was done.
 *
 * On a cluster events lie on its shards by distinct id, and the copies of persons on every node, so that they are joined
 * where the events are.
 */

import type { ClickHouseAddress } from "../../lib/clickhouse-address.ts";
import { OperatorNeeded } from "../../lib/errors.ts";
import { DataFromNewerVersion } from "../../lib/sqlite/migrate.ts";
import type { ClickHouseConnection } from "./connection.ts";

/** What the statements are made for. */
export interface Place {
  database: string;
  cluster: string | null;
}

interface ClickHouseMigration {
  version: number;
  name: string;
  statements: (place: Place) => string[];
}

/**
 * Inserts whose names are remembered: a batch that is sent again, as after a lost answer, is stored once. The next batch
 * begins when the one before it is done, so that ten would do.
 */
export const deduplicationWindow = 1_000;

/** Events of hostile times are in one partition; else each month of them would be one. */
const partition =
  "if(time >= 1420070400000000 AND time < 2208988800000000, toYYYYMM(fromUnixTimestamp64Micro(time, 'UTC')), 0)";

/** What was acknowledged is on the disk before the journal forgets it. */
const durable = "fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1";

const onCluster = ({ cluster }: Place) => (cluster === null ? "" : ` ON CLUSTER \`${cluster}\``);

/** @param spread whether a shard has its own rows; else every node has all. */
function engine(place: Place, table: string, parameters: string, spread: boolean): string {
  if (place.cluster === null) return `ReplacingMergeTree(${parameters})`;
  const path = `/clickhouse/tables/${spread ? "{shard}" : "all"}/${place.database}/${table}`;
  const replica = spread ? "{replica}" : "{shard}-{replica}";
  const own = [`'${path}'`, `'${replica}'`, ...(parameters === "" ? [] : [parameters])].join(", ");
  return `ReplicatedReplacingMergeTree(${own})`;
}

/** Where the rows of events are. */
export const eventRows = ({ cluster }: Place): string => (cluster === null ? "events" : "events_shard");

function window({ cluster }: Place): string {
  return cluster === null
    ? `non_replicated_deduplication_window = ${deduplicationWindow}`
    : `replicated_deduplication_window = ${deduplicationWindow}, replicated_deduplication_window_seconds = 604800`;
}

function eventTables(place: Place): string[] {
  const rows = `CREATE TABLE IF NOT EXISTS ${eventRows(place)}${onCluster(place)} (
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
  ) ENGINE = ${engine(place, "events", "", true)}
  PARTITION BY ${partition}
  ORDER BY (project_id, intDiv(time, 86400000000), event, historical, seq)
  SETTINGS ${window(place)}, ${durable}`;
  if (place.cluster === null) return [rows];
  const { database, cluster } = place;
  return [
    rows,
    `CREATE TABLE IF NOT EXISTS events${onCluster(place)} AS ${eventRows(place)}
     ENGINE = Distributed('${cluster}', '${database}', '${eventRows(place)}', cityHash64(project_id, distinct_id))`,
  ];
}

const migrations: readonly ClickHouseMigration[] = [
  {
    version: 1,
    name: "events and persons",
    statements: (place) => [
      ...eventTables(place),
      `CREATE TABLE IF NOT EXISTS persons${onCluster(place)} (
        project_id Int32,
        uuid UUID,
        created Int64,
        properties String CODEC(ZSTD(1)),
        main_distinct_id String,
        version Int64,
        is_deleted UInt8
      ) ENGINE = ${engine(place, "persons", "version, is_deleted", false)}
      ORDER BY (project_id, uuid) SETTINGS ${durable}`,
      `CREATE TABLE IF NOT EXISTS person_distinct_ids${onCluster(place)} (
        project_id Int32,
        distinct_id String,
        person_uuid UUID,
        joined Int64,
        version Int64,
        is_deleted UInt8
      ) ENGINE = ${engine(place, "person_distinct_ids", "version, is_deleted", false)}
      ORDER BY (project_id, distinct_id) SETTINGS ${durable}`,
    ],
  },
];

/** Statements that make all tables anew. */
export function schemaStatements(place: Place): string[] {
  return [...ownTables(place), ...migrations.flatMap(({ statements }) => statements(place))];
}

/** What the store knows of itself. */
function ownTables(place: Place): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS schema_migration${onCluster(place)} (version Int64, name String)
     ENGINE = ${engine(place, "schema_migration", "", false)} ORDER BY version SETTINGS ${durable}`,
    `CREATE TABLE IF NOT EXISTS store${onCluster(place)} (id String)
     ENGINE = ${engine(place, "store", "", false)} ORDER BY id SETTINGS ${durable}`,
  ];
}

/** The server is too old for what is asked of it. */
class ClickHouseTooOld extends OperatorNeeded {
  readonly code = "clickhouse_too_old";
  override readonly hint = "Install a newer ClickHouse.";
  constructor(found: string) {
    super(`ClickHouse ${found} is too old: Flagkeep needs ${oldestVersion.join(".")} or newer.`);
  }
}

/** Has everything that is used here; see docs/operations/cluster.md. */
export const oldestVersion: readonly [number, number] = [25, 3];

/**
 * Makes the tables, or brings them up to date.
 *
 * @throws {DataFromNewerVersion} @throws {ClickHouseTooOld} nothing was changed.
 */
export async function migrateClickHouse(
  connection: ClickHouseConnection,
  { database, cluster }: ClickHouseAddress,
): Promise<void> {
  const place = { database, cluster };
  const [[found] = []] = await connection.rows("SELECT version()");
  const [major = 0, minor = 0] = String(found).split(".").map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1]))
    throw new ClickHouseTooOld(String(found));
  for (const statement of ownTables(place)) await connection.command(statement);
  const [[version] = []] = await connection.rows("SELECT coalesce(max(version), 0) FROM schema_migration");
  const newest = Number(version);
  if (newest > migrations.length) throw new DataFromNewerVersion("event store", newest, migrations.length);
  for (const { version, name, statements } of migrations.slice(newest)) {
    for (const statement of statements(place)) await connection.command(statement);
    await connection.command(`INSERT INTO schema_migration (version, name) VALUES (${version}, '${name}')`);
  }
}
