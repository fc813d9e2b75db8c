import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  firstCodePoints,
  hasNulEscape,
  hasSuspectEscape,
  isWellFormedJson,
  withoutNul,
  withoutNulEscapes,
} from "../../src/ingestion/unicode.ts";

describe("halves of surrogate pairs in JSON text", () => {
  for (const [json, isWellFormed] of [
    [String.raw`"\ud83d\ude00"`, true],
    [String.raw`"\uD83D\uDE00"`, true],
    ['"😀"', true],
    [String.raw`"\ud83d"`, false],
    [String.raw`"\ude00"`, false],
    [String.raw`"\ud83dx\ude00"`, false],
    [String.raw`"\ude00\ud83d"`, false],
    [String.raw`"😀\ude00"`, false],
    [String.raw`"\\ud83d"`, true],
    [String.raw`"\\\ud83d"`, false],
    [String.raw`"\ud83d\n\ude00"`, false],
    [String.raw`"\u00e9\u0000"`, true],
    ['"\ud83d"', false],
  ] as const) {
    test(JSON.stringify(json), () => expect(isWellFormedJson(json)).toBe(isWellFormed));
  }

  test("are found exactly where JSON.parse makes a malformed string", () => {
    const unit = fc.constantFrom(
      "\\ud800",
      "\\udc00",
      "\\uDBFF",
      "\\uDFFF",
      "\\\\",
      "\\n",
      "\\u0041",
      "a",
      "😀",
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 8 }), (units) => {
        const json = `"${units.join("")}"`;
        expect(isWellFormedJson(json)).toBe((JSON.parse(json) as string).isWellFormed());
        if (!isWellFormedJson(json)) expect(hasSuspectEscape(json)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe("NUL in JSON text", () => {
  for (const [json, expected] of [
    [String.raw`"a\u0000b"`, String.raw`"a\ufffdb"`],
    [String.raw`"a\\u0000b"`, String.raw`"a\\u0000b"`],
    [String.raw`"a\\\u0000b"`, String.raw`"a\\\ufffdb"`],
    [String.raw`{"\u0000":12.0}`, String.raw`{"\ufffd":12.0}`],
    [String.raw`"\u00000"`, String.raw`"\ufffd0"`],
  ] as const) {
    test(json, () => {
      expect(hasNulEscape(json)).toBe(true);
      expect(withoutNulEscapes(json)).toBe(expected);
    });
  }

  test("a parsed text", () => {
    expect(withoutNul("a\0b\0")).toBe("a\ufffdb\ufffd");
    expect(withoutNul("ab")).toBe("ab");
  });
});

describe("the first code points of a text", () => {
  for (const [name, text, limit, expected] of [
    ["shorter", "abc", 5, "abc"],
    ["equal", "abc", 3, "abc"],
    ["longer", "abcd", 3, "abc"],
    ["pairs count once", "😀😀😀", 2, "😀😀"],
    ["as many pairs as allowed", "😀😀😀", 3, "😀😀😀"],
    ["never half a pair", "ab😀", 3, "ab😀"],
  ] as const) {
    test(name, () => expect(firstCodePoints(text, limit)).toBe(expected));
  }
});
