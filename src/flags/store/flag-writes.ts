/**
 * Creates and changes flags: the stored row, its tags, its activity entry and the project's revision, in one
 * transaction each.
 *
 * Source: contract, management-api 3.4 to 3.6, 5.10; contract, README (keys of deleted flags) and decision 10.
 */

import { and, eq } from "drizzle-orm";
import {
  type Author,
  type Change,
  changesBetween,
  getCreatorId,
  getUserId,
  type NewActivity,
  recordActivity,
} from "../../accounts/activity.ts";
import { bumpRevision, flagRevision, type MetadataTx, type Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { anyJsonValue, dashboard, flag, flagDashboard } from "../../accounts/schema.ts";
import { replaceTags } from "../../accounts/tags.ts";
import { findUser } from "../../accounts/users.ts";
import { InvalidFieldError, NotFoundError } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import type { RecordMisfit } from "../../lib/values/operators.ts";
import { type Flag, type FlagFields, storedFields, trackedFields } from "../fields.ts";
import { filtersOfChangedFlag, filtersOfNewFlag } from "../rules/filters.ts";
import { changedTags, keyBeforeReplaced, type SentTags } from "../rules/key.ts";
import { getConstantValue } from "../rules/status.ts";
import { getRolloutPercentage, withRenamedEnrollment } from "../rules/stored-filters.ts";
import { getVariants, hidePayloads, redactedPayload } from "../rules/types.ts";
import { findFlag, getFlag } from "./flag.ts";
import { type Edit, mergeConcurrentEdit } from "./flag-conflicts.ts";
import { checkTransitions, cohortFacts, flagFacts } from "./flag-dependencies.ts";
import { checkFlagCount, checkKey, checkProjectSize, freeKey, keyAfter } from "./flag-limits.ts";
import { getFlagLinks, releaseFlag, withLinks, withoutLinks } from "./flag-links.ts";
import { getSearchString } from "./flag-list.ts";
import type { GroupTypeSource } from "./flag-sets.ts";
import { createUsageDashboard, renameUsageDashboard } from "./flag-usage-dashboard.ts";
import { isEncryptionTurnedOn, redactHistory } from "./payload-history.ts";

/** Encrypts payloads at rest; see `src/flags/store/payload-cipher.ts`. */
export interface PayloadCipher {
  /** The filters of a flag with decrypted payloads. */
  open(flag: Flag): JsonObject;
  /** Validated filters with plain payloads in stored form. @param flag to store them in. @param before its current state. */
  seal(filters: JsonObject, flag: Pick<Flag, "projectId" | "id">, before: Flag | undefined): JsonObject;
}

export interface FlagWriteDeps {
  metadata: Metadata;
  payloads: PayloadCipher;
  /** Existing group types; if unknown, no response reports a missing one. */
  groupTypes?: GroupTypeSource;
  /** Receives values in conditions that match nothing; without it such a write is rejected. */
  recordMisfit?: RecordMisfit;
}

export interface NewFlag {
  by: Author;
  projectId: number;
  fields: Partial<FlagFields> & { key: string };
  createsUsageDashboard: boolean;
  now: Date;
}

/**
 * Creates a flag. A deleted flag with the same key loses it.
 *
 * @throws {InvalidFieldError} a rule of management-api 3.1, 3.2 or 4.4 is broken; nothing was changed.
 */
export function createFlag(writing: FlagWriteDeps, input: NewFlag): Flag {
  const { projectId, by, fields, now } = input;
  return writing.metadata.change((t) => {
    checkKey(t, projectId, fields.key, undefined);
    checkFlagCount(t, projectId);
    const { analyticsDashboards, rolloutPercentage: _, ...others } = fields;
    const { sent, ...plain } = withoutTags(others);
    const checked = checkedFilters(writing, t, projectId, undefined, fields);
    // Payloads are encrypted for the id of the flag, which the row gets first.
    const filters = checked.isSecret ? hidePayloads(checked.filters) : checked.filters;
    const { tags, evaluationTags } = changedTags(sent, { tags: [], evaluationTags: [] });
    checkProjectSize(t, projectId, checked.filters);
    freeKey(t, projectId, fields.key);
    const { id } = t
      .insert(flag)
      .values({
        ...plain,
        ...conditionsWritten(fields, now),
        filters,
        ...derivedFrom(filters, fields.key, fields.name ?? ""),
        projectId,
        evaluationTags,
        createdById: getCreatorId(by),
        createdAt: now,
        lastModifiedById: getCreatorId(by),
        updatedAt: now,
      })
      .returning({ id: flag.id })
      .get();
    if (checked.isSecret) {
      const sealed = writing.payloads.seal(checked.filters, { projectId, id }, undefined);
      t.update(flag).set({ filters: sealed }).where(eq(flag.id, id)).run();
    }
    replaceTags(t, projectId, "flag", id, tags);
    if (analyticsDashboards) linkDashboards(t, { projectId, id, known: [] }, analyticsDashboards);
    if (input.createsUsageDashboard) createUsageDashboard(t, findFlag(t, projectId, id)!, by, now);
    const created = findFlag(t, projectId, id)!;
    recordCreation(t, created, by, now);
    bumpRevision(t, flagRevision(projectId));
    return created;
  });
}

/** The flag to change, and the author. */
export interface FlagUpdate {
  by: Author;
  projectId: number;
  id: number;
  now: Date;
}

/**
 * Changes a flag; the version increases by one, even if nothing else changes.
 *
 * @throws {NotFoundError}     no such flag in the project.
 * @throws {EditConflictError} another user changed the same fields since `version`.
 * @throws {InvalidFieldError} as `createFlag`.
 */
export function updateFlag(writing: FlagWriteDeps, edit: FlagUpdate & Edit): Flag {
  return writing.metadata.change((t) => writeFlag(writing, t, flagToEdit(t, edit), edit, edit));
}

/** The flag to change, read in the transaction of the change. @throws {NotFoundError} */
export function flagToEdit(t: MetadataTx, flagUpdate: Pick<FlagUpdate, "projectId" | "id">): Flag {
  const found = findFlag(t, flagUpdate.projectId, flagUpdate.id);
  if (!found) throw new NotFoundError();
  return found;
}

/** Like `updateFlag`, in the transaction that read the flag with `flagToEdit`. */
export function writeFlag(
  writing: FlagWriteDeps,
  t: MetadataTx,
  before: Flag,
  edit: Edit,
  { by, now }: Pick<FlagUpdate, "by" | "now">,
): Flag {
  // Secret payloads and links are compared in the form that clients see.
  const links = getFlagLinks(t, before.id);
  const shown = withLinks({ ...before, filters: writing.payloads.open(before) }, links);
  const merged = mergeConcurrentEdit(shown, edit, () => {
    return before.lastModifiedById === null ? undefined : findUser(t, before.lastModifiedById)?.email;
  });
  const fields = withoutLinks(merged, before, links);
  return saveFlag(writing, t, before, fields, { ...edit, by, now });
}

/** Writes changed fields of a flag that was read in the same transaction. @throws {InvalidFieldError} */
function saveFlag(
  writing: FlagWriteDeps,
  t: MetadataTx,
  before: Flag,
  fields: Partial<FlagFields>,
  {
    by,
    now,
    note,
    ignoresDependents,
  }: Pick<FlagUpdate, "by" | "now"> & Pick<Edit, "note" | "ignoresDependents">,
): Flag {
  const { projectId, id } = before;
  const { analyticsDashboards, rolloutPercentage, ...others } = fields;
  const { sent, ...plain } = withoutTags(others);
  const key = keyAfter(t, before, fields);
  const touchesFilters =
    fields.filters !== undefined ||
    rolloutPercentage !== undefined ||
    fields.isRemoteConfiguration !== undefined ||
    fields.hasEncryptedPayloads !== undefined;
  const checked = touchesFilters
    ? filtersToStore(writing, t, projectId, before, { ...fields, key })
    : before.filters;
  // Items named after the key were not renamed when the deleted flag lost it.
  const formerKey = keyBeforeReplaced(before.key, id);
  const isRenamed = key !== before.key && key !== formerKey;
  const filters = isRenamed ? withRenamedEnrollment(checked, formerKey, key) : checked;
  if (touchesFilters || fields.deleted === false) checkProjectSize(t, projectId, filters, before);
  checkTransitions(t, before, fields, filters, ignoresDependents);
  if (fields.deleted === true && !before.deleted) releaseFlag(t, id);
  const { tags, evaluationTags } = changedTags(sent, before);
  const row = t
    .update(flag)
    .set({
      ...plain,
      ...conditionsWritten(fields, now),
      // A flag that is switched on again has not been rolled back (contract: management-api 3.1).
      ...(fields.active === true ? { performedRollback: false } : {}),
      key,
      filters,
      ...derivedFrom(filters, key, fields.name ?? before.name),
      evaluationTags,
      version: before.version + 1,
      lastModifiedById: getUserId(by),
      updatedAt: now,
    })
    .where(eq(flag.id, id))
    .returning()
    .get();
  if (sent.tags !== undefined) replaceTags(t, projectId, "flag", id, tags);
  if (analyticsDashboards) {
    linkDashboards(t, { projectId, id, known: before.analyticsDashboards }, analyticsDashboards);
  }
  if (isRenamed) renameUsageDashboard(t, before, [formerKey, key], now);
  const dashboards = analyticsDashboards && [...new Set(analyticsDashboards)].sort((a, b) => a - b);
  const after = getFlag(row, tags, dashboards ?? before.analyticsDashboards);
  recordChange(t, before, after, { by, now, note });
  if (isEncryptionTurnedOn(before, after)) redactHistory(t, before, after);
  bumpRevision(t, flagRevision(projectId));
  return after;
}

/**
 * The filters to store after a write of a flag; without `before`, those of a draft.
 *
 * @throws {InvalidFlagError} a rule of management-api 4.4 is broken.
 * @throws {InvalidFieldError} payloads would be secret in a flag that is not a remote configuration (3.1).
 */
export function filtersToStore(
  writing: FlagWriteDeps,
  t: Reading,
  projectId: number,
  before: Flag | undefined,
  fields: Partial<FlagFields> & { key: string },
): JsonObject {
  const { filters, isSecret } = checkedFilters(writing, t, projectId, before, fields);
  return isSecret && before ? writing.payloads.seal(filters, before, before) : filters;
}

/** The filters after a write with plain payloads, and whether those are secret. @throws as `filtersToStore`. */
function checkedFilters(
  { payloads, recordMisfit }: FlagWriteDeps,
  t: Reading,
  projectId: number,
  before: Flag | undefined,
  fields: Partial<FlagFields> & { key: string },
): { filters: JsonObject; isSecret: boolean } {
  const context = {
    flagId: before?.id ?? null,
    flagKey: fields.key,
    rolloutPercentage: newRollout(fields.rolloutPercentage, before),
    isRemoteConfiguration: switchAfter(fields.isRemoteConfiguration, before?.isRemoteConfiguration),
    cohorts: cohortFacts(t, projectId),
    flags: flagFacts(t, projectId),
    recordMisfit,
  };
  const isSecret = switchAfter(fields.hasEncryptedPayloads, before?.hasEncryptedPayloads);
  if (isSecret && !context.isRemoteConfiguration) {
    const detail = "Encrypted payloads are only supported for remote configuration flags.";
    throw new InvalidFieldError("has_encrypted_payloads", "invalid_input", detail);
  }
  const opened = before && payloads.open(before);
  if (before?.hasEncryptedPayloads && !isSecret) assertPayloadsAreSentAgain(fields.filters, opened!);
  const sent = withPreservedPayloads(fields.filters, opened ?? {});
  const filters = opened ? filtersOfChangedFlag(sent, opened, context) : filtersOfNewFlag(sent, context);
  return { filters, isSecret };
}

/** A boolean after a write: null turns it off, like in the stored column; an absent one is unchanged. */
function switchAfter(sent: boolean | null | undefined, before: boolean | null | undefined): boolean {
  return (sent === undefined ? before : sent) === true;
}

/**
 * Turning encryption off would publish the payload to every reader of the flag: only a caller who knows it may.
 *
 * @throws {InvalidFieldError} a payload is missing from the request, or only its placeholder was sent (contract:
 * management-api 4.5).
 */
function assertPayloadsAreSentAgain(sent: JsonObject | undefined, opened: JsonObject): void {
  if (!isJsonObject(opened.payloads)) return;
  const again: JsonObject = isJsonObject(sent?.payloads) ? sent.payloads : {};
  const isSent = (name: string) => Object.hasOwn(again, name) && again[name] !== redactedPayload;
  if (Object.keys(opened.payloads).every(isSent)) return;
  throw new InvalidFieldError(
    "has_encrypted_payloads",
    "invalid_input",
    "Send the payload in plain text in `filters.payloads` to turn its encryption off.",
  );
}

/** Separates the tags of a write from its other fields, which are columns. */
function withoutTags<Fields extends Partial<FlagFields>>(fields: Fields) {
  const { tags, evaluationTags, evaluationContexts, ...plain } = fields;
  const sent: SentTags = { tags, evaluation_tags: evaluationTags, evaluation_contexts: evaluationContexts };
  return { sent, ...plain };
}

/** The percentage of a request, unless a client that sends the whole flag back only repeats the stored one. */
function newRollout(percentage: number | undefined, before: Flag | undefined): number | undefined {
  const isRepeated = before !== undefined && percentage === getRolloutPercentage(before.filters);
  return isRepeated ? undefined : percentage;
}

/**
 * A client that may not see payloads sends back a placeholder, which means: unchanged (contract: 4.5).
 *
 * @throws {InvalidFieldError} without an earlier payload the placeholder would become the payload.
 */
function withPreservedPayloads(sent: JsonObject | undefined, opened: JsonObject): JsonObject | undefined {
  if (!isJsonObject(sent?.payloads)) return sent;
  const known = isJsonObject(opened.payloads) ? opened.payloads : {};
  const payloads = Object.entries(sent.payloads).map(([name, value]) => {
    if (value !== redactedPayload) return [name, value];
    if (Object.hasOwn(known, name)) return [name, known[name]];
    const detail = `The payload of '${name}' is not stored yet; send it in plain text.`;
    throw new InvalidFieldError("filters", "invalid_input", detail);
  });
  return { ...sent, payloads: Object.fromEntries(payloads) };
}

/** Rollback conditions and their time: only those that were written since they have an effect are checked. */
function conditionsWritten({ rollbackConditions: sent }: Partial<FlagFields>, now: Date) {
  if (sent === undefined) return {};
  return { rollbackConditions: anyJsonValue(sent), rollbackConditionsAt: sent === null ? null : now };
}

/** Derived columns for filtering lists. */
function derivedFrom(filters: JsonObject, key: string, name: string) {
  return {
    searchText: getSearchString(key, name),
    variantCount: getVariants(filters).length,
    isFullyRolledOut: getConstantValue(filters) !== undefined,
  };
}

/**
 * Replaces the flag's analytics dashboards.
 *
 * @param flag.known the current ones: one that was deleted since may stay, as clients send back what they read.
 * @throws {InvalidFieldError} one is not of the project.
 */
function linkDashboards(
  t: MetadataTx,
  { projectId, id: flagId, known }: { projectId: number; id: number; known: readonly number[] },
  ids: readonly number[],
): void {
  t.delete(flagDashboard).where(eq(flagDashboard.flagId, flagId)).run();
  for (const dashboardId of new Set(ids)) {
    const found =
      known.includes(dashboardId) ||
      t
        .select({ id: dashboard.id })
        .from(dashboard)
        .where(
          and(
            eq(dashboard.id, dashboardId),
            eq(dashboard.projectId, projectId),
            eq(dashboard.deleted, false),
          ),
        )
        .get();
    if (!found) {
      const detail = `Invalid pk "${dashboardId}" - object does not exist.`;
      throw new InvalidFieldError("analytics_dashboards", "does_not_exist", detail);
    }
    t.insert(flagDashboard).values({ flagId, dashboardId }).run();
  }
}

/** Author, time and reason in the activity log. */
type Recorded = Pick<NewActivity, "by" | "now" | "note">;

/** Records a new flag in the activity log. */
function recordCreation(t: MetadataTx, flag: Flag, by: Author, now: Date): void {
  recordEntry(t, "created", flag, [], { by, now });
}

/** Records a change in the activity log. `version` is tracked, so every change has an entry. */
function recordChange(t: MetadataTx, before: Flag, after: Flag, how: Recorded): void {
  // If one side is secret, both are hidden: a payload that is encrypted now was readable before, and the reverse.
  const isSecret = before.hasEncryptedPayloads || after.hasEncryptedPayloads;
  const shown = (flag: Flag) => ({
    ...storedFields(flag),
    filters: isSecret ? hidePayloads(flag.filters) : flag.filters,
  });
  const changes = changesBetween("FeatureFlag", shown(before), shown(after), trackedFields);
  const activity = before.deleted === after.deleted ? "updated" : after.deleted ? "deleted" : "restored";
  recordEntry(t, activity, after, changes, how);
}

function recordEntry(
  t: MetadataTx,
  activity: string,
  flag: Pick<Flag, "id" | "key" | "projectId">,
  changes: Change[],
  how: Recorded,
): void {
  recordActivity(t, {
    ...how,
    projectId: flag.projectId,
    activity,
    scope: "FeatureFlag",
    itemId: flag.id,
    name: flag.key,
    changes,
  });
}
