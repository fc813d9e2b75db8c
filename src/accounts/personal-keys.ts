/** Personal keys: made once in clear, kept as a hash (contract: management-api 2.1, 7.1). */

import { and, desc, eq, isNull } from "drizzle-orm";
import { InvalidField, NotFound, trimmedText } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { type Author, changesBetween, recordActivity } from "./activity.ts";
import { bumpRevision, type MetadataDb, type MetadataTx, type Reading } from "./db.ts";
import { hashOfKey, maskOfKey, newPersonalKey } from "./key-formats.ts";
import { isWithin, type Limits } from "./limits.ts";
import { organizationsOf } from "./organizations.ts";
import { organization, personalKey, project, session, setupLink, user } from "./schema.ts";
import { checkScopes } from "./scopes.ts";
import { countKeys, findUserByEmail, levelOf, type User } from "./users.ts";

export interface PersonalKey {
  id: string;
  userId: number;
  label: string;
  mask: string;
  /** `<object>:<read|write>` or `*`. */
  scopes: string[];
  /** Projects the key is limited to; empty: no limit. */
  projectIds: number[];
  /** Organisations the key is limited to; empty: no limit. */
  organizationIds: string[];
  createdAt: Date;
  /** Exact to an hour. */
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

/** A key and, this one time, its clear value. */
export interface CreatedKey {
  key: PersonalKey;
  value: string;
}

const labelLengthMax = 40;
const keysPerUserMax = 10;

/**
 * Makes a key for a user.
 *
 * @param options.limitPerUser refuse the eleventh working key, as the API does; the command line does not.
 * @throws {InvalidField} unknown user, scope, project or organisation; label empty or over 40 characters;
 *                        expiry in the past; too many keys.
 */
export function createKey(
  metadata: MetadataDb,
  input: NewKey & { userEmail: string },
  options: { limitPerUser?: boolean; by?: Author; now?: Date } = {},
): CreatedKey {
  return metadata.change((t) => {
    const owner = findUserByEmail(t, input.userEmail);
    if (!owner) {
      throw new InvalidField(
        "user",
        "does_not_exist",
        `There is no user with the address ${input.userEmail}.`,
      );
    }
    if (!owner.isActive) {
      throw new InvalidField("user", "inactive", `${owner.email} is switched off, and so would the key be.`);
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
  const label = trimmedText("label", input.label, labelLengthMax);
  if (input.expiresAt && input.expiresAt <= now) {
    throw new InvalidField("expires_at", "invalid_input", "The expiry must lie in the future.");
  }
  if (options.limitPerUser && countKeys(t, owner.id) >= keysPerUserMax) {
    throw new InvalidField(
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

/** The keys that were not revoked, newest first; of one user when `userId` is given. */
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
 * Revokes a key, and ends what was created with it.
 *
 * @throws {NotFound} no working key has this id.
 */
export function revokeKey(metadata: MetadataDb, id: string, now = new Date(), by?: Author): PersonalKey {
  return metadata.change((t) => {
    const revoked = t
      .update(personalKey)
      .set({ revokedAt: now })
      .where(and(eq(personalKey.id, id), isNull(personalKey.revokedAt)))
      .returning()
      .get();
    if (!revoked) throw new NotFound();
    endDerived(t, id);
    bumpRevision(t, "keys");
    recordKeyActivity(t, revoked, "deleted", { by, now });
    return withoutHash(revoked);
  });
}

/**
 * Replaces the value of a key; the old value stops working at once, and what was created with it ends.
 *
 * @throws {NotFound} no working key has this id.
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
    if (!rolled) throw new NotFound();
    endDerived(t, id);
    bumpRevision(t, "keys");
    recordKeyActivity(t, rolled, "updated", { by, now }, { ...rolled, mask: "" });
    return { key: withoutHash(rolled), value };
  });
}

/**
 * Changes label, scopes or restrictions of a key. What was created with the key ends if the key loses a permission.
 *
 * An empty list changes nothing where the key has no restriction: clients send back what they read.
 *
 * @throws {NotFound}     no working key has this id.
 * @throws {InvalidField} a value is invalid, or an empty list stands where the key is restricted.
 */
export function updateKey(
  metadata: MetadataDb,
  id: string,
  change: Partial<Omit<NewKey, "expiresAt">>,
  now = new Date(),
): PersonalKey {
  return metadata.change((t) => {
    const before = t.select().from(personalKey).where(eq(personalKey.id, id)).get();
    if (!before || before.revokedAt) throw new NotFound();
    const owner = t.select().from(user).where(eq(user.id, before.userId)).get()!;
    const label = trimmedText("label", change.label ?? before.label, labelLengthMax);
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
    recordKeyActivity(t, after, "updated", { now }, before);
    return withoutHash(after);
  });
}

/** Whether the change would allow something that the key does not allow now. */
export function isWidening(key: PersonalKey, change: Partial<Omit<NewKey, "expiresAt">>): boolean {
  const { projectIds, organizationIds } = changedLimits(key, change);
  const after: Limits = {
    scopes: [...(change.scopes ?? key.scopes)],
    projectIds: projectIds === undefined ? key.projectIds : [...(projectIds ?? [])],
    organizationIds: organizationIds === undefined ? key.organizationIds : [...(organizationIds ?? [])],
  };
  return !isWithin(after, key);
}

/** The restrictions that a change sets; undefined: as they are. */
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

/** @param ids null or absent: no restriction, which is stored as an empty list. */
function checkProjects(t: MetadataTx, owner: User, ids: NewKey["projectIds"]): number[] {
  if (ids === undefined || ids === null) return [];
  if (ids.length === 0) throw emptyRestriction("scoped_teams", "project");
  for (const id of ids) {
    const found = t.select().from(project).where(eq(project.id, id)).get();
    if (!found || levelOf(t, found.organizationId, owner.id) === 0) {
      throw new InvalidField(
        "scoped_teams",
        "invalid_input",
        "You must be a member of all teams that you are scoping the key to.",
      );
    }
  }
  return [...new Set(ids)];
}

/** @param ids null or absent: no restriction, which is stored as an empty list. */
function checkOrganizations(t: MetadataTx, owner: User, ids: NewKey["organizationIds"]): string[] {
  if (ids === undefined || ids === null) return [];
  if (ids.length === 0) throw emptyRestriction("scoped_organizations", "organization");
  for (const id of ids) {
    const found = t.select().from(organization).where(eq(organization.id, id)).get();
    if (!found || levelOf(t, id, owner.id) === 0) {
      throw new InvalidField(
        "scoped_organizations",
        "invalid_input",
        "You must be a member of all organizations that you are scoping the key to.",
      );
    }
  }
  return [...new Set(ids)];
}

function emptyRestriction(field: string, kind: string): InvalidField {
  return new InvalidField(
    field,
    "invalid_input",
    `The list is empty. Name at least one ${kind}, or send null for no restriction.`,
  );
}

/** @param at.by who acts; its owner when absent. @param before the key so far, when it was changed. Values are never shown, masks are. */
function recordKeyActivity(
  t: MetadataTx,
  key: PersonalKey,
  activity: string,
  at: { by?: Author; now: Date },
  before: PersonalKey = key,
): void {
  recordActivity(t, {
    by: at.by === undefined ? key.userId : at.by,
    organizationId: organizationsOf(t, key.userId)[0]?.id,
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
