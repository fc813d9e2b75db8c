/**
 * Repairs the characters that JSON allows and the stores do not: NUL and halves of surrogate pairs become U+FFFD.
 *
 * Works on JSON text without parsing it: back slashes stand only inside strings, so reading escapes from left to
 * right never mistakes one for another.
 */

const suspect = /\\u(?:0000|[dD][89a-fA-F])/;
const escapeSequence = /\\(?:u([0-9a-fA-F]{4})|.)/g;

/** Whether the text holds escapes that `storableJson` has to look at. */
export function hasSuspectEscape(json: string): boolean {
  // Looking for fixed texts is many times faster than the pattern, and most escapes are of other characters.
  const canMatch = json.includes("\\u0000") || json.includes("\\ud") || json.includes("\\uD");
  return canMatch && suspect.test(json);
}

/**
 * JSON text whose strings can be stored; text without anything to repair comes back as it is.
 *
 * Names of members that differed can be equal afterwards.
 */
export function storableJson(json: string): string {
  if (!hasSuspectEscape(json)) return json.isWellFormed() ? json : json.toWellFormed();
  let hasNul = false;
  // The halves of a pair may be written as escapes, as characters, or one of each: as characters they can be matched.
  const unescaped = json.replace(escapeSequence, (found, hex: string | undefined) => {
    if (hex === undefined) return found;
    const unit = Number.parseInt(hex, 16);
    if (unit === 0) {
      hasNul = true;
      return "\\ufffd";
    }
    return isSurrogate(unit) ? String.fromCharCode(unit) : found;
  });
  if (!hasNul && unescaped.isWellFormed()) return json;
  return unescaped.toWellFormed();
}

/** The same for a string that has been parsed. */
export function storableText(text: string): string {
  const clean = text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
  return clean.isWellFormed() ? clean : clean.toWellFormed();
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
