import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  countMembers,
  endOfValue,
  hasName,
  type JsonCounts,
  memberName,
  memberSource,
  memberSpan,
  nextMember,
  nextValueStart,
  skipSpace,
} from "../../src/lib/json/spans.ts";

const tally = (): JsonCounts => ({ members: 0, deepest: 0 });

/** Rebuilds a value from nothing but spans and the parsing of scalars. */
function rebuilt(text: string, at: number): { value: unknown; end: number } {
  const first = text[at];
  if (first === "[") {
    const values: unknown[] = [];
    at = nextValueStart(text, at + 1);
    while (text[at] !== "]") {
      const element = rebuilt(text, at);
      values.push(element.value);
      at = nextValueStart(text, element.end);
    }
    return { value: values, end: at + 1 };
  }
  if (first === "{") {
    const members: [string, unknown][] = [];
    const span = memberSpan();
    at++;
    while (nextMember(text, at, span)) {
      const member = rebuilt(text, span.valueStart);
      members.push([memberName(text, span), member.value]);
      at = member.end;
    }
    // Not assignment: `__proto__` has to become a member like any other.
    return { value: Object.fromEntries(members), end: span.objectEnd };
  }
  const end = endOfValue(text, at, tally());
  return { value: JSON.parse(text.slice(at, end)), end };
}

const spaces = fc.constantFrom("", " ", "\n", "\t", "\r\n  ");

/** JSON text with random space between the tokens and random escapes in the strings. */
const toJsonString = fc
  .tuple(fc.jsonValue({ stringUnit: "binary" }), fc.infiniteStream(fc.nat(3)), fc.infiniteStream(spaces))
  .map(([value, escapes, gaps]) => {
    const gap = () => gaps.next().value as string;
    const string = (text: string) =>
      `"${[
        ...JSON.stringify(text)
          .slice(1, -1)
          .matchAll(/\\u.{4}|\\.|./gs),
      ]
        .map(([unit]) =>
          unit.length === 1 && escapes.next().value === 0
            ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
            : unit,
        )
        .join("")}"`;
    const write = (part: unknown): string => {
      if (typeof part === "string") return string(part);
      if (Array.isArray(part)) return `[${gap()}${part.map((one) => write(one) + gap()).join(`,${gap()}`)}]`;
      if (typeof part !== "object" || part === null) return JSON.stringify(part);
      const members = Object.entries(part).map(
        ([name, one]) => `${string(name)}${gap()}:${gap()}${write(one)}${gap()}`,
      );
      return `{${gap()}${members.join(`,${gap()}`)}}`;
    };
    return gap() + write(value) + gap();
  });

describe("the span scanner agrees with JSON.parse", () => {
  test("on arbitrary JSON, compact, spaced and escaped", () => {
    fc.assert(
      fc.property(toJsonString, (text) => {
        const start = skipSpace(text, 0);
        const { value, end } = rebuilt(text, start);
        expect(value).toEqual(JSON.parse(text));
        expect(text.slice(end).trim()).toBe("");
        const counts = tally();
        expect(endOfValue(text, start, counts)).toBe(end);
        expect(counts.members).toBe(countMembers(JSON.parse(text)));
      }),
      { numRuns: 500 },
    );
  });

  test("on pretty-printed JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(1, 2, "\t"), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(rebuilt(text, 0)).toEqual({ value: JSON.parse(text), end: text.length });
      }),
    );
  });
});

describe("strings with quotes and back slashes end where they end", () => {
  for (const json of [`""`, `"\\""`, `"\\\\"`, `"\\\\\\""`, `"a\\\\\\\\"`, `"]}\\","`, `"\\u0022"`]) {
    test(json, () => {
      expect(endOfValue(`${json},"next":1`, 0, tally())).toBe(json.length);
      const container = `{"k":[${json}]}`;
      expect(endOfValue(`${container}}]"`, 0, tally())).toBe(container.length);
    });
  }
});

test("depth and members are counted at every level", () => {
  const counts = tally();
  endOfValue(`{"a":{"b":[[1,{"c":":{["}]]},"d":2}`, 0, counts);
  expect(counts).toEqual({ members: 4, deepest: 5 });
});

test("repeated names are counted as often as they are written", () => {
  const text = `{"a":1,"a":{"b":1,"b":2}}`;
  const counts = tally();
  endOfValue(text, 0, counts);
  expect(counts.members).toBe(4);
  expect(countMembers(JSON.parse(text))).toBe(2);
});

test("a name is recognized with escapes in it, and not by its beginning", () => {
  const span = memberSpan();
  const text = `{"\\u0061bc":1,"abcd":2,"abc":3}`;
  const called: boolean[] = [];
  let at = 1;
  while (nextMember(text, at, span)) {
    called.push(hasName(text, span, "abc"));
    at = endOfValue(text, span.valueStart, tally());
  }
  expect(called).toEqual([true, false, true]);
  expect(memberSource(text, 0, "abc")).toBe("3");
  expect(memberSource(text, 0, "none")).toBeUndefined();
});

test("text that is not JSON throws instead of running forever", () => {
  for (const text of [`"open`, `{"a":`, `[1,2`, `{"a":"\\"}`]) {
    expect(() => endOfValue(text, 0, tally())).toThrow("not valid JSON");
  }
});
