/**
 * Personal API keys (contract: management-api 7.1).
 *
 * A signed-in user, or an unrestricted key, manages the keys of its user; any other key sees only itself. The operator
 * of the data directory manages the keys of all users.
 */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import {
  exampleKey as example,
  exampleKeyWithValue,
  KeyBody,
  KeyWithValueBody,
  keyBody,
  keyWithValueBody,
} from "../accounts/api/key-schemas.ts";
import type { Metadata } from "../accounts/metadata.ts";
import {
  createKey,
  isWidening,
  listKeys,
  type PersonalKey,
  revokeKey,
  rollKey,
  updateKey,
} from "../accounts/personal-keys.ts";
import { listUsers } from "../accounts/users.ts";
import { notFound } from "../http/http-error.ts";
import {
  ApiFailure,
  dateTime,
  int,
  list,
  nullable,
  object,
  optional,
  string,
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { type Context as AnyContext, getAuthor, operation } from "./operation.ts";

type Context = AnyContext<{ metadata: Metadata }>;

const tag = "Personal keys";
const path = "/api/personal_api_keys";
const noKey = "The session was created without a personal key.";
const noKeyExample = { type: "invalid_request", code: "not_found", detail: noKey, attr: null };

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
const KeyChange = Type.Partial(KeyInput);
const byId = object({ id: uuid() });

/** The keys that the actor manages, newest first. */
function managedKeys({ stores, actor }: Context): PersonalKey[] {
  return listKeys(stores.metadata.db, actor.kind === "user" ? { userId: actor.user.id } : {});
}

/** @throws {HttpError} 404. */
function managedKey(context: Context, id: string): PersonalKey {
  const found = managedKeys(context).find((key) => key.id === id);
  if (!found) throw notFound();
  return found;
}

export const listPersonalKeys = operation({
  id: "personal_keys.list",
  on: "user",
  tag,
  summary: "List the personal API keys of the current user",
  description: "Newest first, not paginated. Requires a key with the scope `*` and no restriction.",
  http: { method: "GET", path, answer: "Your keys.", needsFullAccess: true },
  input: object({}),
  output: list(KeyBody),
  example: [example],
  run: (context: Context) => managedKeys(context).map(keyBody),
});

export const createPersonalKey = operation({
  id: "personal_keys.create",
  on: "user",
  tag,
  summary: "Create a personal API key",
  description: "Only this response contains the clear value. At most 10 keys per user.",
  http: {
    method: "POST",
    path,
    status: 201,
    answer: "The new key.",
    makesCredential: true,
    needsFullAccess: true,
  },
  input: object({ ...KeyInput.properties, expires_at: optional(nullable(dateTime())) }),
  inputExample: { label: "Deployment", scopes: ["feature_flag:write"], scoped_teams: [1] },
  output: KeyWithValueBody,
  example: exampleKeyWithValue,
  run: (context: Context, input) => {
    const { stores, actor, now } = context;
    const { label, scopes, scoped_teams: projectIds, scoped_organizations: organizationIds } = input;
    const created = createKey(
      stores.metadata,
      {
        userEmail: getOwner(context),
        label,
        scopes,
        projectIds,
        organizationIds,
        expiresAt: input.expires_at ? new Date(input.expires_at) : null,
      },
      { by: getAuthor(actor), limitPerUser: actor.kind === "user", now },
    );
    return keyWithValueBody(created);
  },
});

/** E-mail address of the owner of a new key. @throws {InvalidFieldError} the operator named none of several users. */
function getOwner({ stores, actor }: Context): string {
  if (actor.kind === "user") return actor.user.email;
  if (actor.userEmail !== undefined) return actor.userEmail;
  const users = listUsers(stores.metadata.db);
  if (users.length === 1) return users[0]!.email;
  throw new InvalidFieldError("user", "required", "Several users exist. Name one.");
}

const getCurrentKey = operation({
  id: "personal_keys.current",
  on: "user",
  tag,
  summary: "Get the personal API key in use",
  description: "Works with every key; 404 in a session without a key.",
  http: {
    method: "GET",
    path: `${path}/@current`,
    answer: "The key.",
    allowsScopedKeys: true,
    errors: {
      404: { description: "The request uses no personal key.", schema: ApiFailure, example: noKeyExample },
    },
  },
  input: object({}),
  output: KeyBody,
  example,
  run: ({ actor }: Context) => {
    if (actor.kind !== "user" || actor.key === undefined) throw notFound(noKey);
    return keyBody(actor.key);
  },
});

const getPersonalKey = operation({
  id: "personal_keys.get",
  on: "user",
  tag,
  summary: "Get a personal API key",
  http: { method: "GET", path: `${path}/:id`, answer: "The key.", needsFullAccess: true },
  input: byId,
  output: KeyBody,
  example,
  run: (context: Context, { id }) => keyBody(managedKey(context, id)),
});

const updatePersonalKey = operation({
  id: "personal_keys.update",
  on: "user",
  tag,
  summary: "Update a personal API key",
  description:
    "Sessions created with the key end when it loses a permission. Null removes a restriction; an empty list changes nothing if the key has no restriction. In a session, extending the key requires password re-authentication.",
  http: {
    method: "PATCH",
    path: `${path}/:id`,
    answer: "The key.",
    needsFullAccess: true,
    makesCredential: (context: Context, { id, ...input }: Static<typeof KeyChange> & { id: string }) =>
      isWidening(managedKey(context, id), getChange(input)),
  },
  input: object({ id: uuid(), ...KeyChange.properties }),
  inputExample: { label: "Deployment (old)" },
  output: KeyBody,
  example,
  run: (context: Context, { id, ...input }) => {
    const { stores, actor, now } = context;
    const change = getChange(input);
    return keyBody(updateKey(stores.metadata, managedKey(context, id).id, change, now, getAuthor(actor)));
  },
});

function getChange({
  label,
  scopes,
  scoped_teams: projectIds,
  scoped_organizations: organizationIds,
}: Static<typeof KeyChange>) {
  return { label, scopes, projectIds, organizationIds };
}

export const revokePersonalKey = operation({
  id: "personal_keys.delete",
  on: "user",
  tag,
  summary: "Revoke a personal API key",
  description: "The key and the sessions created with it end immediately.",
  http: { method: "DELETE", path: `${path}/:id`, needsFullAccess: true },
  input: byId,
  run: (context: Context, { id }) => {
    const { stores, actor, now } = context;
    revokeKey(stores.metadata, managedKey(context, id).id, now, getAuthor(actor));
  },
});

export const rollPersonalKey = operation({
  id: "personal_keys.roll",
  on: "user",
  tag,
  summary: "Roll a personal API key",
  description: "The old value and the sessions created with it end immediately.",
  http: {
    method: "POST",
    path: `${path}/:id/roll`,
    answer: "The key with its new value.",
    makesCredential: true,
    needsFullAccess: true,
  },
  input: byId,
  output: KeyWithValueBody,
  example: exampleKeyWithValue,
  run: (context: Context, { id }) => {
    const { stores, actor, now } = context;
    return keyWithValueBody(rollKey(stores.metadata, managedKey(context, id).id, now, getAuthor(actor)));
  },
});

/** In the order of the documentation. */
export const personalKeyOperations = [
  listPersonalKeys,
  createPersonalKey,
  getCurrentKey,
  getPersonalKey,
  updatePersonalKey,
  revokePersonalKey,
  rollPersonalKey,
];
