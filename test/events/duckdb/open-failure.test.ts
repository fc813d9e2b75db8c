import { expect, test } from "bun:test";
import {
  findShortage,
  isOutOfMemory,
  type Shortage,
  toOpenError,
} from "../../../src/events/duckdb/open-error.ts";
import { StatementFailedError } from "../../../src/events/duckdb/statement-errors.ts";

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

const used = "(16.0 MiB/16.0 MiB used)";
/** Every form of DuckDB 1.5; the rest of its texts are suggestions for an operator. */
const shortages: [text: string, shortage: Shortage | undefined][] = [
  [`Out of Memory Error: failed to allocate data of size 1.0 GiB ${used}\n\nPossible solutions:`, "memory"],
  [`Out of Memory Error: could not allocate block of size 256.0 KiB ${used}`, "memory"],
  [`Out of Memory Error: failed to pin block of size 256.0 KiB ${used}`, "memory"],
  [`Out of Memory Error: failed to reserve memory data of size 8 bytes ${used}`, "memory"],
  ["Out of Memory Error: Failed to allocate block of 4096 bytes (bad allocation)", "memory"],
  ["Out of Memory Error: Allocation failure", "memory"],
  ["Out of Memory Error: cannot write buffer because no temporary directory is specified!", "memory"],
  [
    `Out of Memory Error: failed to offload data block of size 224.0 KiB ${used}.\nThis limit was set by the 'max_temp_directory_size' setting.`,
    "temporary files",
  ],
  [
    "Out of Memory Error: failed to adjust the 'max_temp_directory_size', currently used space (2 MiB) exceeds the new limit (1 MiB)",
    "temporary files",
  ],
  ['IO Error: Could not write file "tmp/duckdb_temp_storage_DEFAULT-0.tmp": No space left on device', "disk"],
  ['IO Error: Could not write file "tmp/duckdb_temp_block-7.block": Disk quota exceeded', "disk"],
  [
    'IO Error: Could not write to file "tmp/x.tmp" - attempted to write 0 bytes: No space left on device',
    "disk",
  ],
  ['IO Error: Could not write file "tmp/x.tmp": Input/output error', undefined],
  ['IO Error: Could not read from file "e.duckdb": Input/output error', undefined],
  ["INTERRUPT Error: Interrupted!", undefined],
  ["Invalid Input Error: Out of Memory Error: 'max_temp_directory_size'", undefined],
  ["Conversion Error: Could not convert string 'Out of Memory Error: ' to INT32", undefined],
];

for (const [text, shortage] of shortages) {
  test(`${shortage ?? "no shortage"}: ${text.split("\n")[0]}`, () => {
    for (const error of [new Error(text), new StatementFailedError("x", { cause: new Error(text) })]) {
      expect(findShortage(error)).toBe(shortage);
      expect(isOutOfMemory(error)).toBe(shortage === "memory" || shortage === "temporary files");
    }
  });
}
