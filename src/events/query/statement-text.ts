/**
 * What is done with a statement's text before DuckDB's parser sees it: its length and nesting are bounded, and arrows
 * get the parentheses that people leave out.
 *
 * Nothing here decides what a statement may do: whatever the tokens are taken for, the result is parsed and checked.
 */

import { StatementRefused } from "./failures.ts";

/** Bytes of UTF-8. Longer ones are made by programs that should use an export. */
const statementBytesMax = 64 * 1024;
/** Brackets within brackets. */
const nestingMax = 200;
/** Names in a row with dots between them: DuckDB crashes at some ten thousand. */
const nameStepsMax = 100;

type TokenKind = "word" | "quoted" | "string" | "number" | "open" | "close" | "symbol";

interface Token {
  kind: TokenKind;
  start: number;
  end: number;
  text: string;
}

/** In the order in which they are tried. `quoted` is an identifier. */
const patterns: readonly [TokenKind | "space", RegExp][] = [
  ["space", /(?:\s+|--[^\n\r]*|\/\*[\s\S]*?(?:\*\/|$))+/y],
  ["string", /[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)|[bBxX]?'(?:[^']|'')*(?:'|$)/y],
  ["string", /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y],
  ["quoted", /"(?:[^"]|"")*(?:"|$)/y],
  ["number", /\d[\w.]*|\.\d\w*/y],
  ["word", /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y],
  ["symbol", /->>|->|::|:=|[^\s\w]/y],
];

/**
 * @returns the text to parse: of the same meaning, but `a = 1 OR properties->>'x' = 'y'` is read as people mean it. DuckDB
 *          takes everything on the left of an arrow for what it is applied to.
 * @throws {StatementRefused} it is too long or too deep.
 */
export function preparedText(sql: string): string {
  if (Buffer.byteLength(sql) > statementBytesMax) {
    throw new StatementRefused(`A statement has at most ${statementBytesMax / 1024} KiB.`);
  }
  if (sql.includes("\0")) throw new StatementRefused("A statement has no NUL.");
  const tokens = tokensOf(sql);
  requireBounds(tokens);
  return withArrowsBound(sql, tokens);
}

function tokensOf(sql: string): Token[] {
  const tokens: Token[] = [];
  for (let start = 0; start < sql.length; ) {
    const { kind, end } = tokenAt(sql, start);
    const text = sql.slice(start, end);
    if (kind !== "space") tokens.push({ kind: bracketKind(text) ?? kind, start, end, text });
    start = end;
  }
  return tokens;
}

function tokenAt(sql: string, start: number): { kind: TokenKind | "space"; end: number } {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = start;
    const found = pattern.exec(sql)?.[0];
    if (found === undefined || found === "") continue;
    if (kind !== "string" || !found.startsWith("$")) return { kind, end: start + found.length };
    const close = sql.indexOf(found, start + found.length);
    return { kind, end: close === -1 ? sql.length : close + found.length };
  }
  return { kind: "symbol", end: start + 1 };
}

function bracketKind(text: string): "open" | "close" | undefined {
  if (text === "(" || text === "[" || text === "{") return "open";
  return text === ")" || text === "]" || text === "}" ? "close" : undefined;
}

function requireBounds(tokens: readonly Token[]): void {
  let depth = 0;
  let steps = 0;
  for (const { kind, text } of tokens) {
    if (kind === "open") depth += 1;
    if (kind === "close") depth -= 1;
    if (text === ".") steps += 1;
    else if (kind !== "word" && kind !== "quoted") steps = 0;
    if (depth > nestingMax) throw new StatementRefused(`Brackets are nested at most ${nestingMax} deep.`);
    if (steps > nameStepsMax) throw new StatementRefused(`A name has at most ${nameStepsMax} steps.`);
  }
}

/** Puts `left ->> 'name'` into parentheses, where left is a single operand. */
function withArrowsBound(sql: string, tokens: readonly Token[]): string {
  /** Parentheses to put in, by place in the text. */
  const opened = new Map<number, number>();
  const closed = new Map<number, number>();
  const count = (places: Map<number, number>, at: number) => places.set(at, (places.get(at) ?? 0) + 1);
  for (let index = 1; index < tokens.length - 1; index++) {
    const { text } = tokens[index]!;
    if (!isArrow(tokens[index])) continue;
    const first = operandStart(tokens, index - 1);
    const last = operandEnd(tokens, index + 1);
    if (first === undefined || last === undefined) continue;
    if (text === "->" && !isJsonStep(tokens, first, index)) continue;
    count(opened, tokens[first]!.start);
    count(closed, tokens[last]!.end);
  }
  if (opened.size === 0) return sql;
  let text = "";
  let from = 0;
  for (const at of [...new Set([...opened.keys(), ...closed.keys()])].sort((one, other) => one - other)) {
    text += sql.slice(from, at) + ")".repeat(closed.get(at) ?? 0) + "(".repeat(opened.get(at) ?? 0);
    from = at;
  }
  return text + sql.slice(from);
}

/** The first token of the operand that ends at a token: names with dots, calls, brackets, casts, arrows before it. */
function operandStart(tokens: readonly Token[], end: number): number | undefined {
  let at = end;
  for (;;) {
    const { kind } = tokens[at]!;
    if (kind === "close") {
      const open = matchingOpen(tokens, at);
      if (open === undefined) return undefined;
      at = open;
      const before = tokens[at - 1];
      const isCall = before?.kind === "word" || before?.kind === "quoted";
      const isSubscript = tokens[at]!.text === "[" && before?.kind === "close";
      if ((isCall && !isKeyword(before.text)) || isSubscript) {
        at -= 1;
        continue;
      }
    } else if (kind === "symbol" || kind === "open" || (kind === "number" && !isArrow(tokens[at - 1]))) {
      return undefined;
    } else if (kind === "word" && isKeyword(tokens[at]!.text)) {
      return undefined;
    }
    const before = tokens[at - 1];
    if (before?.text !== "." && before?.text !== "::" && !isArrow(before)) return at;
    if (at < 2) return undefined;
    at -= 2;
  }
}

function isArrow(token: Token | undefined): boolean {
  return token?.text === "->" || token?.text === "->>";
}

function matchingOpen(tokens: readonly Token[], close: number): number | undefined {
  let depth = 0;
  for (let at = close; at >= 0; at--) {
    if (tokens[at]!.kind === "close") depth += 1;
    if (tokens[at]!.kind === "open") depth -= 1;
    if (depth === 0) return at;
  }
  return undefined;
}

/** The last token of the operand behind an arrow: a name of a member, a number, or something in parentheses. */
function operandEnd(tokens: readonly Token[], start: number): number | undefined {
  const { kind, text } = tokens[start]!;
  if (kind === "string" || kind === "number") return start;
  if (kind !== "open" || text !== "(") return undefined;
  let depth = 0;
  for (let at = start; at < tokens.length; at++) {
    if (tokens[at]!.kind === "open") depth += 1;
    if (tokens[at]!.kind === "close") depth -= 1;
    if (depth === 0) return at;
  }
  return undefined;
}

/** A single arrow is also that of a lambda, `x -> x + 1`: of those, the left side is a bare name. */
function isJsonStep(tokens: readonly Token[], first: number, arrow: number): boolean {
  const { kind } = tokens[arrow + 1]!;
  if (kind !== "string" && kind !== "number") return false;
  return arrow - first > 1 || tokens[first]!.text.toLowerCase() === "properties";
}

const keywords = new Set(
  (
    "select from where and or not in is like ilike between case when then else end on by having limit offset union all " +
    "distinct as using join inner left right full cross lateral values any some exists interval filter over qualify"
  ).split(" "),
);

function isKeyword(text: string): boolean {
  return keywords.has(text.toLowerCase());
}
