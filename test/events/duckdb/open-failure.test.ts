import { expect, test } from "bun:test";
import { toOpenError } from "../../../src/events/duckdb/open-error.ts";
import { StatementFailedError } from "../../../src/events/query/errors.ts";

const cases: [text: string, failure: ReturnType<typeof toOpenError>][] = [
  ['IO Error: The file "e.duckdb" exists, but it is not a valid DuckDB database file!', "file_broken"],
  ["IO Error: Corrupt database file: computed checksum 5381 does not match stored checksum 0", "file_broken"],
  ['IO Error: Could not read enough bytes from file "e.duckdb": attempted to read 3192 bytes', "file_broken"],
  ['IO Error: Failure while replaying WAL file "e.duckdb.wal": Corrupt WAL file: entry at 88', "log_broken"],
  // None of these is the file's fault: it must stay as it is.
  [
    'IO Error: Failure while replaying WAL file "e.duckdb.wal": Out of Memory Error: failed to allocate',
    "other",
  ],
  ['IO Error: Could not set lock on file "e.duckdb": Conflicting lock is held in PID 1', "other"],
  ["IO Error: Trying to read a database file with version number 99, but we can only read 64", "other"],
  ["Out of Memory Error: failed to allocate data of size 1.0 GiB", "other"],
  ['IO Error: Could not write file "e.duckdb": No space left on device', "other"],
  ['IO Error: Cannot open file "e.duckdb": Permission denied', "other"],
  ['IO Error: Could not read from file "e.duckdb": Input/output error', "other"],
  ["Binder Error: column x not found", "other"],
];

for (const [text, failure] of cases) {
  test(`${failure}: ${text}`, () => expect(toOpenError(new Error(text), "reading")).toBe(failure));
}

const onlyOpening: typeof cases = [
  // Whatever DuckDB says while it opens the file is about the file, unless it is known not to be.
  ['IO Error: Cannot open file "e.duckdb": Is a directory', "file_broken"],
  ["Catalog Error: Table with name load_cursor does not exist!", "file_broken"],
  ["INTERNAL Error: Failed to load metadata pointer (id 1, idx 2, ptr 3)", "file_broken"],
  ["TransactionContext Error: Conflict on tuple deletion!", "file_broken"],
  ['IO Error: Cannot open file "e.duckdb": Too many open files', "other"],
  // None of DuckDB's.
  ["undefined is not an object (evaluating 'row[0]')", "other"],
  ["The person store ends at realtime entry 3", "other"],
];
for (const [text, failure] of onlyOpening) {
  test(`opening: ${failure}: ${text}`, () => expect(toOpenError(new Error(text), "opening")).toBe(failure));
}

test("words of a statement are never mistaken for DuckDB's message about its file", () => {
  for (const text of [
    "Conversion Error: Could not convert string 'IO Error: Corrupt database file' to INT32",
    "Invalid Input Error: Corrupt database file: computed checksum 1",
    'Binder Error: Referenced column "corrupt database file" not found',
    'Parser Error: syntax error at or near "IO Error: Corrupt database file"',
  ]) {
    expect(toOpenError(new StatementFailedError("x", { cause: new Error(text) }), "reading")).toBe("other");
  }
  const real = new Error("IO Error: Corrupt database file: computed checksum 1 does not match 2");
  expect(toOpenError(new StatementFailedError("x", { cause: real }), "reading")).toBe("file_broken");
});
