/** What no program may decide. */

import { AppError } from "../../lib/errors.ts";

/** Nothing can be done without a person; what came in meanwhile waits in the journal. */
export abstract class OperatorNeeded extends AppError {
  abstract override readonly hint: string;
}
