/** Writes one experiment, holdout, saved metric, early access feature or survey of a document. */

import { eq } from "drizzle-orm";
import { getCreatorId } from "../accounts/activity.ts";
import type { MetadataTx } from "../accounts/db.ts";
import { earlyAccessFeature, experimentHoldout } from "../accounts/schema.ts";
import { readCohorts } from "../cohorts/cohorts.ts";
import { createFeature, updateFeature } from "../early-access/features.ts";
import { createExperiment, updateExperiment } from "../experiments/actions.ts";
import { NewExperimentInput } from "../experiments/api/schemas.ts";
import { changeFlag, type ExperimentActor, holdoutFilters } from "../experiments/flag-changes.ts";
import { readMetric } from "../experiments/metrics.ts";
import {
  experimentsOfHoldout,
  findHoldout,
  getExperiment,
  insertHoldout,
  insertSavedMetric,
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
import { once } from "../lib/concurrency.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { createNewFeature } from "../operations/early-access.ts";
import { createHoldout, holdoutSet } from "../operations/experiment-holdouts.ts";
import { createSavedMetric } from "../operations/experiment-saved-metrics.ts";
import { type ObjectMember, objectDefaults, type StoredObject } from "../operations/flag-document.ts";
import { createNewSurvey } from "../operations/surveys.ts";
import { createSurvey, getSurvey, updateSurvey } from "../surveys/surveys.ts";
import type { StoredObjects } from "./stored-objects.ts";

export class ObjectWriter {
  /** IDs in the project of the document's holdouts. */
  readonly holdoutIds = new Map<number, number>();
  private readonly actor: ExperimentActor;
  private readonly t: MetadataTx;
  private readonly stored: StoredObjects;
  private readonly remarks: string[];

  constructor(
    private readonly deps: FlagWriteDeps,
    private readonly request: ImportRequest,
    { t, stored, remarks }: { t: MetadataTx; stored: StoredObjects; remarks: string[] },
  ) {
    this.t = t;
    this.stored = stored;
    this.remarks = remarks;
    const { projectId, by, now, isConfirmed, isDryRun } = request;
    this.actor = {
      project: deps.metadata.projects.find(projectId)!,
      by,
      now,
      limits: undefined,
      skipsApproval: isConfirmed === true || isDryRun,
    };
  }

  /** @returns the ID of the written object @throws {AppError} a rule rejects it */
  write(member: ObjectMember, written: JsonObject): StoredObject["id"] {
    const item = { ...objectDefaults[member], ...written };
    const writers: Record<ObjectMember, (item: JsonObject) => StoredObject["id"]> = {
      holdouts: (holdout) => this.holdout(holdout),
      saved_metrics: (metric) => this.savedMetric(metric),
      experiments: (experiment) => this.experiment(experiment),
      early_access_features: (feature) => this.feature(feature),
      surveys: (survey) => this.survey(survey),
    };
    return writers[member](item);
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

  private holdout(item: JsonObject): number {
    const { now } = this.actor;
    const { name, description, filters } = parseFields(createHoldout.input, item);
    const foundId = this.stored.find("holdouts", { name })?.id;
    const found = foundId === undefined ? undefined : findHoldout(this.t, this.projectId, Number(foundId));
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
    return id;
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

  private savedMetric(item: JsonObject): number {
    const { now, by } = this.actor;
    const input = parseFields(createSavedMetric.input, item);
    const values = {
      name: input.name,
      description: input.description ?? "",
      query: withUuid(readMetric, input.query as JsonObject, `saved metric ${input.name}`),
      tags: normalizeTags(input.tags ?? [], "tags") ?? [],
    };
    const found = this.stored.find("saved_metrics", { name: input.name });
    if (found !== undefined) return writeSavedMetric(this.t, Number(found.id), values, now).id;
    return insertSavedMetric(this.t, {
      ...values,
      projectId: this.projectId,
      createdById: getCreatorId(by),
      createdAt: now,
      updatedAt: now,
    }).id;
  }

  private experiment(item: JsonObject): number {
    const { now } = this.actor;
    const { variants, holdout, saved_metrics: saved, start_date, end_date, archived, ...members } = item;
    const flag = this.flag(item.feature_flag_key, "It");
    const holdoutId = this.named("holdouts", holdout, "a holdout");
    const links = (Array.isArray(saved) ? saved : []).filter(isJsonObject).map(({ name, metadata }) => ({
      id: this.named("saved_metrics", name, "a saved metric"),
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
    const foundId = this.stored.find("experiments", { name: input.name, feature_flag_key: flag.key })?.id;
    const found = foundId === undefined ? undefined : getExperiment(this.t, this.projectId, Number(foundId));
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
    return writeExperiment(this.t, edited, dates, now).id;
  }

  /** The ID of the item with a name. @returns null for none */
  private named(member: "holdouts" | "saved_metrics", name: Json | undefined, what: string): number | null {
    if (name === null || name === undefined) return null;
    const found = this.stored.find(member, { name });
    if (found !== undefined) return Number(found.id);
    throw new InvalidDocumentError(
      `It refers to ${what} "${name}", which is neither in the file nor in the project.`,
    );
  }

  private feature(item: JsonObject): string {
    const flag = this.flag(item.feature_flag_key, "It");
    const { feature_flag_id: _, ...input } = parseFields(createNewFeature.input, item);
    const found = this.stored.find("early_access_features", { name: input.name, feature_flag_key: flag.key });
    if (found !== undefined) return updateFeature(this.deps, this.actor, String(found.id), input).id;
    const { id } = createFeature(this.deps, this.actor, { ...input, feature_flag_id: flag.id });
    if (flag.creationContext === "early_access_features")
      this.t.update(earlyAccessFeature).set({ ownsFlag: true }).where(eq(earlyAccessFeature.id, id)).run();
    return id;
  }

  private survey(item: JsonObject): string {
    const { linked_flag_key: key, targeting_flag_filters: filters, questions, appearance, ...members } = item;
    const stored = this.stored.find("surveys", item);
    const found = stored === undefined ? undefined : getSurvey(this.t, this.projectId, String(stored.id));
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
      return found.id;
    }
    const created = createSurvey(this.deps, this.actor, { ...input, id: parseUuid(item.id) });
    if (item.id !== undefined && created.id !== parseUuid(item.id))
      this.remarks.push(`Survey "${input.name}" has another ID here; former responses do not count for it.`);
    return created.id;
  }

  /** By name; of two with the same name the first. An import of objects creates no cohorts. */
  private readonly cohortIds = once(
    () =>
      new Map(
        readCohorts(this.t, this.projectId)
          .toReversed()
          .map(({ name, id }) => [name, id]),
      ),
  );
  private readonly ids = {
    cohort: (name: string) => this.cohortIds().get(name),
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
