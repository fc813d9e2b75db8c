/** Parses formulas: letters of series, numbers, `+ - * / %`, unary minus and parentheses. Also used by the console's page. */

/** Also limits the nesting of parentheses. */
export const formulaLengthMax = 200;

/** Computes a formula from the values of series, by their position. */
export type Expression = (getAmount: (series: number) => number) => number;

type Operation = (a: number, b: number) => number;
const sums: Record<string, Operation> = { "+": (a, b) => a + b, "-": (a, b) => a - b };
const products: Record<string, Operation> = {
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  // The sign of the divisor, as in PostHog.
  "%": (a, b) => a - b * Math.floor(a / b),
};

const tokens = /\s*(?:(\d+(?:\.\d+)?|\.\d+)|([A-Za-z])(?![A-Za-z0-9_])|([-+*/%()]))\s*/y;

/** Parses a formula over `seriesCount` series; undefined if it is invalid. */
export function parseFormula(text: string, seriesCount: number): Expression | undefined {
  if (text.length > formulaLengthMax) return undefined;
  const found = getTokens(text);
  if (found === undefined) return undefined;
  let position = 0;
  const take = (names: Record<string, Operation>): Operation | undefined => {
    const token = found[position];
    const operation = token !== undefined && Object.hasOwn(names, token) ? names[token] : undefined;
    if (operation !== undefined) position++;
    return operation;
  };
  const chain = (names: Record<string, Operation>, next: () => Expression | undefined) => () => {
    let left = next();
    for (let operation = take(names); operation !== undefined; operation = take(names)) {
      const before = left;
      const apply = operation;
      const right = next();
      if (before === undefined || right === undefined) return undefined;
      left = (amountOf) => apply(before(amountOf), right(amountOf));
    }
    return left;
  };
  const operand = (): Expression | undefined => {
    const token = found[position++];
    if (token === "-") {
      const negated = operand();
      return negated && ((amountOf) => -negated(amountOf));
    }
    if (token === "(") {
      const inner = sum();
      return found[position++] === ")" ? inner : undefined;
    }
    if (token === undefined) return undefined;
    if (/^[A-Z]$/.test(token)) {
      const series = token.charCodeAt(0) - "A".charCodeAt(0);
      return series < seriesCount ? (amountOf) => amountOf(series) : undefined;
    }
    const number = Number(token);
    return Number.isNaN(number) ? undefined : () => number;
  };
  const sum: () => Expression | undefined = chain(sums, chain(products, operand));
  const expression = sum();
  return position === found.length ? expression : undefined;
}

/** Letters in capitals, as PostHog reads them. */
function getTokens(text: string): string[] | undefined {
  const found: string[] = [];
  tokens.lastIndex = 0;
  while (tokens.lastIndex < text.length) {
    const match = tokens.exec(text);
    if (match === null) return undefined;
    found.push(match[0].trim().toUpperCase());
  }
  return found;
}
