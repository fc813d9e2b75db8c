/**
 * Early access features: a flag that persons turn on for themselves. Enrollment is a property of the person, which SDKs
 * set; a released feature makes its flag follow that property.
 *
 * Source: contract, experiments 1.4.
 */

import { and, asc, desc, eq, inArray } from "drizzle-orm";
import { changeRecorder, getCreatorId } from "../accounts/activity.ts";
import { bumpRevision, flagRevision, type MetadataTx, type Reading } from "../accounts/db.ts";
import { assertProjectCapacity } from "../accounts/project-capacity.ts";
import { earlyAccessFeature, flag as flagTable } from "../accounts/schema.ts";
import { changeFlag, type ExperimentActor, getFlag, getLinkedFlag } from "../experiments/flag-changes.ts";
import type { Flag } from "../flags/fields.ts";
import { getGroups, getGroupType, getVariants } from "../flags/rules/types.ts";
import { unusedKeyFor } from "../flags/store/flag-limits.ts";
import { removeFlagLinks, setFlagLink } from "../flags/store/flag-links.ts";
import { createFlag, type FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";

export const stages = ["draft", "concept", "alpha", "beta", "general-availability", "archived"] as const;
export type Stage = (typeof stages)[number];

const releasedStages: ReadonlySet<string> = new Set(["concept", "alpha", "beta", "general-availability"]);
export const isReleased = (stage: string): boolean => releasedStages.has(stage);

export type Feature = typeof earlyAccessFeature.$inferSelect;

/** Features of a project. */
const featuresMax = 1_000;
const nameLengthMax = 200;

/** The person property that holds whether a person is enrolled. */
export const enrollmentProperty = (flagKey: string): string => `$feature_enrollment/${flagKey}`;

/** Newest first. */
export function listFeatures(db: Reading, projectId: number): Feature[] {
  return db
    .select()
    .from(earlyAccessFeature)
    .where(eq(earlyAccessFeature.projectId, projectId))
    .orderBy(desc(earlyAccessFeature.createdAt), desc(earlyAccessFeature.id))
    .all();
}

/** @throws {NotFoundError} */
export function getFeature(db: Reading, projectId: number, id: string): Feature {
  const found = db
    .select()
    .from(earlyAccessFeature)
    .where(and(eq(earlyAccessFeature.projectId, projectId), eq(earlyAccessFeature.id, id)))
    .get();
  if (found === undefined) throw new NotFoundError();
  return found;
}

/** Features for visitors: of these stages, with the keys of their flags. */
export function publicFeatures(db: Reading, projectId: number, wanted: readonly string[]): JsonObject[] {
  return db
    .select({ feature: earlyAccessFeature, flagKey: flagTable.key })
    .from(earlyAccessFeature)
    .innerJoin(flagTable, eq(flagTable.id, earlyAccessFeature.flagId))
    .where(and(eq(earlyAccessFeature.projectId, projectId), inArray(earlyAccessFeature.stage, [...wanted])))
    .orderBy(asc(earlyAccessFeature.createdAt), asc(earlyAccessFeature.id))
    .all()
    .map(({ feature, flagKey }) => ({ ...shownInFlag(feature, flagKey), payload: feature.payload }));
}

function shownInFlag(feature: Feature, flagKey: string): JsonObject {
  return {
    id: feature.id,
    name: feature.name,
    description: feature.description,
    stage: feature.stage,
    documentationUrl: feature.documentationUrl,
    flagKey,
  };
}

export interface FeatureInput {
  name?: string | undefined;
  description?: string | null | undefined;
  stage?: Stage | undefined;
  documentation_url?: string | null | undefined;
  payload?: JsonObject | null | undefined;
}

/** Creates a feature, and its flag without `flagId`. @throws {InvalidFieldError} */
export function createFeature(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  input: FeatureInput & { name: string; stage: Stage; feature_flag_id?: number | null | undefined },
): Feature {
  const { project, now } = actor;
  const columns = getColumns(input);
  return deps.metadata.change((t) => {
    const limit = { projectId: project.id, max: featuresMax, what: "early access features" };
    assertProjectCapacity(t, earlyAccessFeature, limit);
    const flagId = input.feature_flag_id ?? undefined;
    const flag =
      flagId === undefined ? newFlag(deps, t, actor, input.name) : existingFlag(t, project.id, flagId);
    const created = t
      .insert(earlyAccessFeature)
      .values({
        ...columns,
        id: Bun.randomUUIDv7(),
        projectId: project.id,
        flagId: flag.id,
        name: columns.name!,
        stage: input.stage,
        ownsFlag: flagId === undefined,
        createdById: getCreatorId(actor.by),
        createdAt: now,
      })
      .returning()
      .get();
    if (isReleased(created.stage)) release(deps, actor, created, flag.key);
    afterWrite(t, created, flag.key);
    recordFeature(t, "created", undefined, created, actor);
    return created;
  });
}

function newFlag(
  deps: FlagWriteDeps,
  t: MetadataTx,
  { project, by, now }: ExperimentActor,
  name: string,
): Flag {
  return createFlag(deps, {
    projectId: project.id,
    by,
    now,
    createsUsageDashboard: false,
    fields: {
      key: unusedKeyFor(t, project.id, name),
      name: `Feature flag of the early access feature ${name}`,
      filters: { groups: [{ properties: [], rollout_percentage: 0 }] },
      creationContext: "early_access_features",
    },
  });
}

/** @throws {InvalidFieldError} texts of PostHog, because its users search for them. */
function existingFlag(t: MetadataTx, projectId: number, id: number): Flag {
  const fail = (detail: string) => new InvalidFieldError("feature_flag_id", "invalid_input", detail);
  const flag = getLinkedFlag(t, projectId, id, "feature_flag_id");
  const other = t.select().from(earlyAccessFeature).where(eq(earlyAccessFeature.flagId, id)).get();
  if (other !== undefined)
    throw fail(`Linked feature flag ${flag.key} already has a feature attached to it.`);
  if ([{}, ...getGroups(flag.filters)].some((set) => getGroupType(set, flag.filters) !== null))
    throw fail("Group-based feature flags are not supported for Early Access Features.");
  if (getVariants(flag.filters).length > 0)
    throw fail("Multivariate feature flags are not supported for Early Access Features.");
  return flag;
}

function getColumns(input: FeatureInput): Partial<Feature> {
  const { name, description, documentation_url: url, payload } = input;
  return {
    ...(name === undefined ? {} : { name: trimmedString("name", name, nameLengthMax) }),
    ...(description === undefined ? {} : { description: description ?? "" }),
    ...(url === undefined ? {} : { documentationUrl: checkedUrl(url ?? "") }),
    ...(payload === undefined ? {} : { payload: payload ?? {} }),
  };
}

/** @throws {InvalidFieldError} */
function checkedUrl(url: string): string {
  if (url === "" || /^https?:\/\/[^\s]+$/i.test(url)) return url;
  throw new InvalidFieldError(
    "documentation_url",
    "invalid_input",
    "Enter a URL that starts with http:// or https://.",
  );
}

/** Changes a feature; entering or leaving a released stage changes its flag. */
export function updateFeature(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  id: string,
  input: FeatureInput,
): Feature {
  return deps.metadata.change((t) => {
    const before = getFeature(t, actor.project.id, id);
    const stage = input.stage ?? before.stage;
    const { key } = getFlag(t, before);
    const after = t
      .update(earlyAccessFeature)
      .set({ ...getColumns(input), stage })
      .where(eq(earlyAccessFeature.id, id))
      .returning()
      .get();
    if (isReleased(stage) && !isReleased(before.stage)) release(deps, actor, after, key);
    if (!isReleased(stage) && isReleased(before.stage)) withdraw(deps, actor, after);
    afterWrite(t, after, key);
    recordFeature(t, "updated", before, after, actor);
    return after;
  });
}

/** Deletes a feature; its flag stays, without enrollment. @throws {NotFoundError} */
export function deleteFeature(deps: FlagWriteDeps, actor: ExperimentActor, id: string): void {
  deps.metadata.change((t) => {
    const feature = getFeature(t, actor.project.id, id);
    if (isReleased(feature.stage)) withdraw(deps, actor, feature);
    removeFlagLinks(t, "feature", id);
    t.delete(earlyAccessFeature).where(eq(earlyAccessFeature.id, id)).run();
    bumpRevision(t, flagRevision(feature.projectId));
    recordFeature(t, "deleted", feature, feature, actor);
  });
}

/** The flag follows the person's enrollment. */
function release(deps: FlagWriteDeps, actor: ExperimentActor, feature: Feature, flagKey: string): void {
  const condition = { key: enrollmentProperty(flagKey), type: "person", operator: "exact", value: ["true"] };
  changeFlag(deps, actor, feature, {
    filters: { super_groups: [{ properties: [condition], rollout_percentage: 100 }] },
  });
}

function withdraw(deps: FlagWriteDeps, actor: ExperimentActor, feature: Feature): void {
  changeFlag(deps, actor, feature, { filters: { super_groups: null } });
}

function afterWrite(t: MetadataTx, feature: Feature, flagKey: string): void {
  setFlagLink(t, {
    kind: "feature",
    objectId: feature.id,
    flagId: feature.flagId,
    name: feature.name,
    shown: shownInFlag(feature, flagKey),
    holds: feature.stage !== "archived",
  });
  bumpRevision(t, flagRevision(feature.projectId));
}

function getRecorded(feature: Feature): JsonObject {
  return {
    name: feature.name,
    description: feature.description,
    stage: feature.stage,
    documentation_url: feature.documentationUrl,
    payload: feature.payload,
  };
}

const recordFeature = changeRecorder("EarlyAccessFeature", getRecorded);
