/** Types of expressions in HogQL: properties are strings, except where numbers or booleans are expected. Pure. */

import { countingFunctions, numericFunctions } from "./hogql-functions.ts";
import { castNode, fold, type Node } from "./nodes.ts";

/** A property or another member of JSON as a string. */
export const isText = ({ class: kind, function_name: name }: Node): boolean =>
  kind === "FUNCTION" && (name === "json_extract_string" || name === "->>");

const numericTypes =
  /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|INT\d|LONG|SHORT|DECIMAL|NUMERIC|REAL|DOUBLE|FLOAT\d?)$/;

/** The name of a type as DuckDB's parser gives it: resolved, or as written. */
function typeName(type: unknown): string {
  const { id, type_info: info } = (type ?? {}) as { id?: unknown; type_info?: Node | null };
  const written = (info?.expr as Node | undefined)?.type_name;
  return String(id === "UNBOUND" ? written : id).toUpperCase();
}

export function isNumeric(node: Node): boolean {
  if (node.type === "OPERATOR_COALESCE") return (node.children as Node[]).every(isNumeric);
  if (node.class === "CONSTANT") return numericTypes.test(typeName((node.value as Node).type));
  if (node.class === "CAST") return numericTypes.test(typeName(node.cast_type));
  if (node.class !== "FUNCTION") return false;
  const name = fold(String(node.function_name));
  if (countingFunctions.has(name)) return true;
  // A difference of times is one too.
  const isSum = ["+", "-"].includes(name);
  return numericFunctions.has(name) && (!isSum || (node.children as Node[]).every(isNumeric));
}

const isBoolean = (node: Node): boolean => node.class === "CAST" && typeName(node.cast_type) === "BOOLEAN";

/** Position of an expression in the tree. */
type Slot = [parent: Node | Node[], name: string];

const at = ([parent, name]: Slot): Node => (parent as Node)[name] as Node;
const slots = (parent: Node | Node[], names = Object.keys(parent)): Slot[] =>
  names.map((name) => [parent, name]);

/** Functions whose arguments have one type. */
const unifyingFunctions = new Set(["least", "greatest", "nullif", "ifnull"]);

/** Reads properties as numbers or booleans where they are compared or mixed with such, or computed with. */
export function coerceProperties(node: Node): void {
  const type = String(node.type);
  const children = (node.children ?? []) as Node[];
  if (node.class === "COMPARISON") coerceTogether(slots(node, ["left", "right"]));
  else if (node.class === "BETWEEN") coerceTogether(slots(node, ["input", "lower", "upper"]));
  else if (node.class === "CASE") {
    const cases = (node.case_checks as Node[]).flatMap((each) => slots(each, ["then_expr"]));
    coerceTogether([...cases, ...slots(node, ["else_expr"])]);
  } else if (type === "COMPARE_IN" || type === "COMPARE_NOT_IN" || type === "OPERATOR_COALESCE") {
    coerceTogether(slots(children));
  } else if (node.class === "FUNCTION" || node.class === "WINDOW") {
    const name = fold(String(node.function_name));
    if (unifyingFunctions.has(name)) coerceTogether(slots(children));
    if (!numericFunctions.has(name)) return;
    children.forEach((child, index) => {
      if (isText(child)) children[index] = tryCast(child, "DOUBLE");
    });
  }
}

function coerceTogether(all: readonly Slot[]): void {
  const others = all.map(at).filter((side) => !isText(side) && !isNull(side));
  if (others.length === 0) return;
  const type = others.every(isNumeric) ? "DOUBLE" : others.every(isBoolean) ? "BOOLEAN" : undefined;
  if (type === undefined) return;
  for (const slot of all) {
    const [parent, name] = slot;
    if (isText(at(slot))) (parent as Node)[name] = tryCast(at(slot), type);
  }
}

const isNull = (node: Node): boolean => node.class === "CONSTANT" && (node.value as Node).is_null === true;

export const tryCast = (child: Node, id: string): Node => castNode(child, id, true);
