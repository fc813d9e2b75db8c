/** Links that show one dashboard or insight, or Overview, read-only, to everyone who has them. */

import { and, desc, eq, isNotNull, type SQL } from "drizzle-orm";
import { type Author, getCreatorId, recordActivity } from "../accounts/activity.ts";
import type { MetadataTx, Reading } from "../accounts/db.ts";
import { newShareToken } from "../accounts/key-formats.ts";
import type { Metadata } from "../accounts/metadata.ts";
import type { Project } from "../accounts/project-directory.ts";
import { shareLink } from "../accounts/schema.ts";
import { hashOfSecret } from "../accounts/sessions/sessions.ts";
import { findUser, getLevel } from "../accounts/users.ts";
import { InvalidFieldError, NotFoundError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { type Dashboard, findDashboard, findInsight, type Insight } from "./store.ts";

/** Links per project. */
const shareLinksMax = 200;

type Row = typeof shareLink.$inferSelect;
export type ShareLink = Omit<Row, "hash" | "passwordHash"> & { hasPassword: boolean };

/** What a link shows. */
export type SharedItem =
  | { dashboardId: number }
  | { insightId: number }
  /** Members that all queries of Overview have: `dateRange`, `compareFilter`, `properties`, `conversionGoal`. */
  | { overview: JsonObject };

const shown = ({ hash: _, passwordHash, ...link }: Row): ShareLink => ({
  ...link,
  hasPassword: passwordHash !== null,
});

/** Newest first; of one dashboard, insight, or Overview if it is given. */
export function listShareLinks(
  db: Reading,
  projectId: number,
  subject?: { dashboardId: number } | { insightId: number } | "overview",
): ShareLink[] {
  const chosen: SQL[] = [eq(shareLink.projectId, projectId)];
  if (subject === "overview") chosen.push(isNotNull(shareLink.overview));
  else if (subject !== undefined)
    chosen.push(
      "dashboardId" in subject
        ? eq(shareLink.dashboardId, subject.dashboardId)
        : eq(shareLink.insightId, subject.insightId),
    );
  return db
    .select()
    .from(shareLink)
    .where(and(...chosen))
    .orderBy(desc(shareLink.id))
    .all()
    .map(shown);
}

/** The dashboards of a project that have an unexpired link. */
export function sharedDashboards(db: Reading, projectId: number, now: Date): Set<number> {
  const rows = db
    .select({ id: shareLink.dashboardId, expiresAt: shareLink.expiresAt })
    .from(shareLink)
    .where(and(eq(shareLink.projectId, projectId), isNotNull(shareLink.dashboardId)))
    .all();
  return new Set(rows.filter(({ expiresAt }) => expiresAt === null || expiresAt > now).map(({ id }) => id!));
}

export interface NewShareLink {
  projectId: number;
  item: SharedItem;
  name: string;
  passwordHash: string | null;
  expiresAt: Date | null;
  by: Author;
  now: Date;
}

/** @returns the link and its token, which is shown only now. @throws {InvalidFieldError} */
export function createShareLink(metadata: Metadata, input: NewShareLink): { link: ShareLink; token: string } {
  const token = newShareToken();
  const { projectId, item, by, now } = input;
  return metadata.change((t) => {
    if (input.expiresAt !== null && input.expiresAt <= now)
      throw new InvalidFieldError("expires_at", "invalid_input", "The time must be in the future.");
    if (listShareLinks(t, projectId).length >= shareLinksMax)
      throw new InvalidFieldError(
        null,
        "limit_reached",
        `A project can have at most ${shareLinksMax} share links. Revoke one that is not needed.`,
      );
    if (getItem(t, projectId, item) === undefined) {
      const [field, id] =
        "insightId" in item
          ? ["insight_id", item.insightId]
          : ["dashboard_id", "dashboardId" in item ? item.dashboardId : ""];
      throw new InvalidFieldError(
        field as string,
        "does_not_exist",
        `Invalid pk "${id}" - object does not exist.`,
      );
    }
    const row = t
      .insert(shareLink)
      .values({
        projectId,
        ...item,
        name: input.name,
        hash: hashOfSecret(token),
        passwordHash: input.passwordHash,
        expiresAt: input.expiresAt,
        createdById: getCreatorId(by),
        createdAt: now,
      })
      .returning()
      .get();
    record(t, row, "created", by, now);
    return { link: shown(row), token };
  });
}

/** Ends a link immediately. @throws {NotFoundError} */
export function revokeShareLink(
  metadata: Metadata,
  { projectId, id, by, now }: { projectId: number; id: number; by: Author; now: Date },
): void {
  metadata.change((t) => {
    const revoked = t
      .delete(shareLink)
      .where(and(eq(shareLink.projectId, projectId), eq(shareLink.id, id)))
      .returning()
      .get();
    if (revoked === undefined) throw new NotFoundError(undefined, `share link ${id}`);
    record(t, revoked, "deleted", by, now);
  });
}

export interface OpenedLink {
  id: number;
  name: string;
  /** Null: none is needed. */
  passwordHash: string | null;
  project: Project;
  item: Shared;
}
export type Shared =
  | { kind: "dashboard"; dashboard: Dashboard }
  | { kind: "insight"; insight: Insight }
  | { kind: "overview"; overview: JsonObject };

/**
 * What a token shows; undefined if the link was revoked or has expired, its creator is no longer an active member, or the
 * project or the item was deleted.
 */
export function openShareLink({ db, projects }: Metadata, token: string, now: Date): OpenedLink | undefined {
  const row = db
    .select()
    .from(shareLink)
    .where(eq(shareLink.hash, hashOfSecret(token)))
    .get();
  if (row === undefined || (row.expiresAt !== null && row.expiresAt <= now)) return undefined;
  const project = projects.find(row.projectId);
  if (project === undefined || project.archivedAt !== null) return undefined;
  if (row.createdById !== null && !isActiveMember(db, project, row.createdById)) return undefined;
  const item = getItem(
    db,
    project.id,
    row.overview !== null
      ? { overview: row.overview }
      : row.dashboardId !== null
        ? { dashboardId: row.dashboardId }
        : { insightId: row.insightId! },
  );
  return item && { id: row.id, name: row.name, passwordHash: row.passwordHash, project, item };
}

function isActiveMember(db: Reading, { organizationId }: Project, userId: number): boolean {
  return findUser(db, userId)?.isActive === true && getLevel(db, organizationId, userId) > 0;
}

function getItem(db: Reading, projectId: number, item: SharedItem): Shared | undefined {
  if ("overview" in item) return { kind: "overview", overview: item.overview };
  if ("dashboardId" in item) {
    const dashboard = findDashboard(db, projectId, item.dashboardId);
    return dashboard && { kind: "dashboard", dashboard };
  }
  const insight = findInsight(db, projectId, String(item.insightId));
  return insight && { kind: "insight", insight };
}

function record(t: MetadataTx, row: Row, activity: string, by: Author, now: Date): void {
  const what =
    row.overview !== null
      ? "Overview"
      : row.dashboardId === null
        ? `insight ${row.insightId}`
        : `dashboard ${row.dashboardId}`;
  recordActivity(t, {
    by,
    projectId: row.projectId,
    activity,
    scope: "ShareLink",
    itemId: row.id,
    name: row.name || what,
    changes: [],
    now,
  });
}
