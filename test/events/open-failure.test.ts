import { expect, test } from "bun:test";
import { openFailureOf } from "../../src/events/open-failure.ts";

const cases: [text: string, failure: ReturnType<typeof openFailureOf>][] = [
  ['IO Error: The file "e.duckdb" exists, but it is not a valid DuckDB database file!', "file_broken"],
  ["IO Error: Corrupt database file: computed checksum 5381 does not match stored checksum 0", "file_broken"],
  ['IO Error: Could not read enough bytes from file "e.duckdb": attempted to read 3192 bytes', "file_broken"],
  ['IO Error: Failure while replaying WAL file "e.duckdb.wal": Corrupt WAL file: entry at 88', "log_broken"],
  // None of these is the file's fault: it must stay as it is.
  ['Failure while replaying WAL file "e.duckdb.wal": Out of Memory Error: failed to allocate', "other"],
  ['IO Error: Could not set lock on file "e.duckdb": Conflicting lock is held in PID 1', "other"],
  ["IO Error: Trying to read a database file with version number 99, but we can only read 64", "other"],
  ["Out of Memory Error: failed to allocate data of size 1.0 GiB", "other"],
  ['IO Error: Could not write file "e.duckdb": No space left on device', "other"],
  ['IO Error: Cannot open file "e.duckdb": Permission denied', "other"],
  ['IO Error: Could not read from file "e.duckdb": Input/output error', "other"],
  ["Binder Error: column x not found", "other"],
];

for (const [text, failure] of cases) {
  test(`${failure}: ${text}`, () => expect(openFailureOf(new Error(text))).toBe(failure));
}
