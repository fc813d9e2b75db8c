/** Rows of tables: whatever another program writes is read back; what is broken is found where it is. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import Papa from "papaparse";
import { type CsvRow, CsvRows, csvFormOf } from "../../src/import/read/csv-rows.ts";

function rowsOf(text: string, form = csvFormOf(text)) {
  const rows = new CsvRows(text, form);
  const read: (CsvRow | string)[] = [];
  for (let at = 0; at < text.length; ) {
    const row = rows.rowAt(at, true);
    read.push(row);
    if (typeof row === "string") break;
    at = row.end;
  }
  return read;
}

test("a table that another program wrote is read back, for each delimiter and line end", () => {
  const cell = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.string({ unit: fc.constantFrom('"', ",", ";", "\n", "\r\n", "\t", "|", " ", "a", "é"), maxLength: 8 }),
  );
  const table = fc
    .integer({ min: 2, max: 5 })
    .chain((columns) =>
      fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), { minLength: 1 }),
    );
  const form = fc.record({
    delimiter: fc.constantFrom(",", ";", "\t", "|"),
    newline: fc.constantFrom("\n", "\r\n"),
    quotes: fc.boolean(),
  });
  fc.assert(
    fc.property(table, form, (cells, { delimiter, newline, quotes }) => {
      const header = cells[0]!.map((_, at) => `c${at}`);
      const text = Papa.unparse([header, ...cells], { delimiter, newline, quotes });
      expect(csvFormOf(text)).toEqual({ delimiter, newline: "\n" });
      const read = rowsOf(text).map((row) => (typeof row === "string" ? row : row.cells));
      expect(read).toEqual([header, ...cells]);
    }),
  );
});

test("any text is read to its end, each row behind the one before, and lines are counted", () => {
  const text = fc.string({ unit: fc.constantFrom('"', ",", "\n", "\r", " ", "a"), maxLength: 40 });
  fc.assert(
    fc.property(text, (given) => {
      const form = { delimiter: ",", newline: "\n" } as const;
      let at = 0;
      for (const row of rowsOf(given, form)) {
        if (typeof row === "string") {
          expect(row).toBe("broken");
          return;
        }
        const taken = given.slice(at, row.end);
        expect(row.lines).toBe(taken.split("\n").length - (taken.endsWith("\n") ? 1 : 0));
        at = row.end;
      }
      expect(at).toBeGreaterThanOrEqual(given.length);
    }),
  );
});

describe("which cells stood in quotes is kept", () => {
  for (const [text, quoted] of [
    ["a,b\n", undefined],
    ['"a",b\n', [0]],
    ['a,"",\n', [1]],
    ['\\N,"\\N"\n', [1]],
  ] as const)
    test(JSON.stringify(text), () => {
      const [row] = rowsOf(text) as CsvRow[];
      expect(row!.quoted && [...row!.quoted]).toEqual(quoted as never);
    });
});
