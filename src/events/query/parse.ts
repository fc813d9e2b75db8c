/** Parses a statement with DuckDB and converts it to the one to run. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { StatementRejectedError } from "../duckdb/statement-errors.ts";
import type { WeekStartDay } from "../sql-dialect.ts";
import { quoted } from "../sql-text.ts";
import { toDuckDbText } from "./hogql-text.ts";
import { type HogqlContext, personColumns, translateHogql } from "./hogql-tree.ts";
import { fold, type Node } from "./nodes.ts";
import { renameTables, type ViewName } from "./statement.ts";
import { type FindColumn, useColumns, type ViewColumns } from "./statement-columns.ts";
import { assertLength, preparedStatement } from "./statement-text.ts";

export interface ParsedStatement {
  /** The statement to run: printed from a checked tree, then parsed and checked again. */
  sql: string;
  /** The views required under the names of `getTable`. */
  views: Set<ViewName>;
  /** Whether it may read the person of an event. */
  readsPersonId: boolean;
  /** Whether it may read other columns of the person of an event. */
  readsPerson: boolean;
  /** Columns of materialized properties that it reads instead of JSON. */
  propertyColumns: ViewColumns;
  /** The zone of a HogQL statement. */
  timezone: string | undefined;
}

/** A statement in HogQL, PostHog's SQL, of which DuckDB's is a part here. */
export interface HogqlOptions {
  weekStartDay: WeekStartDay;
  /** The project's zone: times without an offset and functions of times use its clock. */
  timezone: string;
  /** SQL by the name of a placeholder. */
  placeholders: Record<string, string>;
}

export type TypedHogqlOptions = HogqlOptions & Pick<HogqlContext, "propertyType">;

/** Parses and checks a statement. @throws {StatementRejectedError} */
export async function parseStatement(
  connection: DuckDBConnection,
  sql: string,
  hogql?: TypedHogqlOptions,
  findColumn?: FindColumn,
): Promise<ParsedStatement> {
  const tree =
    hogql === undefined
      ? await toTree(connection, preparedStatement(sql))
      : await toHogqlTree(connection, sql, hogql);
  const views = renameTables(tree);
  const find = { findColumn, hasInstants: hogql !== undefined };
  const propertyColumns = useColumns(tree, find);
  const printed = await single(connection, `SELECT json_deserialize_sql(${quoted(JSON.stringify(tree))})`);
  // The printed statement is what runs, so check it again instead of trusting the printer.
  const read = renameTables(await toTree(connection, printed), true);
  if ([...read].some((view) => !views.has(view)))
    throw new StatementRejectedError("The statement cannot be executed.");
  const readsPerson = hogql !== undefined && mayReadPerson(tree);
  const readsPersonId = readsPerson || mayReadPersonId(tree);
  return { sql: printed, views, readsPersonId, readsPerson, propertyColumns, timezone: hogql?.timezone };
}

async function toHogqlTree(
  connection: DuckDBConnection,
  sql: string,
  options: TypedHogqlOptions,
): Promise<unknown> {
  assertLength(sql);
  const { sql: text, columns } = toDuckDbText(sql, options.placeholders);
  const tree = await toTree(connection, preparedStatement(text));
  const parse = async (template: string) => await toTree(connection, template);
  await translateHogql(tree, { ...options, columns, parse });
  return tree;
}

/** Numbers keep their source form: some exceed JavaScript's, and 1.0 has another type than 1. */
async function toTree(connection: DuckDBConnection, sql: string): Promise<unknown> {
  const text = await single(connection, `SELECT json_serialize_sql(${quoted(sql)})`);
  try {
    return JSON.parse(text, function exactNumbers(_, value, context?: { source?: string }) {
      if (typeof value !== "number" || context?.source === undefined) return value;
      return context.source === String(value) ? value : rawJson(context.source);
    });
  } catch {
    // For example, infinity.
    throw new StatementRejectedError("The statement contains a number that is too large.");
  }
}

/** Missing in the type declarations. */
const rawJson = (JSON as unknown as { rawJSON: (text: string) => object }).rawJSON;

async function single(connection: DuckDBConnection, sql: string): Promise<string> {
  const rows = await connection.runAndReadAll(sql);
  return rows.getRows()[0]![0] as string;
}

const personColumn = "person_id";

/**
 * Whether a statement may read the column `person_id` of the view `events`, which requires a join that DuckDB does not
 * eliminate. True in doubt. @param tree the parsed result of `json_serialize_sql`
 */
function mayReadPersonId(tree: unknown): boolean {
  const tables = new Set<string>();
  collectTables(tree, tables);
  return find(tree, (part) => {
    if (typeof part === "string") return fold(part) === personColumn;
    const { class: kind, ref_type, column_name_alias, column_names } = part;
    if (kind === "STAR" || kind === "POSITIONAL_REFERENCE" || ref_type === "NATURAL") return true;
    if (Array.isArray(column_name_alias) && column_name_alias.length > 0) return true;
    // A whole row: `SELECT e FROM events AS e`.
    return Array.isArray(column_names) && tables.has(fold(String(column_names.at(-1))));
  });
}

/** Whether a column of the person other than its ID is named. */
function mayReadPerson(tree: unknown): boolean {
  const columns: readonly string[] = Object.values(personColumns);
  return find(tree, (part) => typeof part === "string" && columns.includes(fold(part)));
}

function collectTables(part: unknown, tables: Set<string>): void {
  find(part, (node) => {
    if (typeof node === "string" || node.type !== "BASE_TABLE") return false;
    for (const name of [node.table_name, node.alias]) if (name) tables.add(fold(String(name)));
    return false;
  });
}

function find(part: unknown, matches: (part: string | Node) => boolean): boolean {
  if (Array.isArray(part)) return part.some((entry) => find(entry, matches));
  if (typeof part === "string") return matches(part);
  if (typeof part !== "object" || part === null) return false;
  return matches(part as Node) || Object.values(part).some((child) => find(child, matches));
}
