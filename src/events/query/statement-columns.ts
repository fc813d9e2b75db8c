/**
 * Reads materialized columns instead of JSON in statements: `properties->>'plan'` and `prop('plan')`. Only in a SELECT
 * whose FROM is the view `events` itself, so that no other `properties` can be meant. Works on a checked tree; pure.
 */

import { castNode, fold, functionNode, getConstant, type Node, tableNames, textConstant } from "./nodes.ts";
import { getTable } from "./statement.ts";

/** How a property is read: as in `properties->>'x'`, or as in `prop('x')`, which equals the column for all values. */
export type PropertyForm = "sent" | "member";

/** SQL of the column of a property; undefined without one, or if it may differ in this form. */
export type FindColumn = (name: string, form: PropertyForm) => string | undefined;

/** Columns that the view `events` needs in addition: SQL by name. */
export type ViewColumns = ReadonlyMap<string, string>;

const pointerForm = /^\/([^/~]|~[01])+$/;

/** How columns of `events` are found. */
export interface ColumnSearch {
  findColumn?: FindColumn | undefined;
  /** The view's times are instants, computed from the stored ones. */
  hasInstants?: boolean;
}

/** The stored column of the time of an event, by which DuckDB skips parts of the table. */
const storedTime = ["flagkeep_timestamp", "e.timestamp"] as const;

/**
 * Replaces reads of properties that have a column, and comparisons of instants with their stored column.
 * @param tree the checked result of `json_serialize_sql`; modified
 */
export function useColumns(tree: unknown, { findColumn, hasInstants }: ColumnSearch): ViewColumns {
  const columns = new Map<string, string>();
  if ((findColumn === undefined && !hasInstants) || seesAllColumns(tree)) return columns;
  walk(tree, (node) => {
    if (node.type !== "SELECT_NODE" || !readsEvents(node.from_table as Node)) return false;
    if (findColumn !== undefined) replaceIn(node, findColumn, columns);
    if (hasInstants && compareStoredTimes(node)) columns.set(...storedTime);
    return false;
  });
  return columns;
}

/** Whether further columns of the view, or a column of another name, may become visible. */
function seesAllColumns(tree: unknown): boolean {
  const tables = tableNames(tree);
  /** `ORDER BY ALL` means the selected columns. */
  const ordering = new Set<unknown>();
  return walk(tree, (node) => {
    const { class: kind, alias, column_names: names, column_name_alias: renamed, ref_type } = node;
    if (node.type === "ORDER_MODIFIER")
      for (const { expression } of node.orders as Node[])
        if ((expression as Node).expr === null) ordering.add(expression);
    if (kind === "STAR" && !ordering.has(node)) return true;
    if (kind === "POSITIONAL_REFERENCE" || kind === "LAMBDA") return true;
    if (ref_type === "NATURAL" || (Array.isArray(renamed) && renamed.length > 0)) return true;
    if (typeof alias === "string" && fold(alias) === "properties") return true;
    // A whole row: `SELECT e FROM events AS e`.
    return Array.isArray(names) && tables.has(fold(String(names.at(-1))));
  });
}

function readsEvents(from: Node | null | undefined): boolean {
  return from?.type === "BASE_TABLE" && from.table_name === getTable("events").table;
}

function replaceIn(select: Node, findColumn: FindColumn, columns: Map<string, string>): void {
  const table = fold(String((select.from_table as Node).alias));
  const { from_table, cte_map, ...parts } = select;
  const found = new Map<Node, { sql: string; alias: string }>();
  const collect = (node: Node): boolean => {
    // Subqueries have tables of their own.
    if (node.class === "SUBQUERY") return false;
    const read = getPropertyRead(node, table);
    const sql = read && findColumn(read.name, read.form);
    if (sql !== undefined) found.set(node, { sql, alias: read!.title });
    return false;
  };
  walk(parts, collect, "SUBQUERY");
  if (found.size === 0) return;
  // DuckDB names a column without an alias after its expression.
  for (const column of select.select_list as Node[]) {
    if (column.alias !== "" || found.get(column)?.alias) continue;
    if (walk(column, (node) => found.has(node), "SUBQUERY")) return;
  }
  for (const [node, { sql, alias }] of found) {
    const name = `flagkeep_${sql.replace(/^.*\./, "").replaceAll('"', "")}`;
    columns.set(name, sql);
    const isSelected = (select.select_list as Node[]).includes(node);
    const retained = isSelected && node.alias === "" ? alias : node.alias;
    for (const member of Object.keys(node)) delete node[member];
    Object.assign(node, { class: "COLUMN_REF", type: "COLUMN_REF", alias: retained, query_location: 0 });
    node.column_names = [String((select.from_table as Node).alias), name];
  }
}

/** `timestamp >= x` and `timestamp BETWEEN x AND y` in WHERE. @returns whether there were any */
function compareStoredTimes(select: Node): boolean {
  const table = String((select.from_table as Node).alias);
  let isFound = false;
  const isTime = (node: Node): boolean => {
    const names = (node.class === "COLUMN_REF" ? node.column_names : []) as string[];
    const isOfTable = names.length === 1 || (names.length === 2 && fold(names[0]!) === fold(table));
    return isOfTable && fold(names.at(-1)!) === "timestamp";
  };
  const compare = (node: Node): boolean => {
    const sides = comparedSides[String(node.type)] ?? [];
    const times = sides.filter((side) => isTime(node[side] as Node));
    if (times.length !== 1) return false;
    isFound = true;
    for (const side of sides) {
      const operand = node[side] as Node;
      node[side] = times.includes(side)
        ? { ...operand, column_names: [table, storedTime[0]] }
        : functionNode("timezone", [textConstant("UTC"), castNode(operand, "TIMESTAMP WITH TIME ZONE")]);
    }
    return false;
  };
  walk(select.where_clause, compare, "SUBQUERY");
  return isFound;
}

const comparedSides: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ["EQUAL", "LESSTHAN", "GREATERTHAN", "LESSTHANOREQUALTO", "GREATERTHANOREQUALTO"].map((operator) => [
      `COMPARE_${operator}`,
      ["left", "right"],
    ]),
  ),
  COMPARE_BETWEEN: ["input", "lower", "upper"],
};

/** What a node reads, if it is a property as a string. `title` is DuckDB's name of such a column, empty if unknown. */
function getPropertyRead(
  node: Node,
  table: string,
): { name: string; form: PropertyForm; title: string } | undefined {
  if (node.class !== "FUNCTION") return undefined;
  const [json, path] = (node.children ?? []) as Node[];
  const called = fold(String(node.function_name));
  if (called === "json_extract_string" && getConstant(path) === "$") return getShortForm(json!, table);
  if (called !== "->>" && called !== "json_extract_string") return undefined;
  const written = getConstant(path);
  const column = columnName(json, table);
  if (typeof written !== "string" || column === undefined) return undefined;
  const name = toName(written, called === "->>");
  if (name === undefined) return undefined;
  const title = called === "->>" ? `(${column} ->> '${written.replaceAll("'", "''")}')` : "";
  return { name, form: "sent", title };
}

/** `prop('x')` as written by `withPropertyNames`. */
function getShortForm(node: Node, table: string): ReturnType<typeof getPropertyRead> {
  const [json, pattern, by] = (node.children ?? []) as Node[];
  const isShort =
    fold(String(node.function_name)) === "regexp_replace" &&
    getConstant(pattern) === "\\.0$" &&
    getConstant(by) === "";
  const [column, path] = (json?.children ?? []) as Node[];
  const written = getConstant(path);
  if (!isShort || fold(String(json?.function_name)) !== "json_extract") return undefined;
  if (typeof written !== "string" || columnName(column, table) === undefined) return undefined;
  const name = toName(written, false);
  return name === undefined ? undefined : { name, form: "member", title: "" };
}

/** The column `properties` of the table as it is written; undefined for anything else. */
function columnName(node: Node | undefined, table: string): string | undefined {
  const names = (node?.class === "COLUMN_REF" ? node.column_names : []) as string[];
  const isOfTable = names.length === 1 || (names.length === 2 && fold(names[0]!) === table);
  return isOfTable && fold(names.at(-1)!) === "properties" ? names.join(".") : undefined;
}

/** The name of a member from a JSON pointer, or from the plain form, which has no path. */
function toName(written: string, mayBePlain: boolean): string | undefined {
  if (pointerForm.test(written)) return written.slice(1).replaceAll("~1", "/").replaceAll("~0", "~");
  return mayBePlain && /^[A-Za-z_][A-Za-z0-9_]*$/.test(written) ? written : undefined;
}

/** @returns whether a node matches; nodes of the class `closed` are not entered */
function walk(part: unknown, matches: (node: Node) => boolean, closed?: string): boolean {
  if (Array.isArray(part)) return part.some((entry) => walk(entry, matches, closed));
  if (typeof part !== "object" || part === null) return false;
  const node = part as Node;
  if (closed !== undefined && node.class === closed) return false;
  return matches(node) || Object.values(node).some((child) => walk(child, matches, closed));
}
