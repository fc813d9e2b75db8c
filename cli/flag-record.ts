/** A flag in `--json`: as in the API, without what depends on who asks. */

import { type Static, Type } from "@sinclair/typebox";
import { LocalIssues } from "../src/flags/definitions/local-issues.ts";
import { storedFlag } from "../src/flags/exchange/project-content.ts";
import { exportedFields, type Flag } from "../src/flags/fields.ts";
import { statusFieldOf } from "../src/flags/rules/status.ts";
import { localFacts } from "../src/flags/store/flag-dependencies.ts";
import { Count, exactly, Instant, orNull } from "../src/lib/schema.ts";
import type { ProjectStores } from "./stores.ts";

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
  /** Why SDKs that evaluate flags themselves ask the server for this one; empty: they evaluate it. */
  local_evaluation_issues: Type.Array(Type.String()),
});

/** Writes the flags of a project. */
export function flagRecords({ metadata, project, writing }: ProjectStores): (flag: Flag) => FlagRecord {
  const issues = new LocalIssues(localFacts(metadata.db, project.id, writing.groupTypes));
  return (flag) => flagRecord(flag, issues);
}

type FlagRecord = Static<typeof FlagRecord>;

function flagRecord(flag: Flag, issues: LocalIssues): FlagRecord {
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
    local_evaluation_issues: issues.of(flag),
  };
}
