/**
 * Decides whether a statement may run: one SELECT that reads only the documented views. Tables are renamed, so no name
 * of the caller is ever resolved. Works on the tree of DuckDB's parser; unknown kinds of nodes, also of later versions,
 * are rejected until reviewed. Pure; `parse.ts` provides the tree and has the printed result checked.
 */

import { StatementRejectedError } from "../duckdb/statement-errors.ts";
import {
  allowedFunctions,
  allowedTableFunctions,
  lambdaFunctions,
  sizedFunctions,
  sizeMax,
} from "./functions.ts";
import { fold, getConstant, type Node, tableNames } from "./nodes.ts";
import { withPropertyName, withPropertyNames, withTextComparison } from "./property-names.ts";

const viewNames = ["events", "persons", "groups"] as const;
export type ViewName = (typeof viewNames)[number];

/** New names of the visible common table expressions, by folded name. */
type Scope = ReadonlyMap<string, string>;

/** The table that replaces a view in the statement to run. */
export function getTable(view: ViewName): { catalog: string; schema: string; table: string } {
  return { catalog: "temp", schema: "main", table: `flagkeep_${view}` };
}

const expressionClasses = new Set(
  (
    "AGGREGATE BETWEEN CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT DEFAULT FUNCTION LAMBDA LAMBDA_REF " +
    "OPERATOR POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW"
  ).split(" "),
);
/** Parts of a tree that are not expressions and read nothing. */
const harmlessTypes = new Set(
  (
    "EMPTY EMPTY_FROM JOIN SUBQUERY EXPRESSION_LIST SELECT_NODE SET_OPERATION_NODE ORDER_MODIFIER LIMIT_MODIFIER " +
    "LIMIT_PERCENT_MODIFIER DISTINCT_MODIFIER ORDER_DEFAULT ASCENDING DESCENDING ASC DESC RECURSIVE_CTE_NODE"
  ).split(" "),
);
/** Deeper than any statement that DuckDB's parser accepts. */
const depthMax = 10_000;

/**
 * Checks the tree of a statement and renames its tables in place.
 * @param tree the parsed result of `json_serialize_sql`; modified
 * @param isOwn the statement was printed from a renamed tree: views have our names, and nothing is changed
 * @returns the views that are read @throws {StatementRejectedError}
 */
export function renameTables(tree: unknown, isOwn = false): Set<ViewName> {
  const { error, error_message, statements } = tree as Node;
  if (error !== false) throw new StatementRejectedError(sentence(String(error_message)));
  if (!Array.isArray(statements) || statements.length !== 1) {
    throw new StatementRejectedError("Exactly one statement is allowed.");
  }
  const { node, named_param_map: parameters } = statements[0] as Node;
  if (Array.isArray(parameters) && parameters.length > 0) {
    throw new StatementRejectedError("Parameters are not allowed.");
  }
  const checker = new Checker(isOwn, !isOwn && !tableNames(node).has("properties"));
  checker.visit(node, new Map(), 0);
  return checker.views;
}

class Checker {
  readonly views = new Set<ViewName>();
  private commonTables = 0;
  /** Nodes in which `x -> y` is a lambda; elsewhere it reads a JSON member. */
  private readonly lambdas = new Set<unknown>();
  /** Columns of select lists: only these may get an alias. */
  private readonly selected = new Set<unknown>();

  /** @param hasProperties `properties` is a column and not a table */
  constructor(
    private readonly isOwn: boolean,
    private readonly hasProperties: boolean,
  ) {}

  visit(part: unknown, scope: Scope, depth: number): void {
    if (depth > depthMax) throw new StatementRejectedError("The statement is nested too deep.");
    if (Array.isArray(part)) {
      for (const entry of part) this.visit(entry, scope, depth + 1);
      return;
    }
    if (typeof part !== "object" || part === null) return;
    const node = part as Node;
    if (Array.isArray(node.select_list)) for (const column of node.select_list) this.selected.add(column);
    if (typeof node.class === "string") this.checkExpression(node);
    else if (typeof node.type === "string") this.checkPart(node, scope);
    if (node.class === "CONSTANT") return;
    const inner = node.cte_map === undefined ? scope : this.visitCommonTables(node, scope, depth);
    for (const [name, child] of Object.entries(node)) {
      if (name === "cte_map" || name === "cast_type") continue;
      // The function itself was already checked as a table function.
      const isOfTable = node.type === "TABLE_FUNCTION" && name === "function";
      this.visit(isOfTable ? (child as Node).children : child, inner, depth + 1);
    }
  }

  /** Each common table expression sees the previous ones; the statement sees all. */
  private visitCommonTables(node: Node, scope: Scope, depth: number): Scope {
    const inner = new Map(scope);
    const entries = (node.cte_map as { map?: { key: string; value: Node }[] }).map ?? [];
    for (const entry of entries) {
      this.commonTables += 1;
      const name = this.isOwn ? entry.key : `common_table_${this.commonTables}`;
      const recursive = recursivePart(entry.value);
      if (recursive === undefined) this.visit(entry.value, new Map(inner), depth + 1);
      else this.visitRecursive(entry, recursive, { name, scope: inner, depth });
      inner.set(fold(entry.key), name);
      entry.key = name;
    }
    return inner;
  }

  /** A recursive table sees itself only after UNION. */
  private visitRecursive(
    { key, value }: { key: string; value: Node },
    recursive: Node,
    { name, scope, depth }: { name: string; scope: Scope; depth: number },
  ): void {
    const { right, ...others } = recursive;
    this.visit(others, scope, depth + 1);
    this.visit(right, new Map(scope).set(fold(key), name), depth + 1);
    recursive.cte_name = name;
    for (const part of ["aliases", "key_targets"]) this.visit(value[part], scope, depth + 1);
  }

  private checkExpression(node: Node): void {
    if (!expressionClasses.has(node.class as string)) {
      throw new StatementRejectedError(`Expressions of the kind ${String(node.class)} are not allowed.`);
    }
    if (this.hasProperties) withTextComparison(node);
    if (node.class === "STAR") this.lambdas.add(node.expr);
    if (node.class === "LAMBDA" && !this.lambdas.has(node)) withPropertyName(node.expr as Node);
    if (node.class === "FUNCTION" || node.class === "WINDOW" || node.class === "AGGREGATE") {
      withPropertyNames(node, this.selected.has(node));
      checkFunction(node, allowedFunctions, "function");
      if (lambdaFunctions.has(fold(String(node.function_name)))) {
        for (const child of node.children as Node[]) this.lambdas.add(child);
      }
    }
  }

  private checkPart(node: Node, scope: Scope): void {
    const type = node.type as string;
    if (type === "BASE_TABLE") this.checkTable(node, scope);
    else if (type === "TABLE_FUNCTION") {
      checkFunction(node.function as Node, allowedTableFunctions, "table function");
    } else if (!harmlessTypes.has(type)) {
      throw new StatementRejectedError(`Statements with ${type} are not allowed.`);
    }
  }

  private checkTable(node: Node, scope: Scope): void {
    const written = String(node.table_name);
    if (node.at_clause) throw new StatementRejectedError(`The table ${written} must not have a version.`);
    const isQualified = Boolean(node.schema_name || node.catalog_name);
    const common = isQualified ? undefined : scope.get(fold(written));
    if (common !== undefined) {
      rename(node, { catalog: "", schema: "", table: common });
      return;
    }
    const view = this.findView(node, isQualified);
    this.views.add(view);
    rename(node, getTable(view));
  }

  private findView({ catalog_name, schema_name, table_name }: Node, isQualified: boolean): ViewName {
    if (this.isOwn) {
      const view = viewNames.find((name) => {
        const { catalog, schema, table } = getTable(name);
        return catalog === catalog_name && schema === schema_name && table === table_name;
      });
      if (view !== undefined) return view;
    } else if (isQualified) {
      throw new StatementRejectedError(`The table ${String(table_name)} must not have a schema.`);
    } else {
      const view = viewNames.find((name) => name === fold(String(table_name)));
      if (view !== undefined) return view;
    }
    throw new StatementRejectedError(
      `View ${String(table_name)} does not exist. Use ${viewNames.join(", ")}.`,
    );
  }
}

/** Columns are still resolved by the table's original name. */
function rename(
  node: Node,
  { catalog, schema, table }: { catalog: string; schema: string; table: string },
): void {
  if (!node.alias && node.table_name !== table) node.alias = node.table_name;
  node.catalog_name = catalog;
  node.schema_name = schema;
  node.table_name = table;
}

function recursivePart(commonTable: Node): Node | undefined {
  const node = (commonTable.query as Node | undefined)?.node as Node | undefined;
  return node?.type === "RECURSIVE_CTE_NODE" ? node : undefined;
}

function checkFunction(node: Node, allowed: ReadonlySet<string>, kind: string): void {
  const { class: nodeClass, function_name, schema, catalog, children } = node;
  const name = fold(String(function_name));
  const isOwn = (!schema || schema === "main") && !catalog && nodeClass !== undefined;
  if (!isOwn || !allowed.has(name)) throw new StatementRejectedError(`The ${kind} ${name} is not allowed.`);
  if (Array.isArray(children)) checkSizes(name, children as Node[]);
}

/** Rejects obvious requests for more than any memory. */
function checkSizes(name: string, children: readonly Node[]): void {
  const numbers = sizedFunctions.has(name) ? children.map(constantNumber) : [];
  const isTooWide =
    (name === "format" || name === "printf") && /\d{8}/.test(String(getConstant(children[0]) ?? ""));
  if (isTooWide || numbers.some((number) => Math.abs(number) > sizeMax)) {
    throw new StatementRejectedError(`The function ${name} is limited to ${sizeMax} items or characters.`);
  }
}

/** 0 if not a number. */
function constantNumber(node: Node): number {
  const value = getConstant(node);
  if (typeof value === "number") return value;
  if (typeof value !== "object" || value === null) return 0;
  // A number in source form, or a 128-bit number in two halves.
  return "rawJSON" in value ? Number(value.rawJSON) : Number.POSITIVE_INFINITY;
}

function sentence(message: string): string {
  return message === "Only SELECT statements can be serialized to json!"
    ? "Only SELECT statements are allowed."
    : message;
}
