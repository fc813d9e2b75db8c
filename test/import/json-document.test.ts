/** JSON that is no file of lines: cut into the records that a parser would see, wherever the chunks end. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { CorruptInputError } from "../../src/import/read/input.ts";
import { readDocument } from "../../src/import/read/json-document.ts";
import type { ReadRecord } from "../../src/import/read/record.ts";

async function read(chunks: Iterable<Buffer>, member?: string) {
  const records: ReadRecord[] = [];
  const source = (async function* () {
    yield* chunks;
  })();
  let error: unknown;
  try {
    for await (const record of readDocument("f", source, member)) records.push(record);
  } catch (failure) {
    error = failure;
  }
  return { records, error };
}

function* cut(text: string, sizes: readonly number[]): Generator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes.length === 0 ? bytes.length : sizes[n % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

const numRuns = 300;
const item = fc.oneof({ weight: 4, arbitrary: fc.dictionary(fc.string(), fc.jsonValue()) }, fc.jsonValue());
const indent = fc.constantFrom(undefined, 1, "\t");
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 5 });

test("lists, lists in an object, and values one after the other", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(item), indent, sizes, fc.jsonValue(), async (list, space, ends, other) => {
      const isObject = (value: unknown) =>
        typeof value === "object" && value !== null && !Array.isArray(value);
      const expected = list.map((value) => (isObject(value) ? JSON.stringify(value) : "not_an_object"));
      const found = ({ records, error }: Awaited<ReturnType<typeof read>>) => {
        expect(error).toBeUndefined();
        expect(records.map(({ line }) => line)).toEqual(records.map((_, at) => at + 1));
        return records.map(({ record, problem }) =>
          record === undefined ? problem! : JSON.stringify(record),
        );
      };
      expect(found(await read(cut(JSON.stringify(list, null, space), ends)))).toEqual(expected);
      const holder = { a: other, 'x"results': [{}], results: list, z: other };
      expect(found(await read(cut(JSON.stringify(holder, null, space), ends), "results"))).toEqual(expected);
      const objects = list.filter(isObject).map((value) => JSON.stringify(value, null, space));
      const several = found(await read(cut(objects.join("\n"), ends)));
      expect(several).toEqual(objects.map((text) => JSON.stringify(JSON.parse(text))));
    }),
    { numRuns },
  );
});

test("any input ends, and numbers its records", async () => {
  const wild = fc.array(
    fc.constantFrom("{", "}", "[", "]", '"', "\\", ",", ":", "1", "results", '"results":[', " ", "é"),
  );
  await fc.assert(
    fc.asyncProperty(wild, sizes, fc.constantFrom(undefined, "results"), async (parts, ends, member) => {
      const { records, error } = await read(cut(parts.join(""), ends), member);
      expect(error === undefined || error instanceof CorruptInputError).toBe(true);
      expect(records.map(({ line }) => line)).toEqual(records.map((_, at) => at + 1));
    }),
    { numRuns: numRuns * 5 },
  );
});

test("a record too long, too deep or no UTF-8 costs itself alone; a list without an end is corrupt", async () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  function* content(): Generator<Buffer> {
    yield Buffer.from('[{"a":1},{"a":"');
    for (let n = 0; n < 70; n++) yield Buffer.alloc(1024 * 1024, "x");
    yield Buffer.concat([
      Buffer.from(`"},{"a":${deep}},{"a":"`),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"},{"a":5}'),
    ]);
  }
  const { records, error } = await read(content());
  expect(records.map(({ record, problem }) => problem ?? record!.a)).toEqual([
    1,
    "line_too_long",
    "nested_too_deep",
    "not_utf8",
    5,
  ] as never);
  expect(error).toBeInstanceOf(CorruptInputError);
}, 30_000);
