import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { canonicalJson } from "../../src/lib/json/canonical.ts";
import { parseExactJson } from "../../src/lib/json/exact.ts";
import {
  MemberScanner,
  type Members,
  ParsedMembers,
  scannedBytesMax,
  valueNumbersMax,
} from "../../src/scan/members.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Everything that can be asked of members, by name: JavaScript lists names that are numbers first. */
function shown(members: Members | undefined) {
  const all = members?.names.map((name, place) => ({
    name,
    kind: members.kind(place),
    text: members.text(place),
    value: members.value(place),
    byName: members.valueOf(name),
    isOwnText: members.isText(place, members.text(place)),
    isOtherText: members.isText(place, `${members.text(place)} `),
  }));
  return all?.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function parsed(text: string): Members | undefined {
  try {
    const value = parseExactJson(text) as Record<string, unknown>;
    return typeof value === "object" && value !== null ? new ParsedMembers(value) : undefined;
  } catch {
    return undefined;
  }
}

const token = fc.oneof(
  fc.constantFrom("0", "-0", "1", "-17", "1.0", "12.50", "1e3", "1E-2", "1e400", "123456789012345"),
  fc.constantFrom(
    "1234567890123456",
    "12345678901234567890",
    "0.1",
    "true",
    "false",
    "null",
    "01",
    "+1",
    "tru",
  ),
  fc.constantFrom('"\\u0041"', '"\\/"', '"a\\n\\t\\"\\\\"', '"\\ud800"', '"\\ud83d\\ude00"', '"😀é"', '""'),
  fc.constantFrom(
    '"\\x"',
    '"a',
    "[1,]",
    "{}",
    "[]",
    "[ 1 , 2 ]",
    '{ "b" : [ {} ] , "a":1.0}',
    '{"a":1,"a":2}',
  ),
  fc.constantFrom(
    "[".repeat(70) + "]".repeat(70),
    "[".repeat(300) + "]".repeat(300),
    `"${"x".repeat(5_000)}"`,
  ),
  fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text)),
  fc.double().map((number) => JSON.stringify(number)),
);
const name = fc.oneof(
  fc.constantFrom(
    '"$lib"',
    '"a"',
    '"b"',
    '"c"',
    '"__proto__"',
    '"7"',
    '"\\u0061"',
    '"é"',
    '""',
    `"${"n".repeat(250)}"`,
  ),
  fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => JSON.stringify(text)),
);
const space = fc.constantFrom("", "", "", " ", "\n", "\t ");
const object = fc
  .array(fc.tuple(name, token, space, space), { maxLength: 12 })
  .map(
    (list) =>
      `{${list.map(([key, value, before, behind]) => `${before}${key}${behind}:${before}${value}`).join(",")}}`,
  );
const wild = fc.oneof(
  object,
  object,
  object,
  token,
  fc.constantFrom("", " {}", "{} ", "{", '{"a":1}x', "[1]"),
);

test("members are those of the parsed object, whatever the text", () => {
  const scanner = new MemberScanner();
  fc.assert(
    fc.property(fc.array(wild, { minLength: 1, maxLength: 6 }), (texts) => {
      const found = scanner.read(texts.map(bytes));
      for (const [index, text] of texts.entries()) {
        const expected = shown(parsed(text));
        expect(shown(found[index])).toEqual(expected);
        expect(shown(found[index]?.retained())).toEqual(expected);
      }
    }),
    { numRuns: 3_000 },
  );
});

test("members of the same number have the same name and text", () => {
  const scanner = new MemberScanner();
  const known = new Map<unknown, Map<number, string>>();
  let repeated = 0;
  fc.assert(
    fc.property(fc.array(object, { minLength: 1, maxLength: 6 }), (texts) => {
      for (const members of scanner.read(texts.map(bytes))) {
        for (const place of members?.names.keys() ?? []) {
          const number = members!.number(place);
          if (number === 0) continue;
          const numbers = known.get(members!.numbers) ?? new Map<number, string>();
          known.set(members!.numbers, numbers);
          const said = JSON.stringify([members!.names[place], members!.text(place)]);
          if (numbers.has(number)) repeated += 1;
          expect(numbers.get(number) ?? said).toBe(said);
          numbers.set(number, said);
        }
      }
    }),
    { numRuns: 1_000 },
  );
  expect(repeated).toBeGreaterThan(100);
});

test("simple objects are not parsed, and share their names", () => {
  const scanner = new MemberScanner();
  const [one, other] = scanner.read([bytes('{"a":"x","b":12}'), bytes('{ "a" : "y" , "b" : 12 }')]);
  expect(one).not.toBeInstanceOf(ParsedMembers);
  expect(one!.names).toBe(other!.names);
  expect(one!.number(1)).toBe(other!.number(1));
  expect(one!.number(0)).not.toBe(other!.number(0));
  expect([one!.isText(0, '"x"'), one!.isText(0, '"y"'), one!.isText(1, "12")]).toEqual([true, false, true]);
});

test("bytes are not characters: texts with equal characters but other bytes differ", () => {
  const scanner = new MemberScanner();
  for (const text of ["é", "größer", "日本", "é".repeat(50)]) {
    const [members] = scanner.read([bytes(JSON.stringify({ text }))]);
    const looksAlike = Buffer.from(text).toString("latin1");
    expect(members!.isText(0, JSON.stringify(text))).toBe(true);
    expect(members!.isText(0, JSON.stringify(looksAlike))).toBe(false);
  }
});

test("the members of the previous call cannot be read any more", () => {
  const scanner = new MemberScanner();
  const [before] = scanner.read([bytes('{"a":1}')]);
  scanner.read([bytes('{"a":2}')]);
  expect(() => before!.text(0)).toThrow("Other objects were read meanwhile.");
});

describe("limits", () => {
  test("values get numbers until there are too many, then they begin again", () => {
    const scanner = new MemberScanner();
    const seen = new Set<unknown>();
    let unnumbered = 0;
    for (let round = 0; round < 4; round++) {
      const texts = Array.from({ length: 250 }, (_, index) =>
        JSON.stringify(
          Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`n${n}`, `${round}-${index}-${n}`])),
        ),
      );
      for (const [index, members] of scanner.read(texts.map(bytes)).entries()) {
        seen.add(members!.numbers);
        for (let place = 0; place < 100; place++) {
          const number = members!.number(place);
          if (number === 0) unnumbered += 1;
          expect(number).toBeLessThanOrEqual(valueNumbersMax);
          expect(members!.text(place)).toBe(`"${round}-${index}-${place}"`);
        }
      }
    }
    // Each time 25,000 values come, of which 20,000 get a number.
    expect([seen.size, unnumbered]).toEqual([4, 20_000]);
  });

  test("of a name whose values rarely repeat only some have numbers, and long ones have none", () => {
    const scanner = new MemberScanner();
    const texts = Array.from({ length: 1_000 }, (_, n) =>
      JSON.stringify({ own: `value ${n}`, same: n % 7, long: "x".repeat(300) }),
    );
    const found = scanner
      .read(texts.map(bytes))
      .map((members) => [0, 1, 2].map((place) => members!.number(place) !== 0));
    expect([0, 1, 2].map((place) => found.filter((one) => one[place]).length)).toEqual([256, 1_000, 0]);
  });

  test("names that clients invent are forgotten", () => {
    const scanner = new MemberScanner();
    for (let round = 0; round < 60; round++) {
      const texts = Array.from({ length: 20 }, (_, index) => {
        const names = Array.from({ length: 10 }, (_, place) => `"n${round}-${index}-${place}":${place}`);
        return `{${names.join(",")}}`;
      });
      const found = scanner.read(texts.map(bytes));
      for (const [index, text] of texts.entries()) {
        expect(found[index]!.names).toEqual(Object.keys(JSON.parse(text)));
        expect(found[index]!.valueOf(`n${round}-${index}-9`)).toBe(9);
      }
    }
    expect(scanner.read([bytes('{"a":1}')])[0]).not.toBeInstanceOf(ParsedMembers);
  });

  test("objects beyond the capacity are parsed", () => {
    const scanner = new MemberScanner();
    const large = bytes(`{"a":"${"x".repeat(scannedBytesMax)}"}`);
    expect(scanner.read([large])[0]).toBeInstanceOf(ParsedMembers);
    const many = bytes(`{${Array.from({ length: 500 }, (_, index) => `"${index}":0`).join(",")}}`);
    const found = scanner.read(Array.from({ length: 300 }, () => many));
    expect(found[0]).not.toBeInstanceOf(ParsedMembers);
    expect(found.at(-1)).toBeInstanceOf(ParsedMembers);
    expect(found.at(-1)!.valueOf("499")).toBe(0);
  });
});

test("a text is the one that is stored for its value", () => {
  const scanner = new MemberScanner();
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const [members] = scanner.read([bytes(JSON.stringify({ value }))]);
      expect(members!.text(0)).toBe(canonicalJson(JSON.parse(JSON.stringify(value))));
    }),
  );
});
