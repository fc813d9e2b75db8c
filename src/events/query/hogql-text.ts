/**
 * Converts a HogQL statement to one that DuckDB's parser accepts: string escapes, backticks, names with `$`, functions
 * named like keywords, parametric aggregates, placeholders and operators. The result is translated as a tree, then checked like
 * any statement.
 */

import { StatementRejectedError } from "../duckdb/statement-errors.ts";
import { quoted } from "../sql-text.ts";
import { replaceConditionals, replaceLimitBy } from "./hogql-operators.ts";
import { getTokens, isKeyword, type Patterns, type Token, tokenPairs } from "./statement-text.ts";

export interface HogqlText {
  sql: string;
  /** The source of each column of the outermost SELECT, which names columns without an alias. */
  columns: string[];
}

const patterns: Patterns = [
  ["space", /(?:\s+|--[^\n\r]*|\/\*[\s\S]*?(?:\*\/|$))+/y],
  ["string", /[eEbBxX]?'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)/y],
  ["string", /\$\$[\s\S]*?(?:\$\$|$)/y],
  ["quoted", /"(?:[^"]|"")*(?:"|$)|`(?:[^`\\]|\\[\s\S]|``)*(?:`|$)/y],
  ["number", /\d[\w.]*|\.\d\w*/y],
  ["word", /(?:[A-Za-z_\u0080-\uffff]|\$(?=[A-Za-z_\u0080-\uffff]))[\w$\u0080-\uffff]*/y],
  ["symbol", /->>|->|::|:=|==|!=|<>|<=|>=|\?\?|\?\.(?!\d)|[^\s\w]/y],
];

/** Functions that DuckDB's grammar reads otherwise unless their names are quoted. */
const keywordFunctions = new Set(
  ["any", "extract", "position", "array", "and", "or", "in", "like", "ilike"].concat("not"),
);
/** Of these, keyword and function differ only by the token before. */
const infixWords = new Set(["and", "or", "in", "like", "ilike"]);

/**
 * @param placeholders SQL by the name in braces: `{filters}`
 * @throws {StatementRejectedError} an unknown placeholder
 */
export function toDuckDbText(sql: string, placeholders: Readonly<Record<string, string>>): HogqlText {
  let text = sql;
  for (const replace of [replaceLimitBy, replaceConditionals])
    text = replace(text, getTokens(text, patterns));
  const columns = columnSources(sql, getTokens(sql, patterns));
  return { sql: new Writer(text, getTokens(text, patterns), placeholders).write(), columns };
}

class Writer {
  /** Closing bracket by opening bracket, as indexes of tokens. */
  private readonly closes: ReadonlyMap<number, number>;

  constructor(
    private readonly sql: string,
    private readonly tokens: readonly Token[],
    private readonly placeholders: Readonly<Record<string, string>>,
  ) {
    this.closes = tokenPairs(tokens);
  }

  write(): string {
    return this.range(0, this.tokens.length);
  }

  /** The text of tokens, with the spaces between them. */
  private range(from: number, to: number): string {
    const parts: string[] = [];
    for (let index = from; index < to; ) {
      const space = index > 0 ? this.sql.slice(this.tokens[index - 1]!.end, this.tokens[index]!.start) : "";
      const { text, next } = this.placeholder(index) ?? this.parametric(index) ?? this.single(index);
      // A comment ends with its line.
      parts.push(index > from ? space : "", text);
      index = next;
    }
    return parts.join("");
  }

  private single(index: number): { text: string; next: number } {
    const { kind, text } = this.tokens[index]!;
    const next = index + 1;
    if (kind === "string" && text.startsWith("'")) return { text: quoted(unquote(text)), next };
    if (kind === "quoted" && text.startsWith("`")) return { text: identifier(unquote(text)), next };
    if (kind !== "word") return { text, next };
    const isCall = this.tokens[next]?.text === "(";
    return {
      text: text.startsWith("$") || (isCall && this.isFunction(index)) ? identifier(text) : text,
      next,
    };
  }

  /** Whether a keyword before a bracket is a function's name: `and(a, b)`, `position(a, b)`. */
  private isFunction(index: number): boolean {
    const name = this.tokens[index]!.text.toLowerCase();
    if (!keywordFunctions.has(name)) return false;
    const before = this.tokens[index - 1];
    if (infixWords.has(name)) return !isOperandEnd(before) && before?.text.toLowerCase() !== "not";
    if (name === "not") return false;
    const inside = this.tokens.slice(index + 2, this.closes.get(index + 1));
    const has = (word: string) => inside.some((token) => token.text.toLowerCase() === word);
    // After a comparison it is SQL's quantifier.
    if (name === "any") return before?.kind !== "symbol" || !/[=<>]$/.test(before.text);
    if (name === "extract") return !has("from");
    if (name === "position") return !inside.some(({ kind, text }) => kind === "word" && /^in$/i.test(text));
    return inside[0]?.text.toLowerCase() !== "select";
  }

  /** `quantile(0.9)(x)` becomes `quantile(x, 0.9)`. */
  private parametric(index: number): { text: string; next: number } | undefined {
    const { kind, text } = this.tokens[index]!;
    if (kind !== "word" || isKeyword(text) || this.tokens[index + 1]?.text !== "(") return undefined;
    const close = this.closes.get(index + 1);
    if (close === undefined || this.tokens[close + 1]?.text !== "(") return undefined;
    const end = this.closes.get(close + 1);
    if (end === undefined) return undefined;
    const parameters = this.range(index + 2, close);
    // The condition of `quantileIf(0.9)(x, condition)` stays last.
    const last = /if$/i.test(text) ? this.lastComma(close + 2, end) : end;
    const values = this.range(close + 2, last);
    const condition = this.range(last, end);
    return { text: `${this.single(index).text}(${values}, ${parameters}${condition})`, next: end + 1 };
  }

  /** The last comma outside of brackets, or the end. */
  private lastComma(from: number, to: number): number {
    let last = to;
    for (let index = from; index < to; index++) {
      if (this.tokens[index]!.text === ",") last = index;
      index = this.closes.get(index) ?? index;
    }
    return last;
  }

  private placeholder(index: number): { text: string; next: number } | undefined {
    const close = this.tokens[index]!.text === "{" ? this.closes.get(index) : undefined;
    if (close === undefined) return undefined;
    const inside = this.tokens.slice(index + 1, close);
    if (inside.length === 0 || inside.some(({ kind, text }) => kind !== "word" && text !== "."))
      return undefined;
    const name = inside.map(({ text }) => text).join("");
    const sql = Object.hasOwn(this.placeholders, name) ? this.placeholders[name] : undefined;
    if (sql === undefined) {
      throw new StatementRejectedError(
        `The placeholder {${name}} has no value. Add it to \`values\` of the query.`,
      );
    }
    return { text: sql, next: close + 1 };
  }
}

function isOperandEnd(token: Token | undefined): boolean {
  if (token === undefined) return false;
  if (token.kind === "word") return !isKeyword(token.text) || /^end$/i.test(token.text);
  return ["quoted", "string", "number", "close"].includes(token.kind);
}

const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const escapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", "0": "" };

/** The value of a string or name in its quotes. An unknown escape keeps its backslash, as in ClickHouse. */
function unquote(text: string): string {
  const quote = text[0]!;
  const inside = text.slice(1, text.length > 1 && text.endsWith(quote) ? -1 : undefined);
  return inside.replaceAll(/\\([\s\S])|''|``/g, (whole, escaped?: string) => {
    if (escaped === undefined) return whole[0] === quote ? quote : whole;
    return escapes[escaped] ?? (["\\", "'", '"', "`"].includes(escaped) ? escaped : whole);
  });
}

const listEnds = new Set(
  "from where group having order limit union intersect except qualify window".split(" "),
);
/** Longer sources name nothing. */
const sourceLengthMax = 200;

function columnSources(sql: string, tokens: readonly Token[]): string[] {
  const columns: string[] = [];
  let depth = 0;
  let start: number | undefined;
  let end = 0;
  for (const token of tokens) {
    if (token.kind === "close") depth -= 1;
    const word = token.kind === "word" && depth === 0 ? token.text.toLowerCase() : "";
    if (start !== undefined && depth === 0 && (token.text === "," || listEnds.has(word))) {
      columns.push(sql.slice(start, end));
      start = token.text === "," ? token.end : undefined;
      if (start === undefined) break;
    }
    if (start === undefined && word === "select") start = token.end;
    if (token.kind === "open") depth += 1;
    // Without comments, which end a column.
    if (token.text !== ";") end = token.end;
  }
  if (start !== undefined) columns.push(sql.slice(start, end));
  return columns.map((source) => {
    const short = source
      .replaceAll(/\s+/g, " ")
      .trim()
      .replace(/^distinct /i, "");
    return short.length > sourceLengthMax ? "" : short;
  });
}
