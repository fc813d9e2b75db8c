/**
 * One string for texts that come again and again: they take their room once, and comparing a string with itself looks at no
 * characters.
 */

const textsMax = 8_192;
/** Longer ones seldom come again. */
const lengthMax = 64;

let recent = new Map<string, string>();
let before = new Map<string, string>();

/** The text, as the string that was given for it before if there was one lately. */
export function sharedText(text: string): string {
  if (text.length > lengthMax) return text;
  const known = recent.get(text);
  if (known !== undefined) return known;
  if (recent.size >= textsMax) {
    before = recent;
    recent = new Map();
  }
  const shared = before.get(text) ?? text;
  recent.set(shared, shared);
  return shared;
}
