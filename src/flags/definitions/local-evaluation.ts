/**
 * Flag definitions for SDKs that evaluate flags themselves.
 *
 * The wire is strict where SDKs are: booleans and objects are never null, every property filter has a `value`,
 * payloads are text. Source: contract, management-api 5.15, flag-evaluation 16, sdk-compat 0.1 item 13 and 4.4.
 */

import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { payloadText } from "../evaluate/compiled-flag.ts";
import { mapProperties, withGroups } from "../rules/stored-filters.ts";
import {
  type CohortDefinition,
  type FlagDefinition,
  type GroupType,
  redactedPayload,
  surveyFlagPrefix,
} from "../rules/types.ts";
import { inlineSingleCohort, renderCohorts } from "./local-cohorts.ts";
import { dependencyRenderer } from "./local-dependencies.ts";

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
}

/** The definitions of a project, inactive flags included; flags of surveys and encrypted payloads stay out. */
export function localEvaluationBody(input: LocalEvaluationInput): LocalEvaluationBody {
  const all = [...input.flags].filter(({ deleted }) => !deleted);
  const cohorts = new Map([...input.cohorts].map((cohort) => [cohort.id, cohort]));
  const withDependencyKeys = dependencyRenderer(all);
  const flags = all
    .filter(({ key, hasEncryptedPayloads }) => !hasEncryptedPayloads && !key.startsWith(surveyFlagPrefix))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.id - b.id))
    .map((flag) => {
      const definition = renderDefinition(flag, input.projectId);
      const filters = withDependencyKeys(definition.filters as JsonObject);
      const inlined = input.sendCohorts ? filters : inlineSingleCohort(filters, cohorts);
      return { ...definition, filters: mapProperties(inlined, "groups", withPlainNegation) };
    });
  return {
    flags,
    group_type_mapping: Object.fromEntries(
      [...input.groupTypes].map(({ index, name }) => [String(index), name]),
    ),
    cohorts: input.sendCohorts ? renderCohorts(flags, cohorts) : {},
  };
}

/** A body as it goes over the wire, with the entity tag that stays the same as long as the text does. */
export function localEvaluationReply(body: LocalEvaluationBody): { text: string; etag: string } {
  const text = JSON.stringify(body);
  const hash = new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32);
  return { text, etag: `W/"${hash}"` };
}

/** Whether an `If-None-Match` header names a tag; strong and weak forms of the same tag are equal. */
export function isNotModified(ifNoneMatch: string | null | undefined, etag: string): boolean {
  if (!ifNoneMatch) return false;
  if (ifNoneMatch.trim() === "*") return true;
  const bare = (tag: string) => tag.trim().replace(/^W\//, "");
  return ifNoneMatch.split(",").some((tag) => bare(tag) === bare(etag));
}

/** One flag in the shape of `local_evaluation` and `my_flags`, with the filters as they are stored. */
export function renderDefinition(flag: FlagDefinition, projectId: number): JsonObject {
  return {
    id: flag.id,
    team_id: projectId,
    name: flag.name ?? "",
    key: flag.key,
    filters: renderFilters(flag),
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

function renderFilters(flag: FlagDefinition): JsonObject {
  let filters = withGroups(flag.filters);
  for (const list of ["groups", "super_groups", "holdout_groups"] as const) {
    filters = mapProperties(filters, list, (property) => ({ ...property, value: property.value ?? null }));
  }
  const groups = (filters.groups as JsonObject[]).map((group) =>
    isJsonObject(group) && !Array.isArray(group.properties) ? { ...group, properties: [] } : group,
  );
  if (!isJsonObject(filters.payloads)) return { ...filters, groups };
  const payloads = Object.entries(filters.payloads).map(([key, payload]) => [
    key,
    flag.hasEncryptedPayloads ? redactedPayload : payloadText(payload),
  ]);
  return { ...filters, groups, payloads: Object.fromEntries(payloads) };
}

/** SDKs read the operator of a flag's cohort filter but not its `negation`; say the same with the operator alone. */
function withPlainNegation(property: JsonObject): JsonObject {
  if (property.type !== "cohort" || property.negation !== true) return property;
  const { operator } = property;
  if (operator === "not_in") return { ...property, operator: "in", negation: false };
  const isIn = operator === "in" || operator === undefined || operator === null;
  return isIn ? { ...property, operator: "not_in", negation: false } : property;
}
