/** The parts of a body hold its events, in order, and nothing that is not JSON gets by. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { splitBody } from "../../src/ingestion/body-parts.ts";

const bytes = (text: string) => Buffer.from(text);

/** The events of all parts; undefined where the body is not split, or a part is not JSON. */
function getEvents(text: string): unknown[] | undefined {
  try {
    return splitBody(bytes(text), 20)?.flatMap(({ content, firstPosition }, index) => {
      if (index === 0) expect(firstPosition).toBe(0);
      const root = JSON.parse(
        Buffer.from(content())
          .toString()
          .replace(/^\ufeff/, ""),
      );
      return Array.isArray(root) ? root : root.batch;
    });
  } catch {
    return undefined;
  }
}

describe("a body", () => {
  test("is split into its events, with any text around them", () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { minLength: 30 }),
        fc.dictionary(
          fc.string().filter((name) => !/[\\"]|batch/.test(JSON.stringify(name).slice(1, -1))),
          fc.jsonValue(),
        ),
        fc.constantFrom(undefined, 1, "\t"),
        (events, around, space) => {
          const list = JSON.stringify(events, null, space);
          expect(getEvents(list)).toEqual(JSON.parse(list));
          const body = JSON.stringify({ ...around, batch: events, sent_at: "]" }, null, space);
          const isLong = body.length - list.length > 10_000;
          if (!isLong) expect(getEvents(body)).toEqual(JSON.parse(list));
        },
      ),
      { numRuns: 200 },
    );
  });

  test("that is corrupt is never accepted as JSON", () => {
    const characters = fc.constantFrom(...'[]{}",:\\ 1a');
    const event = '{"event":"e","distinct_id":"a]","properties":{"a":[{"b":"\\""}]}}';
    const body = `{"api_key":"k","batch":[${Array(4).fill(event).join()}]}`;
    fc.assert(
      fc.property(
        fc.nat(body.length),
        fc.nat(3),
        fc.string({ unit: characters, maxLength: 3 }),
        (at, cut, put) => {
          const corrupt = body.slice(0, at) + put + body.slice(at + cut);
          const events = getEvents(corrupt);
          if (events === undefined) return;
          expect(events).toEqual(JSON.parse(corrupt).batch);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  for (const [name, body] of [
    ["one event", "{}"],
    ["one short list", "[{}]"],
    ["a batch that is named twice", `{"batch":[${"{},".repeat(90)}{}],"batch":[]}`],
    ["a batch whose name has escapes", `{"b\\u0061tch":[${"{},".repeat(90)}{}]}`],
    ["much around its list", `{"batch":[${"{},".repeat(90)}{}],"a":"${"x".repeat(20_000)}"}`],
    ["no list", '{"batch":{}}'],
  ] as const)
    test(`with ${name} is read as one`, () => {
      expect(splitBody(bytes(body), 20)).toBeUndefined();
    });
});
