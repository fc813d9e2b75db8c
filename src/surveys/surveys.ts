/**
 * Surveys, and the flags that they create: the internal one holds for persons who have not answered, the targeting one
 * for persons who match filters. Both are on exactly while the survey runs.
 *
 * Source: contract, experiments 1.5.
 */

import { and, asc, desc, eq, isNotNull, isNull } from "drizzle-orm";
import { changeRecorder, getCreatorId } from "../accounts/activity.ts";
import { bumpRevision, flagRevision, type MetadataTx, type Reading } from "../accounts/db.ts";
import { assertProjectCapacity } from "../accounts/project-capacity.ts";
import { survey } from "../accounts/schema.ts";
import { changeFlag, type ExperimentActor, getLinkedFlag } from "../experiments/flag-changes.ts";
import { getVariants, surveyFlagPrefix } from "../flags/rules/types.ts";
import { findFlag } from "../flags/store/flag.ts";
import { removeFlagLinks, setFlagLink } from "../flags/store/flag-links.ts";
import { createFlag, type FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { toApiTimeOrNull } from "../lib/time.ts";
import { assertLinkedVariant, getWaitDays, readConditions } from "./conditions.ts";
import { assertSize, readAppearance, readSurveyTranslations, withContentTypes } from "./display-texts.ts";
import { assertIterations, iterationAt } from "./iterations.ts";
import { readQuestions } from "./questions.ts";

export const surveyTypes = ["popover", "widget", "api", "external_survey"] as const;
export const schedules = ["once", "recurring", "always"] as const;

export type Survey = typeof survey.$inferSelect;

/** Surveys of a project. */
const surveysMax = 1_000;
export const nameLengthMax = 400;
/** The clock of a client may be ahead. */
const clockSkewMs = 60_000;

export const running = and(isNotNull(survey.startDate), isNull(survey.endDate), eq(survey.archived, false));
const isRunning = (survey: Survey) =>
  survey.startDate !== null && survey.endDate === null && !survey.archived;

export function getStatus(survey: Survey): "draft" | "running" | "completed" {
  if (survey.startDate === null) return "draft";
  return survey.endDate === null ? "running" : "completed";
}

/** Newest first. */
export function listSurveys(db: Reading, projectId: number): Survey[] {
  return db
    .select()
    .from(survey)
    .where(eq(survey.projectId, projectId))
    .orderBy(desc(survey.createdAt), desc(survey.id))
    .all();
}

/** @throws {NotFoundError} */
export function getSurvey(db: Reading, projectId: number, id: string): Survey {
  const found = db
    .select()
    .from(survey)
    .where(and(eq(survey.projectId, projectId), eq(survey.id, id)))
    .get();
  if (found === undefined) throw new NotFoundError();
  return found;
}

export function hasRunningSurvey(db: Reading, projectId: number): boolean {
  const found = db
    .select({ id: survey.id })
    .from(survey)
    .where(and(eq(survey.projectId, projectId), running))
    .limit(1)
    .get();
  return found !== undefined;
}

/** Running surveys for visitors, without the internal description. */
export function publicSurveys(db: Reading, projectId: number): JsonObject[] {
  return db
    .select()
    .from(survey)
    .where(and(eq(survey.projectId, projectId), running))
    .orderBy(asc(survey.createdAt), asc(survey.id))
    .all()
    .map((survey) => {
      const getKey = (id: number | null) => (id === null ? null : (findFlag(db, projectId, id)?.key ?? null));
      return {
        id: survey.id,
        name: survey.name,
        type: survey.type,
        linked_flag_key: getKey(survey.linkedFlagId),
        targeting_flag_key: getKey(survey.targetingFlagId),
        internal_targeting_flag_key: getKey(survey.internalTargetingFlagId),
        questions: survey.questions,
        conditions: survey.conditions,
        appearance: withContentTypes(survey.appearance),
        start_date: toApiTimeOrNull(survey.startDate),
        end_date: toApiTimeOrNull(survey.endDate),
        current_iteration: survey.currentIteration,
        schedule: survey.schedule,
        current_iteration_start_date: toApiTimeOrNull(survey.currentIterationStartDate),
        enable_partial_responses: survey.enablePartialResponses,
        ...(Object.keys(survey.translations).length > 0 ? { translations: survey.translations } : {}),
      };
    });
}

export interface SurveyInput {
  name?: string | undefined;
  description?: string | null | undefined;
  type?: string | undefined;
  schedule?: string | null | undefined;
  questions?: JsonObject[] | undefined;
  conditions?: JsonObject | null | undefined;
  appearance?: JsonObject | null | undefined;
  linked_flag_id?: number | null | undefined;
  targeting_flag_filters?: JsonObject | null | undefined;
  remove_targeting_flag?: boolean | null | undefined;
  start_date?: string | null | undefined;
  end_date?: string | null | undefined;
  archived?: boolean | undefined;
  enable_partial_responses?: boolean | null | undefined;
  responses_limit?: number | null | undefined;
  iteration_count?: number | null | undefined;
  iteration_frequency_days?: number | null | undefined;
  translations?: JsonObject | null | undefined;
}

/** The id of a new survey: events and persons contain it, so a restored or copied survey keeps its id if it is free. */
function newSurveyId(db: Reading, sent: string | null | undefined): string {
  const isFree = sent && db.select().from(survey).where(eq(survey.id, sent)).get() === undefined;
  return isFree ? sent : Bun.randomUUIDv7();
}

/** @throws {InvalidFieldError} */
export function createSurvey(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  input: SurveyInput & {
    id?: string | null | undefined;
    name: string;
    type: string;
    questions: JsonObject[];
  },
): Survey {
  const { project, now } = actor;
  return deps.metadata.change((t) => {
    assertProjectCapacity(t, survey, { projectId: project.id, max: surveysMax, what: "surveys" });
    const base: Survey = {
      id: newSurveyId(t, input.id),
      projectId: project.id,
      name: "",
      description: "",
      type: input.type,
      schedule: "once",
      questions: [],
      conditions: {},
      appearance: {},
      linkedFlagId: null,
      targetingFlagId: null,
      internalTargetingFlagId: 0,
      startDate: null,
      endDate: null,
      archived: false,
      enablePartialResponses: false,
      responsesLimit: null,
      translations: {},
      iterationCount: null,
      iterationFrequencyDays: null,
      currentIteration: null,
      currentIterationStartDate: null,
      createdById: getCreatorId(actor.by),
      createdAt: now,
    };
    const written = withInput(t, base, input, now);
    const internalTargetingFlagId = newFlag(deps, actor, written, "", internalFilters(written));
    const created = { ...written, internalTargetingFlagId };
    if (input.targeting_flag_filters)
      created.targetingFlagId = newFlag(deps, actor, created, "-custom", input.targeting_flag_filters);
    t.insert(survey).values(created).run();
    afterWrite(t, created);
    recordSurvey(t, "created", undefined, created, actor);
    return created;
  });
}

/** Changes a survey and its flags; launching, stopping and resuming are changes of the dates. */
export function updateSurvey(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  id: string,
  input: SurveyInput,
): Survey {
  return deps.metadata.change((t) => {
    const before = getSurvey(t, actor.project.id, id);
    const after = withInput(t, before, input, actor.now);
    // The links of a survey that ran must not prevent changes of its own flags.
    removeFlagLinks(t, "survey", id);
    const active = isRunning(after);
    const edit = (flagId: number, sent: JsonObject) => changeOwnFlag(deps, actor, flagId, sent);
    const isSwitched = active !== isRunning(before);
    const filtersBefore = internalFilters(before);
    const internal = internalFilters(after);
    if (isSwitched || !Bun.deepEquals(filtersBefore, internal))
      edit(after.internalTargetingFlagId, { active, filters: internal });
    const filters = input.targeting_flag_filters;
    if (after.targetingFlagId !== null && input.remove_targeting_flag) {
      edit(after.targetingFlagId, { active: false, deleted: true });
      after.targetingFlagId = null;
    } else if (after.targetingFlagId !== null && (isSwitched || filters))
      edit(after.targetingFlagId, { active, ...(filters ? { filters } : {}) });
    else if (filters && !input.remove_targeting_flag)
      after.targetingFlagId = newFlag(deps, actor, after, "-custom", filters);
    t.update(survey).set(after).where(eq(survey.id, id)).run();
    afterWrite(t, after);
    recordSurvey(t, "updated", before, after, actor);
    return after;
  });
}

/** Deletes a survey and the flags that it created. @throws {NotFoundError} */
export function deleteSurvey(deps: FlagWriteDeps, actor: ExperimentActor, id: string): void {
  deps.metadata.change((t) => {
    const current = getSurvey(t, actor.project.id, id);
    removeFlagLinks(t, "survey", id);
    for (const flagId of [current.internalTargetingFlagId, current.targetingFlagId])
      if (flagId !== null && findFlag(t, current.projectId, flagId)?.deleted === false)
        changeOwnFlag(deps, actor, flagId, { active: false, deleted: true });
    t.delete(survey).where(eq(survey.id, id)).run();
    bumpRevision(t, flagRevision(current.projectId));
    recordSurvey(t, "deleted", current, current, actor);
  });
}

/** Flags of surveys are not listed, so no user can request a change of one: they need no approval. */
const changeOwnFlag = (deps: FlagWriteDeps, actor: ExperimentActor, flagId: number, sent: JsonObject) =>
  withSentField(() => changeFlag(deps, { ...actor, skipsApproval: true }, { flagId, ownsFlag: true }, sent));

/** Errors of the flag's filters name the member of the survey that they came from. @throws {InvalidFieldError} */
function withSentField<Written>(write: () => Written): Written {
  try {
    return write();
  } catch (error) {
    if (!(error instanceof InvalidFieldError) || error.field !== "filters") throw error;
    throw new InvalidFieldError("targeting_flag_filters", error.code, error.message);
  }
}

/** The survey as the request leaves it. @throws {InvalidFieldError} */
function withInput(t: Reading, before: Survey, input: SurveyInput, now: Date): Survey {
  const sentTranslations = input.translations === undefined ? before.translations : input.translations;
  if (input.appearance) assertSize("appearance", input.appearance);
  if (input.translations) assertSize("translations", input.translations);
  const appearance =
    input.appearance === undefined ? before.appearance : readAppearance(input.appearance ?? {});
  const conditions =
    input.conditions === undefined ? before.conditions : readConditions(input.conditions ?? {});
  const after: Survey = {
    ...before,
    appearance,
    conditions,
    questions: readQuestions(input.questions ?? before.questions, appearance),
    name: input.name === undefined ? before.name : trimmedString("name", input.name, nameLengthMax),
    description: input.description === undefined ? before.description : (input.description ?? ""),
    type: input.type ?? before.type,
    schedule: input.schedule === undefined ? before.schedule : (input.schedule ?? "once"),
    linkedFlagId: input.linked_flag_id === undefined ? before.linkedFlagId : input.linked_flag_id,
    startDate: toDate("start_date", input.start_date, before.startDate, now),
    endDate: toDate("end_date", input.end_date, before.endDate, now),
    archived: input.archived ?? before.archived,
    enablePartialResponses: input.enable_partial_responses ?? before.enablePartialResponses,
    ...getLimits(input, before),
    // Read again with the content types of the appearance, which may have changed.
    translations: readSurveyTranslations(sentTranslations ?? {}, appearance),
  };
  if (typeof input.linked_flag_id === "number")
    getLinkedFlag(t, before.projectId, input.linked_flag_id, "linked_flag_id");
  // Other changes stay possible after the flag lost the variant.
  if (input.conditions || input.linked_flag_id !== undefined)
    assertLinkedVariant(conditions, getVariantKeys(t, after));
  if (after.endDate !== null && (after.startDate === null || after.endDate < after.startDate))
    throw new InvalidFieldError("end_date", "invalid_input", "`end_date` must be after `start_date`.");
  assertIterations(after);
  return { ...after, ...iterationAt(after, now) };
}

/** Of the linked flag. */
function getVariantKeys(t: Reading, { projectId, linkedFlagId }: Survey): string[] | undefined {
  if (linkedFlagId === null) return undefined;
  const flag = findFlag(t, projectId, linkedFlagId);
  return flag === undefined ? [] : getVariants(flag.filters).map(({ key }) => String(key));
}

/** Of responses and iterations; 0 is none. */
function getLimits(input: SurveyInput, before: Survey) {
  const read = (sent: number | null | undefined, current: number | null) =>
    sent === undefined ? current : sent || null;
  return {
    responsesLimit: read(input.responses_limit, before.responsesLimit),
    iterationCount: read(input.iteration_count, before.iterationCount),
    iterationFrequencyDays: read(input.iteration_frequency_days, before.iterationFrequencyDays),
  };
}

function toDate(field: string, sent: string | null | undefined, before: Date | null, now: Date): Date | null {
  if (sent === undefined) return before;
  if (sent === null) return null;
  const date = new Date(sent);
  if (date.getTime() <= now.getTime() + clockSkewMs) return date;
  throw new InvalidFieldError(field, "invalid_input", `\`${field}\` must not be in the future.`);
}

/** Persons who neither answered nor dismissed the survey in its current iteration. */
function internalFilters({ id, conditions, currentIteration }: Survey): JsonObject {
  // posthog-js sets the same properties.
  const answered = currentIteration === null ? id : `${id}/${currentIteration}`;
  const property = (key: string, operator: string, value: string) => ({
    key,
    type: "person",
    operator,
    value,
  });
  const unanswered = ["$survey_dismissed", "$survey_responded"].map((name) =>
    property(`${name}/${answered}`, "is_not_set", "is_not_set"),
  );
  const set = (...more: JsonObject[]): JsonObject => ({
    variant: "",
    rollout_percentage: 100,
    properties: [...unanswered, ...more],
  });
  const days = getWaitDays(conditions);
  if (!days) return { groups: [set()] };
  const lastSeen = "$survey_last_seen_date";
  return {
    groups: [
      set(property(lastSeen, "is_not_set", "is_not_set")),
      set(property(lastSeen, "is_date_before", `${days}d`)),
    ],
  };
}

function newFlag(
  deps: FlagWriteDeps,
  { project, by, now }: ExperimentActor,
  survey: Survey,
  suffix: string,
  filters: JsonObject,
): number {
  return withSentField(() =>
    createFlag(deps, {
      projectId: project.id,
      by,
      now,
      createsUsageDashboard: false,
      fields: {
        // The first digits of such an id are its time, which surveys may share.
        key: `${surveyFlagPrefix}${survey.id.slice(-12)}-${Bun.randomUUIDv7().slice(-6)}${suffix}`,
        name: `Targeting flag of the survey ${survey.name}`,
        filters,
        active: isRunning(survey),
        creationContext: "surveys",
      },
    }),
  ).id;
}

function afterWrite(t: MetadataTx, survey: Survey): void {
  removeFlagLinks(t, "survey", survey.id);
  const shown = {
    id: survey.id,
    name: survey.name,
    type: survey.type,
    status: getStatus(survey),
    start_date: toApiTimeOrNull(survey.startDate),
    end_date: toApiTimeOrNull(survey.endDate),
  };
  for (const flagId of new Set([survey.linkedFlagId, survey.targetingFlagId, survey.internalTargetingFlagId]))
    if (flagId !== null)
      setFlagLink(t, {
        kind: "survey",
        objectId: survey.id,
        flagId,
        name: survey.name,
        shown,
        holds: isRunning(survey),
      });
  bumpRevision(t, flagRevision(survey.projectId));
}

function getRecorded(survey: Survey): JsonObject {
  return {
    name: survey.name,
    description: survey.description,
    type: survey.type,
    schedule: survey.schedule,
    questions: survey.questions,
    conditions: survey.conditions,
    appearance: survey.appearance,
    linked_flag_id: survey.linkedFlagId,
    start_date: toApiTimeOrNull(survey.startDate),
    end_date: toApiTimeOrNull(survey.endDate),
    archived: survey.archived,
    enable_partial_responses: survey.enablePartialResponses,
    responses_limit: survey.responsesLimit,
    translations: survey.translations,
    iteration_count: survey.iterationCount,
    iteration_frequency_days: survey.iterationFrequencyDays,
    current_iteration: survey.currentIteration,
  };
}

const recordSurvey = changeRecorder("Survey", getRecorded);
