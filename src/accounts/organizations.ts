/** Organizations: owners of projects, with a default access level to flags. */

import { asc, eq } from "drizzle-orm";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { type Author, changesBetween, recordActivity } from "./activity.ts";
import { bumpRevision, type MetadataDb, type MetadataTx, type Reading } from "./db.ts";
import { membership, organization } from "./schema.ts";

/** Access levels to flags: users with `view` edit only what a role allows (contract: management-api 3.7). */
export const flagsAccessLevels = { view: 21, edit: 37 } as const;
export type FlagsAccess = keyof typeof flagsAccessLevels;
/** Names of the levels on the command line. */
export const flagsAccess = ["view", "edit"] as const satisfies FlagsAccess[];

/** @param level one of `flagsAccessLevels`, as stored levels are. */
export const getFlagsAccess = (level: number): FlagsAccess =>
  level === flagsAccessLevels.view ? "view" : "edit";

const nameLengthMax = 64;

/** @throws {InvalidFieldError} the level is given and is neither 21 nor 37. */
export function checkedFlagsAccess(level: number | undefined): number | undefined {
  if (level === undefined || level === flagsAccessLevels.view || level === flagsAccessLevels.edit)
    return level;
  throw new InvalidFieldError(
    "feature_flags_access_level",
    "invalid_choice",
    `"${level}" is not a valid choice.`,
  );
}

export interface Organization {
  id: string;
  name: string;
  slug: string;
  /** 21: members may only view flags unless a role allows more; 37: they may edit them. */
  featureFlagsAccessLevel: number;
  createdAt: Date;
}

export function findOrganization(db: Reading, id: string): Organization | undefined {
  return db.select().from(organization).where(eq(organization.id, id)).get();
}

/** Oldest first. */
export function listOrganizations(db: Reading): Organization[] {
  return db.select().from(organization).orderBy(asc(organization.createdAt), asc(organization.id)).all();
}

/** A user's organizations with the user's level, oldest first. */
export function getOrganizations(db: Reading, userId: number): (Organization & { level: number })[] {
  return db
    .select()
    .from(organization)
    .innerJoin(membership, eq(membership.organizationId, organization.id))
    .where(eq(membership.userId, userId))
    .orderBy(asc(organization.createdAt), asc(organization.id))
    .all()
    .map((row) => ({ ...row.organization, level: row.membership.level }));
}

/** Inserts an organization, inside a transaction. @throws {InvalidFieldError} empty or overlong name. */
export function insertOrganization(t: MetadataTx, name: string, now: Date): Organization {
  const checked = trimmedString("name", name, nameLengthMax);
  const stem = toSlug(checked);
  let slug = stem;
  for (let n = 2; t.select().from(organization).where(eq(organization.slug, slug)).get(); n++) {
    slug = `${stem}-${n}`;
  }
  return t
    .insert(organization)
    .values({ id: Bun.randomUUIDv7(), name: checked, slug, createdAt: now })
    .returning()
    .get();
}

/**
 * Renames an organization or changes its default access level to flags.
 *
 * @throws {NotFoundError} no such organization.
 * @throws {InvalidFieldError} an invalid name, or a level other than 21 or 37.
 */
export function updateOrganization(
  metadata: MetadataDb,
  id: string,
  change: { name?: string; featureFlagsAccessLevel?: number },
  by: Author,
  now = new Date(),
): Organization {
  const level = checkedFlagsAccess(change.featureFlagsAccessLevel);
  return metadata.change((t) => {
    const before = findOrganization(t, id);
    if (!before) throw new NotFoundError("Organization not found.");
    const name = change.name === undefined ? before.name : trimmedString("name", change.name, nameLengthMax);
    const after = t
      .update(organization)
      .set({ name, featureFlagsAccessLevel: level ?? before.featureFlagsAccessLevel })
      .where(eq(organization.id, id))
      .returning()
      .get();
    bumpRevision(t, "keys");
    const changes = changesBetween("Organization", shown(before), shown(after), Object.keys(shown(after)));
    if (changes.length > 0) {
      recordActivity(t, {
        by,
        organizationId: id,
        activity: "updated",
        scope: "Organization",
        itemId: id,
        name: after.name,
        changes,
        now,
      });
    }
    return after;
  });
}

function shown(organization: Organization): JsonObject {
  return { name: organization.name, feature_flags_access_level: organization.featureFlagsAccessLevel };
}

function toSlug(name: string): string {
  const slug = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return slug || "organization";
}
