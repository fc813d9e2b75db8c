/** Copies persons between the file of a data directory and the rows of a cluster; nothing else may use either. */

import type { Database } from "bun:sqlite";
import type { Postgres } from "../../cluster/connection.ts";
import { AppError } from "../../lib/errors.ts";
import { changeRange } from "../changes.ts";
import type { PeopleDb } from "../open.ts";
import { propertiesJson } from "../property-key-sets.ts";
import { laneCursors } from "../reader.ts";
import { toHash } from "./hashes.ts";
import { insertRows, toHex, type Value } from "./writer.ts";

/** The number of copied rows differs from the number of rows. */
class RowsMismatchError extends AppError {
  readonly code = "persons_differ";
  override readonly hint = "Nothing was switched. Run the command again while nothing else uses the data.";
  constructor(table: string, copied: number, there: number) {
    super(`${copied} rows of ${table} were copied, but there are ${there}.`);
  }
}

type Row = Record<string, string | number | Uint8Array | boolean | null>;

interface CopiedTable {
  name: string;
  /** Of both sides, with the type in PostgreSQL. */
  columns: readonly (readonly [name: string, type: string])[];
  /** A column that PostgreSQL has in addition: the hash of another one. */
  hash?: readonly [name: string, of: string];
}

const copied: readonly CopiedTable[] = [
  {
    name: "person",
    columns: [
      ["id", "bigint"],
      ["project_id", "integer"],
      ["uuid", "uuid"],
      ["version", "integer"],
      ["main_distinct_id", "text"],
      ["is_main_alias", "boolean"],
      ["is_identified", "boolean"],
      ["joined_count", "integer"],
      ["created_at", "bigint"],
      ["properties", "text"],
      ["property_times", "bytea"],
      ["unset_times", "text"],
      ["search_text", "text"],
    ],
  },
  {
    name: "distinct_id",
    columns: [
      ["project_id", "integer"],
      ["distinct_id", "text"],
      ["person_id", "bigint"],
      ["joined", "integer"],
    ],
    hash: ["id_hash", "distinct_id"],
  },
  {
    name: "personless_id",
    columns: [
      ["project_id", "integer"],
      ["id_hash", "bigint"],
    ],
  },
  {
    name: "group_type",
    columns: [
      ["project_id", "integer"],
      ["type_index", "integer"],
      ["name", "text"],
      ["created_at", "bigint"],
    ],
  },
  {
    name: "project_group",
    columns: [
      ["id", "bigint"],
      ["project_id", "integer"],
      ["type_index", "integer"],
      ["group_key", "text"],
      ["created_at", "bigint"],
      ["version", "integer"],
      ["properties", "text"],
      ["property_times", "bytea"],
    ],
    hash: ["key_hash", "group_key"],
  },
  {
    name: "cohort_member",
    columns: [
      ["cohort_id", "integer"],
      ["person_id", "bigint"],
    ],
  },
  {
    name: "hash_key_override",
    columns: [
      ["person_id", "bigint"],
      ["flag_key", "text"],
      ["hash_key", "text"],
    ],
  },
  {
    name: "pending_override",
    columns: [
      ["id", "bigint"],
      ["project_id", "integer"],
      ["distinct_id", "text"],
      ["hash_key", "text"],
      ["flag_keys", "text"],
      ["requested_at", "bigint"],
    ],
    hash: ["id_hash", "distinct_id"],
  },
];

/** Tables of the store `people` that a cluster with rows does not replicate; group types are on both sides. */
export const rowTables: ReadonlySet<string> = new Set([
  ...copied.map(({ name }) => name).filter((name) => name !== "group_type"),
  "property_list",
]);

const rowsAtOnce = 2_000;
const batchMs = 60_000;
/** Numbers of changes begin so far behind those of the file: copies in the event store are as new as the file's. */
const changeGap = 1_000;

/** Copies all persons of a file to rows, which are replaced. @throws {RowsMismatchError} @throws {PostgresUnreachableError} */
export async function copyToRows(people: PeopleDb, postgres: Postgres): Promise<void> {
  const { $client: client } = people;
  for (const table of copied) {
    await postgres.run((sql) => sql.unsafe(`TRUNCATE flagkeep.${table.name}`), batchMs);
    let count = 0;
    for (const rows of readFile(client, table)) {
      const values = rows.map((row) => toValues(client, table, row));
      const columns = [
        ...table.columns,
        ...(table.hash === undefined ? [] : [[table.hash[0], "uuid"] as const]),
      ];
      await postgres.transaction((t) => insertRows(t, table.name, columns, values), batchMs);
      count += rows.length;
    }
    const there = await countRows(postgres, table.name);
    if (there !== count) throw new RowsMismatchError(table.name, count, there);
  }
  const { last } = changeRange(people);
  await postgres.transaction(async (t) => {
    for (const [lane, seq] of Object.entries(laneCursors(people)))
      await t`UPDATE flagkeep.person_cursor SET last_seq = ${seq} WHERE lane = ${lane}`;
    await t`SELECT setval('flagkeep.person_ids', (SELECT coalesce(max(id), 0) + 1 FROM flagkeep.person))`;
    for (const table of ["project_group", "pending_override"])
      await t.unsafe(
        `SELECT setval(pg_get_serial_sequence('flagkeep.${table}', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM flagkeep.${table}))`,
      );
    await t`TRUNCATE flagkeep.person_change`;
    await t`SELECT setval(pg_get_serial_sequence('flagkeep.person_change', 'change_id'), ${last + changeGap}::bigint)`;
    // What the event store lacks is copied again, unless it has everything up to here.
    await t`INSERT INTO flagkeep.person_change (change_id, project_id, is_cached_only) VALUES (${last + 1}, 0, true)`;
  });
}

/** Copies all rows to a file whose tables of persons are empty. @throws {RowsMismatchError} @throws {PostgresUnreachableError} */
export async function copyFromRows(postgres: Postgres, { $client: client }: PeopleDb): Promise<void> {
  for (const table of copied) {
    const names = table.columns.map(([name]) => name);
    const insert = client.query(
      `INSERT OR REPLACE INTO ${table.name} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
    );
    const add = client.transaction((rows: readonly Row[]) => {
      for (const row of rows) insert.run(...names.map((name) => toSqlite(row[name]!)));
    });
    const columns = table.columns.map(([name, type]) =>
      type === "bigint" ? `${name}::text AS ${name}` : name,
    );
    let count = 0;
    await postgres.transaction(async (t, extend) => {
      const query = t.unsafe<Row[]>(`SELECT ${columns.join(", ")} FROM flagkeep.${table.name}`);
      for await (const rows of query.cursor(rowsAtOnce)) {
        add(rows.map((row) => withNumbers(table, row)));
        count += rows.length;
        extend();
      }
    }, batchMs);
    const there = await countRows(postgres, table.name);
    if (there !== count) throw new RowsMismatchError(table.name, count, there);
  }
  const [row] = await postgres.run(
    (sql) => sql<{ last: number }[]>`
      SELECT greatest((SELECT coalesce(max(change_id), 0) FROM flagkeep.person_change), 0)::float8 AS last`,
  );
  client.run("DELETE FROM sqlite_sequence WHERE name = 'change'");
  client.run("INSERT INTO sqlite_sequence VALUES ('change', ?)", [row!.last]);
}

function* readFile(client: Database, { name, columns }: CopiedTable): Generator<Row[]> {
  // Hashes have 64 bits.
  const selected = columns.map(([column, type]) =>
    type === "bigint" ? `CAST(${column} AS TEXT) AS ${column}` : column,
  );
  let rows: Row[] = [];
  for (const row of client.query<Row, []>(`SELECT ${selected.join(", ")} FROM ${name}`).iterate()) {
    rows.push(row);
    if (rows.length < rowsAtOnce) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}

function toValues(client: Database, { name, columns, hash }: CopiedTable, row: Row): Value[] {
  const values = columns.map(([column, type]): Value => {
    const value = row[column]!;
    if (type === "boolean") return value === 1;
    if (value instanceof Uint8Array) return toHex(value);
    if (name === "person" && column === "properties") return propertiesJson(client, value as string);
    return value;
  });
  return hash === undefined ? values : [...values, toHash(row[hash[1]] as string)];
}

/** SQLite's columns are strict. */
function withNumbers({ columns }: CopiedTable, row: Row): Row {
  const numbers = columns.filter(([, type]) => type === "bigint");
  return {
    ...row,
    ...Object.fromEntries(numbers.map(([name]) => [name, BigInt(row[name] as string)])),
  } as Row;
}

const toSqlite = (value: Row[string]) => (typeof value === "boolean" ? Number(value) : value);

async function countRows(postgres: Postgres, table: string): Promise<number> {
  const [row] = await postgres.run(
    (sql) => sql.unsafe<{ count: number }[]>(`SELECT count(*)::float8 AS count FROM flagkeep.${table}`),
    batchMs,
  );
  return row!.count;
}
