/** Tables as databases write them: what is no value, escapes and lists. Source: contract, import 1.4, 2.1. */

import { afterAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseListString } from "../../src/import/map/lenient-json.ts";
import { getContents } from "../../src/import/read/archive-contents.ts";
import { recordSource } from "../../src/import/read/read-records.ts";
import { temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

async function read(content: string, nulls: string[] = [], snowplowRow?: (values: string[]) => never) {
  const path = join(folder, "table");
  writeFileSync(path, content);
  const options = { onBytes: () => {}, workFolder: folder, nulls, ...(snowplowRow && { snowplowRow }) };
  const found: unknown[] = [];
  for await (const one of getContents(path, options))
    for await (const records of recordSource(one, undefined, options).records)
      for (const { record, problem } of records) found.push(record ?? problem);
  return found;
}

const cases: readonly (readonly [name: string, content: string, records: unknown[], nulls?: string[]])[] = [
  ["CSV: without quotes \\N is no value", 'a,b,c\n\\N,"\\N",x\\Ny\n', [{ b: "\\N", c: "x\\Ny" }]],
  ["NULL is text", "a,b\nNULL,1\n", [{ a: "NULL", b: "1" }]],
  ["further words", 'a,b,c\nNULL,"NULL",nil\n', [{ b: "NULL" }], ["NULL", "nil"]],
  ["an empty cell, also in quotes", 'a,b,c\n,"",1\n', [{ c: "1" }]],
  [
    "tabs: all escapes",
    "a\tb\n\\\\N\t1\\t2\\n3\\r4\\\\5\\'6\\b7\\f8\n",
    [{ a: "\\N", b: "1\t2\n3\r4\\5'6\b7\f8" }],
  ],
  ["tabs: a backslash before a line break", "a\tb\n1\\\n2\t3\n\\N\t4\n", [{ a: "1\n2", b: "3" }, { b: "4" }]],
  ["tabs: before one of Windows", "a\tb\r\n1\\\r\n2\t3\r\n", [{ a: "1\n2", b: "3" }]],
  [
    "tabs: quotes that are text",
    'a\tb\n"open\t5"x\n"two" words\t\\N\n',
    [{ a: '"open', b: '5"x' }, { a: '"two" words' }],
  ],
  ["tabs: quotes around cells", 'a\tb\n"x\ty"\t"{""k"":""v\\n""}"\n', [{ a: "x\ty", b: '{"k":"v\\n"}' }]],
  ["tabs: the list keeps its escapes", "a\tb\n['it\\'s']\t1\n", [{ a: "['it\\'s']", b: "1" }]],
  [
    "Redshift with ESCAPE",
    'a|b|c\nx\\|y|@NULL@|p\\\nq\n{\\"k\\":1}|C:\\\\d|\n',
    [
      { a: "x|y", c: "p\nq" },
      { a: '{"k":1}', b: "C:\\d" },
    ],
    ["@NULL@"],
  ],
  ["Redshift without", 'a|b\nx|{"k":"v\\"w"}\n', [{ a: "x", b: '{"k":"v\\"w"}' }]],
  [
    "Snowflake: a backslash before a delimiter",
    'a,b,c\nx\\,y,2,3\n"q",z\\,w,"1,2"\n',
    [
      { a: "x,y", b: "2", c: "3" },
      { a: "q", b: "z,w", c: "1,2" },
    ],
  ],
  ["a text that ends with a backslash", "a,b\nC:\\,2\n", [{ a: "C:\\", b: "2" }]],
  ["a quoted text that does", 'a,b\n"C:\\dir\\","x"\n', [{ a: "C:\\dir\\", b: "x" }]],
  [
    "MySQL: quotes behind a backslash",
    'a,b\n"say \\"hi\\"",\\N\n"c:\\\\d","5\\""\n',
    [{ a: 'say "hi"' }, { a: "c:\\d", b: '5"' }],
  ],
  ["doubled quotes leave backslashes alone", 'a,b\n"{""x"":""y\\""z""}",\\N\n', [{ a: '{"x":"y\\"z"}' }]],
  ["NUL bytes of a FixedString", "a,b\nEUR\0,\0\0\0\n", [{ a: "EUR" }]],
  ["NUL bytes that are escaped", "a\tb\tc\nEUR\\0\t\\0\\0\t1\n", [{ a: "EUR", c: "1" }]],
  [
    "PostHog's answer",
    '{"columns":["event","n"],"results":[["e",12345678901234567890],["f"]]}',
    [{ event: "e", n: expect.anything() }, "wrong_column_count"],
  ],
  [
    "PostHog's answer, columns behind rows",
    '{"results":[["e",null]],\n"columns":["event","n"]}',
    [{ event: "e", n: null }],
  ],
];

for (const [name, content, records, nulls] of cases)
  test(name, async () => expect(await read(content, nulls)).toEqual(records));

test("NUL bytes in what is no table are rejected", async () => {
  const error = await read("\x7fELF\0\0,\0").catch((error) => error);
  expect(error.message).toEndWith("is no text.");
});

describe("Snowplow's enriched events without a header", () => {
  const event = (last: string) => {
    const cells = Array(131).fill("");
    cells[3] = "2024-05-01 10:00:00.000";
    cells[6] = "11111111-1111-4111-8111-111111111111";
    cells[52] = '{"a,b,c":"x\\"y"}'.repeat(100);
    return [...cells.slice(0, -1), last].join("\t");
  };
  const rows = (values: string[]) => values as never;
  test("are rows by place; quotes and backslashes are text", async () => {
    const found = (await read(`${event("a\\n")}\n${event('"b')}\nx\ty\n`, [], rows)) as (string | string[])[];
    expect(found.map((row) => (Array.isArray(row) ? `${row.length} ${row[130]}` : row))).toEqual([
      "131 a\\n",
      '131 "b',
      "wrong_column_count",
    ]);
  });
});

const lists: readonly (readonly [text: string, list: unknown])[] = [
  ['["a",1]', ["a", 1]],
  ["['a','it\\'s']", ["a", "it's"]],
  ["['it\\\\'s, me','b']", ["it's, me", "b"]],
  ["['a\\\\','b\\t']", ["a\\", "b\t"]],
  ["[1,'x',NULL]", [1, "x", null]],
  ['{a,"b c"}', ["a", "b c"]],
  ['{a,"b \\"c\\"",NULL,"NULL"}', ["a", 'b "c"', null, "NULL"]],
  ["[]", []],
  ["{}", []],
  ['{"a":1}', undefined],
  ["['a", undefined],
  ["[x]", undefined],
  ["text", undefined],
];
for (const [text, list] of lists)
  test(`list ${text}`, () => expect(parseListString(text)).toEqual(list as never));
