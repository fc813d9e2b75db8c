/** Has DuckDB parse a statement, and turns it into the one that runs. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { quoted } from "../sql-text.ts";
import { StatementRefused } from "./failures.ts";
import { renameTables, type ViewName } from "./statement.ts";
import { preparedText } from "./statement-text.ts";
import { folded, type Node } from "./tree.ts";

export interface ParsedStatement {
  /** The statement to run: printed from a tree that was checked, and parsed and checked again. */
  sql: string;
  /** What has to be there under the names of `tableOf`. */
  views: Set<ViewName>;
  /** Whether it may read the person of an event. */
  readsPersonId: boolean;
}

/**
 * Parses and checks a statement.
 *
 * @throws {StatementRefused}
 */
export async function parseStatement(connection: DuckDBConnection, sql: string): Promise<ParsedStatement> {
  const tree = await treeOf(connection, preparedText(sql));
  const views = renameTables(tree);
  const printed = await single(connection, `SELECT json_deserialize_sql(${quoted(JSON.stringify(tree))})`);
  // What runs is this text, so this text is what has to be right, whatever was printed how.
  const read = renameTables(await treeOf(connection, printed), true);
  if ([...read].some((view) => !views.has(view))) throw new StatementRefused("The statement cannot be run.");
  return { sql: printed, views, readsPersonId: mayReadPersonId(tree) };
}

/** Numbers stay as they are written: some are larger than JavaScript's, and 1.0 is another type than 1. */
async function treeOf(connection: DuckDBConnection, sql: string): Promise<unknown> {
  const text = await single(connection, `SELECT json_serialize_sql(${quoted(sql)})`);
  try {
    return JSON.parse(text, function exactNumbers(_, value, context?: { source?: string }) {
      if (typeof value !== "number" || context?.source === undefined) return value;
      return context.source === String(value) ? value : rawJson(context.source);
    });
  } catch {
    // Infinity and the like.
    throw new StatementRefused("The statement has a number that is too large.");
  }
}

/** Not in the type declarations yet. */
const rawJson = (JSON as unknown as { rawJSON: (text: string) => object }).rawJSON;

async function single(connection: DuckDBConnection, sql: string): Promise<string> {
  const rows = await connection.runAndReadAll(sql);
  return rows.getRows()[0]![0] as string;
}

const personColumn = "person_id";

/**
 * Whether a statement may read the column `person_id` of the view `events`, which costs a join that DuckDB does not leave
 * out by itself. In doubt it may.
 *
 * @param tree what `json_serialize_sql` answered, parsed.
 */
function mayReadPersonId(tree: unknown): boolean {
  const tables = new Set<string>();
  collectTables(tree, tables);
  return find(tree, (part) => {
    if (typeof part === "string") return folded(part) === personColumn;
    const { class: kind, ref_type, column_name_alias, column_names } = part;
    if (kind === "STAR" || kind === "POSITIONAL_REFERENCE" || ref_type === "NATURAL") return true;
    if (Array.isArray(column_name_alias) && column_name_alias.length > 0) return true;
    // A row as a whole: `SELECT e FROM events AS e`.
    return Array.isArray(column_names) && tables.has(folded(String(column_names.at(-1))));
  });
}

function collectTables(part: unknown, tables: Set<string>): void {
  find(part, (node) => {
    if (typeof node === "string" || node.type !== "BASE_TABLE") return false;
    for (const name of [node.table_name, node.alias]) if (name) tables.add(folded(String(name)));
    return false;
  });
}

function find(part: unknown, matches: (part: string | Node) => boolean): boolean {
  if (Array.isArray(part)) return part.some((entry) => find(entry, matches));
  if (typeof part === "string") return matches(part);
  if (typeof part !== "object" || part === null) return false;
  return matches(part as Node) || Object.values(part).some((child) => find(child, matches));
}
