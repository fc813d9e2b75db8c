/**
 * Base class of every error that Flagkeep throws deliberately.
 *
 * Modules define their own small subclasses. Only `src/http/error-mapping.ts` knows HTTP status codes and only
 * `cli/output.ts` knows exit codes.
 */
export abstract class AppError extends Error {
  /** Stable, machine-readable. */
  abstract readonly code: string;
  /** Advice for an operator in one sentence, naming the command if there is one. */
  readonly hint?: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/**
 * An input value is invalid; nothing was changed.
 *
 * `field` is the name in the API, nested parts joined by `__`, or null when no single field is at fault (contract:
 * management-api 1.3).
 */
export class InvalidFieldError extends AppError {
  constructor(
    readonly field: string | null,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Trims user-entered text. @throws {InvalidFieldError} blank, or longer than the limit in UTF-16 units. */
export function trimmedString(field: string, text: string, lengthMax: number): string {
  const trimmed = text.trim();
  if (trimmed === "") throw new InvalidFieldError(field, "blank", "This field may not be blank.");
  if (trimmed.length <= lengthMax) return trimmed;
  throw new InvalidFieldError(
    field,
    "max_length",
    `Ensure this field has no more than ${lengthMax} characters.`,
  );
}

/** The requested resource does not exist, or is not visible to the caller. */
export class NotFoundError extends AppError {
  readonly code = "not_found";
  constructor(
    message = "Not found.",
    /** Names the resource in messages that do not, such as `change request 3`. Programs know what they requested. */
    readonly what?: string,
  ) {
    super(message);
  }
}

/** The caller is authenticated, but has no permission for this. */
export class PermissionDeniedError extends AppError {
  constructor(
    message = "You do not have permission to perform this action.",
    readonly code = "permission_denied",
  ) {
    super(message);
  }
}

/** Too many attempts by one caller, or by all callers at the same time. */
export class TooManyAttemptsError extends AppError {
  readonly code = "throttled";
  constructor(
    /** Whole seconds until a retry makes sense. */
    readonly waitSeconds: number,
    message = `Request was throttled. Expected available in ${waitSeconds} second${waitSeconds === 1 ? "" : "s"}.`,
  ) {
    super(message);
  }
}

/** Another user changed the same fields since the caller read them (contract: management-api 3.6). */
export class EditConflictError extends AppError {
  readonly code = "conflict";
  constructor(editor: string | undefined, what = "feature flag") {
    super(
      `The ${what} was updated by ${editor ?? "another user"} since you started editing it. ` +
        "Please refresh and try again.",
    );
  }
}

/** Requires action by an operator; entries that arrive meanwhile wait in the journal. */
export abstract class OperatorActionError extends AppError {
  abstract override readonly hint: string;
}

/** Any thrown value as one log line: errors of libraries may have several paragraphs. */
export function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0]!;
}

/** Whether SQLite could not read its file because its content is corrupt. */
export function isCorruptSqlite(error: unknown): boolean {
  const codes = [error, (error as { cause?: unknown } | null)?.cause].map((item) =>
    typeof item === "object" && item !== null && "code" in item ? String(item.code) : "",
  );
  return codes.some((code) => code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB");
}
