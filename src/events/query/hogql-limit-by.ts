/** `LIMIT n BY keys` in the tree of a HogQL statement: the first rows of each group, in the order of the statement. */

import { fold, getConstant, type Node } from "./fold.ts";
import { limitByFunction } from "./hogql-operators.ts";
import { copy } from "./nodes.ts";

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
