/** Errors of queries. */

import { AppError } from "../../lib/errors.ts";

/** The statement is not allowed; the message says why. */
export class StatementRejectedError extends AppError {
  readonly code = "statement_refused";
  override readonly hint =
    "A query is one SELECT over the views events, persons and groups of one project; see docs/reference/sql.md.";
}

/** The statement is allowed but cannot run: an unknown column, invalid types, or invalid SQL. */
export class StatementFailedError extends AppError {
  readonly code = "statement_failed";
}

/** The rows exceed the maximum size of a result. */
export class ResultTooLargeError extends AppError {
  readonly code = "result_too_large";
  override readonly hint = "Select fewer columns or rows, or use `flagkeep export`.";
  constructor(bytesMax: number) {
    super(`The result is larger than ${bytesMax / 1024 / 1024} MiB.`);
  }
}

/** DuckDB's message without its excerpt of the statement. */
export function statementFailure(error: unknown): StatementFailedError {
  const message = error instanceof Error ? error.message : String(error);
  return new StatementFailedError(
    message
      .split("\n\n")[0]!
      .trim()
      .replace(/\s*\n\s*/g, " "),
    { cause: error },
  );
}
