/**
 * Finds out whether a statement may read the column `person_id` of the view `events`, which costs a join that DuckDB
 * does not leave out by itself.
 *
 * Pure. In doubt it may.
 */

import { folded, type Node } from "./tree.ts";

const column = "person_id";

/** @param tree what `json_serialize_sql` answered, parsed. */
export function mayReadPersonId(tree: unknown): boolean {
  const tables = new Set<string>();
  collectTables(tree, tables);
  return find(tree, (part) => {
    if (typeof part === "string") return folded(part) === column;
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
