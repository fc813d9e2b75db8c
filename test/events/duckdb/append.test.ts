/** Rows handed over to DuckDB column by column. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { uuidTime } from "../../../src/events/columns.ts";
import { type AppendTable, appendRows } from "../../../src/events/duckdb/append.ts";

let instance: DuckDBInstance;
let connection: DuckDBConnection;
beforeAll(async () => {
  instance = await DuckDBInstance.create(":memory:");
  connection = await instance.connect();
  await connection.run(
    "CREATE TABLE mixed (a INTEGER, b BOOLEAN, c BIGINT, d UUID, e VARCHAR, f JSON, g TIMESTAMP)",
  );
});
afterAll(() => {
  connection.closeSync();
  instance.closeSync();
});

interface Row {
  a: number;
  b: boolean;
  c: number | null;
  d: string;
  e: string | null;
  f: string;
  g: number;
}

const mixed: AppendTable<Row> = {
  name: "mixed",
  columns: [
    { kind: "integer", getValue: (row) => row.a },
    { kind: "boolean", getValue: (row) => row.b },
    { kind: "bigint", getValue: (row) => row.c },
    { kind: "uuid", getValue: (row) => row.d },
    { kind: "text", getValue: (row) => row.e },
    { kind: "text", getValue: (row) => Buffer.from(row.f) },
    { kind: "bigint", getValue: (row) => row.g },
  ],
  filler: (row) => ({ ...row, a: -1, e: null, f: "0" }),
};

async function stored(): Promise<Row[]> {
  const rows = await connection.runAndReadAll(
    "SELECT a, b, c::DOUBLE, d::VARCHAR, e, f::VARCHAR, epoch_us(g)::DOUBLE FROM mixed",
  );
  return rows.getRows().map(([a, b, c, d, e, f, g]) => ({ a, b, c, d, e, f, g }) as Row);
}

const hex = (length: number) =>
  fc
    .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
    .map((digits) => digits.join(""));
const row: fc.Arbitrary<Row> = fc.record({
  a: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  b: fc.boolean(),
  c: fc.option(fc.maxSafeInteger()),
  d: fc.tuple(hex(8), hex(4), hex(4), hex(4), hex(12)).map((parts) => parts.join("-")),
  e: fc.option(fc.string({ unit: "binary" })),
  f: fc.json(),
  g: fc.maxSafeInteger(),
});

test("whatever is appended is read back, in its order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(row, { maxLength: 3_000, size: "max" }), async (rows) => {
      await connection.run("DELETE FROM mixed");
      await appendRows(connection, mixed, rows);
      expect(await stored()).toEqual(rows);
    }),
    { numRuns: 10 },
  );
});

test("texts of any length keep all of their bytes, however many there are in a vector", async () => {
  await connection.run("CREATE TABLE texts (place INTEGER, text VARCHAR, bytes VARCHAR)");
  // Around what stands in a vector itself, what shares a piece of memory, and what has one of its own.
  const lengths = [...Array(40).keys(), 21_845, 21_846, 65_535, 65_536, 65_537, 200_000];
  const rows = Array.from({ length: 5_000 }, (_, place) => {
    const letter = ["a", "ß", "東", "🦆"][place % 4]!;
    const length = lengths[place % 97] ?? place % 500;
    return { place, text: letter.repeat(length) + String(place % 10) };
  });
  const texts: AppendTable<(typeof rows)[number]> = {
    name: "texts",
    columns: [
      { kind: "integer", getValue: ({ place }) => place },
      { kind: "text", getValue: ({ text }) => text },
      { kind: "text", getValue: ({ text }) => new Uint8Array(Buffer.from(text)) },
    ],
    filler: () => ({ place: -1, text: "" }),
  };
  await appendRows(connection, texts, rows);
  const found = await connection.runAndReadAll(
    "SELECT place, text, bytes FROM texts WHERE place >= 0 ORDER BY place",
  );
  const expected = rows.map(({ place, text }) => [place, text, text]);
  expect(found.getRows().every((row, place) => Bun.deepEquals(row, expected[place]))).toBe(true);
  expect(found.getRows()).toHaveLength(rows.length);
});

test("a table may have further columns between those that are appended, which stay null", async () => {
  await connection.run("CREATE TABLE wider (x VARCHAR, e VARCHAR, y INTEGER, a INTEGER, z VARCHAR)");
  await appendRows<{ a: number; e: string }>(
    connection,
    {
      name: "wider",
      columnNames: ["a", "e"],
      columns: [
        { kind: "integer", getValue: ({ a }) => a },
        { kind: "text", getValue: ({ e }) => e },
      ],
      filler: (one) => one,
    },
    [
      { a: 1, e: "first" },
      { a: 2, e: "second" },
    ],
  );
  const found = await connection.runAndReadAll("SELECT * FROM wider ORDER BY a");
  expect(found.getRows()).toEqual([
    [null, "first", null, 1, null],
    [null, "second", null, 2, null],
  ]);
});

const plain: Row = {
  a: 7,
  b: true,
  c: null,
  d: "ffffffff-ffff-4fff-bfff-fffffffffff0",
  e: null,
  f: "[]",
  g: 0,
};

test("a row with long texts is followed by as many fillers as it has times 4 KiB more", async () => {
  for (const [bytes, fillers] of [
    [0, 0],
    [4 * 1024 - 2, 0],
    [4 * 1024 - 1, 1],
    [40 * 1024, 10],
    [12_500_000, 3_051],
  ] as const) {
    await connection.run("DELETE FROM mixed");
    await appendRows(connection, mixed, [{ ...plain, e: "x".repeat(bytes) }, plain]);
    const rows = await stored();
    expect(rows.map(({ a }) => a)).toEqual([7, ...new Array(fillers).fill(-1), 7]);
    expect(rows[0]!.e).toHaveLength(bytes);
  }
});

test("what fails is rolled back with its transaction, and appends nothing later", async () => {
  await connection.run("DELETE FROM mixed");
  await connection.run("BEGIN TRANSACTION");
  const failing = { ...mixed, columns: mixed.columns.slice(1) };
  await appendRows(connection, mixed, [plain]);
  await expect(appendRows(connection, failing, [plain])).rejects.toThrow("column count");
  await connection.run("ROLLBACK");
  expect(await stored()).toEqual([]);
  await appendRows(connection, mixed, [plain]);
  expect(await stored()).toEqual([plain]);
});

test("the time inside a version 7 uuid, and none in others", () => {
  for (const time of [0, 1, 0x9abcdef, Date.UTC(2026, 0, 1), 2 ** 48 - 1])
    expect(uuidTime(Bun.randomUUIDv7("hex", time))).toBe(time);
  expect(uuidTime(crypto.randomUUID())).toBeNull();
});
