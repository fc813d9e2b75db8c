import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { hasSurrogateEscape, sanitizeJson, sanitizeString } from "../../src/lib/json/canonical.ts";

describe("halves of surrogate pairs in JSON text become U+FFFD, and nothing else changes", () => {
  for (const [json, expected] of [
    [String.raw`"\ud83d\ude00"`, undefined],
    [String.raw`"\uD83D\uDE00"`, undefined],
    ['"😀"', undefined],
    [String.raw`"\ud83d"`, '"\ufffd"'],
    [String.raw`"\ude00"`, '"\ufffd"'],
    [String.raw`"\ud83dx\ude00"`, '"\ufffdx\ufffd"'],
    [String.raw`"\ude00\ud83d"`, '"\ufffd\ufffd"'],
    [`"😀${String.raw`\ude00`}"`, '"😀\ufffd"'],
    [String.raw`"\\ud83d"`, undefined],
    [String.raw`"\\\ud83d"`, String.raw`"\\` + '\ufffd"'],
    [String.raw`"\ud83d\n\ude00"`, '"\ufffd\\n\ufffd"'],
    [String.raw`"\u00e9"`, undefined],
    ['"\ud83d"', '"\ufffd"'],
    [String.raw`"\ud83d` + '\ude00"', undefined],
    [String.raw`{"\ud800":12.0,"big":12345678901234567890}`, '{"\ufffd":12.0,"big":12345678901234567890}'],
  ] as const) {
    test(JSON.stringify(json), () => expect(sanitizeJson(json)).toBe(expected ?? json));
  }

  test("exactly where JSON.parse makes a malformed string", () => {
    const unit = fc.constantFrom(
      "\\ud800",
      "\\udc00",
      "\\uDBFF",
      "\\uDFFF",
      "\\\\",
      "\\n",
      "\\u0041",
      "\\u0000",
      "a",
      "😀",
      "\ud83d",
      "\ude00",
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 8 }), (units) => {
        const json = `"${units.join("")}"`;
        const parsed = JSON.parse(json) as string;
        const isStorable = parsed.isWellFormed() && !parsed.includes("\0");
        expect(sanitizeJson(json) === json).toBe(isStorable);
        expect(JSON.parse(sanitizeJson(json))).toBe(sanitizeString(parsed));
        if (!isStorable) expect(hasSurrogateEscape(json) || !json.isWellFormed()).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe("NUL in JSON text becomes U+FFFD", () => {
  for (const [json, expected] of [
    [String.raw`"a\u0000b"`, String.raw`"a\ufffdb"`],
    [String.raw`"a\\u0000b"`, String.raw`"a\\u0000b"`],
    [String.raw`"a\\\u0000b"`, String.raw`"a\\\ufffdb"`],
    [String.raw`{"\u0000":12.0}`, String.raw`{"\ufffd":12.0}`],
    [String.raw`"\u00000"`, String.raw`"\ufffd0"`],
  ] as const) {
    test(json, () => expect(sanitizeJson(json)).toBe(expected));
  }
});

test("a parsed text", () => {
  expect(sanitizeString("a\0b\0")).toBe("a\ufffdb\ufffd");
  expect(sanitizeString("a\ud800b😀")).toBe("a\ufffdb😀");
  expect(sanitizeString("ab")).toBe("ab");
});
