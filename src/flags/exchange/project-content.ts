/** Reads what of a project goes into its document. */

import type { Reading } from "../../accounts/metadata.ts";
import { readCohorts } from "../../cohorts/cohorts.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { redactedPayload } from "../rules/types.ts";
import { type Flag, readFlags } from "../store/flag.ts";
import type { PayloadCipher } from "../store/flag-writes.ts";
import type { ProjectContent, StoredFlag } from "./document.ts";

export interface ContentOptions {
  projectId: number;
  groupTypes: readonly { index: number; name: string }[];
  /** Opens the payloads that are secret; without it a placeholder stands in their place. */
  payloads?: PayloadCipher;
}

/** The flags and cohorts of a project that are not deleted. */
export function readContent(
  db: Reading,
  { projectId, groupTypes, payloads }: ContentOptions,
): ProjectContent {
  return {
    flags: readFlags(db, projectId).map((flag) => storedFlag(flag, payloads)),
    cohorts: readCohorts(db, projectId).map(({ id, name, description, isStatic, filters }) => ({
      ...{ id, name, description, isStatic, filters },
    })),
    groupTypes,
  };
}

/** A flag under the names of the API. */
export function storedFlag(flag: Flag, payloads?: PayloadCipher): StoredFlag {
  return {
    id: flag.id,
    key: flag.key,
    fields: {
      name: flag.name,
      filters: payloads ? payloads.open(flag) : withoutSecrets(flag),
      active: flag.active,
      ensure_experience_continuity: flag.ensureExperienceContinuity,
      is_remote_configuration: flag.isRemoteConfiguration,
      has_encrypted_payloads: flag.hasEncryptedPayloads,
      evaluation_runtime: flag.evaluationRuntime,
      bucketing_identifier: flag.bucketingIdentifier,
      tags: flag.tags,
      evaluation_tags: flag.evaluationTags,
      experiment_set: flag.experimentSet,
      surveys: flag.surveys,
      features: flag.features,
      rollback_conditions: flag.rollbackConditions,
      creation_context: flag.creationContext,
    },
  };
}

function withoutSecrets({ filters, hasEncryptedPayloads }: Flag): JsonObject {
  if (!hasEncryptedPayloads || !isJsonObject(filters.payloads)) return filters;
  const hidden = Object.keys(filters.payloads).map((name) => [name, redactedPayload]);
  return { ...filters, payloads: Object.fromEntries(hidden) };
}
