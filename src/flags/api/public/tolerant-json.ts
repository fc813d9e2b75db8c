/**
 * Parses JSON as lenient clients write it: `NaN`, `Infinity` and `-Infinity` in place of a value count as null.
 *
 * Source: contract, flag-evaluation 2.1.
 */

import { checkJson } from "../../../http/json.ts";
import { parseExactJson } from "../../../lib/exact-json.ts";
import { closingQuote } from "../../../lib/json-strings.ts";

const quoteByte = 34;
const minus = 45;
const upperI = 73;
const upperN = 78;

/** A request about one person is small. */
const jsonLimits = { levels: 500, containers: 100_000 };

/**
 * Parses a text, long integers as `parseExactJson` does; plain JSON costs nothing extra.
 *
 * @throws {SyntaxError} it is not JSON in this wider sense either.
 * @throws {NestedTooDeep} @throws {TooManyContainers}
 */
export function parseTolerantJson(text: string): unknown {
  checkJson(text, jsonLimits);
  try {
    return parseExactJson(text);
  } catch (error) {
    const repaired = withNullsForNumbers(text);
    if (repaired === text) throw error;
    return parseExactJson(repaired);
  }
}

/** The text with every bare `NaN` and `Infinity` replaced; the inside of strings stays. Reads every character once. */
function withNullsForNumbers(text: string): string {
  let repaired = "";
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quoteByte) {
      const close = closingQuote(text, at);
      if (close === -1) break;
      at = close;
      continue;
    }
    if (code !== upperN && code !== upperI) continue;
    const word = code === upperN ? "NaN" : "Infinity";
    if (!text.startsWith(word, at)) continue;
    const start = text.charCodeAt(at - 1) === minus ? at - 1 : at;
    repaired += `${text.slice(copied, start)}null`;
    at += word.length - 1;
    copied = at + 1;
  }
  return copied === 0 ? text : repaired + text.slice(copied);
}
