/** How large and how deep properties may be. */

/** Size of the properties as JSON beyond which writes that make them larger are refused, in bytes. */
export const propertyBytesMax = 512 * 1024;

/** Nesting of a value beyond which it is refused: far deeper ones could be read, but not written out again. */
export const nestingMax = 200;

/** More than the bytes that JSON needs for a number, a boolean or null. */
const scalarBytesMax = 25;

export function isTooDeep(value: unknown, levels = nestingMax): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const member of Object.values(value)) {
    if (isTooDeep(member, levels - 1)) return true;
  }
  return false;
}

/** Bytes of a property within a JSON object: name, colon, value and comma. */
export function exactBytes(name: string, value: unknown): number {
  return jsonBytes(name) + jsonBytes(value) + 2;
}

/** At least `exactBytes`, without writing the value out where that can be avoided. */
export function bytesAtMost(name: string, value: unknown): number {
  return textBytesAtMost(name) + 2 + valueBytesAtMost(value);
}

function valueBytesAtMost(value: unknown): number {
  if (typeof value === "string") return textBytesAtMost(value);
  if (typeof value === "object" && value !== null) return JSON.stringify(value).length * 3;
  return scalarBytesMax;
}

/** A UTF-16 unit becomes six bytes at most, when it is escaped. */
function textBytesAtMost(text: string): number {
  return text.length * 6 + 2;
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
