/** The argument of commands that names a flag. */

import type { FlagAnswer } from "../flags/fields.ts";
import { AppError } from "../lib/errors.ts";
import { listAllFlags } from "./flags.ts";
import type { CommandArgument } from "./operation.ts";

/** No flag has the key, or the key or id of a deleted one. */
export class FlagNotFoundError extends AppError {
  readonly code = "no_such_flag";
  constructor(
    key: string,
    what = "flag",
    override readonly hint = "`flagkeep flags list` shows all keys.",
  ) {
    super(`${what[0]!.toUpperCase()}${what.slice(1)} ${key} does not exist.`);
  }
}

/** A flag by its key. @param member that gets its id */
export const flagArgument = (member: string): CommandArgument => ({
  name: "key",
  description: "flag key",
  member,
  lookup: {
    in: () => listAllFlags,
    input: (_, key) => ({ key }),
    // The filter ignores letter case.
    matches: (flag: FlagAnswer, key) => flag.key === key,
    value: (flag: FlagAnswer) => flag.id,
    missing: (key) => new FlagNotFoundError(key),
  },
});
