/**
 * Flag definitions for SDKs with local evaluation.
 *
 * As strict as SDKs are: booleans and objects are never null, every property filter has a `value`, payloads are
 * strings. Source: contract, management-api 5.15, flag-evaluation 16, sdk-compat 0.1 item 13 and 4.4.
 */

import { weakTag } from "../../http/route-response.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import { mapProperties } from "../rules/stored-filters.ts";
import {
  type CohortDefinition,
  type FlagDefinition,
  type GroupType,
  surveyFlagPrefix,
} from "../rules/types.ts";
import { inlineSingleCohort, renderCohorts, withComplements } from "./local-cohorts.ts";
import { dependencyRenderer } from "./local-dependencies.ts";
import { requiresServerEvaluation, supportedFilters } from "./local-filters.ts";
import { LocalIssues } from "./local-issues.ts";

export interface LocalEvaluationInput {
  /** All flags of the project; may include deleted ones. */
  flags: Iterable<FlagDefinition>;
  cohorts: Iterable<CohortDefinition>;
  groupTypes: Iterable<GroupType>;
  projectId: number;
  /** With definitions of cohorts; without them, a flag's only cohort is inlined if possible. */
  sendCohorts: boolean;
}

export interface LocalEvaluationBody {
  flags: JsonObject[];
  group_type_mapping: Record<string, string>;
  cohorts: Record<string, JsonObject>;
  /** Why flags are omitted, by key; flags in `flags` contain their issues. */
  local_evaluation_issues: Record<string, string[]>;
}

/** The definitions of a project, including inactive flags; survey flags and encrypted payloads are excluded. */
export function localEvaluationBody(input: LocalEvaluationInput): LocalEvaluationBody {
  const all = [...input.flags].filter(({ deleted }) => !deleted);
  const cohorts = new Map([...input.cohorts].map((cohort) => [cohort.id, cohort]));
  const withDependencyKeys = dependencyRenderer(all);
  const types = new Set([...input.groupTypes].map(({ index }) => index));
  const byId = new Map(all.map((flag) => [flag.id, flag]));
  const issues = new LocalIssues({
    flag: (id) => byId.get(id),
    cohort: (id) => cohorts.get(id),
    hasGroupType: (index) => types.has(index),
  });
  const isLeftOut = ({ key, hasEncryptedPayloads }: FlagDefinition) =>
    hasEncryptedPayloads === true || key.startsWith(surveyFlagPrefix);
  const ordered = all.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.id - b.id));
  const leftOut = ordered.filter(isLeftOut).map((flag) => [flag.key, issues.of(flag)]);
  const flags = ordered
    .filter((flag) => !isLeftOut(flag))
    .map((flag) => {
      const definition = renderDefinition(flag, input.projectId);
      const filters = withDependencyKeys(definition.filters as JsonObject);
      const inlined = input.sendCohorts ? filters : inlineSingleCohort(filters, cohorts);
      return {
        ...definition,
        filters: mapProperties(inlined, "groups", withPlainNegation),
        local_evaluation_issues: issues.of(flag),
      };
    });
  const sentCohorts = input.sendCohorts ? renderCohorts(flags, cohorts) : {};
  return {
    flags: flags.map((flag) => ({
      ...flag,
      filters: withComplements(flag.filters as JsonObject, sentCohorts),
    })),
    group_type_mapping: Object.fromEntries(
      [...input.groupTypes].map(({ index, name }) => [String(index), name]),
    ),
    cohorts: sentCohorts,
    local_evaluation_issues: Object.fromEntries(leftOut),
  };
}

/** A serialized body and its ETag, which changes only with the body. */
export function localEvaluationReply(body: LocalEvaluationBody): { text: string; etag: string } {
  const text = JSON.stringify(body);
  return { text, etag: weakTag(text) };
}

/** A flag in the shape of `local_evaluation` and `my_flags`, with the stored filters in the types that SDKs support. */
export function renderDefinition(flag: FlagDefinition, projectId: number): JsonObject {
  return {
    id: flag.id,
    team_id: projectId,
    name: flag.name ?? "",
    key: flag.key,
    filters: supportedFilters(flag),
    deleted: flag.deleted === true,
    active: flag.active === true,
    ensure_experience_continuity: flag.ensureExperienceContinuity === true,
    has_encrypted_payloads: flag.hasEncryptedPayloads === true,
    version: flag.version,
    evaluation_runtime: flag.evaluationRuntime ?? "all",
    bucketing_identifier: flag.bucketingIdentifier ?? "distinct_id",
    evaluation_tags: [...flag.evaluationTags],
    evaluation_contexts: [...flag.evaluationTags],
  };
}

/** SDKs support the operator of a flag's cohort filter but not its `negation`, so the operator alone expresses it. */
function withPlainNegation(property: JsonObject): JsonObject {
  if (property.type !== "cohort") return property;
  const { operator, negation } = property;
  // With any other operator it matches nothing here, but SDKs would read it as membership.
  if (operator !== undefined && operator !== "in" && operator !== "not_in") return requiresServerEvaluation;
  if (negation !== true) return property;
  return { ...property, operator: operator === "not_in" ? "in" : "not_in", negation: false };
}
