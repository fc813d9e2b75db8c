/** Writes one experiment, holdout, saved metric, early access feature or survey of a document. */

import { eq } from "drizzle-orm";
import { getCreatorId } from "../accounts/activity.ts";
import type { MetadataTx } from "../accounts/db.ts";
import { earlyAccessFeature, experimentHoldout } from "../accounts/schema.ts";
import { readCohorts } from "../cohorts/cohorts.ts";
import { createFeature, listFeatures, updateFeature } from "../early-access/features.ts";
import { createExperiment, updateExperiment } from "../experiments/actions.ts";
import { NewExperimentInput } from "../experiments/api/schemas.ts";
import { changeFlag, type ExperimentActor, holdoutFilters } from "../experiments/flag-changes.ts";
import { readMetric } from "../experiments/metrics.ts";
import {
  experimentsOfHoldout,
  insertHoldout,
  insertSavedMetric,
  listExperiments,
  listHoldouts,
  listSavedMetrics,
  writeExperiment,
  writeHoldout,
  writeSavedMetric,
} from "../experiments/store.ts";
import { readWebVariants } from "../experiments/web-variants.ts";
import type { Flag } from "../flags/fields.ts";
import type { ImportRequest } from "../flags/import-export/item-writer.ts";
import { InvalidDocumentError } from "../flags/import-export/read-document.ts";
import { withIds } from "../flags/import-export/references.ts";
import { normalizeTags } from "../flags/rules/key.ts";
import { findFlagByKey } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { parseFields } from "../http/fields.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { createNewFeature } from "../operations/early-access.ts";
import { createHoldout, holdoutSet } from "../operations/experiment-holdouts.ts";
import { createSavedMetric } from "../operations/experiment-saved-metrics.ts";
import { createNewSurvey } from "../operations/surveys.ts";
import { createSurvey, listSurveys, updateSurvey } from "../surveys/surveys.ts";
import { type ObjectMember, objectDefaults } from "./document.ts";

export class ObjectWriter {
  /** IDs in the project of the document's holdouts. */
  readonly holdoutIds = new Map<number, number>();
  private readonly actor: ExperimentActor;

  constructor(
    private readonly deps: FlagWriteDeps,
    private readonly request: ImportRequest,
    private readonly t: MetadataTx,
    private readonly remarks: string[],
  ) {
    const { projectId, by, now, isConfirmed, isDryRun } = request;
    this.actor = {
      project: deps.metadata.projects.find(projectId)!,
      by,
      now,
      limits: undefined,
      skipsApproval: isConfirmed === true || isDryRun,
    };
  }

  /** @throws {AppError} a rule rejects it */
  write(member: ObjectMember, written: JsonObject): void {
    const item = { ...objectDefaults[member], ...written };
    const writers: Record<ObjectMember, (item: JsonObject) => void> = {
      holdouts: (holdout) => this.holdout(holdout),
      saved_metrics: (metric) => this.savedMetric(metric),
      experiments: (experiment) => this.experiment(experiment),
      early_access_features: (feature) => this.feature(feature),
      surveys: (survey) => this.survey(survey),
    };
    writers[member](item);
  }

  private get projectId(): number {
    return this.request.projectId;
  }

  private flag(key: Json | undefined, where: string): Flag {
    const flag = typeof key === "string" ? findFlagByKey(this.t, this.projectId, key) : undefined;
    if (flag !== undefined) return flag;
    throw new InvalidDocumentError(
      `${where} refers to a flag "${key}", which is neither in the file nor in the project.`,
    );
  }

  private holdout(item: JsonObject): void {
    const { now } = this.actor;
    const { name, description, filters } = parseFields(createHoldout.input, item);
    const found = listHoldouts(this.t, this.projectId).find((holdout) => holdout.name === name);
    const wanted =
      typeof item.id === "number" && Number.isSafeInteger(item.id) && item.id > 0 ? item.id : undefined;
    const id = found?.id ?? this.newHoldout(wanted, { name, description: description ?? "" });
    const set = holdoutSet(filters as JsonObject[], id);
    writeHoldout(this.t, id, { description: description ?? "", filters: set }, now);
    if (wanted !== undefined) this.holdoutIds.set(wanted, id);
    if (wanted !== undefined && wanted !== id)
      this.remarks.push(
        `Holdout "${name}" has the ID ${id} here; events with holdout-${wanted} do not count for it.`,
      );
    if (found !== undefined && !Bun.deepEquals(found.filters, set))
      for (const experiment of experimentsOfHoldout(this.t, id))
        changeFlag(this.deps, this.actor, experiment, holdoutFilters(this.t, experiment, id));
  }

  private newHoldout(id: number | undefined, values: { name: string; description: string }): number {
    const { now, by } = this.actor;
    // Events contain the ID: a holdout keeps it, unless another project of this server has it.
    const isFree =
      id !== undefined &&
      this.t.select().from(experimentHoldout).where(eq(experimentHoldout.id, id)).get() === undefined;
    return insertHoldout(this.t, {
      ...(isFree ? { id } : {}),
      ...values,
      projectId: this.projectId,
      filters: [],
      createdById: getCreatorId(by),
      createdAt: now,
      updatedAt: now,
    }).id;
  }

  private savedMetric(item: JsonObject): void {
    const { now, by } = this.actor;
    const input = parseFields(createSavedMetric.input, item);
    const values = {
      name: input.name,
      description: input.description ?? "",
      query: withUuid(readMetric, input.query as JsonObject, `saved metric ${input.name}`),
      tags: normalizeTags(input.tags ?? [], "tags") ?? [],
    };
    const found = listSavedMetrics(this.t, this.projectId).find(({ name }) => name === input.name);
    if (found !== undefined) writeSavedMetric(this.t, found.id, values, now);
    else
      insertSavedMetric(this.t, {
        ...values,
        projectId: this.projectId,
        createdById: getCreatorId(by),
        createdAt: now,
        updatedAt: now,
      });
  }

  private experiment(item: JsonObject): void {
    const { now } = this.actor;
    const { variants, holdout, saved_metrics: saved, start_date, end_date, archived, ...members } = item;
    const flag = this.flag(item.feature_flag_key, "It");
    const holdoutId = this.named(listHoldouts(this.t, this.projectId), holdout, "a holdout");
    const all = listSavedMetrics(this.t, this.projectId);
    const links = (Array.isArray(saved) ? saved : []).filter(isJsonObject).map(({ name, metadata }) => ({
      id: this.named(all, name, "a saved metric"),
      metadata: metadata ?? null,
    }));
    const identified = (list: Json | undefined, what: string) =>
      Array.isArray(list)
        ? list.map((metric, at) =>
            isJsonObject(metric) ? identifiedBy("uuid", metric, `${item.name} ${what} ${at}`) : metric,
          )
        : (list ?? null);
    const input = parseFields(NewExperimentInput, {
      ...members,
      metrics: identified(members.metrics, "metrics"),
      metrics_secondary: identified(members.metrics_secondary, "metrics_secondary"),
      holdout_id: holdoutId,
      saved_metrics_ids: links,
      start_date,
      end_date,
      archived,
    });
    const {
      start_date: from,
      end_date: to,
      archived: isArchived,
      feature_flag_key,
      feature_flag: _,
      type,
      ...edit
    } = input;
    const page = { limit: Number.MAX_SAFE_INTEGER, offset: 0 };
    const { experiments } = listExperiments(this.t, this.projectId, { flagId: flag.id }, page, now);
    const found = experiments.find(({ name }) => name === input.name);
    const before =
      found ?? createExperiment(this.deps, this.actor, { ...edit, type, feature_flag_key: flag.key });
    // Dates as they are: the flag is as in the document, and must not be switched on by a launch.
    const dates = {
      startDate: from ? new Date(from) : null,
      endDate: to ? new Date(to) : null,
      archived: isArchived === true,
      ...(isJsonObject(variants) ? { webVariants: readWebVariants(variants).variants } : {}),
      ...(found === undefined ? { ownsFlag: flag.creationContext?.endsWith("experiments") === true } : {}),
    };
    if (dates.endDate !== null && (dates.startDate === null || dates.endDate <= dates.startDate))
      throw new InvalidDocumentError("`end_date` must be after `start_date`.");
    const edited = found === undefined ? before : updateExperiment(this.deps, this.actor, found.id, edit);
    writeExperiment(this.t, edited, dates, now);
  }

  /** The ID of the item with a name. @returns null for none */
  private named(
    all: readonly { id: number; name: string }[],
    name: Json | undefined,
    what: string,
  ): number | null {
    if (name === null || name === undefined) return null;
    const found = all.find((item) => item.name === name);
    if (found !== undefined) return found.id;
    throw new InvalidDocumentError(
      `It refers to ${what} "${name}", which is neither in the file nor in the project.`,
    );
  }

  private feature(item: JsonObject): void {
    const flag = this.flag(item.feature_flag_key, "It");
    const { feature_flag_id: _, ...input } = parseFields(createNewFeature.input, item);
    const found = listFeatures(this.t, this.projectId).find(
      ({ name, flagId }) => name === input.name && flagId === flag.id,
    );
    if (found !== undefined) {
      updateFeature(this.deps, this.actor, found.id, input);
      return;
    }
    const { id } = createFeature(this.deps, this.actor, { ...input, feature_flag_id: flag.id });
    if (flag.creationContext === "early_access_features")
      this.t.update(earlyAccessFeature).set({ ownsFlag: true }).where(eq(earlyAccessFeature.id, id)).run();
  }

  private survey(item: JsonObject): void {
    const { linked_flag_key: key, targeting_flag_filters: filters, questions, appearance, ...members } = item;
    const all = listSurveys(this.t, this.projectId);
    const found = all.find(({ id }) => id === item.id) ?? all.find(({ name }) => name === item.name);
    // An appearance that was never set stays so: a sent one gets its content types.
    const keepsAppearance = [appearance, found?.appearance ?? {}].every((item) => Bun.deepEquals(item, {}));
    const input = parseFields(createNewSurvey.input, {
      ...members,
      ...(keepsAppearance ? {} : { appearance }),
      questions: (Array.isArray(questions) ? questions : []).map((question, at) =>
        isJsonObject(question) ? identifiedBy("id", question, `${item.name} question ${at}`) : question,
      ),
      linked_flag_id: key === null || key === undefined ? null : this.flag(key, "It").id,
      targeting_flag_filters:
        filters === null || filters === undefined ? null : withIds(filters, this.ids, "Its targeting"),
    });
    if (found !== undefined) {
      const isTargeted = input.targeting_flag_filters != null;
      const removes = !isTargeted && found.targetingFlagId !== null;
      updateSurvey(this.deps, this.actor, found.id, {
        ...input,
        ...(removes ? { remove_targeting_flag: true } : {}),
      });
      return;
    }
    const created = createSurvey(this.deps, this.actor, { ...input, id: parseUuid(item.id) });
    if (item.id !== undefined && created.id !== parseUuid(item.id))
      this.remarks.push(`Survey "${input.name}" has another ID here; former responses do not count for it.`);
  }

  private readonly ids = {
    cohort: (name: string) => readCohorts(this.t, this.projectId).find((cohort) => cohort.name === name)?.id,
    flag: (key: string) => findFlagByKey(this.t, this.projectId, key)?.id,
  };
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const parseUuid = (value: Json | undefined): string | undefined =>
  typeof value === "string" && uuidPattern.test(value) ? value : undefined;

/** An item with an ID that is the same at every import, unless it has one. */
const identifiedBy = (member: string, item: JsonObject, name: string): JsonObject =>
  typeof item[member] === "string" && item[member] !== ""
    ? item
    : { ...item, [member]: Bun.randomUUIDv5(name, "url") };

const withUuid = (read: typeof readMetric, query: JsonObject, name: string): JsonObject =>
  read(identifiedBy("uuid", query, name), "query");
