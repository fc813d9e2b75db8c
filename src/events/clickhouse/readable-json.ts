/** ClickHouse's reader of JSON refuses a whole text for one number that is too large for it. */

/** Digits that may be such a number. */
const oddNumber = /\d{19}|\d[eE][+-]?\d{3}/;
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
/** Whole numbers of 64 bits can be read, with a sign or without. */
const wholeNumberMax = 2 ** 63;

/**
 * The same JSON with numbers that can be read, as floating-point numbers, or null beyond these.
 *
 * @param json UTF-8.
 * @returns undefined when all can be read as they are.
 */
export function readableJson(json: Uint8Array | string): string | undefined {
  const odd = typeof json === "string" ? json : bytesOf(json).toString("latin1");
  if (!oddNumber.test(odd)) return undefined;
  const text = typeof json === "string" ? json : bytesOf(json).toString();
  const readable = text.replace(stringOrNumber, (part) => (part[0] === '"' ? part : readableNumber(part)));
  return readable === text ? undefined : readable;
}

const bytesOf = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length);

function readableNumber(text: string): string {
  const number = Number(text);
  if (!Number.isFinite(number)) return "null";
  return /^-?\d{19,}$/.test(text) && Math.abs(number) >= wholeNumberMax ? number.toExponential() : text;
}
