/** Rows of experiments, holdouts and saved metrics. */

import { and, asc, desc, eq, inArray, isNotNull, isNull } from "drizzle-orm";
import type { MetadataTx, Reading } from "../accounts/db.ts";
import { assertProjectCapacity } from "../accounts/project-capacity.ts";
import { experiment, experimentHoldout, experimentSavedMetric, flag } from "../accounts/schema.ts";
import { removeFlagLinks, setFlagLink } from "../flags/store/flag-links.ts";
import { NotFoundError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";

export type Experiment = typeof experiment.$inferSelect;
export type NewExperiment = Omit<typeof experiment.$inferInsert, "id">;
export type Holdout = typeof experimentHoldout.$inferSelect;
export type SavedMetric = typeof experimentSavedMetric.$inferSelect;

export const experimentStatuses = ["draft", "running", "paused", "stopped"] as const;
export type ExperimentStatus = (typeof experimentStatuses)[number];

/** Computed, never stored: switching a flag off by hand pauses its experiment. */
export function getStatus(
  { startDate, endDate }: { startDate: Date | null; endDate: Date | null },
  isFlagActive: boolean,
): ExperimentStatus {
  if (startDate === null) return "draft";
  if (endDate !== null) return "stopped";
  return isFlagActive ? "running" : "paused";
}

/** Experiments, holdouts or saved metrics of a project. */
const objectsMax = 2_000;

export interface ExperimentFilter {
  status?: ExperimentStatus | undefined;
  archived?: boolean | undefined;
  flagId?: number | undefined;
  createdById?: number | undefined;
  /** Part of the name or of the flag's key. */
  search?: string | undefined;
  matches?: ((experiment: Experiment) => boolean) | undefined;
  /** A column of the API, `-` before it for descending. */
  order?: string | undefined;
}

interface Listed {
  row: Experiment;
  status: ExperimentStatus;
}

const sortKeys: Record<string, (listed: Listed, now: number) => number | string> = {
  name: ({ row }) => row.name.toLowerCase(),
  created_at: ({ row }) => row.createdAt.getTime(),
  updated_at: ({ row }) => row.updatedAt.getTime(),
  start_date: ({ row }) => row.startDate?.getTime() ?? 0,
  end_date: ({ row }) => row.endDate?.getTime() ?? 0,
  duration: ({ row }, now) =>
    row.startDate === null ? 0 : (row.endDate?.getTime() ?? now) - row.startDate.getTime(),
  status: ({ status }) => status,
};
export const experimentOrders = Object.keys(sortKeys);

/** Experiments that are not deleted, newest first by default. */
export function listExperiments(
  db: Reading,
  projectId: number,
  filter: ExperimentFilter,
  page: { limit: number; offset: number },
  now: Date,
): { experiments: Experiment[]; count: number } {
  const wanted = filter.search?.trim().toLowerCase() ?? "";
  const found = db
    .select({ row: experiment, active: flag.active, key: flag.key })
    .from(experiment)
    .innerJoin(flag, eq(flag.id, experiment.flagId))
    .where(
      and(
        eq(experiment.projectId, projectId),
        eq(experiment.deleted, false),
        filter.archived === undefined ? undefined : eq(experiment.archived, filter.archived),
        filter.flagId === undefined ? undefined : eq(experiment.flagId, filter.flagId),
        filter.createdById === undefined ? undefined : eq(experiment.createdById, filter.createdById),
      ),
    )
    .orderBy(desc(experiment.createdAt), desc(experiment.id))
    .all()
    .filter(({ row, key }) => [row.name, key].some((text) => text.toLowerCase().includes(wanted)))
    .map(({ row, active }): Listed => ({ row, status: getStatus(row, active) }))
    .filter(
      ({ row, status }) =>
        (filter.status === undefined || status === filter.status) &&
        (filter.matches === undefined || filter.matches(row)),
    );
  const sorted = sortBy(found, filter.order, now.getTime());
  return {
    experiments: sorted.slice(page.offset, page.offset + page.limit).map(({ row }) => row),
    count: found.length,
  };
}

function sortBy(found: Listed[], order: string | undefined, now: number): Listed[] {
  const name = (order ?? "").replace(/^-/, "");
  if (!Object.hasOwn(sortKeys, name)) return found;
  const key = sortKeys[name]!;
  const direction = order!.startsWith("-") ? -1 : 1;
  return found.sort((one, other) => {
    const a = key(one, now);
    const b = key(other, now);
    return a === b ? other.row.id - one.row.id : direction * (a < b ? -1 : 1);
  });
}

export function findExperiment(db: Reading, projectId: number, id: number): Experiment | undefined {
  return db
    .select()
    .from(experiment)
    .where(and(eq(experiment.projectId, projectId), eq(experiment.id, id), eq(experiment.deleted, false)))
    .get();
}

/** Also a deleted one, to restore it. @throws {NotFoundError} */
export function getStoredExperiment(db: Reading, projectId: number, id: number): Experiment {
  const found = db
    .select()
    .from(experiment)
    .where(and(eq(experiment.projectId, projectId), eq(experiment.id, id)))
    .get();
  if (found === undefined) throw new NotFoundError();
  return found;
}

/** @throws {NotFoundError} */
export function getExperiment(db: Reading, projectId: number, id: number): Experiment {
  const found = findExperiment(db, projectId, id);
  if (found === undefined) throw new NotFoundError();
  return found;
}

/** Running and paused experiments of all projects. */
export function launchedExperiments(db: Reading): Experiment[] {
  return db
    .select()
    .from(experiment)
    .where(and(eq(experiment.deleted, false), isNotNull(experiment.startDate), isNull(experiment.endDate)))
    .all();
}

/** @throws {InvalidFieldError} the project has too many experiments. */
export function insertExperiment(t: MetadataTx, values: NewExperiment): Experiment {
  assertProjectCapacity(t, experiment, { projectId: values.projectId, max: objectsMax, what: "experiments" });
  const created = t.insert(experiment).values(values).returning().get();
  linkFlag(t, created);
  return created;
}

/** Writes changed columns; the version increases by one. */
export function writeExperiment(
  t: MetadataTx,
  before: Experiment,
  changed: Partial<NewExperiment>,
  now: Date,
): Experiment {
  const after = t
    .update(experiment)
    .set({ ...changed, version: before.version + 1, updatedAt: now })
    .where(eq(experiment.id, before.id))
    .returning()
    .get();
  linkFlag(t, after);
  return after;
}

/** Shows the experiment in its flag, and protects the flag from deletion while the experiment runs. */
function linkFlag(t: MetadataTx, experiment: Experiment): void {
  if (experiment.deleted) {
    removeFlagLinks(t, "experiment", String(experiment.id));
    return;
  }
  setFlagLink(t, {
    kind: "experiment",
    objectId: String(experiment.id),
    flagId: experiment.flagId,
    name: experiment.name,
    shown: {},
    holds: experiment.startDate !== null && experiment.endDate === null,
  });
}

export function listHoldouts(db: Reading, projectId: number): Holdout[] {
  return db
    .select()
    .from(experimentHoldout)
    .where(eq(experimentHoldout.projectId, projectId))
    .orderBy(desc(experimentHoldout.createdAt), desc(experimentHoldout.id))
    .all();
}

export function findHoldout(db: Reading, projectId: number, id: number): Holdout | undefined {
  return db
    .select()
    .from(experimentHoldout)
    .where(and(eq(experimentHoldout.projectId, projectId), eq(experimentHoldout.id, id)))
    .get();
}

/** @throws {InvalidFieldError} the project has too many. */
export function insertHoldout(
  t: MetadataTx,
  values: Omit<typeof experimentHoldout.$inferInsert, "id">,
): Holdout {
  assertProjectCapacity(t, experimentHoldout, {
    projectId: values.projectId,
    max: objectsMax,
    what: "holdouts",
  });
  return t.insert(experimentHoldout).values(values).returning().get();
}

export function writeHoldout(
  t: MetadataTx,
  id: number,
  changed: Partial<Pick<Holdout, "name" | "description" | "filters">>,
  now: Date,
): Holdout {
  return t
    .update(experimentHoldout)
    .set({ ...changed, updatedAt: now })
    .where(eq(experimentHoldout.id, id))
    .returning()
    .get();
}

export function deleteHoldout(t: MetadataTx, id: number): void {
  t.update(experiment).set({ holdoutId: null }).where(eq(experiment.holdoutId, id)).run();
  t.delete(experimentHoldout).where(eq(experimentHoldout.id, id)).run();
}

/** Experiments with this holdout that have not ended. */
export function experimentsOfHoldout(db: Reading, holdoutId: number): Experiment[] {
  return db
    .select()
    .from(experiment)
    .where(
      and(eq(experiment.holdoutId, holdoutId), eq(experiment.deleted, false), isNull(experiment.endDate)),
    )
    .orderBy(asc(experiment.id))
    .all();
}

export function listSavedMetrics(db: Reading, projectId: number): SavedMetric[] {
  return db
    .select()
    .from(experimentSavedMetric)
    .where(eq(experimentSavedMetric.projectId, projectId))
    .orderBy(desc(experimentSavedMetric.createdAt), desc(experimentSavedMetric.id))
    .all();
}

/** Saved metrics of a project by ID; unknown IDs are skipped. */
export function savedMetricsById(
  db: Reading,
  projectId: number,
  ids: readonly number[],
): Map<number, SavedMetric> {
  const rows = db
    .select()
    .from(experimentSavedMetric)
    .where(and(eq(experimentSavedMetric.projectId, projectId), inArray(experimentSavedMetric.id, [...ids])))
    .all();
  return new Map(rows.map((row) => [row.id, row]));
}

/** @throws {InvalidFieldError} the project has too many. */
export function insertSavedMetric(
  t: MetadataTx,
  values: Omit<typeof experimentSavedMetric.$inferInsert, "id">,
): SavedMetric {
  assertProjectCapacity(t, experimentSavedMetric, {
    projectId: values.projectId,
    max: objectsMax,
    what: "saved metrics",
  });
  return t.insert(experimentSavedMetric).values(values).returning().get();
}

export function writeSavedMetric(
  t: MetadataTx,
  id: number,
  changed: Partial<Pick<SavedMetric, "name" | "description" | "query" | "tags">>,
  now: Date,
): SavedMetric {
  return t
    .update(experimentSavedMetric)
    .set({ ...changed, updatedAt: now })
    .where(eq(experimentSavedMetric.id, id))
    .returning()
    .get();
}

/** Experiments that use a saved metric. */
export function experimentsWithMetric(db: Reading, projectId: number, metricId: number): Experiment[] {
  const all = db.select().from(experiment).where(eq(experiment.projectId, projectId)).all();
  return all.filter((experiment) => savedMetricLinks(experiment).some(({ id }) => id === metricId));
}

/** Deletes a saved metric; its experiments lose it. */
export function deleteSavedMetric(t: MetadataTx, { projectId, id }: SavedMetric): void {
  for (const current of experimentsWithMetric(t, projectId, id)) {
    const left = current.savedMetrics.filter((link) => Number(link.id) !== id);
    t.update(experiment).set({ savedMetrics: left }).where(eq(experiment.id, current.id)).run();
  }
  t.delete(experimentSavedMetric).where(eq(experimentSavedMetric.id, id)).run();
}

/** Ids and roles of an experiment's saved metrics. */
export function savedMetricLinks(
  experiment: Pick<Experiment, "savedMetrics">,
): { id: number; role: string; metadata: JsonObject }[] {
  return experiment.savedMetrics.map(({ id, metadata }) => {
    const data = (metadata ?? {}) as JsonObject;
    return { id: Number(id), role: typeof data.type === "string" ? data.type : "primary", metadata: data };
  });
}
