import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseTolerantJson } from "../../../../src/flags/sdk/flags-request.ts";

describe("bare numbers that JSON does not have", () => {
  const texts: [text: string, value: unknown][] = [
    ["NaN", null],
    ["[NaN,Infinity,-Infinity]", [null, null, null]],
    ['{"a":NaN , "b":{"c":-Infinity}}', { a: null, b: { c: null } }],
    ['{"NaN":"NaN","a\\"NaN":Infinity}', { NaN: "NaN", 'a"NaN': null }],
    ['["\\\\",NaN,"-Infinity \\" NaN"]', ["\\", null, '-Infinity " NaN']],
    ['{"a": 1}', { a: 1 }],
  ];
  for (const [text, value] of texts) test(text, () => expect(parseTolerantJson(text)).toEqual(value));

  for (const text of ["", "nan", "{NaN}", '{"a":NaN', '"NaN', "infinity", "[Infinit]", "Na", '["\\'])
    test(`${text} is still no JSON`, () => expect(() => parseTolerantJson(text)).toThrow(SyntaxError));

  test("every JSON text is read as JSON.parse reads it, with numbers replaced as null", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseTolerantJson(text)).toEqual(JSON.parse(text));
        const strange = `[${text},NaN,-Infinity]`;
        expect(parseTolerantJson(strange)).toEqual([JSON.parse(text), null, null]);
      }),
    );
  });

  test("a long hostile text takes linear time", () => {
    const text = `[NaN,"${'\\"'.repeat(500_000)}`;
    const started = performance.now();
    expect(() => parseTolerantJson(text)).toThrow();
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
