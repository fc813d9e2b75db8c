/** The preview of a file that is going to be imported. */

import { expect, test } from "bun:test";
import { previewRowsMax, readPreview } from "../../src/console/page/lib/preview.ts";

test("tables are read with their delimiter, quotes and line ends; a cut record is left out", () => {
  const text = 'id,text\r\n1,"a, ""b""\nc"\r\n2,plain\r\n3,cu';
  expect(readPreview(text, false)).toEqual({
    columns: ["id", "text"],
    rows: [
      { id: "1", text: 'a, "b"\nc' },
      { id: "2", text: "plain" },
      { id: "3", text: "cu" },
    ],
  });
  expect(readPreview(text, true)?.rows).toHaveLength(2);
  expect(readPreview("a\tb\n1\t2", false)?.rows).toEqual([{ a: "1", b: "2" }]);
  const many = ["a;b", ...Array(500).fill("1;2")].join("\n");
  expect(readPreview(many, true)?.rows).toHaveLength(previewRowsMax);
});

test("JSON is read as lines or as a list; other files have no preview", () => {
  const lines = '{"event":"a","n":1}\n{"event":"b","more":{}}\n';
  expect(readPreview(lines, false)).toEqual({
    columns: ["event", "n", "more"],
    rows: [
      { event: "a", n: 1 },
      { event: "b", more: {} },
    ],
  });
  expect(readPreview(`${lines}{"event":`, true)?.rows).toHaveLength(2);
  expect(readPreview('[{"a":1},2]', false)).toEqual({ columns: ["a"], rows: [{ a: 1 }] });
  for (const text of ["", " \n", "\u0000PAR1", "one column\nonly", "{broken\nlines}"]) {
    expect(readPreview(text, false)).toBeUndefined();
  }
});
