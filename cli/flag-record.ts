/** A flag in `--json`: as in the API, without what depends on who asks. */

import { type Static, Type } from "@sinclair/typebox";
import { storedFlag } from "../src/flags/exchange/project-content.ts";
import { exportedFields, type Flag } from "../src/flags/fields.ts";
import { statusFieldOf } from "../src/flags/rules/status.ts";
import { Count, exactly, Instant, orNull } from "../src/lib/schema.ts";

export const FlagRecord = exactly({
  id: Type.Integer(),
  key: Type.String(),
  ...Object.fromEntries(exportedFields.map(({ name, answer }) => [name, answer])),
  version: Count,
  /** `ACTIVE`, or `STALE` for a flag that could be removed from the code. */
  status: Type.String(),
  created_at: Instant,
  updated_at: Instant,
  last_called_at: orNull(Instant),
});

export function flagRecord(flag: Flag): Static<typeof FlagRecord> {
  const { fields } = storedFlag(flag);
  return {
    ...Object.fromEntries(exportedFields.map(({ name }) => [name, fields[name]])),
    id: flag.id,
    key: flag.key,
    version: flag.version,
    status: statusFieldOf(flag, new Date()),
    created_at: flag.createdAt.toISOString(),
    updated_at: flag.updatedAt.toISOString(),
    last_called_at: flag.lastCalledAt?.toISOString() ?? null,
  };
}
