/** A flag in `--json`: as in the API, without what depends on who asks. */

import { type Static, Type } from "@sinclair/typebox";
import { storedFlag } from "../src/flags/exchange/project-content.ts";
import { statusFieldOf } from "../src/flags/status.ts";
import type { Flag } from "../src/flags/store/flag.ts";
import { Count, exactly, Instant, orNull } from "../src/lib/schema.ts";

const AnyObject = Type.Record(Type.String(), Type.Unknown());

export const FlagRecord = exactly({
  id: Type.Integer(),
  key: Type.String(),
  name: Type.String(),
  filters: AnyObject,
  active: Type.Boolean(),
  ensure_experience_continuity: Type.Boolean(),
  is_remote_configuration: Type.Boolean(),
  has_encrypted_payloads: Type.Boolean(),
  evaluation_runtime: Type.String(),
  bucketing_identifier: orNull(Type.String()),
  tags: Type.Array(Type.String()),
  evaluation_tags: Type.Array(Type.String()),
  experiment_set: Type.Array(Type.Integer()),
  surveys: Type.Unknown(),
  features: Type.Unknown(),
  rollback_conditions: Type.Unknown(),
  creation_context: Type.String(),
  version: Count,
  /** `ACTIVE`, or `STALE` for a flag that could be removed from the code. */
  status: Type.String(),
  created_at: Instant,
  updated_at: Instant,
  last_called_at: orNull(Instant),
});

type OwnMembers = "id" | "key" | "version" | "status" | "created_at" | "updated_at" | "last_called_at";
type StoredMembers = Omit<Static<typeof FlagRecord>, OwnMembers>;

export function flagRecord(flag: Flag): Static<typeof FlagRecord> {
  return {
    id: flag.id,
    key: flag.key,
    ...(storedFlag(flag).fields as StoredMembers),
    version: flag.version,
    status: statusFieldOf(flag, new Date()),
    created_at: flag.createdAt.toISOString(),
    updated_at: flag.updatedAt.toISOString(),
    last_called_at: flag.lastCalledAt?.toISOString() ?? null,
  };
}
