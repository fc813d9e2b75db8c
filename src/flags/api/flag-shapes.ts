/** A feature flag in requests and answers (requirement: Feature flag; contract: management-api 3). */

import { Type } from "@sinclair/typebox";
import { exampleUser, UserBody } from "../../accounts/api/user-shapes.ts";
import {
  anyJson,
  bool,
  choice,
  dictionary,
  instant,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  pageOf,
  text,
} from "../../http/shapes.ts";
import { bucketingIdentifiers, creationContexts, evaluationRuntimes } from "../store/flag.ts";

const keyLengthMax = 400;

/** The writable fields. `filters` is checked by the rules of flags, not here. */
export const FlagInput = object({
  key: text({ max: keyLengthMax, description: "Unique in the project; letters, digits, `-` and `_`." }),
  name: optional(text({ blank: true, description: "The description of the flag." })),
  filters: optional(
    dictionary({
      description:
        "Condition sets (`groups`), variants (`multivariate`), `payloads`; other members are kept as given. Without `groups` the flag is on for nobody.",
    }),
  ),
  rollout_percentage: optional(
    nullable(num({ minimum: 0, maximum: 100 }), {
      description:
        "Of the only condition set: instead of `filters`, or the same number as there. Null, and on PATCH the number that is stored, say nothing.",
    }),
  ),
  active: optional(bool({ default: true })),
  deleted: optional(bool({ default: false, description: "The only way to delete a flag." })),
  ensure_experience_continuity: optional(nullable(bool(), { default: false })),
  is_remote_configuration: optional(nullable(bool(), { default: false })),
  has_encrypted_payloads: optional(nullable(bool(), { default: false })),
  has_enriched_analytics: optional(nullable(bool(), { default: false })),
  performed_rollback: optional(nullable(bool())),
  rollback_conditions: optional(anyJson({ description: "Kept as given." })),
  experiment_set: optional(nullable(list(int()), { description: "Ids, kept as given; null clears." })),
  surveys: optional(anyJson({ description: "A free-form object, kept as given." })),
  features: optional(anyJson({ description: "A free-form object, kept as given." })),
  tags: optional(nullable(list(text({ blank: true })), { description: "Replaces all tags." })),
  evaluation_tags: optional(nullable(list(text({ blank: true })), { description: "Some of `tags`." })),
  evaluation_runtime: optional(nullable(choice(evaluationRuntimes), { default: "all" })),
  bucketing_identifier: optional(nullable(choice(bucketingIdentifiers), { default: "distinct_id" })),
  creation_context: optional(choice(creationContexts, { default: "feature_flags" })),
  analytics_dashboards: optional(list(int(), { description: "Replaces all; ids of the same project." })),
});

export const NewFlagInput = Type.Composite([
  FlagInput,
  object({
    _create_in_folder: optional(anyJson({ description: "Accepted, without effect." })),
    _should_create_usage_dashboard: optional(bool({ default: true })),
  }),
]);

export const FlagEditInput = Type.Composite([
  FlagInput,
  object({
    version: optional(nullable(int(), { description: "The version you last read." })),
    original_flag: optional(nullable(dictionary(), { description: "The flag as you last read it." })),
  }),
]);

export const flagStatuses = ["ACTIVE", "INACTIVE", "STALE", "DELETED", "UNKNOWN", "ARCHIVED"] as const;

export const FlagBody = named(
  "FeatureFlag",
  object({
    id: int(),
    name: text({ blank: true, description: "The description; named so for backwards compatibility." }),
    key: text(),
    filters: dictionary(),
    deleted: bool(),
    active: bool(),
    created_by: nullable(UserBody),
    created_at: instant(),
    updated_at: nullable(instant()),
    version: int({ description: "Rises by one with every change." }),
    last_modified_by: nullable(UserBody),
    is_simple_flag: bool({ description: "One condition set without conditions, counted by person." }),
    rollout_percentage: nullable(num(), {
      description: "Of the only condition set; 0 when there is none, null when there are several.",
    }),
    ensure_experience_continuity: nullable(bool()),
    experiment_set: list(int()),
    surveys: dictionary(),
    features: dictionary(),
    rollback_conditions: anyJson(),
    performed_rollback: bool(),
    can_edit: bool({ description: "Whether you may change this flag." }),
    tags: list(text()),
    evaluation_tags: list(text()),
    usage_dashboard: nullable(int()),
    analytics_dashboards: list(int()),
    has_enriched_analytics: nullable(bool()),
    user_access_level: nullable(choice(["none", "viewer", "editor", "manager"])),
    creation_context: choice(creationContexts),
    is_remote_configuration: nullable(bool()),
    has_encrypted_payloads: nullable(bool()),
    status: choice(flagStatuses),
    evaluation_runtime: nullable(choice(evaluationRuntimes)),
    bucketing_identifier: nullable(choice(bucketingIdentifiers)),
    last_called_at: nullable(instant()),
  }),
);

export const FlagPage = pageOf("FeatureFlagPage", FlagBody);

export const exampleFlag = {
  id: 12,
  name: "Lets people pay with one click",
  key: "one-click-pay",
  filters: { groups: [{ properties: [], rollout_percentage: 40 }] },
  deleted: false,
  active: true,
  created_by: exampleUser,
  created_at: "2026-03-02T08:15:30.120000Z",
  updated_at: "2026-03-04T16:00:01.007000Z",
  version: 3,
  last_modified_by: exampleUser,
  is_simple_flag: true,
  rollout_percentage: 40,
  ensure_experience_continuity: false,
  experiment_set: [],
  surveys: {},
  features: {},
  rollback_conditions: null,
  performed_rollback: false,
  can_edit: true,
  tags: ["payments"],
  evaluation_tags: [],
  usage_dashboard: 31,
  analytics_dashboards: [],
  has_enriched_analytics: false,
  user_access_level: "manager",
  creation_context: "feature_flags",
  is_remote_configuration: false,
  has_encrypted_payloads: false,
  status: "ACTIVE",
  evaluation_runtime: "all",
  bucketing_identifier: "distinct_id",
  last_called_at: null,
};
