/** Names the item of a document in the messages of import errors. Pure. */

import { AppError } from "../../lib/errors.ts";
import type { NamedItem } from "./references.ts";

/** An item in messages. */
export const getTitle = ({ kind, name }: NamedItem) => `${kind === "flag" ? "Flag" : "Cohort"} "${name}"`;

/** Adds the item to a rule's error message. */
export function naming<Result>(item: NamedItem, write: () => Result): Result {
  try {
    return write();
  } catch (error) {
    if (error instanceof Error) error.message = `${getTitle(item)}: ${error.message}`;
    throw error;
  }
}

/** The message of an error about one item, without the item; undefined for a defect. */
export function reasonOf(error: unknown): string | undefined {
  return error instanceof AppError ? error.message.replace(/^(?:Flag|Cohort) "[^"]*":? /, "") : undefined;
}
