/**
 * Regular expressions of flag conditions, in an engine whose time grows linearly with the text.
 *
 * Patterns are written for the Rust engine of PostHog's server. Syntax that RE2 spells differently is translated;
 * features without a linear-time implementation (look-around, back-references) are unsupported. Source: contract,
 * flag-evaluation 12 and 18, README (deviations).
 */

import { setNewest } from "./bounded-cache.ts";
import { once } from "./concurrency.ts";

/** Searches a text; texts beyond the engine's work limit count as not found. */
type Search = (text: string) => boolean | "error";

export type CompiledPattern =
  | { search: Search }
  /** `unsupported`: valid elsewhere, but not in linear time. `invalid`: rejected by every engine. */
  | { problem: "unsupported" | "invalid"; reason: string };

/** Loaded with the first pattern: its character tables take 0.5 MB, which most servers never need. */
const engines = once(() => (require("re2js") as typeof import("re2js")).RE2JS);

const patternLengthMax = 50_000;
const textLengthMax = 50_000;
/**
 * Counted repetitions can make the engine build one large state per character; instructions times characters bounds
 * that. At 200,000 the worst case took 9 ms; patterns without such counts need no bound. URLs, the usual target of such
 * patterns, have a few hundred characters.
 */
const countedWorkMax = 200_000;
const countedRepetition = /\{\d{2,}/;

const cache = new Map<string, CompiledPattern>();
const cacheMax = 500;

/** Compiles a pattern, cached across flag sets. */
export function compilePattern(pattern: string): CompiledPattern {
  const known = cache.get(pattern);
  if (known !== undefined) return known;
  const compiled = compile(pattern);
  setNewest(cache, pattern, compiled, cacheMax);
  return compiled;
}

function compile(pattern: string): CompiledPattern {
  if (pattern.length > patternLengthMax) {
    return {
      problem: "unsupported",
      reason: `patterns longer than ${patternLengthMax} characters are not supported`,
    };
  }
  const translated = translate(pattern);
  if ("problem" in translated) return translated;
  try {
    const engine = engines().compile(translated.pattern);
    const lengthMax = countedRepetition.test(pattern)
      ? Math.min(textLengthMax, countedWorkMax / engine.programSize())
      : textLengthMax;
    return { search: (text) => (text.length > lengthMax ? "error" : engine.test(text)) };
  } catch (error) {
    return { problem: "invalid", reason: error instanceof Error ? error.message : "unreadable pattern" };
  }
}

// Rust's classes cover all of Unicode, RE2's only ASCII.
const wordMembers = "\\p{L}\\p{M}\\p{Nl}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}";
const spaceMembers = "\\t-\\r\\x{85}\\p{Z}";
const outsideClass: Record<string, string> = {
  d: "\\p{Nd}",
  D: "\\P{Nd}",
  w: `[${wordMembers}]`,
  W: `[^${wordMembers}]`,
  s: `[${spaceMembers}]`,
  S: `[^${spaceMembers}]`,
  h: "[0-9A-Fa-f]",
  H: "[^0-9A-Fa-f]",
  Z: "(?:\\n?\\z)",
  e: "\\x{1B}",
};
// `\W`, `\S` and `\H` inside a class have no such spelling; the first two keep RE2's ASCII meaning.
const insideClass: Record<string, string> = {
  d: "\\p{Nd}",
  D: "\\P{Nd}",
  w: wordMembers,
  s: spaceMembers,
  h: "0-9A-Fa-f",
  e: "\\x{1B}",
};

const unsupportedGroups: [start: string, name: string][] = [
  ["(?=", "look-ahead"],
  ["(?!", "look-ahead"],
  ["(?<=", "look-behind"],
  ["(?<!", "look-behind"],
  ["(?>", "an atomic group"],
  ["(?(", "a conditional"],
  ["(?P=", "a back-reference"],
];

type Translation = { pattern: string } | { problem: "unsupported"; reason: string };

function translate(pattern: string): Translation {
  let out = "";
  let isInClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i] as string;
    if (character === "\\") {
      const escaped = readEscape(pattern, i, isInClass);
      if ("problem" in escaped) return escaped;
      out += escaped.text;
      i = escaped.end - 1;
      continue;
    }
    if (character === "(" && !isInClass) {
      const found = unsupportedGroups.find(([start]) => pattern.startsWith(start, i));
      if (found !== undefined) return unsupported(found[1]);
    }
    if (character === "[") {
      const posix = isInClass ? /^\[:\^?\w+:\]/.exec(pattern.slice(i, i + 20)) : null;
      if (posix !== null) {
        out += posix[0];
        i += posix[0].length - 1;
        continue;
      }
      if (!isInClass) {
        const opening = /^\[\^?\]?/.exec(pattern.slice(i, i + 3))?.[0] ?? "[";
        out += opening;
        i += opening.length - 1;
        isInClass = true;
        continue;
      }
    } else if (character === "]") isInClass = false;
    out += character;
  }
  return { pattern: out };
}

function readEscape(
  pattern: string,
  start: number,
  isInClass: boolean,
): { text: string; end: number } | { problem: "unsupported"; reason: string } {
  const letter = pattern[start + 1];
  if (letter === undefined) return { text: "\\", end: start + 1 };
  if (letter === "Q") {
    const close = pattern.indexOf("\\E", start + 2);
    const end = close < 0 ? pattern.length : close + 2;
    return { text: pattern.slice(start, end), end };
  }
  if (/[1-9]/.test(letter) || (letter === "k" && /^[<{'(]/.test(pattern[start + 2] ?? ""))) {
    return unsupported("a back-reference");
  }
  if (letter === "K" || letter === "G") return unsupported(`\\${letter}`);
  const codePoint = /^\\(?:u\{([0-9A-Fa-f]{1,8})\}|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))/.exec(
    pattern.slice(start, start + 12),
  );
  if (codePoint !== null) {
    const hex = codePoint[1] ?? codePoint[2] ?? codePoint[3];
    return { text: `\\x{${hex}}`, end: start + codePoint[0].length };
  }
  if ((letter === "p" || letter === "P") && pattern[start + 2] === "{") {
    const end = pattern.indexOf("}", start) + 1;
    if (end > 0) return { text: pattern.slice(start, end), end };
  }
  const spelled = (isInClass ? insideClass : outsideClass)[letter];
  return { text: spelled ?? `\\${letter}`, end: start + 2 };
}

function unsupported(what: string): { problem: "unsupported"; reason: string } {
  return {
    problem: "unsupported",
    reason: `${what} is not supported, because patterns run in an engine with linear-time guarantee`,
  };
}
