/**
 * Personal keys (contract: management-api 7.1).
 *
 * A signed-in user, or an unrestricted key, manages the keys of its user; any other key sees only itself.
 */

import type { Static, TSchema } from "@sinclair/typebox";
import { notFound } from "../../http/http-error.ts";
import { readUuid } from "../../http/path.ts";
import { type Route, RouteResponse } from "../../http/route.ts";
import {
  ApiFailure,
  dateTime,
  int,
  list,
  named,
  nothing,
  nullable,
  object,
  optional,
  string,
  uuid,
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/api-time.ts";
import type { Metadata } from "../metadata.ts";
import {
  type CreatedKey,
  createKey,
  isWidening,
  listKeys,
  type PersonalKey,
  revokeKey,
  rollKey,
  updateKey,
} from "../personal-keys.ts";
import { type UserCall, userRoute } from "./routes.ts";

const tagName = "Personal keys";

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
const KeyWithValueBody = named(
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

const noKeyExample = {
  type: "invalid_request",
  code: "not_found",
  detail: "The session was created without a personal key.",
  attr: null,
};

/** The projects, or organizations, that a key is restricted to. */
function restriction<Id extends TSchema>(id: Id, kind: string) {
  return optional(
    nullable(list(id), {
      description: `${kind} to restrict the key to, at least one; absent or null: no restriction.`,
    }),
  );
}

const KeyInput = object({
  label: string({ max: 40 }),
  scopes: list(string({ max: 100 }), { minItems: 1, description: "At least one." }),
  scoped_teams: restriction(int(), "Projects"),
  scoped_organizations: restriction(uuid(), "Organizations"),
});

const oneAnswer = { 200: { description: "The key.", schema: KeyBody, example: exampleKey } };
const exampleWithValue = { ...exampleKey, value: "phx_3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzBvCxMn" };

export function personalKeyRoutes(deps: { metadata: Metadata }): Route[] {
  const { metadata } = deps;
  const path = "/api/personal_api_keys";
  return [
    userRoute("GET", path, [], {
      summary: "List the personal API keys of the current user",
      description: "Newest first, not paginated. Requires a key with the scope `*` and no restriction.",
      tag: tagName,
      needsFullAccess: true,
      answers: { 200: { description: "Your keys.", schema: list(KeyBody), example: [exampleKey] } },
      handle: (call) => listKeys(metadata.db, { userId: call.user.id }).map((key) => keyBody(key)),
    }),
    userRoute("POST", path, [], {
      summary: "Create a personal API key",
      description: "Only this response contains the clear value. At most 10 keys per user.",
      tag: tagName,
      makesCredential: true,
      needsFullAccess: true,
      body: object({ ...KeyInput.properties, expires_at: optional(nullable(dateTime())) }),
      bodyExample: { label: "Deployment", scopes: ["feature_flag:write"], scoped_teams: [1] },
      answers: { 201: { description: "The new key.", schema: KeyWithValueBody, example: exampleWithValue } },
      handle: (call) => {
        const { label, scopes, scoped_teams, scoped_organizations, expires_at } = call.body;
        const made = createKey(
          metadata,
          {
            userEmail: call.user.email,
            label,
            scopes,
            projectIds: scoped_teams,
            organizationIds: scoped_organizations,
            expiresAt: expires_at ? new Date(expires_at) : null,
          },
          { limitPerUser: true, now: call.now },
        );
        return new RouteResponse(201, keyWithValueBody(made));
      },
    }),
    userRoute("GET", `${path}/@current`, [], {
      summary: "Get the personal API key in use",
      description: "Works with every key; 404 in a session without a key.",
      tag: tagName,
      allowsScopedKeys: true,
      answers: {
        ...oneAnswer,
        404: { description: "The request uses no personal key.", schema: ApiFailure, example: noKeyExample },
      },
      handle: (call) => {
        if (call.key === undefined) throw notFound("The session was created without a personal key.");
        return keyBody(call.key);
      },
    }),
    userRoute("GET", `${path}/:id`, [], {
      summary: "Get a personal API key",
      tag: tagName,
      needsFullAccess: true,
      answers: oneAnswer,
      handle: (call) => keyBody(ownKey(deps, call)),
    }),
    userRoute("PATCH", `${path}/:id`, [], {
      summary: "Update a personal API key",
      description:
        "Sessions created with the key end when it loses a permission. Null removes a restriction; an empty list changes nothing if the key has no restriction. In a session, extending the key requires password re-authentication.",
      tag: tagName,
      makesCredential: (call) => isWidening(ownKey(deps, call), changeIn(call.body)),
      needsFullAccess: true,
      body: KeyInput,
      isPartial: true,
      bodyExample: { label: "Deployment (old)" },
      answers: oneAnswer,
      handle: (call) => keyBody(updateKey(metadata, ownKey(deps, call).id, changeIn(call.body), call.now)),
    }),
    userRoute("DELETE", `${path}/:id`, [], {
      summary: "Revoke a personal API key",
      description: "The key and the sessions created with it end immediately.",
      tag: tagName,
      needsFullAccess: true,
      answers: { 204: { description: "Gone." } },
      handle: (call) => {
        revokeKey(metadata, ownKey(deps, call).id, call.now);
        return new RouteResponse(204);
      },
    }),
    userRoute("POST", `${path}/:id/roll`, [], {
      summary: "Roll a personal API key",
      makesCredential: true,
      description: "The old value and the sessions created with it end immediately.",
      tag: tagName,
      needsFullAccess: true,
      answers: {
        200: {
          description: "The key with its new value.",
          schema: KeyWithValueBody,
          example: exampleWithValue,
        },
      },
      handle: (call) => keyWithValueBody(rollKey(metadata, ownKey(deps, call).id, call.now)),
    }),
  ];
}

function changeIn({
  label,
  scopes,
  scoped_teams: projectIds,
  scoped_organizations: organizationIds,
}: Partial<Static<typeof KeyInput>>) {
  return { label, scopes, projectIds, organizationIds };
}

function ownKey({ metadata }: { metadata: Metadata }, call: UserCall<unknown>): PersonalKey {
  const found = listKeys(metadata.db, { userId: call.user.id }).find(
    ({ id }) => id === readUuid(call.params, "id"),
  );
  if (!found) throw notFound();
  return found;
}

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

function keyWithValueBody({ key, value }: CreatedKey): Static<typeof KeyWithValueBody> {
  return { ...keyBody(key), value };
}
