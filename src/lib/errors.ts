/**
 * The base of every error that Flagkeep throws on purpose.
 *
 * Subjects throw their own small subclasses. Only `src/http/errors.ts` knows HTTP status codes and only
 * `cli/output.ts` knows exit codes.
 */
export abstract class AppError extends Error {
  /** Stable, for programs. */
  abstract readonly code: string;
  /** What an operator can do about it, in one sentence that names the command where there is one. */
  readonly hint?: string;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}
