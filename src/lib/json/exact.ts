/** Parses JSON without losing digits of integers that JavaScript numbers cannot represent, such as 64-bit IDs. Pure. */

/** Available in the runtime, but not in its types. Source: the ECMAScript proposal "JSON.parse source text access". */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (text: string) => object;
  isRawJSON: (value: unknown) => value is { rawJSON: string };
};

/**
 * Matches JSON that may contain an integer beyond JavaScript's precision, at the start of a value: digits in UUIDs are
 * elsewhere. Times in microseconds have sixteen digits and start with a smaller one.
 */
const longInteger = /(?:^|[:[,])\s*-?(?:9\d{15}|\d{17})/;

/**
 * Parses JSON. Integers that a JavaScript number cannot represent keep their source: `JSON.stringify` writes it,
 * `formatNumber` returns it. Other values are as from `JSON.parse`.
 *
 * @throws {SyntaxError}
 */
export function parseExactJson(text: string): unknown {
  return longInteger.test(text) ? JSON.parse(text, exactInteger as never) : JSON.parse(text);
}

/**
 * Rewrites JSON: without whitespace, with only the last value of a repeated name, and with every number in its source
 * form.
 *
 * @throws {SyntaxError}
 */
export function rewrittenJson(text: string): string {
  return JSON.stringify(JSON.parse(text, numberAsWritten as never));
}

/** A number that keeps its source form. */
export function exactNumber(text: string): object {
  return rawJSON(text);
}

/** The digits of a number that keeps its source form; undefined for every other value. */
export function formatNumber(value: unknown): string | undefined {
  return typeof value === "object" && isRawJSON(value) ? value.rawJSON : undefined;
}

function exactInteger(_: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || source === undefined) return value;
  // JSON parsers reject numbers beyond the largest one.
  return Number.isFinite(value) && /^-?\d+$/.test(source) && String(value) !== source
    ? rawJSON(source)
    : value;
}

function numberAsWritten(_: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === "number" && source !== undefined && String(value) !== source
    ? rawJSON(source)
    : value;
}

// Unambiguous alternatives: a long run of digits must not be tried in every split.
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const special = /^([+-]?)(?:(inf|infinity)|nan)$/i;

/**
 * The number of a value, if it is one.
 *
 * Strings are parsed strictly (no spaces, no hexadecimal), but `NaN` and `inf` are numbers, like upstream.
 */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value !== "string") {
    const digits = formatNumber(value);
    return digits === undefined ? undefined : Number(digits);
  }
  if (decimal.test(value)) return Number(value);
  const found = special.exec(value);
  if (found === null) return undefined;
  if (found[2] === undefined) return Number.NaN;
  return found[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}
