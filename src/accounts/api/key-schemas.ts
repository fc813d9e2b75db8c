/** Personal keys in responses. */

import type { Static } from "@sinclair/typebox";
import { dateTime, int, list, named, nothing, nullable, object, string, uuid } from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import type { CreatedKey, PersonalKey } from "../personal-keys.ts";

const KeyFields = {
  id: string(),
  label: string(),
  mask_value: string(),
  created_at: dateTime(),
  last_used_at: nullable(dateTime(), { description: "Precision: one hour." }),
  last_rolled_at: nullable(dateTime()),
  expires_at: nullable(dateTime()),
  user_id: int(),
  scopes: list(string({ max: 100 })),
  scoped_teams: list(int(), { description: "Projects the key is restricted to; empty: no restriction." }),
  scoped_organizations: list(uuid(), {
    description: "Organizations it is restricted to; empty: no restriction.",
  }),
};
export const KeyBody = named(
  "PersonalAPIKey",
  object({
    ...KeyFields,
    value: nothing({ description: "Clear value, only in the response that creates it." }),
  }),
);
export const KeyWithValueBody = named(
  "PersonalAPIKeyWithValue",
  object({ ...KeyFields, value: string({ description: "Clear value, shown only once." }) }),
);

export const exampleKey = {
  id: "0193d1a2-7b1c-7c3e-9f60-8b9c0d1e2f3a",
  label: "Deployment",
  value: null,
  mask_value: "phx_...Qx7T",
  created_at: "2026-03-02T08:15:30.120000Z",
  last_used_at: null,
  last_rolled_at: null,
  expires_at: null,
  user_id: 1,
  scopes: ["feature_flag:write"],
  scoped_teams: [1],
  scoped_organizations: [],
};

export const exampleKeyWithValue = {
  ...exampleKey,
  value: "phx_3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzBvCxMn",
};

/** A key in responses, without its value. */
export function keyBody(key: PersonalKey): Static<typeof KeyBody> {
  return {
    id: key.id,
    label: key.label,
    value: null,
    mask_value: key.mask,
    created_at: toApiTime(key.createdAt),
    last_used_at: toApiTimeOrNull(key.lastUsedAt),
    last_rolled_at: toApiTimeOrNull(key.lastRolledAt),
    expires_at: toApiTimeOrNull(key.expiresAt),
    user_id: key.userId,
    scopes: key.scopes,
    scoped_teams: key.projectIds,
    scoped_organizations: key.organizationIds,
  };
}

/** A new or rolled key in responses. */
export function keyWithValueBody({ key, value }: CreatedKey): Static<typeof KeyWithValueBody> {
  return { ...keyBody(key), value };
}
