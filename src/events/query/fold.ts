/** Helpers for the syntax tree of DuckDB's parser. */

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
