/** State of an HTTP worker, as in `status`. */

import { type Static, Type } from "@sinclair/typebox";
import { NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";

export const WorkerState = strictObject({
  /** Null while no process runs. */
  pid: nullable(NonNegativeInt),
  /** Whether it accepts requests. */
  up: Type.Boolean(),
  restarts: NonNegativeInt,
});
export type WorkerState = Static<typeof WorkerState>;
