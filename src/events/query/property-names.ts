/**
 * Lets people write the names of properties as they are: `properties->>'$browser'`, which DuckDB takes for a path and refuses,
 * and `prop('$browser')` as a short form.
 *
 * Pure; changes nodes of a statement's tree in place.
 */

import { StatementRefused } from "./failures.ts";
import { pathFunctions } from "./functions.ts";
import { constantOf, folded, type Node } from "./tree.ts";

/** A path of DuckDB's own begins so; everything else behind `$` is part of a name. */
const pathForm = /^\$(?:$|[.[*])/;

/**
 * Turns the names in a function's arguments into what DuckDB understands.
 *
 * @param isColumn the call is a column of a select list, which is then named after the property. Elsewhere an alias would
 *   make an argument a named one, which macros such as `nullif` reject (contract, third round C7).
 */
export function withPropertyNames(node: Node, isColumn: boolean): void {
  const name = folded(String(node.function_name));
  if (name === "prop" && node.class === "FUNCTION") shortForm(node, isColumn);
  if (!pathFunctions.has(name)) return;
  const [, path] = (node.children ?? []) as Node[];
  // Several paths are a list of constants.
  const paths = path?.function_name === "list_value" ? (path.children as Node[]) : [path];
  for (const one of paths) {
    const written = withPropertyName(one);
    if (isColumn && node.alias === "" && paths.length === 1 && written !== undefined) node.alias = written;
  }
}

/** @returns the name that the constant was, if it was one that had to be changed. */
export function withPropertyName(constant: Node | undefined): string | undefined {
  const written = constantOf(constant);
  if (typeof written !== "string" || !written.startsWith("$") || pathForm.test(written)) return undefined;
  (constant!.value as Node).value = pointerTo(written);
  return written;
}

/** `prop('x')` is `properties->>'x'`, and `12` for `12.0`, as in insights; `prop(e.properties, 'x')` says whose. */
function shortForm(node: Node, isColumn: boolean): void {
  const children = (node.children ?? []) as Node[];
  const column = children.length === 2 ? children[0] : columnNode;
  const written = constantOf(children.at(-1));
  if (children.length < 1 || children.length > 2 || typeof written !== "string") {
    throw new StatementRefused("prop() takes the name of a property, as in prop('$browser').");
  }
  const name = children.at(-1)!;
  const constant = (value: string): Node => ({ ...name, value: { ...(name.value as Node), value } });
  const call = (function_name: string, ...of: Node[]): Node => ({
    ...node,
    function_name,
    alias: "",
    children: of,
  });
  const json = call("json_extract", structuredClone(column!), constant(pointerTo(written)));
  // Of JSON texts only numbers end so.
  const alike = call("regexp_replace", json, constant("\\.0$"), constant(""));
  node.children = [alike, constant("$")];
  node.function_name = "json_extract_string";
  if (isColumn && node.alias === "") node.alias = written;
}

const columnNode: Node = {
  class: "COLUMN_REF",
  type: "COLUMN_REF",
  alias: "",
  query_location: 0,
  column_names: ["properties"],
};

/** A JSON pointer to a member of that name. */
function pointerTo(name: string): string {
  return `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
