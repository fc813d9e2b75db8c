/** Makes, copies and finds nodes of DuckDB's syntax tree. */

export function functionNode(name: string, children: Node[]): Node {
  return {
    class: "FUNCTION",
    type: "FUNCTION",
    alias: "",
    query_location: 0,
    function_name: name,
    schema: "",
    catalog: "",
    children,
    filter: null,
    order_bys: { type: "ORDER_MODIFIER", orders: [] },
    distinct: false,
    is_operator: false,
    export_state: false,
  };
}

export function textConstant(value: string): Node {
  return {
    class: "CONSTANT",
    type: "VALUE_CONSTANT",
    alias: "",
    query_location: 0,
    value: { type: { id: "VARCHAR", type_info: null }, is_null: false, value },
  };
}

/** A cast to a type, by its name in the tree. @param isTried values that cannot be cast become null */
export function castNode(child: Node, id: string, isTried = false): Node {
  const { alias } = child;
  return {
    class: "CAST",
    type: "OPERATOR_CAST",
    alias,
    query_location: 0,
    child: { ...child, alias: "" },
    cast_type: { id, type_info: null },
    try_cast: isTried,
  };
}

/** A member of JSON as a string. */
export const jsonString = (json: Node, pointer: string): Node =>
  functionNode("json_extract_string", [json, textConstant(pointer)]);

/** Numbers in source form are not plain objects and cannot be cloned; they are immutable. */
export function copy<Part>(part: Part): Part {
  if (Array.isArray(part)) return part.map(copy) as Part;
  if (typeof part !== "object" || part === null || !Object.getPrototypeOf(part)) return part;
  return Object.fromEntries(Object.entries(part).map(([name, child]) => [name, copy(child)])) as Part;
}

/** Tables and aliases with the name of the table; empty for subqueries. */
export function tableNames(part: unknown, names = new Map<string, string>()): Map<string, string> {
  if (typeof part !== "object" || part === null) return names;
  const { type, table_name: table, alias } = part as Node;
  const name = type === "BASE_TABLE" ? fold(String(table)) : "";
  if (type === "BASE_TABLE") names.set(name, name);
  if ((type === "BASE_TABLE" || type === "SUBQUERY") && alias) names.set(fold(String(alias)), name);
  for (const child of Object.values(part)) tableNames(child, names);
  return names;
}

/** Modifications are reflected in the printed statement. */
export type Node = Record<string, unknown>;

/** Folds case like DuckDB's name comparison: ASCII letters only. */
export function fold(name: string): string {
  return name.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The value of a literal; undefined for other expressions. */
export function getConstant(node: Node | undefined): unknown {
  const value = node?.class === "CONSTANT" ? (node.value as Node | undefined) : undefined;
  return value === undefined || value.is_null === true ? undefined : value.value;
}
