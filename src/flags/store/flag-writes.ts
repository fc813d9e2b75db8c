/**
 * Creates and changes flags: the stored row, its tags, its activity entry and the project's revision, in
 * one transaction each.
 *
 * Source: contract, management-api 3.4 to 3.6, 5.10; contract, README (keys of deleted flags) and decision 10.
 */

import { and, eq, ne, sql } from "drizzle-orm";
import {
  type Author,
  type Change,
  changesBetween,
  creatorIdOf,
  type NewActivity,
  recordActivity,
  userIdOf,
} from "../../accounts/activity.ts";
import { bumpRevision, flagRevision, type MetadataTx, type Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { dashboard, flag, flagDashboard } from "../../accounts/schema.ts";
import { replaceTags } from "../../accounts/tags.ts";
import { findUser } from "../../accounts/users.ts";
import { InvalidField, NotFound } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import type { NoteMisfit } from "../../lib/operator-values.ts";
import { type Flag, type FlagFields, storedFields, trackedFields } from "../fields.ts";
import { filtersOfChangedFlag, filtersOfNewFlag } from "../rules/filters.ts";
import { filtersInvalid } from "../rules/flag-invalid.ts";
import { keyBeforeReplaced } from "../rules/key.ts";
import { constantValueOf } from "../rules/status.ts";
import { rolloutPercentageOf, withRenamedEnrollment } from "../rules/stored-filters.ts";
import { changedTags, type SentTags } from "../rules/tags.ts";
import { hidePayloads, redactedPayload, variantsOf } from "../rules/types.ts";
import { findFlag, flagOf } from "./flag.ts";
import { type Edit, withoutOverwriting } from "./flag-conflicts.ts";
import { checkTransitions, cohortFacts, flagFacts } from "./flag-dependencies.ts";
import { checkKey, freeKey, keyAfter } from "./flag-keys.ts";
import { searchTextOf } from "./flag-list.ts";
import type { GroupTypeSource } from "./flag-sets.ts";
import { createUsageDashboard, renameUsageDashboard } from "./flag-usage-dashboard.ts";
import { isEncryptionTurnedOn, redactHistory } from "./payload-history.ts";

/** Upstream refuses the 2,001st in its newest version only; a list of 10,000 is within what Flagkeep promises. */
const flagsPerProjectMax = 20_000;
/** All that is evaluated is in memory, several times as large as it is stored, and is made anew at each change. */
const projectFiltersBytesMax = 64 * 1024 * 1024;
/** Flags with shorter filters are bounded by their number. */
const shortFiltersBytes = 16 * 1024;

/** Keeps payloads secret at rest; see `src/flags/store/payload-cipher.ts`. */
export interface PayloadCipher {
  /** The filters of a flag with its payloads in clear. */
  open(flag: Flag): JsonObject;
  /** Checked filters, payloads in clear, as they are stored. @param before the flag so far. */
  seal(filters: JsonObject, isSecret: boolean, before: Flag | undefined): JsonObject;
}

/** What every write of flags needs. */
export interface FlagWriting {
  metadata: Metadata;
  payloads: PayloadCipher;
  /** Group types that exist; where they are not known, no answer names a missing one. */
  groupTypes?: GroupTypeSource;
  /** Takes values in conditions that match nothing; without it a write with one is rejected. */
  noteMisfit?: NoteMisfit;
}

export interface NewFlag {
  by: Author;
  projectId: number;
  fields: Partial<FlagFields> & { key: string };
  createsUsageDashboard: boolean;
  now: Date;
}

/**
 * Creates a flag. A deleted flag that has the key gives it up.
 *
 * @throws {InvalidField} a rule of management-api 3.1, 3.2 or 4.4 is broken; nothing was changed.
 */
export function createFlag(writing: FlagWriting, input: NewFlag): Flag {
  const { projectId, by, fields, now } = input;
  return writing.metadata.change((t) => {
    checkKey(t, projectId, fields.key, undefined);
    checkCount(t, projectId);
    const { analyticsDashboards, rolloutPercentage: _, ...others } = fields;
    const { sent, ...plain } = withoutTags(others);
    const filters = filtersToStore(writing, t, projectId, undefined, fields);
    const { tags, evaluationTags } = changedTags(sent, { tags: [], evaluationTags: [] });
    checkProjectSize(t, projectId, filters);
    freeKey(t, projectId, fields.key);
    const { id } = t
      .insert(flag)
      .values({
        ...plain,
        filters,
        ...derivedFrom(filters, fields.key, fields.name ?? ""),
        projectId,
        evaluationTags,
        createdById: creatorIdOf(by),
        createdAt: now,
        lastModifiedById: creatorIdOf(by),
        updatedAt: now,
      })
      .returning({ id: flag.id })
      .get();
    replaceTags(t, projectId, "flag", id, tags);
    if (analyticsDashboards) linkDashboards(t, { projectId, id, known: [] }, analyticsDashboards);
    if (input.createsUsageDashboard) createUsageDashboard(t, findFlag(t, projectId, id)!, by, now);
    const created = findFlag(t, projectId, id)!;
    recordCreation(t, created, by, now);
    bumpRevision(t, flagRevision(projectId));
    return created;
  });
}

/** Which flag is changed, by whom. */
export interface FlagEdit {
  by: Author;
  projectId: number;
  id: number;
  now: Date;
}

/**
 * Changes a flag; the version rises by one, also when nothing else changes.
 *
 * @throws {NotFound}     no such flag in the project.
 * @throws {EditConflict} somebody else changed the same fields since `version`.
 * @throws {InvalidField} as `createFlag`.
 */
export function updateFlag(writing: FlagWriting, edit: FlagEdit & Edit): Flag {
  return editFlag(writing, edit, () => edit);
}

/**
 * As `updateFlag`, for whoever has to see the flag before they know what to write: it is read once, in the transaction
 * that writes it.
 *
 * @param decide what it throws undoes everything.
 */
export function editFlag(writing: FlagWriting, of: FlagEdit, decide: (before: Flag) => Edit): Flag {
  return writing.metadata.change((t) => {
    const before = findFlag(t, of.projectId, of.id);
    if (!before) throw new NotFound();
    const edit = decide(before);
    // Secret payloads are compared as clients know them.
    const shown = { ...before, filters: writing.payloads.open(before) };
    const fields = withoutOverwriting(shown, edit, () => {
      return before.lastModifiedById === null ? undefined : findUser(t, before.lastModifiedById)?.email;
    });
    return saveFlag(writing, t, before, fields, { ...of, note: edit.note });
  });
}

/** Writes changed fields of a flag that was read in the same transaction. @throws {InvalidField} */
function saveFlag(
  writing: FlagWriting,
  t: MetadataTx,
  before: Flag,
  fields: Partial<FlagFields>,
  { by, now, note }: Pick<FlagEdit, "by" | "now"> & Pick<Edit, "note">,
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
  // What is named after the key was not renamed when the deleted flag gave it up.
  const formerKey = keyBeforeReplaced(before.key, id);
  const isRenamed = key !== before.key && key !== formerKey;
  const filters = isRenamed ? withRenamedEnrollment(checked, formerKey, key) : checked;
  if (touchesFilters || fields.deleted === false) checkProjectSize(t, projectId, filters, before);
  checkTransitions(t, before, fields, filters);
  const { tags, evaluationTags } = changedTags(sent, before);
  const row = t
    .update(flag)
    .set({
      ...plain,
      // A flag that is switched on again has not been rolled back (contract: management-api 3.1).
      ...(fields.active === true ? { performedRollback: false } : {}),
      key,
      filters,
      ...derivedFrom(filters, key, fields.name ?? before.name),
      evaluationTags,
      version: before.version + 1,
      lastModifiedById: userIdOf(by),
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
  const after = flagOf(row, tags, dashboards ?? before.analyticsDashboards);
  recordChange(t, before, after, { by, now, note });
  if (isEncryptionTurnedOn(before, after)) redactHistory(t, before, after);
  bumpRevision(t, flagRevision(projectId));
  return after;
}

/**
 * The filters to store after a write.
 *
 * @throws {FlagInvalid} a rule of management-api 4.4 is broken.
 * @throws {InvalidField} payloads are to be secret in a flag that is no remote configuration (3.1).
 */
export function filtersToStore(
  { payloads, noteMisfit }: FlagWriting,
  t: Reading,
  projectId: number,
  before: Flag | undefined,
  fields: Partial<FlagFields> & { key: string },
): JsonObject {
  const context = {
    flagId: before?.id ?? null,
    flagKey: fields.key,
    rolloutPercentage: newRollout(fields.rolloutPercentage, before),
    isRemoteConfiguration: switchAfter(fields.isRemoteConfiguration, before?.isRemoteConfiguration),
    cohorts: cohortFacts(t, projectId),
    flags: flagFacts(t, projectId),
    noteMisfit,
  };
  const isSecret = switchAfter(fields.hasEncryptedPayloads, before?.hasEncryptedPayloads);
  if (isSecret && !context.isRemoteConfiguration) {
    const detail = "Encrypted payloads are only supported for remote configuration flags.";
    throw new InvalidField("has_encrypted_payloads", "invalid_input", detail);
  }
  const opened = before && payloads.open(before);
  if (before?.hasEncryptedPayloads && !isSecret) assertPayloadsAreSentAgain(fields.filters, opened!);
  const sent = withKeptPayloads(fields.filters, opened ?? {});
  const filters = opened ? filtersOfChangedFlag(sent, opened, context) : filtersOfNewFlag(sent, context);
  return payloads.seal(filters, isSecret, before);
}

/** A switch after a write: null turns it off, as it does in the stored column; one that is not sent keeps its state. */
export function switchAfter(sent: boolean | null | undefined, before: boolean | null | undefined): boolean {
  return (sent === undefined ? before : sent) === true;
}

/**
 * Turning encryption off would publish the payload to everyone who may read the flag: only a caller who knows it may.
 *
 * @throws {InvalidField} a payload is missing from the request, or only its placeholder was sent (contract: management-api 4.5).
 */
function assertPayloadsAreSentAgain(sent: JsonObject | undefined, opened: JsonObject): void {
  if (!isJsonObject(opened.payloads) || sent?.payloads === null) return;
  const again: JsonObject = isJsonObject(sent?.payloads) ? sent.payloads : {};
  const isComplete = Object.keys(opened.payloads).every((name) => {
    // The payloads that are sent replace all: one that is not sent is removed, unless none is sent.
    return isJsonObject(sent?.payloads) ? again[name] !== redactedPayload : false;
  });
  if (isComplete) return;
  throw new InvalidField(
    "has_encrypted_payloads",
    "invalid_input",
    "Send the payload in plain text in `filters.payloads` to turn its encryption off.",
  );
}

/** The tags of a write apart from its other fields, which are columns. */
function withoutTags<Fields extends Partial<FlagFields>>(fields: Fields) {
  const { tags, evaluationTags, evaluationContexts, ...plain } = fields;
  const sent: SentTags = { tags, evaluation_tags: evaluationTags, evaluation_contexts: evaluationContexts };
  return { sent, ...plain };
}

/** The percentage of a request, unless a client that sends the whole flag back only repeats what is stored. */
function newRollout(percentage: number | undefined, before: Flag | undefined): number | undefined {
  const isRepeated = before !== undefined && percentage === rolloutPercentageOf(before.filters);
  return isRepeated ? undefined : percentage;
}

/**
 * A client that may not see payloads echoes a placeholder, which means: as before (contract: 4.5).
 *
 * @throws {InvalidField} there was none before: the placeholder would become the payload.
 */
function withKeptPayloads(sent: JsonObject | undefined, opened: JsonObject): JsonObject | undefined {
  if (!isJsonObject(sent?.payloads)) return sent;
  const known = isJsonObject(opened.payloads) ? opened.payloads : {};
  const payloads = Object.entries(sent.payloads).map(([name, value]) => {
    if (value !== redactedPayload) return [name, value];
    if (Object.hasOwn(known, name)) return [name, known[name]];
    const detail = `There is no secret payload of '${name}' to keep; send it in clear.`;
    throw new InvalidField("filters", "invalid_input", detail);
  });
  return { ...sent, payloads: Object.fromEntries(payloads) };
}

/** The columns by which lists are filtered. */
function derivedFrom(filters: JsonObject, key: string, name: string) {
  return {
    searchText: searchTextOf(key, name),
    variantCount: variantsOf(filters).length,
    isFullyRolledOut: constantValueOf(filters) !== undefined,
  };
}

function checkCount(t: MetadataTx, projectId: number): void {
  const count = t
    .select({ count: sql<number>`count(*)` })
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.deleted, false)))
    .get()!.count;
  if (count < flagsPerProjectMax) return;
  throw new InvalidField(
    null,
    "invalid_input",
    `Maximum of ${flagsPerProjectMax.toLocaleString("en-US")} feature flags allowed per team. ` +
      "Please delete unused flags or contact support to increase this limit.",
  );
}

/**
 * @param before the flag so far, which may always get shorter filters.
 * @throws {InvalidField} the filters of all flags of the project would be too long.
 */
function checkProjectSize(t: MetadataTx, projectId: number, filters: JsonObject, before?: Flag): void {
  const bytes = bytesOf(filters);
  if (bytes <= shortFiltersBytes) return;
  if (before !== undefined && !before.deleted && bytes <= bytesOf(before.filters)) return;
  const isOther = before === undefined ? undefined : ne(flag.id, before.id);
  const others = t
    .select({ bytes: sql<number>`coalesce(sum(octet_length(${flag.filters})), 0)` })
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.deleted, false), isOther))
    .get()!.bytes;
  if (others + bytes <= projectFiltersBytesMax) return;
  throw filtersInvalid(
    `The filters of all flags of a project exceed maximum size of ${projectFiltersBytesMax}. ` +
      "Please delete unused flags, simplify conditions or reduce payload sizes.",
  );
}

const bytesOf = (filters: JsonObject) => Buffer.byteLength(JSON.stringify(filters));

/**
 * Makes these the flag's analytics dashboards.
 *
 * @param of.known those so far: one that was deleted since may stay, as clients send back what they read.
 * @throws {InvalidField} one is not of the project.
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
      throw new InvalidField("analytics_dashboards", "does_not_exist", detail);
    }
    t.insert(flagDashboard).values({ flagId, dashboardId }).run();
  }
}

/** Who did it, when and why, as the activity log keeps it. */
type Recorded = Pick<NewActivity, "by" | "now" | "note">;

/** Writes the entry of a new flag. */
function recordCreation(t: MetadataTx, flag: Flag, by: Author, now: Date): void {
  recordEntry(t, "created", flag, [], { by, now });
}

/** Writes what a change changed. `version` is tracked, so every change has an entry. */
function recordChange(t: MetadataTx, before: Flag, after: Flag, how: Recorded): void {
  // One secret side makes both sides secret: what is encrypted now was readable before, and the reverse.
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
