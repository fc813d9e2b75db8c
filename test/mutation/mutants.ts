/** Small faults for a source file: what a slip of the hand could make of it, one at a time. */

import { parseSync } from "oxc-parser";

export interface Mutant {
  line: number;
  /** What stands there, and what instead. */
  from: string;
  to: string;
  /** The whole file with the fault. */
  text: string;
}

/** A node of the syntax tree, in ESTree's terms. */
interface Node {
  type: string;
  start: number;
  end: number;
  [member: string]: unknown;
}

const operators: Record<string, string> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "&&": "||",
  "||": "&&",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "+=": "-=",
  "-=": "+=",
};

/** All mutants of a file, in the order of their places. */
export function getMutants(name: string, text: string): Mutant[] {
  const mutants: Mutant[] = [];
  const replace = (start: number, end: number, to: string) => {
    mutants.push({
      line: text.slice(0, start).split("\n").length,
      from: text.slice(start, end),
      to,
      text: text.slice(0, start) + to + text.slice(end),
    });
  };
  const source = ({ start, end }: Node) => text.slice(start, end);
  const visit = (node: Node): void => {
    // Types, imports and messages are not behavior that a test of a rule could tell.
    if (
      /^(TS|Import|ExportAll|ThrowStatement)/.test(node.type) &&
      !/^TS(AsExpression|NonNull)/.test(node.type)
    )
      return;
    switch (node.type) {
      case "BinaryExpression":
      case "LogicalExpression":
      case "AssignmentExpression": {
        const { left, right, operator } = node as unknown as { left: Node; right: Node; operator: string };
        const to = operators[operator];
        const isText = [left, right].some((side) => /^["'`]/.test(source(side)));
        const start = text.indexOf(operator, left.end);
        if (to !== undefined && !isText && start < right.start) replace(start, start + operator.length, to);
        break;
      }
      case "ConditionalExpression":
        replace((node.test as Node).start, (node.test as Node).end, `!(${source(node.test as Node)})`);
        break;
      case "IfStatement":
        replace((node.test as Node).start, (node.test as Node).end, "false");
        break;
      case "Literal":
        if (typeof node.value === "number") replace(node.start, node.end, `(${node.value} + 1)`);
        if (typeof node.value === "boolean") replace(node.start, node.end, String(!node.value));
        break;
      case "UnaryExpression":
        if (node.operator === "!") replace(node.start, node.end, source(node.argument as Node));
        break;
      case "ExpressionStatement":
        if ((node.expression as Node).type === "CallExpression") replace(node.start, node.end, ";");
        break;
      case "ContinueStatement":
      case "BreakStatement":
        replace(node.start, node.end, ";");
        break;
    }
    for (const member of Object.values(node)) {
      for (const child of Array.isArray(member) ? member : [member]) if (isNode(child)) visit(child);
    }
  };
  visit(parseSync(name, text).program as unknown as Node);
  return mutants;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}
