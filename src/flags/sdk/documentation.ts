/** Documentation of the bodies and responses of flag values; the routes are laxer than any schema. */

import type { ResponseSpec } from "../../http/route.ts";
import {
  ApiFailure,
  anyJson,
  bool,
  enumeration,
  int,
  list,
  named,
  object,
  optional,
  record,
  string,
} from "../../http/schemas.ts";
import { ofrepReasons } from "./ofrep.ts";

export const flagValuesTag = "Flag values";
export const openFeatureTag = "OpenFeature";

/** The key is missing or invalid. */
export const keyRejected: ResponseSpec = {
  description: "The project key is missing or invalid.",
  schema: ApiFailure,
  example: {
    type: "authentication_error",
    code: "authentication_failed",
    detail: "The provided API key is invalid or has expired. Please check your API key and try again.",
    attr: null,
  },
};
/** Flag routes explain errors in plain text. */
export const unreadable: ResponseSpec = {
  description: "The body is invalid or has no distinct id; the reason is plain text.",
};

export const FlagsRequest = object({
  token: string({ description: "Public key of the project; alias `api_key`." }),
  distinct_id: string(),
  groups: optional(record({ description: "Group key by group type." })),
  person_properties: optional(record({ description: "Override stored properties for this request." })),
  group_properties: optional(record()),
  flag_keys_to_evaluate: optional(list(string())),
  evaluation_contexts: optional(list(string())),
  disable_flags: optional(bool()),
});
export const FlagsReply = named(
  "FlagsReply",
  object({
    errorsWhileComputingFlags: bool({ description: "Some flags could not be evaluated." }),
    requestId: string(),
    evaluatedAt: int({ description: "Unix milliseconds." }),
    flags: record({ description: "By key: `enabled`, `variant`, `reason`, `metadata`." }),
  }),
);
export const exampleFlags = {
  errorsWhileComputingFlags: false,
  requestId: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d",
  evaluatedAt: 1772366400000,
  flags: {
    "one-click-pay": {
      key: "one-click-pay",
      enabled: true,
      variant: null,
      reason: { code: "condition_match", condition_index: 0, description: "Matched condition set 1" },
      metadata: { id: 12, version: 3, description: null, payload: null },
    },
  },
};

/** A request of \`/flags\` and \`/decide\`. */
export const exampleRequest = {
  token: "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx",
  distinct_id: "kim",
};

/** The body of an OpenFeature request. */
export const Context = object({
  context: record({
    description:
      "`targetingKey` is the distinct id; `groups`, `group_properties`, `$device_id` and `$anon_distinct_id` are the same as in `/flags`; every other member is a person property.",
  }),
});
export const Evaluated = named(
  "OpenFeatureEvaluation",
  object({
    key: string(),
    value: optional(anyJson({ description: "True, false, or the key of a variant." })),
    reason: optional(enumeration(ofrepReasons, { description: "`UNKNOWN`: no condition set matched." })),
    variant: optional(string({ description: "The key of the variant, or `true` or `false`." })),
    metadata: optional(record({ description: "`id`, `version`, `reason`, `payload` as a JSON string." })),
    errorCode: optional(string()),
    errorDetails: optional(string()),
  }),
);
export const exampleEvaluated = {
  key: "button",
  value: "blue",
  reason: "SPLIT",
  variant: "blue",
  metadata: { id: 12, version: 3, reason: "condition_match", payload: '{"hex":"#00f"}' },
};
export const ofrepKey =
  "Send the project's public key as `Authorization: Bearer` or `X-API-Key`. Requests with `Origin`, `Referer` or `Sec-Fetch-Site` come from a browser and get client flags; all others get server flags. OpenFeature Remote Evaluation Protocol (OFREP).";
export const exampleContext = { context: { targetingKey: "kim", plan: "pro", groups: { company: "acme" } } };
export const ofrepRejections: Record<number, ResponseSpec> = {
  400: {
    description: "`errorCode`: `PARSE_ERROR`, `TARGETING_KEY_MISSING`, `INVALID_CONTEXT` or `GENERAL`.",
  },
  401: { description: "The project key is missing or invalid." },
};
