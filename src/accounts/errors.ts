/** What the metadata store refuses. `src/http/errors.ts` gives each kind its status code. */

import { AppError } from "../lib/errors.ts";

/** The store has its first organisation already. */
export class AlreadyInitialised extends AppError {
  readonly code = "already_initialised";
  override readonly hint = "Use the existing keys, `flagkeep keys create`, or another data directory.";
  constructor() {
    super("This data directory belongs to an organisation already.");
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

/** What was asked for does not exist, or not for the one who asks. */
export class NotFound extends AppError {
  readonly code = "not_found";
  constructor(message = "Not found.") {
    super(message);
  }
}

/** The caller is known and may not do this. */
export class NotPermitted extends AppError {
  readonly code = "permission_denied";
  constructor(message = "You do not have permission to perform this action.") {
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
