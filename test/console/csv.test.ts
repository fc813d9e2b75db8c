/** What is taken from the console as CSV does nothing in a spreadsheet, and says the same otherwise. */

import { expect, test } from "bun:test";
import Papa from "papaparse";
import { toCsv, withoutFormulas } from "../../src/console/page/lib/csv.ts";

/** What comes out of a text that comes in pieces of so many characters. */
async function passed(text: string, length: number): Promise<string> {
  const chunks = Array.from({ length: Math.ceil(text.length / length) }, (_, index) =>
    text.slice(index * length, (index + 1) * length),
  );
  const source = new ReadableStream<string>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let out = "";
  for await (const chunk of source.pipeThrough(withoutFormulas())) out += chunk;
  return out;
}

const cells: [string, string][] = [
  ["plain", "plain"],
  ["", ""],
  ["=1+1", "'=1+1"],
  ["+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"],
  ["-2+3", "'-2+3"],
  ["@SUM(1,2)", "'@SUM(1,2)"],
  ["\t=1", "'\t=1"],
  ["\r=1", "'\r=1"],
  ['="a"', `'="a"`],
  ['"=1"', '"=1"'],
  ["a\n=1\n", "a\n=1\n"],
  ["a,=1", "a,=1"],
  ["-5", "-5"],
  ["+5.25", "+5.25"],
  ["-1e-7", "-1e-7"],
  ["-", "'-"],
];

test("cells that start like a formula are escaped, however the file is split into chunks", async () => {
  const rows = cells.map(([given], index) => [String(index), given, given]);
  const text = `${Papa.unparse(rows, { newline: "\n" })}\n`;
  const expected = cells.map(([, guarded], index) => [String(index), guarded, guarded]);
  for (const length of [1, 2, 7, 64, text.length]) {
    const read = Papa.parse(await passed(text, length), { newline: "\n", skipEmptyLines: true });
    expect([length, read.data, read.errors]).toEqual([length, expected, []]);
  }
});

test("rows of the page are written the same way", async () => {
  const rows = cells.map(([given]) => ({ a: given, "=b": 1 }));
  const { data } = Papa.parse<string[]>(await toCsv(["a", "=b"], rows).text(), { newline: "\n" });
  expect(data.slice(0, -1)).toEqual([["a", "'=b"], ...cells.map(([, guarded]) => [guarded, "1"])]);
});
