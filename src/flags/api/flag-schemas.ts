/** A feature flag in requests and responses (requirement: Feature flag; contract: management-api 3). */

import { Type } from "@sinclair/typebox";
import {
  anyJson,
  bool,
  int,
  named,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
} from "../../http/schemas.ts";
import { FlagInput, flagAnswer } from "../fields.ts";

/** Of the note about a change. */
export const noteLengthMax = 2_000;

export const NewFlagInput = Type.Composite([
  FlagInput,
  object({
    _create_in_folder: optional(anyJson({ description: "Accepted without effect." })),
    _should_create_usage_dashboard: optional(bool({ default: true })),
  }),
]);

export const FlagEditInput = Type.Composite([
  FlagInput,
  object({
    version: optional(nullable(int(), { description: "Version of the flag that the edit is based on." })),
    original_flag: optional(nullable(record(), { description: "The flag that the edit is based on." })),
    note: optional(
      string({ blank: true, max: noteLengthMax, description: "Reason, stored in the activity log." }),
    ),
  }),
]);

export const FlagBody = named("FeatureFlag", object(flagAnswer));

export const FlagPage = pageOf("FeatureFlagPage", FlagBody);
