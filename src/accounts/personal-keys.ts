/** Personal keys: shown once in clear, stored as a hash (contract: management-api 2.1, 7.1). */

import { and, desc, eq, isNull } from "drizzle-orm";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { type Author, changesBetween, recordActivity } from "./activity.ts";
import { bumpRevision, type MetadataDb, type MetadataTx, type Reading } from "./db.ts";
import { hashOfKey, maskOfKey, newPersonalKey } from "./key-formats.ts";
import { checkScopes, isWithin, type KeyRestrictions } from "./limits.ts";
import { getOrganizations } from "./organizations.ts";
import { organization, personalKey, project, session, setupLink, user } from "./schema.ts";
import { countKeys, findUserByEmail, getLevel, type User } from "./users.ts";

export interface PersonalKey {
  id: string;
  userId: number;
  label: string;
  mask: string;
  /** `<object>:<read|write>` or `*`. */
  scopes: string[];
  /** Projects the key is limited to; empty: no limit. */
  projectIds: number[];
  /** Organizations the key is limited to; empty: no limit. */
  organizationIds: string[];
  createdAt: Date;
  /** Precision: one hour. */
  lastUsedAt: Date | null;
  lastRolledAt: Date | null;
  expiresAt: Date | null;
  revokedAt: Date | null;
}

export interface NewKey {
  label: string;
  /** At least one. */
  scopes: readonly string[];
  /** Absent or null: no restriction; a list names at least one. */
  projectIds?: readonly number[] | null;
  /** Absent or null: no restriction; a list names at least one. */
  organizationIds?: readonly string[] | null;
  expiresAt?: Date | null;
}

/** A key with its clear value, which is available only at creation. */
export interface CreatedKey {
  key: PersonalKey;
  value: string;
}

const labelLengthMax = 40;
const keysPerUserMax = 10;

/**
 * Creates a key for a user.
 *
 * @param options.limitPerUser rejects the eleventh valid key, as the API does; the command line does not.
 * @throws {InvalidFieldError} unknown user, scope, project or organization; label empty or over 40 characters; expiry
 *   in the past; too many keys.
 */
export function createKey(
  metadata: MetadataDb,
  input: NewKey & { userEmail: string },
  options: { limitPerUser?: boolean; by?: Author; now?: Date } = {},
): CreatedKey {
  return metadata.change((t) => {
    const owner = findUserByEmail(t, input.userEmail);
    if (!owner) {
      throw new InvalidFieldError("user", "does_not_exist", `User ${input.userEmail} does not exist.`);
    }
    if (!owner.isActive) {
      throw new InvalidFieldError("user", "inactive", `${owner.email} is deactivated and cannot have keys.`);
    }
    return insertKey(t, owner, input, options);
  });
}

/** As `createKey`, inside a transaction. */
export function insertKey(
  t: MetadataTx,
  owner: User,
  input: NewKey,
  options: { limitPerUser?: boolean; by?: Author; now?: Date } = {},
): CreatedKey {
  const now = options.now ?? new Date();
  const label = trimmedString("label", input.label, labelLengthMax);
  if (input.expiresAt && input.expiresAt <= now) {
    throw new InvalidFieldError("expires_at", "invalid_input", "The expiry must be in the future.");
  }
  if (options.limitPerUser && countKeys(t, owner.id) >= keysPerUserMax) {
    throw new InvalidFieldError(
      null,
      "invalid_input",
      "You can only have 10 personal API keys. Remove an existing key before creating a new one.",
    );
  }
  const value = newPersonalKey();
  const key = t
    .insert(personalKey)
    .values({
      id: Bun.randomUUIDv7(),
      userId: owner.id,
      label,
      hash: hashOfKey(value),
      mask: maskOfKey(value),
      scopes: checkScopes(input.scopes),
      projectIds: checkProjects(t, owner, input.projectIds),
      organizationIds: checkOrganizations(t, owner, input.organizationIds),
      createdAt: now,
      expiresAt: input.expiresAt ?? null,
    })
    .returning()
    .get();
  bumpRevision(t, "keys");
  recordKeyActivity(t, key, "created", { by: options.by, now });
  return { key: withoutHash(key), value };
}

/** Unrevoked keys, newest first; of one user if `userId` is given. */
export function listKeys(
  db: Reading,
  options: { userId?: number; includeRevoked?: boolean } = {},
): (PersonalKey & { userEmail: string })[] {
  return db
    .select({ key: personalKey, email: user.email })
    .from(personalKey)
    .innerJoin(user, eq(user.id, personalKey.userId))
    .where(
      and(
        options.includeRevoked ? undefined : isNull(personalKey.revokedAt),
        options.userId === undefined ? undefined : eq(personalKey.userId, options.userId),
      ),
    )
    .orderBy(desc(personalKey.createdAt), desc(personalKey.id))
    .all()
    .map((row) => ({ ...withoutHash(row.key), userEmail: row.email }));
}

/**
 * Revokes a key, and ends the sessions and links created with it.
 *
 * @throws {NotFoundError} no valid key has this id.
 */
export function revokeKey(metadata: MetadataDb, id: string, now = new Date(), by?: Author): PersonalKey {
  return metadata.change((t) => {
    const revoked = t
      .update(personalKey)
      .set({ revokedAt: now })
      .where(and(eq(personalKey.id, id), isNull(personalKey.revokedAt)))
      .returning()
      .get();
    if (!revoked) throw new NotFoundError();
    endDerived(t, id);
    bumpRevision(t, "keys");
    recordKeyActivity(t, revoked, "deleted", { by, now });
    return withoutHash(revoked);
  });
}

/**
 * Replaces the value of a key. The old value stops working immediately; sessions and links created with it end.
 *
 * @throws {NotFoundError} no valid key has this id.
 */
export function rollKey(metadata: MetadataDb, id: string, now = new Date(), by?: Author): CreatedKey {
  const value = newPersonalKey();
  return metadata.change((t) => {
    const rolled = t
      .update(personalKey)
      .set({ hash: hashOfKey(value), mask: maskOfKey(value), lastRolledAt: now })
      .where(and(eq(personalKey.id, id), isNull(personalKey.revokedAt)))
      .returning()
      .get();
    if (!rolled) throw new NotFoundError();
    endDerived(t, id);
    bumpRevision(t, "keys");
    recordKeyActivity(t, rolled, "updated", { by, now }, { ...rolled, mask: "" });
    return { key: withoutHash(rolled), value };
  });
}

/**
 * Changes label, scopes or restrictions of a key. Sessions and links created with it end if it loses a permission.
 *
 * An empty list is ignored if the key is unrestricted: clients send back what they read.
 *
 * @throws {NotFoundError}     no valid key has this id.
 * @throws {InvalidFieldError} a value is invalid, or a list is empty and the key is restricted.
 */
export function updateKey(
  metadata: MetadataDb,
  id: string,
  change: Partial<Omit<NewKey, "expiresAt">>,
  now = new Date(),
  by?: Author,
): PersonalKey {
  return metadata.change((t) => {
    const before = t.select().from(personalKey).where(eq(personalKey.id, id)).get();
    if (!before || before.revokedAt) throw new NotFoundError();
    const owner = t.select().from(user).where(eq(user.id, before.userId)).get()!;
    const label = trimmedString("label", change.label ?? before.label, labelLengthMax);
    const limits = changedLimits(before, change);
    const after = t
      .update(personalKey)
      .set({
        label,
        scopes: change.scopes === undefined ? before.scopes : checkScopes(change.scopes),
        projectIds:
          limits.projectIds === undefined ? before.projectIds : checkProjects(t, owner, limits.projectIds),
        organizationIds:
          limits.organizationIds === undefined
            ? before.organizationIds
            : checkOrganizations(t, owner, limits.organizationIds),
      })
      .where(eq(personalKey.id, id))
      .returning()
      .get();
    if (!isWithin(before, after)) endDerived(t, id);
    bumpRevision(t, "keys");
    recordKeyActivity(t, after, "updated", { by, now }, before);
    return withoutHash(after);
  });
}

/** Whether the change would allow something that the key does not allow now. */
export function isWidening(key: PersonalKey, change: Partial<Omit<NewKey, "expiresAt">>): boolean {
  const { projectIds, organizationIds } = changedLimits(key, change);
  const after: KeyRestrictions = {
    scopes: [...(change.scopes ?? key.scopes)],
    projectIds: projectIds === undefined ? key.projectIds : [...(projectIds ?? [])],
    organizationIds: organizationIds === undefined ? key.organizationIds : [...(organizationIds ?? [])],
  };
  return !isWithin(after, key);
}

/** The restrictions that a change sets; undefined: unchanged. */
function changedLimits(
  key: PersonalKey,
  { projectIds, organizationIds }: Pick<Partial<NewKey>, "projectIds" | "organizationIds">,
): Pick<NewKey, "projectIds" | "organizationIds"> {
  return {
    projectIds: projectIds?.length === 0 && key.projectIds.length === 0 ? undefined : projectIds,
    organizationIds:
      organizationIds?.length === 0 && key.organizationIds.length === 0 ? undefined : organizationIds,
  };
}

/** Ends the sessions and one-time links that were created with a key, inside a transaction. */
function endDerived(t: MetadataTx, keyId: string): void {
  t.delete(session).where(eq(session.keyId, keyId)).run();
  t.delete(setupLink).where(eq(setupLink.createdWithKeyId, keyId)).run();
}

function withoutHash(row: PersonalKey & { hash: string }): PersonalKey {
  const { hash: _, ...key } = row;
  return key;
}

/** @param ids null or absent: no restriction, stored as an empty list. */
function checkProjects(t: MetadataTx, owner: User, ids: NewKey["projectIds"]): number[] {
  if (ids === undefined || ids === null) return [];
  if (ids.length === 0) throw emptyRestriction("scoped_teams", "project");
  for (const id of ids) {
    const found = t.select().from(project).where(eq(project.id, id)).get();
    if (!found || getLevel(t, found.organizationId, owner.id) === 0) {
      throw new InvalidFieldError(
        "scoped_teams",
        "invalid_input",
        "You must be a member of all teams that you are scoping the key to.",
      );
    }
  }
  return [...new Set(ids)];
}

/** @param ids null or absent: no restriction, stored as an empty list. */
function checkOrganizations(t: MetadataTx, owner: User, ids: NewKey["organizationIds"]): string[] {
  if (ids === undefined || ids === null) return [];
  if (ids.length === 0) throw emptyRestriction("scoped_organizations", "organization");
  for (const id of ids) {
    const found = t.select().from(organization).where(eq(organization.id, id)).get();
    if (!found || getLevel(t, id, owner.id) === 0) {
      throw new InvalidFieldError(
        "scoped_organizations",
        "invalid_input",
        "You must be a member of all organizations that you are scoping the key to.",
      );
    }
  }
  return [...new Set(ids)];
}

function emptyRestriction(field: string, kind: string): InvalidFieldError {
  return new InvalidFieldError(
    field,
    "invalid_input",
    `The list is empty. Send at least one ${kind}, or null for no restriction.`,
  );
}

/**
 * @param at.by the author; default: the key's owner. @param before the previous state, for updates. Only masks are
 *   recorded, never values.
 */
function recordKeyActivity(
  t: MetadataTx,
  key: PersonalKey,
  activity: string,
  at: { by?: Author; now: Date },
  before: PersonalKey = key,
): void {
  recordActivity(t, {
    by: at.by === undefined ? key.userId : at.by,
    organizationId: getOrganizations(t, key.userId)[0]?.id,
    activity,
    scope: "PersonalAPIKey",
    itemId: key.id,
    name: key.label,
    changes: changesBetween("PersonalAPIKey", shown(before), shown(key), Object.keys(shown(key))),
    now: at.now,
  });
}

function shown(key: PersonalKey): JsonObject {
  return {
    label: key.label,
    mask_value: key.mask,
    scopes: key.scopes,
    scoped_teams: key.projectIds,
    scoped_organizations: key.organizationIds,
  };
}
