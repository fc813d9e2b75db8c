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

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * One input value is not acceptable; nothing was changed.
 *
 * `field` is the name in the API, nested parts joined by `__`, or null when the fault lies in no single
 * field (contract: management-api 1.3).
 */
export class InvalidField extends AppError {
  constructor(
    readonly field: string | null,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Text that somebody chose, without space around it. @throws {InvalidField} blank, or longer than so many UTF-16 units. */
export function trimmedText(field: string, text: string, lengthMax: number): string {
  const trimmed = text.trim();
  if (trimmed === "") throw new InvalidField(field, "blank", "This field may not be blank.");
  if (trimmed.length <= lengthMax) return trimmed;
  throw new InvalidField(field, "max_length", `Ensure this field has no more than ${lengthMax} characters.`);
}

/** What was asked for does not exist, or not for the one who asks. */
export class NotFound extends AppError {
  readonly code = "not_found";
  constructor(
    message = "Not found.",
    /** Of a message that does not say it, such as `proposal 3`: for people. Programs know what they asked for. */
    readonly what?: string,
  ) {
    super(message);
  }
}

/** The caller is known and may not do this. */
export class NotPermitted extends AppError {
  constructor(
    message = "You do not have permission to perform this action.",
    readonly code = "permission_denied",
  ) {
    super(message);
  }
}

/** The caller has tried too often, or too many try at once. */
export class TooManyAttempts extends AppError {
  readonly code = "throttled";
  constructor(
    /** Whole seconds until it is worth another try. */
    readonly waitSeconds: number,
    message = `Request was throttled. Expected available in ${waitSeconds} second${waitSeconds === 1 ? "" : "s"}.`,
  ) {
    super(message);
  }
}

/** Somebody else changed the same fields since the caller last read them (contract: management-api 3.6). */
export class EditConflict extends AppError {
  readonly code = "conflict";
  constructor(editor: string | undefined) {
    super(
      `The feature flag was updated by ${editor ?? "another user"} since you started editing it. ` +
        "Please refresh and try again.",
    );
  }
}

/** Nothing can be done without a person; what came in meanwhile waits in the journal. */
export abstract class OperatorNeeded extends AppError {
  abstract override readonly hint: string;
}

/** What was thrown, whatever it is, for one line of a log: libraries add whole paragraphs. */
export function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0]!;
}

/** Whether SQLite could not read its file because its content is corrupt. */
export function isCorruptSqlite(error: unknown): boolean {
  const codes = [error, (error as { cause?: unknown } | null)?.cause].map((one) =>
    typeof one === "object" && one !== null && "code" in one ? String(one.code) : "",
  );
  return codes.some((code) => code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB");
}
