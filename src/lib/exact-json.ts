/** Parses JSON without losing a digit of integers that JavaScript's numbers do not hold, such as ids of 64 bits. Pure. */

/** Part of the runtime, not yet of its types. Source: the ECMAScript proposal "JSON.parse source text access". */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (text: string) => object;
  isRawJSON: (value: unknown) => value is { rawJSON: string };
};

/**
 * A text with an integer that is no JavaScript number has one of these where a value begins: uuids and the like have them
 * elsewhere. Times in microseconds have sixteen digits and begin with a smaller one.
 */
const longInteger = /(?:^|[:[,])\s*-?(?:9\d{15}|\d{17})/;

/**
 * Parses JSON. Integers that no JavaScript number is are kept as they are written: `JSON.stringify` gives them back,
 * `numberText` tells what they are. Others are what `JSON.parse` makes of them.
 *
 * @throws {SyntaxError}
 */
export function parseExactJson(text: string): unknown {
  return longInteger.test(text) ? JSON.parse(text, exactInteger as never) : JSON.parse(text);
}

/**
 * The same JSON written anew: without white space, of a repeated name the last value only, and every number as it is
 * written.
 *
 * @throws {SyntaxError}
 */
export function rewrittenJson(text: string): string {
  return JSON.stringify(JSON.parse(text, numberAsWritten as never));
}

/** A number as it is written. */
export function keptNumber(text: string): object {
  return rawJSON(text);
}

/** The digits of a number that is kept as it was written; undefined for every other value. */
export function numberText(value: unknown): string | undefined {
  return typeof value === "object" && isRawJSON(value) ? value.rawJSON : undefined;
}

function exactInteger(_: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || source === undefined) return value;
  // Beyond the largest number, readers of JSON refuse it.
  return Number.isFinite(value) && /^-?\d+$/.test(source) && String(value) !== source
    ? rawJSON(source)
    : value;
}

function numberAsWritten(_: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === "number" && source !== undefined && String(value) !== source
    ? rawJSON(source)
    : value;
}
