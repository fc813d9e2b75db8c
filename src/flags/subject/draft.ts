/** What a flag would be for somebody if it were saved as it is written now: the same rules, and nothing stored. */

import type { PeopleDb } from "../../people/open.ts";
import { compileFlagSet } from "../evaluate/flag-set.ts";
import type { Flag, FlagFields } from "../fields.ts";
import type { CheckAsSaving } from "../rules/blast-radius.ts";
import { dependencyIds } from "../rules/dependency-rules.ts";
import type { FlagDefinition } from "../rules/types.ts";
import { findFlagByKey } from "../store/flag.ts";
import type { FlagSets, ProjectFlags } from "../store/flag-sets.ts";
import { type FlagWriting, filtersToStore } from "../store/flag-writes.ts";
import { explainFlag, type Question } from "./explanation.ts";

/** The fields of a draft that say whom a flag is for. */
export type DraftFields = Partial<
  Pick<
    FlagFields,
    | "filters"
    | "rolloutPercentage"
    | "active"
    | "ensureExperienceContinuity"
    | "isRemoteConfiguration"
    | "bucketingIdentifier"
  >
> & { key: string };

type Explained = ReturnType<typeof explainFlag>;

/** No flag has it. */
const idOfNew = 0;

/**
 * Explains the value that a draft would have for each subject.
 *
 * @param before the flag that the draft changes; undefined for a new one.
 * @throws {FlagInvalid} @throws {InvalidField} the draft could not be saved.
 */
export function explainDraft(
  deps: FlagWriting & { flagSets: FlagSets; people: PeopleDb },
  draft: { projectId: number; before: Flag | undefined; fields: DraftFields },
  questions: readonly Omit<Question, "flagKey">[],
): Explained[] {
  const { projectId, before, fields } = draft;
  const filters = filtersToStore(deps, deps.metadata.db, projectId, before, fields);
  const stored = deps.flagSets.of(projectId);
  const { key, active = before?.active ?? true } = fields;
  const definition: FlagDefinition = {
    id: before?.id ?? idOfNew,
    name: before?.name ?? "",
    deleted: false,
    version: before?.version ?? 1,
    hasEncryptedPayloads: before?.hasEncryptedPayloads ?? false,
    evaluationRuntime: before?.evaluationRuntime ?? "all",
    evaluationTags: before?.evaluationTags ?? [],
    ...{ key, active, filters },
    ensureExperienceContinuity:
      fields.ensureExperienceContinuity ?? before?.ensureExperienceContinuity ?? false,
    bucketingIdentifier: fields.bucketingIdentifier ?? before?.bucketingIdentifier ?? "distinct_id",
  };
  const set = compileFlagSet(withDependencies(definition, stored), stored.cohorts, stored.groupTypes);
  return questions.map((question) => explainFlag(deps.people, set, { ...question, flagKey: key }));
}

/** Filters of a flag that is being written, as saving would store them; with the key of a flag they change that flag. */
export function checkingAsSaving(deps: FlagWriting, projectId: number): CheckAsSaving {
  const { db } = deps.metadata;
  return (filters, key) => {
    const before = key === "" ? undefined : findFlagByKey(db, projectId, key);
    return filtersToStore(deps, db, projectId, before, { key, filters });
  };
}

/** Explains the value that the stored flag has for each subject. */
export function explainStored(
  deps: { flagSets: FlagSets; people: PeopleDb },
  flag: Flag,
  questions: readonly Omit<Question, "flagKey">[],
): Explained[] {
  const stored = deps.flagSets.of(flag.projectId);
  const set = compileFlagSet(withDependencies(flag, stored), stored.cohorts, stored.groupTypes);
  return questions.map((question) => explainFlag(deps.people, set, { ...question, flagKey: flag.key }));
}

/** The flag and those that it stands on: of thousands of others nobody asks. */
function withDependencies(flag: FlagDefinition, { definitions }: ProjectFlags): FlagDefinition[] {
  const byId = new Map(definitions.map((one) => [one.id, one]));
  const found = new Map([[flag.id, flag]]);
  // A map that grows while it is walked comes to what was added.
  for (const one of found.values()) {
    for (const id of dependencyIds(one.filters)) {
      const needed = byId.get(id);
      if (needed !== undefined && !found.has(id)) found.set(id, needed);
    }
  }
  return [...found.values()];
}
