/**
 * Finds and repairs the characters that JSON allows and the event store does not: NUL and halves of surrogate pairs.
 *
 * Works on JSON text without parsing it: back slashes stand only inside strings, so reading escapes from left to
 * right never mistakes one for another.
 */

const SUSPECT = /\\u(?:0000|[dD][89a-fA-F])/;
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|.)/g;

/** Whether the text holds escapes that the two functions below have to look at. */
export function hasSuspectEscape(json: string): boolean {
  // Looking for fixed texts is many times faster than the pattern, and most escapes are of other characters.
  const canMatch = json.includes("\\u0000") || json.includes("\\ud") || json.includes("\\uD");
  return canMatch && SUSPECT.test(json);
}

/** Whether a string in it holds a NUL, or something that looks like its escape: `withoutNulEscapes` tells them apart. */
export function hasNulEscape(json: string): boolean {
  return json.includes("\\u0000");
}

/** Whether every surrogate in the strings, escaped or raw, has its other half right beside it. */
export function isWellFormedJson(json: string): boolean {
  const unescaped = json.replace(ESCAPE, (_, hex: string | undefined) =>
    // Something has to stay between two halves that are not neighbours.
    hex === undefined ? " " : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return unescaped.isWellFormed();
}

/** The text with every NUL escape turned into U+FFFD; nothing else changes. */
export function withoutNulEscapes(json: string): string {
  return json.replace(ESCAPE, (found, hex: string | undefined) => (hex === "0000" ? "\\ufffd" : found));
}

/** The same for a string that has been parsed. */
export function withoutNul(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
}

/** At most the first `limit` code points: never half a character. */
export function firstCodePoints(text: string, limit: number): string {
  // No text has more code points than code units.
  if (text.length <= limit) return text;
  let end = 0;
  for (let count = 0; count < limit && end < text.length; count++) {
    end += text.codePointAt(end)! > 0xffff ? 2 : 1;
  }
  return text.slice(0, end);
}
