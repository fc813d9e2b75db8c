/**
 * Decides whether a statement may run: one SELECT that reads nothing but the documented views.
 *
 * Works on the tree that DuckDB's own parser makes, and refuses whatever it does not know: a new kind of node in a
 * later DuckDB is refused until somebody has looked at it.
 * Pure; `parse.ts` gets the tree.
 */

import { StatementRefused } from "./failures.ts";

export const viewNames = ["events", "persons", "groups"] as const;
export type ViewName = (typeof viewNames)[number];

type Node = Readonly<Record<string, unknown>>;
type Scope = ReadonlySet<string>;

const TABLE_FUNCTIONS = new Set(["unnest", "range", "generate_series"]);
/** Functions that exist only in the parser or only before `OVER`. */
const PARSER_FUNCTIONS = new Set([
  ...[
    "unnest",
    "unlist",
    "row_number",
    "rank",
    "dense_rank",
    "rank_dense",
    "percent_rank",
    "cume_dist",
    "ntile",
  ],
  ...["lag", "lead", "first_value", "last_value", "nth_value", "fill"],
]);
const EXPRESSION_CLASSES = new Set([
  ...[
    "AGGREGATE",
    "BETWEEN",
    "CASE",
    "CAST",
    "COLLATE",
    "COLUMN_REF",
    "COMPARISON",
    "CONJUNCTION",
    "CONSTANT",
  ],
  ...["DEFAULT", "FUNCTION", "LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY"],
  ...["TYPE", "WINDOW"],
]);
/** Parts of a tree that are no expressions and read nothing. */
const HARMLESS_TYPES = new Set([
  ...[
    "EMPTY",
    "EMPTY_FROM",
    "JOIN",
    "SUBQUERY",
    "EXPRESSION_LIST",
    "SELECT_NODE",
    "SET_OPERATION_NODE",
    "CTE_NODE",
  ],
  ...["ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"],
  ...["ORDER_DEFAULT", "ASCENDING", "DESCENDING", "ASC", "DESC", "RECURSIVE_CTE_NODE"],
]);

/**
 * Checks the tree of a statement.
 *
 * @param tree      what `json_serialize_sql` answered, parsed.
 * @param functions lower-case names of the functions that may be called.
 * @returns         the views that are read.
 * @throws {StatementRefused}
 */
export function checkStatement(tree: unknown, functions: ReadonlySet<string>): Set<ViewName> {
  const { error, error_message, statements } = tree as Node;
  if (error !== false) throw new StatementRefused(sentence(String(error_message)));
  if (!Array.isArray(statements) || statements.length !== 1) {
    throw new StatementRefused("Exactly one statement is allowed.");
  }
  const checker = new Checker(functions);
  checker.visit((statements[0] as Node).node, new Set());
  return checker.views;
}

class Checker {
  readonly views = new Set<ViewName>();

  constructor(private readonly functions: ReadonlySet<string>) {}

  visit(part: unknown, scope: Scope): void {
    if (Array.isArray(part)) {
      for (const entry of part) this.visit(entry, scope);
      return;
    }
    if (typeof part !== "object" || part === null) return;
    const node = part as Node;
    if (typeof node.class === "string") this.checkExpression(node);
    else if (typeof node.type === "string") this.checkPart(node, scope);
    if (node.class === "CONSTANT") return;
    const inner = node.cte_map === undefined ? scope : this.visitCommonTables(node, scope);
    for (const [name, child] of Object.entries(node)) {
      if (name === "cte_map" || name === "cast_type") continue;
      // Only behind UNION does a recursive table see itself.
      const seesItself = node.type === "RECURSIVE_CTE_NODE" && name === "right";
      this.visit(child, seesItself ? new Set([...inner, nameOf(node.cte_name)]) : inner);
    }
  }

  /** Each common table sees those before it; what follows sees all of them. */
  private visitCommonTables(node: Node, scope: Scope): Scope {
    const inner = new Set(scope);
    const entries = (node.cte_map as { map?: { key: string; value: unknown }[] }).map ?? [];
    for (const { key, value } of entries) {
      this.visit(value, new Set(inner));
      inner.add(nameOf(key));
    }
    return inner;
  }

  private checkExpression(node: Node): void {
    if (!EXPRESSION_CLASSES.has(node.class as string)) {
      throw new StatementRefused(`Expressions of the kind ${String(node.class)} are not allowed.`);
    }
    if (node.class === "FUNCTION" || node.class === "WINDOW" || node.class === "AGGREGATE") {
      this.checkFunction(node);
    }
  }

  private checkFunction({ function_name, schema, catalog }: Node): void {
    const name = nameOf(function_name);
    const isOwn = (!schema || schema === "main") && !catalog;
    if (!isOwn || !(this.functions.has(name) || PARSER_FUNCTIONS.has(name))) {
      throw new StatementRefused(`The function ${name} is not allowed.`);
    }
  }

  private checkPart(node: Node, scope: Scope): void {
    const type = node.type as string;
    if (type === "BASE_TABLE") this.checkTable(node, scope);
    else if (type === "TABLE_FUNCTION") checkTableFunction(node.function as Node);
    else if (!HARMLESS_TYPES.has(type)) {
      throw new StatementRefused(`Statements with ${type} are not allowed.`);
    }
  }

  private checkTable({ table_name, schema_name, catalog_name, at_clause }: Node, scope: Scope): void {
    const name = nameOf(table_name);
    if (schema_name || catalog_name || at_clause) {
      throw new StatementRefused(`The table ${name} has to stand without schema and version.`);
    }
    if (scope.has(name)) return;
    const view = viewNames.find((candidate) => candidate === name);
    if (view === undefined) {
      throw new StatementRefused(`There is no view ${name}; there are ${viewNames.join(", ")}.`);
    }
    this.views.add(view);
  }
}

function checkTableFunction({ class: kind, function_name, schema, catalog }: Node): void {
  const name = nameOf(function_name);
  if (kind !== "FUNCTION" || schema || catalog || !TABLE_FUNCTIONS.has(name)) {
    throw new StatementRefused(`The table function ${name} is not allowed.`);
  }
}

function nameOf(value: unknown): string {
  return String(value).toLowerCase();
}

function sentence(message: string): string {
  return message === "Only SELECT statements can be serialized to json!"
    ? "Only SELECT statements are allowed."
    : message;
}
