import { expect, test } from "bun:test";
import { is } from "drizzle-orm";
import { getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { openMetadata } from "../../src/accounts/metadata.ts";
import * as schema from "../../src/accounts/schema.ts";

interface Column {
  name: string;
  type: string;
  notnull: number;
}

test("the migrations make the tables that the schema describes", () => {
  const metadata = openMetadata(":memory:");
  const client = metadata.db.$client;
  const tables = Object.values(schema).filter((value) => is(value, SQLiteTable)) as SQLiteTable[];
  const described = tables.map((table) => getTableConfig(table));
  const created = client
    .query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all() as { name: string }[];
  const expected = [...described.map(({ name }) => name), "schema_migration"].sort();
  expect(created.map(({ name }) => name).sort()).toEqual(expected);
  for (const { name, columns } of described) {
    const found = client.query(`PRAGMA table_info("${name}")`).all() as Column[];
    const shown = found.map((column) => [column.name, column.type.toLowerCase(), column.notnull === 1]);
    const wanted = columns.map((column) => [
      column.name,
      column.getSQLType(),
      // SQLite does not call the key of an integer table NOT NULL, though it is.
      column.notNull && !(column.primary && column.getSQLType() === "integer"),
    ]);
    expect([name, shown.sort()]).toEqual([name, wanted.sort()]);
  }
  metadata.close();
});
