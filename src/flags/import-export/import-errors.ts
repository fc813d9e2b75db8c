/** The item of a document that an import failed at, in errors and their messages. Pure. */

import { AppError } from "../../lib/errors.ts";
import type { NamedItem } from "./references.ts";

/** An item in messages. */
export const getTitle = ({ kind, name }: NamedItem) => `${kind === "flag" ? "Flag" : "Cohort"} "${name}"`;

/** The item of each import error. */
const rejected = new WeakMap<object, NamedItem>();

/** The item of the document that an import failed at; undefined without a single one. */
export function refusedItem(error: unknown): NamedItem | undefined {
  return typeof error === "object" && error !== null ? rejected.get(error) : undefined;
}

/** Records the item of an error. */
export function noting<Result>(item: NamedItem, write: () => Result): Result {
  try {
    return write();
  } catch (error) {
    if (error instanceof Error) rejected.set(error, item);
    throw error;
  }
}

/** Adds the item to a rule's error message. */
export function naming<Result>(item: NamedItem, write: () => Result): Result {
  return noting(item, () => {
    try {
      return write();
    } catch (error) {
      if (error instanceof Error) error.message = `${getTitle(item)}: ${error.message}`;
      throw error;
    }
  });
}

/** The message of an error about one item, without the item; undefined for a defect. */
export function reasonOf(error: unknown): string | undefined {
  return error instanceof AppError ? error.message.replace(/^(?:Flag|Cohort) "[^"]*":? /, "") : undefined;
}
