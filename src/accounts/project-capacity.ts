import { count, eq } from "drizzle-orm";
import { InvalidFieldError } from "../lib/errors.ts";
import type { MetadataTx } from "./db.ts";
import type {
  earlyAccessFeature,
  experiment,
  experimentHoldout,
  experimentSavedMetric,
  survey,
} from "./schema.ts";

type Table =
  | typeof earlyAccessFeature
  | typeof experiment
  | typeof experimentHoldout
  | typeof experimentSavedMetric
  | typeof survey;

/** Before an insert. @throws {InvalidFieldError} the project has as many of these objects as it may have */
export function assertProjectCapacity(
  t: MetadataTx,
  table: Table,
  { projectId, max, what }: { projectId: number; max: number; what: string },
): void {
  const { rows } = t.select({ rows: count() }).from(table).where(eq(table.projectId, projectId)).get()!;
  if (rows < max) return;
  const shown = max.toLocaleString("en-US");
  throw new InvalidFieldError(null, "invalid_input", `A project has at most ${shown} ${what}.`);
}
