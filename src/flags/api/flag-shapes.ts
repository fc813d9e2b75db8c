/** A feature flag in requests and answers (requirement: Feature flag; contract: management-api 3). */

import { Type } from "@sinclair/typebox";
import {
  anyJson,
  bool,
  dictionary,
  int,
  named,
  nullable,
  object,
  optional,
  pageOf,
  text,
} from "../../http/shapes.ts";
import { FlagInput, flagAnswer } from "../fields.ts";

/** Of what people say about a change. */
export const noteLengthMax = 2_000;

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
    note: optional(text({ blank: true, max: noteLengthMax, description: "Why; the activity log keeps it." })),
  }),
]);

export const FlagBody = named("FeatureFlag", object(flagAnswer));

export const FlagPage = pageOf("FeatureFlagPage", FlagBody);
