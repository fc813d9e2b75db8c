/** Parts of the tree that DuckDB's parser makes of a statement. */

/** What is written to it is printed. */
export type Node = Record<string, unknown>;

/** As DuckDB compares names: only the letters of ASCII have a small and a large form. */
export function folded(name: string): string {
  return name.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The value of a constant that is written as such; undefined for everything else. */
export function constantOf(node: Node | undefined): unknown {
  const value = node?.class === "CONSTANT" ? (node.value as Node | undefined) : undefined;
  return value === undefined || value.is_null === true ? undefined : value.value;
}
