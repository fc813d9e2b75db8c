/** Annotations: notes of users on charts, at a time. */

import { and, desc, eq, gte, lt, sql } from "drizzle-orm";
import { type Author, getCreatorId, recordChange } from "../accounts/activity.ts";
import type { MetadataTx, Reading } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { annotation, type annotationScopes } from "../accounts/schema.ts";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import { toApiTime } from "../lib/time.ts";
import { findDashboard, findInsight } from "./store.ts";

export type Annotation = typeof annotation.$inferSelect;
export type AnnotationScope = (typeof annotationScopes)[number];
export type AnnotationFields = Pick<
  Annotation,
  "content" | "dateMarker" | "scope" | "dashboardId" | "insightId" | "deleted"
>;

/** Annotations per project, without deleted ones. */
const annotationsMax = 5_000;
export const contentLengthMax = 400;
const nameLengthMax = 60;

export interface AnnotationFilter {
  search?: string | undefined;
  scope?: AnnotationScope | undefined;
  /** Of this insight or dashboard, and of the whole project. */
  insightId?: number | undefined;
  dashboardId?: number | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
}

/** The latest time first. */
export function listAnnotations(
  db: Reading,
  projectId: number,
  filter: AnnotationFilter,
  { limit, offset }: { limit: number; offset: number },
): { annotations: Annotation[]; count: number } {
  const wanted = filter.search?.trim().toLowerCase() ?? "";
  const all = db
    .select()
    .from(annotation)
    .where(
      and(
        eq(annotation.projectId, projectId),
        eq(annotation.deleted, false),
        filter.scope && eq(annotation.scope, filter.scope),
        filter.from && gte(annotation.dateMarker, filter.from),
        filter.to && lt(annotation.dateMarker, filter.to),
      ),
    )
    .orderBy(desc(annotation.dateMarker), desc(annotation.id))
    .all()
    // SQLite folds the case of ASCII only.
    .filter(({ content }) => content.toLowerCase().includes(wanted))
    .filter((item) => isShownIn(item, filter));
  return { annotations: all.slice(offset, offset + limit), count: all.length };
}

function isShownIn({ insightId, dashboardId }: Annotation, filter: AnnotationFilter): boolean {
  if (filter.insightId === undefined && filter.dashboardId === undefined) return true;
  if (insightId !== null) return insightId === filter.insightId;
  return dashboardId === null || dashboardId === filter.dashboardId;
}

/** Also finds deleted ones. @throws {NotFoundError} */
export function findAnnotation(db: Reading, projectId: number, id: number): Annotation {
  const found = db
    .select()
    .from(annotation)
    .where(and(eq(annotation.projectId, projectId), eq(annotation.id, id)))
    .get();
  if (found === undefined) throw new NotFoundError(undefined, `annotation ${id}`);
  return found;
}

/** @throws {InvalidFieldError} */
export function createAnnotation(
  metadata: Metadata,
  target: { projectId: number; by: Author; now: Date },
  fields: Omit<AnnotationFields, "deleted">,
): Annotation {
  return metadata.change((t) => {
    const { count } = t
      .select({ count: sql<number>`count(*)` })
      .from(annotation)
      .where(and(eq(annotation.projectId, target.projectId), eq(annotation.deleted, false)))
      .get()!;
    if (count >= annotationsMax)
      throw new InvalidFieldError(
        null,
        "limit_reached",
        `A project can have at most ${annotationsMax} annotations. Delete some first.`,
      );
    const created = t
      .insert(annotation)
      .values({
        ...checked(t, target.projectId, { ...fields, deleted: false }),
        projectId: target.projectId,
        createdById: getCreatorId(target.by),
        createdAt: target.now,
        updatedAt: target.now,
      })
      .returning()
      .get();
    record(t, created, "created", target);
    return created;
  });
}

/** Changes, deletes or restores an annotation. @throws {NotFoundError} @throws {InvalidFieldError} */
export function updateAnnotation(
  metadata: Metadata,
  target: { projectId: number; id: number; by: Author; now: Date },
  fields: Partial<AnnotationFields>,
): Annotation {
  return metadata.change((t) => {
    const before = findAnnotation(t, target.projectId, target.id);
    if (before.deleted && fields.deleted !== false)
      throw new NotFoundError(undefined, `annotation ${target.id}`);
    const { content, dateMarker, scope, dashboardId, insightId, deleted } = { ...before, ...fields };
    const after = t
      .update(annotation)
      .set({
        ...checked(t, target.projectId, { content, dateMarker, scope, dashboardId, insightId, deleted }),
        updatedAt: target.now,
      })
      .where(eq(annotation.id, target.id))
      .returning()
      .get();
    const activity = before.deleted === after.deleted ? "updated" : after.deleted ? "deleted" : "restored";
    record(t, after, activity, target, before);
    return after;
  });
}

/** The scope decides which of the two ids is stored. @throws {InvalidFieldError} */
function checked(t: MetadataTx, projectId: number, fields: AnnotationFields): AnnotationFields {
  const content = trimmedString("content", fields.content, contentLengthMax);
  const { scope } = fields;
  const dashboardId = scope === "dashboard" ? fields.dashboardId : null;
  const insightId = scope === "dashboard_item" ? fields.insightId : null;
  if (fields.deleted) return { ...fields, content, dashboardId, insightId };
  if (scope === "dashboard" && (dashboardId === null || !findDashboard(t, projectId, dashboardId)))
    throw missing("dashboard_id", dashboardId);
  if (scope === "dashboard_item" && (insightId === null || !findInsight(t, projectId, String(insightId))))
    throw missing("dashboard_item", insightId);
  return { ...fields, content, dashboardId, insightId };
}

function missing(field: string, id: number | null): InvalidFieldError {
  return id === null
    ? new InvalidFieldError(field, "required", "This scope requires it.")
    : new InvalidFieldError(field, "does_not_exist", `Invalid pk "${id}" - object does not exist.`);
}

function record(
  t: MetadataTx,
  after: Annotation,
  activity: string,
  { by, now }: { by: Author; now: Date },
  before = after,
): void {
  const shown = ({ content, dateMarker, scope }: Annotation) => ({
    content,
    date_marker: toApiTime(dateMarker),
    scope,
  });
  recordChange(t, {
    by,
    projectId: after.projectId,
    activity,
    scope: "Annotation",
    itemId: after.id,
    name: after.content.slice(0, nameLengthMax),
    before: shown(before),
    after: shown(after),
    now,
  });
}
