/**
 * Flag definitions for SDKs that evaluate flags themselves.
 *
 * The wire is strict where SDKs are: booleans and objects are never null, every property filter has a `value`,
 * payloads are text. Source: contract, management-api 5.15, flag-evaluation 16, sdk-compat 0.1 item 13 and 4.4.
 */

import { weakTag } from "../../http/etag.ts";
import type { JsonObject } from "../../lib/json.ts";
import { mapProperties } from "../rules/stored-filters.ts";
import {
  type CohortDefinition,
  type FlagDefinition,
  type GroupType,
  surveyFlagPrefix,
} from "../rules/types.ts";
import { inlineSingleCohort, renderCohorts, withComplements } from "./local-cohorts.ts";
import { dependencyRenderer } from "./local-dependencies.ts";
import { leftToTheServer, readableFilters } from "./local-filters.ts";
import { LocalIssues } from "./local-issues.ts";

export interface LocalEvaluationInput {
  /** All flags of the project; deleted ones may be among them. */
  flags: Iterable<FlagDefinition>;
  cohorts: Iterable<CohortDefinition>;
  groupTypes: Iterable<GroupType>;
  projectId: number;
  /** With definitions of cohorts; without them, a flag's only cohort is written into the flag where that is possible. */
  sendCohorts: boolean;
}

export interface LocalEvaluationBody {
  flags: JsonObject[];
  group_type_mapping: Record<string, string>;
  cohorts: Record<string, JsonObject>;
  /** Why flags are left out, by key; what is in `flags` has its issues there. */
  local_evaluation_issues: Record<string, string[]>;
}

/** The definitions of a project, inactive flags included; flags of surveys and encrypted payloads stay out. */
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

/** A body as it goes over the wire, with the entity tag that stays the same as long as the text does. */
export function localEvaluationReply(body: LocalEvaluationBody): { text: string; etag: string } {
  const text = JSON.stringify(body);
  return { text, etag: weakTag(text) };
}

/** One flag in the shape of `local_evaluation` and `my_flags`, with the stored filters in the types that SDKs read. */
export function renderDefinition(flag: FlagDefinition, projectId: number): JsonObject {
  return {
    id: flag.id,
    team_id: projectId,
    name: flag.name ?? "",
    key: flag.key,
    filters: readableFilters(flag),
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

/** SDKs read the operator of a flag's cohort filter but not its `negation`; say the same with the operator alone. */
function withPlainNegation(property: JsonObject): JsonObject {
  if (property.type !== "cohort") return property;
  const { operator, negation } = property;
  // With any other operator it is nobody here, and to SDKs membership.
  if (operator !== undefined && operator !== "in" && operator !== "not_in") return leftToTheServer;
  if (negation !== true) return property;
  return { ...property, operator: operator === "not_in" ? "in" : "not_in", negation: false };
}
