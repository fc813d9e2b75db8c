/** Explains an unsaved flag's value for a user as if it were saved: the same rules, and nothing stored. */

import type { PersonReader } from "../../persons/person-reader.ts";
import { compileFlagSet } from "../evaluate/flag-set.ts";
import type { FlagSet } from "../evaluate/model.ts";
import type { Flag, FlagFields } from "../fields.ts";
import type { CheckAsSaving } from "../rules/blast-radius.ts";
import { dependencyIds } from "../rules/dependency-rules.ts";
import type { FlagDefinition } from "../rules/types.ts";
import { findFlagByKey } from "../store/flag.ts";
import type { FlagSets, ProjectFlags } from "../store/flag-sets.ts";
import { type FlagWriteDeps, filtersToStore } from "../store/flag-writes.ts";
import { type ExplainRequest, explainFlag } from "./explanation.ts";

/** The fields of a draft that affect evaluation. */
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

type Explained = Awaited<ReturnType<typeof explainFlag>>;

/** No stored flag has it. */
const idOfNew = 0;

/**
 * Explains the value that a draft would have for each subject.
 *
 * @param before the flag that the draft changes; undefined for a new one.
 * @throws {InvalidFlagError} @throws {InvalidFieldError} the draft could not be saved.
 */
export async function explainDraft(
  deps: FlagWriteDeps & { flagSets: FlagSets; persons: PersonReader },
  draft: { projectId: number; before: Flag | undefined; fields: DraftFields },
  questions: readonly Omit<ExplainRequest, "flagKey">[],
): Promise<Explained[]> {
  const { projectId, before, fields } = draft;
  const filters = filtersToStore(deps, deps.metadata.db, projectId, before, fields);
  const stored = deps.flagSets.get(projectId);
  const { key, active = before?.active ?? true } = fields;
  const definition: FlagDefinition = {
    id: before?.id ?? idOfNew,
    name: before?.name ?? "",
    deleted: false,
    version: before?.version ?? 1,
    hasEncryptedPayloads: before?.hasEncryptedPayloads ?? false,
    evaluationRuntime: before?.evaluationRuntime ?? "all",
    evaluationTags: before?.evaluationTags ?? [],
    key,
    active,
    filters,
    ensureExperienceContinuity:
      fields.ensureExperienceContinuity ?? before?.ensureExperienceContinuity ?? false,
    bucketingIdentifier: fields.bucketingIdentifier ?? before?.bucketingIdentifier ?? "distinct_id",
  };
  const set = compileFlagSet(withDependencies(definition, stored), stored.cohorts, stored.groupTypes);
  return await explainEach(deps.persons, set, key, questions);
}

/**
 * Validates the filters of an unsaved flag as saving would; with the key of an existing flag, as a change of that flag.
 */
export function checkingAsSaving(deps: FlagWriteDeps, projectId: number): CheckAsSaving {
  const { db } = deps.metadata;
  return (filters, key) => {
    const before = key === "" ? undefined : findFlagByKey(db, projectId, key);
    return filtersToStore(deps, db, projectId, before, { key, filters });
  };
}

/** Explains the value of the stored flag for each subject. */
export async function explainStored(
  deps: { flagSets: FlagSets; persons: PersonReader },
  flag: Flag,
  questions: readonly Omit<ExplainRequest, "flagKey">[],
): Promise<Explained[]> {
  const stored = deps.flagSets.get(flag.projectId);
  const set = compileFlagSet(withDependencies(flag, stored), stored.cohorts, stored.groupTypes);
  return await explainEach(deps.persons, set, flag.key, questions);
}

async function explainEach(
  persons: PersonReader,
  set: FlagSet,
  flagKey: string,
  questions: readonly Omit<ExplainRequest, "flagKey">[],
): Promise<Explained[]> {
  return await Promise.all(questions.map((question) => explainFlag(persons, set, { ...question, flagKey })));
}

/** The flag and its dependencies, instead of thousands of others. */
function withDependencies(flag: FlagDefinition, { definitions }: ProjectFlags): FlagDefinition[] {
  const byId = new Map(definitions.map((definition) => [definition.id, definition]));
  const found = new Map([[flag.id, flag]]);
  // Iterating a growing map also visits added entries.
  for (const flagDefinition of found.values()) {
    for (const id of dependencyIds(flagDefinition.filters)) {
      const needed = byId.get(id);
      if (needed !== undefined && !found.has(id)) found.set(id, needed);
    }
  }
  return [...found.values()];
}
