/** ClickHouse's JSON parser rejects a whole document because of one number out of its range. */

/** Digits of a number that may be out of range. */
const unusualNumber = /\d{19}|\d[eE][+-]?\d{3}/;
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
/** Signed and unsigned 64-bit integers are readable. */
const wholeNumberMax = 2 ** 63;

/**
 * The same JSON with unreadable integers as floating-point numbers, or null if they are out of range as well.
 * @param json UTF-8 @returns undefined if all numbers are readable
 */
export function readableJson(json: Uint8Array | string): string | undefined {
  const source = typeof json === "string" ? json : getBytes(json).toString("latin1");
  if (!unusualNumber.test(source)) return undefined;
  const text = typeof json === "string" ? json : getBytes(json).toString();
  const readable = text.replace(stringOrNumber, (part) => (part[0] === '"' ? part : readableNumber(part)));
  return readable === text ? undefined : readable;
}

const getBytes = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length);

function readableNumber(text: string): string {
  const number = Number(text);
  if (!Number.isFinite(number)) return "null";
  return /^-?\d{19,}$/.test(text) && Math.abs(number) >= wholeNumberMax ? number.toExponential() : text;
}
