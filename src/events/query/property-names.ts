/**
 * Supports property names with a leading `$` in `properties->>'$browser'`, which DuckDB rejects as an invalid path, the
 * short form `prop('$browser')`, and `properties.plan = 'pro'`. Pure; modifies nodes of a statement's tree in place.
 */

import { StatementRejectedError } from "../duckdb/statement-errors.ts";
import { pathFunctions } from "./functions.ts";
import { fold, getConstant, jsonString, type Node } from "./nodes.ts";

/** Start of a DuckDB path; any other string after `$` is part of a name. */
const pathForm = /^\$(?:$|[.[*])/;

/**
 * Converts the names in a function's arguments to DuckDB's form.
 * @param isColumn the call is a column of a select list, which is then named after the property. Elsewhere, an alias
 * would make a named argument, which macros such as `nullif` reject (contract, third round C7).
 */
export function withPropertyNames(node: Node, isColumn: boolean): void {
  const name = fold(String(node.function_name));
  if (name === "prop" && node.class === "FUNCTION") shortForm(node, isColumn);
  if (!pathFunctions.has(name)) return;
  const [, path] = (node.children ?? []) as Node[];
  // Several paths are a list of constants.
  const paths = path?.function_name === "list_value" ? (path.children as Node[]) : [path];
  for (const path of paths) {
    const written = withPropertyName(path);
    if (isColumn && node.alias === "" && paths.length === 1 && written !== undefined) node.alias = written;
  }
}

/** @returns the original name if the constant had to be changed */
export function withPropertyName(constant: Node | undefined): string | undefined {
  const written = getConstant(constant);
  if (typeof written !== "string" || !written.startsWith("$") || pathForm.test(written)) return undefined;
  (constant!.value as Node).value = pointerTo(written);
  return written;
}

/**
 * Compares `properties.plan` as a string where it is compared with strings that are not JSON: DuckDB would reject
 * `properties.plan = 'pro'`, because the left side is JSON.
 */
export function withTextComparison(node: Node): void {
  const isList = node.type === "COMPARE_IN" || node.type === "COMPARE_NOT_IN";
  if (node.class !== "COMPARISON" && !isList) return;
  const parent = (isList ? node.children : node) as Node;
  const names = isList ? Object.keys(parent) : ["left", "right"];
  const members = names.filter((name) => getMember(parent[name] as Node) !== undefined);
  const others = names
    .filter((name) => !members.includes(name))
    .map((name) => getConstant(parent[name] as Node));
  const areStrings = others.length > 0 && others.every((value) => typeof value === "string");
  if (!areStrings || others.every((value) => isJson(value as string))) return;
  for (const name of members) parent[name] = getMember(parent[name] as Node);
}

/** `properties.plan`, `e.properties.plan` and `properties['plan']` as a string. */
function getMember(node: Node): Node | undefined {
  const ofColumn = node.type === "ARRAY_EXTRACT" ? ((node.children as Node[])[0] as Node) : node;
  const names = (ofColumn.class === "COLUMN_REF" ? ofColumn.column_names : []) as string[];
  const at = names.slice(0, 2).findIndex((name) => fold(name) === "properties");
  const step = node === ofColumn ? undefined : getConstant((node.children as Node[])[1]);
  const steps = [...names.slice(at + 1), ...(typeof step === "string" ? [step] : [])];
  const isWhole = node === ofColumn || typeof step === "string";
  if (at === -1 || steps.length === 0 || !isWhole) return undefined;
  const column = { ...ofColumn, alias: "", column_names: names.slice(0, at + 1) };
  return jsonString(column, steps.map(pointerTo).join(""));
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * `prop('x')` is `properties->>'x'`, with `12` for `12.0` as in insights; `prop(e.properties, 'x')` names the column.
 */
function shortForm(node: Node, isColumn: boolean): void {
  const children = (node.children ?? []) as Node[];
  const column = children.length === 2 ? children[0] : columnNode;
  const written = getConstant(children.at(-1));
  if (children.length < 1 || children.length > 2 || typeof written !== "string") {
    throw new StatementRejectedError("prop() requires a property name, for example prop('$browser').");
  }
  const name = children.at(-1)!;
  const constant = (value: string): Node => ({ ...name, value: { ...(name.value as Node), value } });
  const call = (function_name: string, ...args: Node[]): Node => ({
    ...node,
    function_name,
    alias: "",
    children: args,
  });
  const json = call("json_extract", structuredClone(column!), constant(pointerTo(written)));
  // Only numbers end like this in JSON.
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

/** A JSON pointer to a member. */
export function pointerTo(name: string): string {
  return `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
