/** Copies persons between the file of a data directory and the rows of a cluster; nothing else may use either. */

import type { Database } from "bun:sqlite";
import type { Sql } from "postgres";
import type { Postgres, Transaction } from "../../cluster/connection.ts";
import type { Conversion } from "../../cluster/layout.ts";
import { setPositions } from "../../cluster/partitions.ts";
import { addRowHashes, noRows, type RowSums, rowHash, rowHashSql } from "../../cluster/row-hashes.ts";
import type { Lane } from "../../journal/segment.ts";
import { AppError } from "../../lib/errors.ts";
import { changeRange } from "../changes.ts";
import { loadedExternally } from "../external-events.ts";
import type { PersonsDb } from "../open.ts";
import { propertiesJson } from "../property-key-sets.ts";
import { laneCursors } from "../reader.ts";
import { toHash } from "./hashes.ts";
import { insertRows, toHex, type Value } from "./writer.ts";

/** The number of copied rows differs from the number of rows. */
export class RowsMismatchError extends AppError {
  readonly code = "persons_differ";
  override readonly hint = "Nothing was switched. Run the command again while nothing else uses the data.";
  constructor(table: string, here: number, there: number) {
    const but = here === there ? "the same number with other values" : String(there);
    super(`The file has ${here} rows of ${table}, but PostgreSQL has ${but}.`);
  }
}

type Row = Record<string, string | number | Uint8Array | boolean | null>;

interface CopiedTable {
  name: string;
  /** Of the file: rows are copied in this order. */
  key: readonly string[];
  /** Of both sides, with the type in PostgreSQL. */
  columns: readonly (readonly [name: string, type: string])[];
  /** A column that PostgreSQL has in addition: the hash of another one. */
  hash?: readonly [name: string, of: string];
}

const copied: readonly CopiedTable[] = [
  {
    name: "person",
    key: ["id"],
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
    key: ["project_id", "distinct_id"],
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
    key: ["project_id", "id_hash"],
    columns: [
      ["project_id", "integer"],
      ["id_hash", "bigint"],
    ],
  },
  {
    name: "group_type",
    key: ["project_id", "type_index"],
    columns: [
      ["project_id", "integer"],
      ["type_index", "integer"],
      ["name", "text"],
      ["created_at", "bigint"],
    ],
  },
  {
    name: "project_group",
    key: ["id"],
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
    key: ["cohort_id", "person_id"],
    columns: [
      ["cohort_id", "integer"],
      ["person_id", "bigint"],
    ],
  },
  {
    name: "hash_key_override",
    key: ["person_id", "flag_key"],
    columns: [
      ["person_id", "bigint"],
      ["flag_key", "text"],
      ["hash_key", "text"],
    ],
  },
  {
    name: "pending_override",
    key: ["id"],
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
const compareMs = 3_600_000;
/** Numbers of changes begin so far behind those of the file: copies in the event store are as new as the file's. */
const changeGap = 1_000;

/** Records how far a copy is, so that an interrupted one continues. */
export interface CopyRecord {
  position: Conversion["position"];
  /** Part of the transaction that writes the rows. */
  record(t: Transaction, position: Conversion["position"]): Promise<void>;
}

const noRecord: CopyRecord = { position: null, record: async () => undefined };

/**
 * Copies all persons of a file to rows, which are replaced.
 * @param onRows receives the number of copied rows @throws {RowsMismatchError} @throws {PostgresUnreachableError}
 */
export async function copyToRows(
  people: PersonsDb,
  postgres: Postgres,
  { position, record }: CopyRecord = noRecord,
  onRows: (count: number) => void = () => undefined,
): Promise<void> {
  const { $client: client } = people;
  const first = Math.max(
    0,
    copied.findIndex(({ name }) => name === position?.table),
  );
  for (const table of copied.slice(first)) {
    const { name } = table;
    let key = table === copied[first] && position !== null ? position.key : [];
    if (key.length === 0) await postgres.run((sql) => sql.unsafe(`TRUNCATE flagkeep.${name}`), batchMs);
    for (const rows of readFile(client, table, key)) {
      const values = rows.map((row) => toValues(client, table, row));
      const columns = [
        ...table.columns,
        ...(table.hash === undefined ? [] : [[table.hash[0], "uuid"] as const]),
      ];
      key = table.key.map((column) => String(rows.at(-1)![column]));
      await postgres.transaction(async (t) => {
        await insertRows(t, name, columns, values);
        await record(t, { table: name, key });
      }, batchMs);
      onRows(rows.length);
    }
    const there = await countRows(postgres, name);
    const { count } = client.query(`SELECT count(*) AS count FROM ${name}`).get() as { count: number };
    if (there !== count) throw new RowsMismatchError(name, count, there);
  }
  const { last } = changeRange(people);
  const applied = laneCursors(people);
  const loaded = loadedExternally(people);
  const cursors = (lane: Lane) => ({ applied: applied[lane], loaded: loaded[lane] });
  await postgres.transaction(async (t) => {
    for (const [lane, seq] of Object.entries(applied))
      await t`UPDATE flagkeep.person_cursor SET last_seq = ${seq} WHERE lane = ${lane}`;
    await setPositions(t, { realtime: cursors("realtime"), historical: cursors("historical") });
    await t`SELECT setval('flagkeep.person_ids', (SELECT coalesce(max(id), 0) + 1 FROM flagkeep.person))`;
    for (const table of ["project_group", "pending_override"])
      await t.unsafe(
        `SELECT setval(pg_get_serial_sequence('flagkeep.${table}', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM flagkeep.${table}))`,
      );
    await t`TRUNCATE flagkeep.person_change`;
    await t`SELECT setval(pg_get_serial_sequence('flagkeep.person_change', 'change_id'), ${last + changeGap}::bigint)`;
    // What the event store lacks is copied again, unless it has everything up to here.
    await t`INSERT INTO flagkeep.person_change (change_id, project_id, is_cached_only) VALUES (${last + 1}, 0, true)`;
  }, batchMs);
  // Otherwise the first queries would be planned as if the tables were empty.
  const tables = copied.map(({ name }) => `flagkeep.${name}`);
  await postgres.run((sql) => sql.unsafe(`ANALYZE ${tables.join(", ")}`), compareMs);
}

/** Changes whenever a row does: every change of persons is numbered, and every step moves a cursor. */
export async function readRowsVersion(sql: Sql | Transaction): Promise<string> {
  const [row] = await sql`SELECT (SELECT max(change_id) FROM flagkeep.person_change)::text AS change,
    (SELECT string_agg(last_seq::text, ' ' ORDER BY lane) FROM flagkeep.person_cursor) AS cursors`;
  return `${row!.change} ${row!.cursors}`;
}

/** Deletes all rows. */
export async function truncateRows(postgres: Postgres): Promise<void> {
  const tables = [...copied.map(({ name }) => name), "person_change"].map((name) => `flagkeep.${name}`);
  await postgres.run((sql) => sql.unsafe(`TRUNCATE ${tables.join(", ")}`), batchMs);
}

/** Copies all rows to a file whose tables of persons are empty. @throws {RowsMismatchError} @throws {PostgresUnreachableError} */
export async function copyFromRows(postgres: Postgres, { $client: client }: PersonsDb): Promise<void> {
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

/** Compares the counts and hash sums of each project. @throws {RowsMismatchError} @throws {PostgresUnreachableError} */
export async function compareRows({ $client: client }: PersonsDb, postgres: Postgres): Promise<void> {
  for (const table of copied) {
    const { name, columns } = table;
    const project = columns.some(([column]) => column === "project_id") ? "project_id" : "0";
    const cells = columns.map(([column, type]) => {
      const text =
        type === "bytea"
          ? `encode(${column}, 'hex')`
          : type === "boolean"
            ? `${column}::int::text`
            : `${column}::text`;
      return `coalesce(${text}, chr(30))`;
    });
    const sums = await postgres.run(
      (sql) =>
        sql.unsafe<{ project: number; rows: number; sum: string }[]>(
          `SELECT ${project} AS project, count(*)::float8 AS rows, ${rowHashSql(`concat_ws(chr(31), ${cells.join(", ")})`)} AS sum
           FROM flagkeep.${name} GROUP BY 1`,
        ),
      compareMs,
    );
    const there = new Map(sums.map(({ project: id, rows, sum }) => [id, { rows, sum: BigInt(sum) }]));
    const here = new Map<number, RowSums>();
    for (const rows of readFile(client, table, []))
      for (const row of rows) {
        const id = Number(row.project_id ?? 0);
        here.set(id, addRowHashes(here.get(id) ?? noRows, rowHash(toText(client, table, row))));
      }
    for (const id of new Set([...here.keys(), ...there.keys()])) {
      const inFile = here.get(id) ?? noRows;
      const inPostgres = there.get(id) ?? noRows;
      if (inFile.rows !== inPostgres.rows || inFile.sum !== inPostgres.sum)
        throw new RowsMismatchError(`${name} of project ${id}`, inFile.rows, inPostgres.rows);
    }
  }
}

/** Equal to the columns in PostgreSQL, see `compareRows`. */
function toText(client: Database, { name, columns }: CopiedTable, row: Row): string {
  const cells = columns.map(([column]) => {
    const value = row[column]!;
    if (value === null) return "\u001e";
    if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
    if (name === "person" && column === "properties") return propertiesJson(client, value as string);
    return String(value);
  });
  return cells.join("\u001f");
}

/** @param after the key of the last row that is not read; empty: none */
function* readFile(
  client: Database,
  { name, columns, key }: CopiedTable,
  after: readonly string[],
): Generator<Row[]> {
  const placeholders = key.map((column) =>
    columns.some(([other, type]) => other === column && type !== "text") ? "CAST(? AS INTEGER)" : "?",
  );
  const where = after.length === 0 ? "" : `WHERE (${key.join(", ")}) > (${placeholders.join(", ")})`;
  // Hashes have 64 bits.
  const selected = columns.map(([column, type]) =>
    type === "bigint" ? `CAST(${column} AS TEXT) AS ${column}` : column,
  );
  let rows: Row[] = [];
  const query = client.query<Row, string[]>(
    `SELECT ${selected.join(", ")} FROM ${name} ${where} ORDER BY ${key.map((column) => `${name}.${column}`).join(", ")}`,
  );
  for (const row of query.iterate(...after)) {
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
