/** What can be wrong with a query. */

import { AppError } from "../../lib/errors.ts";

/** The statement is none that is allowed; the message says what is not. */
export class StatementRefused extends AppError {
  readonly code = "statement_refused";
  override readonly hint =
    "Queries are one SELECT over the views events, persons and groups of one project; see the README.";
}

/** The statement is allowed, but it cannot be run: a wrong column, a division of text, or no SQL at all. */
export class StatementFailed extends AppError {
  readonly code = "statement_failed";
}

/** The rows are more text than an answer may be. */
export class ResultTooLarge extends AppError {
  readonly code = "result_too_large";
  override readonly hint = "Select fewer columns or rows, or use `flagkeep export`.";
  constructor(bytesMax: number) {
    super(`The result is larger than ${bytesMax / 1024 / 1024} MiB.`);
  }
}

/** What DuckDB says, without its drawing of where in the statement the fault is. */
export function statementFailure(error: unknown): StatementFailed {
  const message = error instanceof Error ? error.message : String(error);
  return new StatementFailed(
    message
      .split("\n\n")[0]!
      .trim()
      .replace(/\s*\n\s*/g, " "),
    { cause: error },
  );
}
