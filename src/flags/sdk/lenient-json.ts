/**
 * Parses JSON of lenient clients: `NaN`, `Infinity` and `-Infinity` in place of a value count as null.
 *
 * Source: contract, flag-evaluation 2.1.
 */

import { parseExactJson } from "../../lib/json/exact.ts";
import { checkJson } from "../../lib/json/limits.ts";
import { closingQuote } from "../../lib/json/spans.ts";

const quoteByte = 34;
const minus = 45;
const upperI = 73;
const upperN = 78;

/** A request about one person is small. */
const jsonLimits = { levels: 500, containers: 100_000 };

/**
 * Parses JSON, long integers like `parseExactJson`; strict JSON has no extra cost.
 *
 * @throws {SyntaxError} it is not even lenient JSON.
 * @throws {NestingTooDeepError} @throws {JsonTooComplexError}
 */
export function parseTolerantJson(text: string): unknown {
  checkJson(text, jsonLimits);
  try {
    return parseExactJson(text);
  } catch (error) {
    const corrected = withNullsForNumbers(text);
    if (corrected === text) throw error;
    return parseExactJson(corrected);
  }
}

/** The text with every bare `NaN` and `Infinity` replaced; strings are unchanged. Reads every character once. */
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
