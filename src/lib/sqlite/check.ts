/** Checks an SQLite file for corruption. */

import { firstLine } from "../errors.ts";
import { readonlyClient } from "./open.ts";

/**
 * Reads every page of a file and checks the structure of its tables. SQLite has no checksums: a changed value is not
 * found.
 *
 * @returns the first problem; null: none.
 */
export function checkSqlite(path: string): string | null {
  try {
    const db = readonlyClient(path);
    try {
      const [first] = db.query("PRAGMA quick_check(1)").values() as [[string]];
      return first[0] === "ok" ? null : problemLine(first[0]);
    } finally {
      db.close();
    }
  } catch (error) {
    return firstLine(error);
  }
}

/** The first problem that a row of SQLite's checks names, below the line that names the database. */
export function problemLine(row: string): string {
  const lines = row.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("***"));
  return firstLine(lines[0] ?? row);
}
