/** Interns frequent strings: each takes its memory once, and comparing a string with itself reads no characters. */

const textsMax = 8_192;
/** Longer strings are rarely repeated. */
const lengthMax = 64;

let recent = new Map<string, string>();
let before = new Map<string, string>();

/** The recently interned instance of an equal string, else the string itself. */
export function intern(text: string): string {
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
