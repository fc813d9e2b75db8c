/**
 * Decides whether a statement may run, one SELECT that reads nothing but the documented views, and gives every table in it a
 * name of ours, so that nothing a caller wrote is ever looked up.
 *
 * Works on the tree that DuckDB's own parser makes, and refuses whatever it does not know: a new kind of node in a
 * later DuckDB is refused until somebody has looked at it.
 * Pure; `parse.ts` gets the tree, prints it, and has the print checked as well.
 */

import { StatementRefused } from "./failures.ts";
import {
  allowedFunctions,
  allowedTableFunctions,
  lambdaFunctions,
  sizedFunctions,
  sizeMax,
} from "./functions.ts";
import { withPropertyName, withPropertyNames } from "./property-names.ts";
import { constantOf, folded, type Node } from "./tree.ts";

const viewNames = ["events", "persons", "groups"] as const;
export type ViewName = (typeof viewNames)[number];

/** Names of ours for the common tables that can be seen, by their folded name. */
type Scope = ReadonlyMap<string, string>;

/** The table that stands for a view in the statement that runs. */
export function tableOf(view: ViewName): { catalog: string; schema: string; table: string } {
  return { catalog: "temp", schema: "main", table: `flagkeep_${view}` };
}

const expressionClasses = new Set(
  (
    "AGGREGATE BETWEEN CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT DEFAULT FUNCTION LAMBDA LAMBDA_REF " +
    "OPERATOR POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW"
  ).split(" "),
);
/** Parts of a tree that are no expressions and read nothing. */
const harmlessTypes = new Set(
  (
    "EMPTY EMPTY_FROM JOIN SUBQUERY EXPRESSION_LIST SELECT_NODE SET_OPERATION_NODE ORDER_MODIFIER LIMIT_MODIFIER " +
    "LIMIT_PERCENT_MODIFIER DISTINCT_MODIFIER ORDER_DEFAULT ASCENDING DESCENDING ASC DESC RECURSIVE_CTE_NODE"
  ).split(" "),
);
/** Deeper than any statement that DuckDB's parser takes. */
const depthMax = 10_000;

/**
 * Checks the tree of a statement and renames its tables in place.
 *
 * @param tree  what `json_serialize_sql` answered, parsed; a tree of one's own.
 * @param isOwn the statement is the print of a tree that was renamed: then views have our names, and nothing is changed.
 * @returns     the views that are read.
 * @throws {StatementRefused}
 */
export function renameTables(tree: unknown, isOwn = false): Set<ViewName> {
  const { error, error_message, statements } = tree as Node;
  if (error !== false) throw new StatementRefused(sentence(String(error_message)));
  if (!Array.isArray(statements) || statements.length !== 1) {
    throw new StatementRefused("Exactly one statement is allowed.");
  }
  const { node, named_param_map: parameters } = statements[0] as Node;
  if (Array.isArray(parameters) && parameters.length > 0) {
    throw new StatementRefused("Parameters are not allowed.");
  }
  const checker = new Checker(isOwn);
  checker.visit(node, new Map(), 0);
  return checker.views;
}

class Checker {
  readonly views = new Set<ViewName>();
  private commonTables = 0;
  /** What `x -> y` is a function; elsewhere it is a member of a JSON value. */
  private readonly lambdas = new Set<unknown>();
  /** Expressions that are columns of a select list: only these may get an alias. */
  private readonly selected = new Set<unknown>();

  constructor(private readonly isOwn: boolean) {}

  visit(part: unknown, scope: Scope, depth: number): void {
    if (depth > depthMax) throw new StatementRefused("The statement is nested too deep.");
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
      // The function itself was checked as that of a table.
      const isOfTable = node.type === "TABLE_FUNCTION" && name === "function";
      this.visit(isOfTable ? (child as Node).children : child, inner, depth + 1);
    }
  }

  /** Each common table sees those before it; what follows sees all of them. */
  private visitCommonTables(node: Node, scope: Scope, depth: number): Scope {
    const inner = new Map(scope);
    const entries = (node.cte_map as { map?: { key: string; value: Node }[] }).map ?? [];
    for (const entry of entries) {
      this.commonTables += 1;
      const name = this.isOwn ? entry.key : `common_table_${this.commonTables}`;
      const recursive = recursivePart(entry.value);
      if (recursive === undefined) this.visit(entry.value, new Map(inner), depth + 1);
      else this.visitRecursive(entry, recursive, { name, scope: inner, depth });
      inner.set(folded(entry.key), name);
      entry.key = name;
    }
    return inner;
  }

  /** Only behind UNION does a recursive table see itself. */
  private visitRecursive(
    { key, value }: { key: string; value: Node },
    recursive: Node,
    { name, scope, depth }: { name: string; scope: Scope; depth: number },
  ): void {
    const { right, ...others } = recursive;
    this.visit(others, scope, depth + 1);
    this.visit(right, new Map(scope).set(folded(key), name), depth + 1);
    recursive.cte_name = name;
    for (const part of ["aliases", "key_targets"]) this.visit(value[part], scope, depth + 1);
  }

  private checkExpression(node: Node): void {
    if (!expressionClasses.has(node.class as string)) {
      throw new StatementRefused(`Expressions of the kind ${String(node.class)} are not allowed.`);
    }
    if (node.class === "STAR") this.lambdas.add(node.expr);
    if (node.class === "LAMBDA" && !this.lambdas.has(node)) withPropertyName(node.expr as Node);
    if (node.class === "FUNCTION" || node.class === "WINDOW" || node.class === "AGGREGATE") {
      withPropertyNames(node, this.selected.has(node));
      checkFunction(node, allowedFunctions, "function");
      if (lambdaFunctions.has(folded(String(node.function_name)))) {
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
      throw new StatementRefused(`Statements with ${type} are not allowed.`);
    }
  }

  private checkTable(node: Node, scope: Scope): void {
    const written = String(node.table_name);
    if (node.at_clause) throw new StatementRefused(`The table ${written} has to stand without a version.`);
    const isQualified = Boolean(node.schema_name || node.catalog_name);
    const common = isQualified ? undefined : scope.get(folded(written));
    if (common !== undefined) {
      rename(node, { catalog: "", schema: "", table: common });
      return;
    }
    const view = this.viewOf(node, isQualified);
    this.views.add(view);
    rename(node, tableOf(view));
  }

  private viewOf({ catalog_name, schema_name, table_name }: Node, isQualified: boolean): ViewName {
    if (this.isOwn) {
      const view = viewNames.find((name) => {
        const { catalog, schema, table } = tableOf(name);
        return catalog === catalog_name && schema === schema_name && table === table_name;
      });
      if (view !== undefined) return view;
    } else if (isQualified) {
      throw new StatementRefused(`The table ${String(table_name)} has to stand without a schema.`);
    } else {
      const view = viewNames.find((name) => name === folded(String(table_name)));
      if (view !== undefined) return view;
    }
    throw new StatementRefused(`There is no view ${String(table_name)}; there are ${viewNames.join(", ")}.`);
  }
}

/** Columns are still found under the name that the table had. */
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
  const name = folded(String(function_name));
  const isOwn = (!schema || schema === "main") && !catalog && nodeClass !== undefined;
  if (!isOwn || !allowed.has(name)) throw new StatementRefused(`The ${kind} ${name} is not allowed.`);
  if (Array.isArray(children)) checkSizes(name, children as Node[]);
}

/** Refuses the plainest ways to ask for more than any memory holds. */
function checkSizes(name: string, children: readonly Node[]): void {
  const numbers = sizedFunctions.has(name) ? children.map(constantNumber) : [];
  const isTooWide =
    (name === "format" || name === "printf") && /\d{8}/.test(String(constantOf(children[0]) ?? ""));
  if (isTooWide || numbers.some((number) => Math.abs(number) > sizeMax)) {
    throw new StatementRefused(`The function ${name} makes at most ${sizeMax} items or characters.`);
  }
}

/** 0 for what is no number. */
function constantNumber(node: Node): number {
  const value = constantOf(node);
  if (typeof value === "number") return value;
  if (typeof value !== "object" || value === null) return 0;
  // A number as it is written, or one of 128 bits in two halves.
  return "rawJSON" in value ? Number(value.rawJSON) : Number.POSITIVE_INFINITY;
}

function sentence(message: string): string {
  return message === "Only SELECT statements can be serialized to json!"
    ? "Only SELECT statements are allowed."
    : message;
}
