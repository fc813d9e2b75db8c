/** Texts by columns come back byte for byte, whatever they are, and pack smaller when lines are alike. */

import { describe, expect, test } from "bun:test";
import { zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { decodeColumnar, encodeColumnar } from "../../src/journal/archive-columnar.ts";

const columnar = (text: Buffer) => Buffer.concat([...encodeColumnar(text)]);
const line = (n: number) =>
  JSON.stringify({
    seq: n,
    uuid: Bun.randomUUIDv7(),
    event: n % 3 === 0 ? "$pageview" : 'click, "now":',
    distinct_id: `user-${n % 50}`,
    time: 1_700_000_000_000 + n * 17,
    properties: {
      $os: "Linux",
      price: (n * 7919) % 1_000,
      city: ["Köln", "Łódź", "東京"][n % 3],
      n: [n, { a: null }],
    },
  });
const lines = (count: number, end = "\n") =>
  Buffer.from(Array.from({ length: count }, (_, n) => line(n)).join("\n") + end);

describe("by columns", () => {
  for (const [what, text] of [
    ["nothing", Buffer.alloc(0)],
    ["a line break", Buffer.from("\n")],
    ["lines without an end", lines(10, "")],
    ["lines alike", lines(5_000)],
    ["empty lines between", Buffer.from('\n\n{"a":1,"b":2}\n\n{"a":1}\n')],
    ["what separates, alone", Buffer.from(',"\n":\n,"":\n,",",":":,"\n')],
    ["a name that is a value elsewhere", Buffer.from('{"a":"b","b":"a"}\n{"b":"a","a":"b"}\n')],
    ["bytes that are no text", Buffer.from(Array.from({ length: 4_096 }, (_, n) => (n * 7) % 256))],
    [
      "a line of five megabytes between short ones",
      Buffer.concat([lines(3), Buffer.alloc(5_000_000, 'x,"y":1'), lines(3)]),
    ],
    [
      "more names than are counted",
      Buffer.from(Array.from({ length: 3_000 }, (_, n) => `{"n${n}":${n}}\n`).join("")),
    ],
  ] as const)
    test(what, () => expect(decodeColumnar(columnar(text)).equals(text)).toBe(true));

  test("of lines alike there are columns, which pack to two thirds; lines that differ stay rows", () => {
    const text = lines(5_000);
    const packed = (bytes: Uint8Array) => zstdCompressSync(bytes).length;
    expect(columnar(text).toString("latin1")).toStartWith('{"columns":');
    expect(packed(columnar(text))).toBeLessThan(packed(text) * 0.67);
    const different = Array.from({ length: 3_000 }, (_, n) => `{"n${n}":${n}}\n`).join("");
    expect(columnar(Buffer.from(different)).toString("latin1")).toStartWith('{"rows":');
  });

  test("any bytes", () => {
    const byte = fc.constantFrom(...Buffer.from('{}":,\n\\ab1\0\xff', "latin1"));
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 300 }), (bytes) => {
        const text = Buffer.from(bytes);
        return decodeColumnar(columnar(text)).equals(text);
      }),
      { numRuns: 500 },
    );
  });

  test("truncated files yield complete blocks, invalid data ends reading", () => {
    const text = lines(20_000);
    const chunks = [...encodeColumnar(text)];
    expect(chunks.length).toBeGreaterThan(1);
    const whole = Buffer.concat(chunks);
    const first = decodeColumnar(chunks[0]!);
    for (const end of [0, 1, chunks[0]!.length - 1])
      expect(decodeColumnar(whole.subarray(0, end))).toHaveLength(0);
    for (const end of [chunks[0]!.length, chunks[0]!.length + 20, whole.length - 1]) {
      expect(decodeColumnar(whole.subarray(0, end)).equals(first)).toBe(true);
    }
    for (const head of [
      '{"columns":{"names":1}}',
      '{"rows":{"bytes":-20}}',
      '{"rows":{"bytes":1e300}}',
      "null",
      "[]",
      "x",
      "",
    ])
      expect(decodeColumnar(Buffer.from(`${head}\n${"abc\n".repeat(20)}`))).toHaveLength(0);
  });
});
