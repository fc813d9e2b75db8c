/** Has DuckDB parse a statement, and knows which functions a statement may call. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { quoted } from "../events/sql-text.ts";
import { StatementRefused } from "./failures.ts";
import { mayReadPersonId } from "./person-column.ts";
import { checkStatement, type ViewName } from "./statement.ts";

/** Longer ones are made by programs that should use an export. */
const STATEMENT_LENGTH_MAX = 100_000;

/** Functions whose answer is not fixed by their arguments, and that tell nothing about the server all the same. */
const ALLOWED_MOVING = [
  ...["random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "now", "today", "current_date"],
  ...["transaction_timestamp", "get_current_timestamp", "get_current_time", "current_localtime"],
  "current_localtimestamp",
];

/** Functions that tell about the server, its files or its settings, or that make other SQL. */
const REFUSED_PATTERN =
  "^(current_(setting|user|role|catalog|query|schema|database).*|user|session_user|getvariable|getenv|get_block_size|" +
  "json_(de)?serialize.*|json_execute.*|write_log|parse_duckdb_log_message|pg_.*|has_.*|inet_.*|nextval|currval|" +
  "txid_current|.*sleep.*|stats|version|add_parquet_key|create_sort_key|in_search_path|error|read_.*|which_secret)$";

let functions: Promise<ReadonlySet<string>> | undefined;

/**
 * Parses and checks a statement.
 *
 * @returns the views that it reads, and whether it may read the person of an event.
 * @throws {StatementRefused}
 */
export async function parseStatement(
  connection: DuckDBConnection,
  sql: string,
): Promise<{ views: Set<ViewName>; readsPersonId: boolean }> {
  if (sql.length > STATEMENT_LENGTH_MAX || sql.includes("\0")) {
    throw new StatementRefused(`A statement has at most ${STATEMENT_LENGTH_MAX} characters and no NUL.`);
  }
  functions ??= readFunctions(connection);
  const allowed = await functions;
  const rows = await connection.runAndReadAll(`SELECT json_serialize_sql(${quoted(sql)})`);
  const tree = JSON.parse(rows.getRows()[0]![0] as string);
  return { views: checkStatement(tree, allowed), readsPersonId: mayReadPersonId(tree) };
}

async function readFunctions(connection: DuckDBConnection): Promise<ReadonlySet<string>> {
  const rows = await connection.runAndReadAll(
    `SELECT DISTINCT lower(function_name) FROM duckdb_functions()
     WHERE schema_name = 'main' AND function_type IN ('scalar', 'aggregate', 'macro')
       AND (coalesce(stability, 'CONSISTENT') = 'CONSISTENT' OR function_name IN (${ALLOWED_MOVING.map(quoted).join(", ")}))
       AND NOT regexp_matches(lower(function_name), ${quoted(REFUSED_PATTERN)})`,
  );
  return new Set(rows.getRows().map(([name]) => name as string));
}
