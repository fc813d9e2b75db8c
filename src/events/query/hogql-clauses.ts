/** HogQL's aggregates with a condition, and LIMIT BY, as DuckDB's SQL. */

import { aggregates } from "./hogql-functions.ts";
import { limitByFunction } from "./hogql-operators.ts";
import { copy, fold, functionNode, getConstant, type Node } from "./nodes.ts";

/** Renames an aggregate; `sumIf(x, condition)` gets a filter. */
export function aggregate(node: Node, name: string, args: readonly Node[]): Node {
  const own = Object.hasOwn(aggregates, name) ? aggregates[name] : undefined;
  const base = name.endsWith("if") && name !== "if" ? name.slice(0, -2).replace(/_$/, "") : undefined;
  const ofBase = base !== undefined && Object.hasOwn(aggregates, base) ? aggregates[base] : undefined;
  const found = own ?? ofBase;
  if (found === undefined || (own === undefined && args.length === 0)) return node;
  const condition = own === undefined ? args.at(-1)! : undefined;
  const values = own === undefined ? args.slice(0, -1) : [...args];
  const isPair = found.isDistinct === true && values.length > 1;
  const filters = [
    node.filter as Node | null,
    condition,
    found.skipsNull ? isNotNull(values[0]!) : undefined,
  ];
  const filter = filters.filter((each) => each !== null && each !== undefined) as Node[];
  return {
    ...node,
    function_name: found.name === "count" && values.length === 0 ? "count_star" : found.name,
    children: isPair ? [functionNode("row", values)] : values,
    distinct: node.distinct === true || found.isDistinct === true,
    filter: filter.length > 1 ? conjunction(filter) : (filter[0] ?? null),
  };
}

const operatorNode = (type: string, kind: string, children: Node[]): Node => ({
  class: kind,
  type,
  alias: "",
  query_location: 0,
  children,
});
const isNotNull = (node: Node): Node => operatorNode("OPERATOR_IS_NOT_NULL", "OPERATOR", [copy(node)]);
const conjunction = (parts: Node[]): Node => operatorNode("CONJUNCTION_AND", "CONJUNCTION", parts);

/** Aggregates whose result depends on the type of their arguments, or is one of them. */
export const comparingAggregates = new Set([
  "min",
  "max",
  "argmin",
  "argmax",
  "arg_min",
  "arg_max",
  "any_value",
  "last",
  "mode",
  "list",
]);

const windowNames: Readonly<Record<string, string>> = { laginframe: "lag", leadinframe: "lead" };

export function renameWindow(node: Node): void {
  const name = fold(String(node.function_name));
  const found = Object.hasOwn(aggregates, name) ? aggregates[name]! : undefined;
  const args = (node.children ?? []) as Node[];
  if (found !== undefined) {
    node.function_name = found.name === "count" && args.length === 0 ? "count_star" : found.name;
    if (found.isDistinct) node.distinct = true;
  } else if (Object.hasOwn(windowNames, name)) {
    node.function_name = windowNames[name];
    node.type = name === "laginframe" ? "WINDOW_LAG" : "WINDOW_LEAD";
  }
}

/** Replaces the call that stands for `LIMIT n OFFSET m BY keys` in a SELECT, if it has one. */
export async function applyLimitBy(
  select: Node,
  instantiate: (template: string, args: readonly Node[]) => Promise<Node>,
): Promise<void> {
  const call = select.qualify as Node | null | undefined;
  if (call?.class !== "FUNCTION" || call.function_name !== limitByFunction) return;
  const [count, offset, ...keys] = call.children as Node[];
  const number = await instantiate("row_number() OVER (PARTITION BY 1)", []);
  const selected = select.select_list as Node[];
  const resolve = (node: Node): Node => ({ ...copy(selectedColumn(node, selected) ?? node), alias: "" });
  number.partitions = keys.map(resolve);
  number.orders = orders(select).map((order) => ({
    ...order,
    expression: resolve(order.expression as Node),
  }));
  select.qualify = await instantiate("_1 > _3 AND _1 <= _2 + _3", [number, count!, offset!]);
}

function orders(select: Node): Node[] {
  const modifiers = (select.modifiers ?? []) as Node[];
  const all = modifiers
    .filter(({ type }) => type === "ORDER_MODIFIER")
    .flatMap(({ orders }) => orders as Node[]);
  // `ORDER BY ALL` names no column.
  return all.filter(({ expression }) => (expression as Node).class !== "STAR");
}

/** The selected column that a position or an alias means. */
function selectedColumn(node: Node, selected: readonly Node[]): Node | undefined {
  const position = getConstant(node);
  if (typeof position === "number") return selected[position - 1];
  const names = node.class === "COLUMN_REF" ? (node.column_names as string[]) : [];
  const [name] = names;
  if (names.length !== 1 || name === undefined) return undefined;
  return selected.find(
    ({ alias }) => typeof alias === "string" && alias !== "" && fold(alias) === fold(name),
  );
}
