/**
 * Rewrites HogQL's syntax that DuckDB's parser does not support, in the text of a statement: `a ? b : c`, `a ?? b`, `a?.b` and
 * `LIMIT n BY`. The result is parsed and checked like any statement. Pure.
 */

import { StatementRejectedError } from "../duckdb/statement-errors.ts";
import { nestingMax, type Token, tokenPairs } from "./statement-text.ts";

/** The call in `QUALIFY` that stands for `LIMIT n OFFSET m BY keys`: `f(n, m, keys)`. */
export const limitByFunction = "flagkeep_limit_by";

interface Edit {
  start: number;
  end: number;
  text: string;
}

/** Words that end an operand or begin another. */
const clauseWords = new Set(
  (
    "with select distinct from prewhere where group having window qualify order by limit offset union intersect except as asc " +
    "desc ascending descending nulls on using join left right inner full cross outer when then else settings"
  ).split(" "),
);
/** Of these, names of functions. */
const functionWords = new Set(["left", "right", "with"]);
const limitEnds = new Set(["limit", "offset", "union", "intersect", "except", "settings", ";"]);
/** Operators that bind less than `??`. */
const looserOperators = new Set(["and", "or", "between"]);
/** Words after a `NOT` that is part of an operator which binds more than `??`. */
const negatedOperators = new Set(["in", "like", "ilike"]);

/** @throws {StatementRejectedError} a `?` without its `:` or an operand */
export function replaceConditionals(sql: string, tokens: readonly Token[]): string {
  if (!tokens.some(({ text }) => text.startsWith("?"))) return sql;
  return new ConditionalRewriter(sql, tokens).rewrite();
}

/** @throws {StatementRejectedError} a `LIMIT … BY` without values, or with DISTINCT */
export function replaceLimitBy(sql: string, tokens: readonly Token[]): string {
  if (!tokens.some(({ text }) => /^limit$/i.test(text))) return sql;
  return new LimitByRewriter(sql, tokens).rewrite();
}

class Rewriter {
  private readonly edits: Edit[] = [];
  /** The last token by the first of brackets and of `CASE … END`. */
  private readonly pairs: ReadonlyMap<number, number>;

  constructor(
    protected readonly sql: string,
    protected readonly tokens: readonly Token[],
  ) {
    this.pairs = tokenPairs(tokens, { hasCase: true });
  }

  /** The ranges of tokens between each pair, and the statement itself. */
  protected ranges(): [from: number, to: number][] {
    return [
      [0, this.tokens.length],
      ...[...this.pairs].map(([open, close]): [number, number] => [open + 1, close]),
    ];
  }

  /** A keyword in lower case, or other text. */
  protected word(index: number): string {
    const token = this.tokens[index];
    return token?.kind === "word" ? token.text.toLowerCase() : (token?.text ?? "");
  }

  /** The next token of a range, outside of inner pairs. */
  protected after(index: number): number {
    return (this.pairs.get(index) ?? index) + 1;
  }

  protected find(from: number, to: number, word: string): number | undefined {
    for (let index = from; index < to; index = this.after(index)) if (this.word(index) === word) return index;
    return undefined;
  }

  protected source(from: number, to: number): string {
    return from < to ? this.sql.slice(this.tokens[from]!.start, this.tokens[to - 1]!.end) : "";
  }

  protected edit(start: number, end: number, text: string): void {
    this.edits.push({ start, end, text });
  }

  /** The statement with all edits; those at one position stay in the order in which they were created. */
  protected edited(): string {
    let text = "";
    let from = 0;
    for (const { start, end, text: inserted } of this.edits.toSorted((a, b) => a.start - b.start)) {
      text += this.sql.slice(from, start) + inserted;
      from = end;
    }
    return text + this.sql.slice(from);
  }
}

class ConditionalRewriter extends Rewriter {
  rewrite(): string {
    for (const [from, to] of this.ranges()) {
      let start = from;
      for (let index = from; index < to; index = this.after(index)) {
        if (!this.isBoundary(index)) continue;
        this.conditional(start, index, 0);
        start = index + 1;
      }
      this.conditional(start, to, 0);
    }
    return this.edited();
  }

  private isBoundary(index: number): boolean {
    const { kind, text } = this.tokens[index]!;
    const word = this.word(index);
    if (kind === "word") {
      const isFunction = functionWords.has(word) && this.tokens[index + 1]?.text === "(";
      return clauseWords.has(word) && !isFunction && this.tokens[index - 1]?.text !== ".";
    }
    // An arrow before a name in quotes reads JSON, others are lambdas.
    if (text === "->") return !["string", "number"].includes(this.tokens[index + 1]?.kind ?? "");
    return text === "," || text === ";";
  }

  /** `a ? b : c` becomes `if(a, b, c)`; it binds least, and to the right. */
  private conditional(from: number, to: number, depth: number): void {
    const question = this.find(from, to, "?");
    if (question === undefined) {
      this.alternatives(from, to);
      return;
    }
    if (depth > nestingMax)
      throw new StatementRejectedError(`Conditional operators are nested at most ${nestingMax} deep.`);
    // The key of `{'key': a ? b : c}`.
    const start = (this.find(from, question, ":") ?? from - 1) + 1;
    const colon = this.matchingColon(question + 1, to);
    if (colon === undefined || start === question || question + 1 === colon || colon + 1 === to)
      throw new StatementRejectedError("A conditional has the form `condition ? value : otherwise`.");
    this.insert(this.tokens[start]!.start, "if(");
    this.alternatives(start, question);
    this.replace(question, ",");
    this.conditional(question + 1, colon, depth + 1);
    this.replace(colon, ",");
    this.conditional(colon + 1, to, depth + 1);
    this.insert(this.tokens[to - 1]!.end, ")");
  }

  private matchingColon(from: number, to: number): number | undefined {
    let open = 0;
    for (let index = from; index < to; index = this.after(index)) {
      const { text } = this.tokens[index]!;
      if (text === "?") open += 1;
      if (text === ":" && open-- === 0) return index;
    }
    return undefined;
  }

  private alternatives(from: number, to: number): void {
    let start = from;
    for (let index = from; index < to; index = this.after(index)) {
      const word = this.word(index);
      const isOfOperator = negatedOperators.has(this.word(index + 1)) || this.word(index - 1) === "is";
      const isNegation = word === "not" && !isOfOperator;
      if (!looserOperators.has(word) && !isNegation && word !== ":") continue;
      this.coalesce(start, index);
      start = index + 1;
    }
    this.coalesce(start, to);
  }

  /** `a ?? b ?? c` becomes `coalesce(a, b, c)`. */
  private coalesce(from: number, to: number): void {
    const isAlternative = this.find(from, to, "??") !== undefined;
    if (isAlternative && (this.word(from) === "??" || this.word(to - 1) === "??"))
      throw new StatementRejectedError("The operator ?? has the form `value ?? otherwise`.");
    if (isAlternative) this.insert(this.tokens[from]!.start, "coalesce(");
    for (let index = from; index < to; index = this.after(index)) {
      const { text } = this.tokens[index]!;
      if (text === "??") this.replace(index, ",");
      // Members of null are null.
      if (text === "?.") this.replace(index, this.tokens[index + 1]?.text === "[" ? "" : ".");
    }
    if (isAlternative) this.insert(this.tokens[to - 1]!.end, ")");
  }

  private insert(at: number, text: string): void {
    this.edit(at, at, text);
  }

  private replace(index: number, text: string): void {
    const { start, end } = this.tokens[index]!;
    this.edit(start, end, text);
  }
}

class LimitByRewriter extends Rewriter {
  rewrite(): string {
    for (const [from, to] of this.ranges()) this.range(from, to);
    return this.edited();
  }

  /** `LIMIT n BY keys` becomes a condition of `QUALIFY`, which stands before `ORDER BY`. */
  private range(from: number, to: number): void {
    let order: number | undefined;
    let isUsable = false;
    for (let index = from; index < to; index = this.after(index)) {
      const word = this.word(index);
      if (word === "select") {
        order = undefined;
        isUsable = this.word(index + 1) !== "distinct";
      }
      if (word === "qualify") isUsable = false;
      if (word === "order") order = index;
      const by = word === "limit" ? this.byAfter(index + 1, to) : undefined;
      if (by === undefined) continue;
      if (!isUsable) {
        const message = "LIMIT BY cannot be combined with DISTINCT or QUALIFY. Use a subquery for these.";
        throw new StatementRejectedError(message);
      }
      let end = by + 1;
      while (end < to && !limitEnds.has(this.word(end))) end = this.after(end);
      const condition = `QUALIFY ${limitByFunction}(${this.counts(index + 1, by)}, ${this.keys(by + 1, end)}) `;
      const position = this.tokens[order ?? index]!.start;
      this.edit(position, position, condition);
      this.edit(this.tokens[index]!.start, this.tokens[end - 1]!.end, "");
      index = end - 1;
    }
  }

  /** The `BY` of a `LIMIT`; undefined for a common one. */
  private byAfter(from: number, to: number): number | undefined {
    for (let index = from; index < to; index = this.after(index)) {
      const word = this.word(index);
      if (word === "by") return index;
      if (word !== "offset" && clauseWords.has(word)) return undefined;
    }
    return undefined;
  }

  /** `3`, `3 OFFSET 1` or `1, 3` as number and offset. */
  private counts(from: number, to: number): string {
    const offset = this.find(from, to, "offset");
    const comma = this.find(from, to, ",");
    const pair =
      offset !== undefined
        ? [this.source(from, offset), this.source(offset + 1, to)]
        : comma !== undefined
          ? [this.source(comma + 1, to), this.source(from, comma)]
          : [this.source(from, to), "0"];
    return pair.map((count) => required(count)).join(", ");
  }

  private keys(from: number, to: number): string {
    return required(this.source(from, to));
  }
}

function required(source: string): string {
  if (source === "") throw new StatementRejectedError("LIMIT BY has the form `LIMIT 3 BY event`.");
  return source;
}
