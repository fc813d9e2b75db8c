/** What the documentation tells about the bodies and answers of flag values; the routes are laxer than any schema. */

import type { Answer } from "../../../http/route.ts";
import {
  ApiFailure,
  anyJson,
  bool,
  choice,
  dictionary,
  int,
  list,
  named,
  object,
  optional,
  text,
} from "../../../http/shapes.ts";
import { ofrepReasons } from "./ofrep.ts";

export const flagValuesTag = "Flag values";
export const openFeatureTag = "OpenFeature";

/** No usable key. */
export const keyRefused: Answer = {
  description: "No project key, or not a valid one.",
  schema: ApiFailure,
  example: {
    type: "authentication_error",
    code: "authentication_failed",
    detail: "The provided API key is invalid or has expired. Please check your API key and try again.",
    attr: null,
  },
};
/** Flag routes explain themselves in a sentence of plain text. */
export const unreadable: Answer = {
  description: "The body cannot be read, or names nobody; why stands in plain text.",
};

export const FlagsRequest = object({
  token: text({ description: "Public key of the project; `api_key` means the same." }),
  distinct_id: text(),
  groups: optional(dictionary({ description: "Group key by group type." })),
  person_properties: optional(dictionary({ description: "Win over what is stored, for this request." })),
  group_properties: optional(dictionary()),
  flag_keys_to_evaluate: optional(list(text())),
  evaluation_contexts: optional(list(text())),
  disable_flags: optional(bool()),
});
export const FlagsReply = named(
  "FlagsReply",
  object({
    errorsWhileComputingFlags: bool({ description: "Some answer is missing." }),
    requestId: text(),
    evaluatedAt: int({ description: "Milliseconds since 1970." }),
    flags: dictionary({ description: "By key: `enabled`, `variant`, `reason`, `metadata`." }),
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
  context: dictionary({
    description:
      "`targetingKey` is the distinct id; `groups`, `group_properties`, `$device_id` and `$anon_distinct_id` mean what they mean in `/flags`; every other member is a person property.",
  }),
});
export const Evaluated = named(
  "OpenFeatureEvaluation",
  object({
    key: text(),
    value: optional(anyJson({ description: "True, false, or the key of a variant." })),
    reason: optional(choice(ofrepReasons, { description: "`UNKNOWN`: no condition set matched." })),
    variant: optional(text({ description: "The key of the variant, or `true` or `false`." })),
    metadata: optional(dictionary({ description: "`id`, `version`, `reason`, `payload` as JSON text." })),
    errorCode: optional(text()),
    errorDetails: optional(text()),
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
  "The project's public key comes as `Authorization: Bearer` or as `X-API-Key`. A request with `Origin`, `Referer` or `Sec-Fetch-Site` comes from a browser and gets flags for clients; every other request gets flags for servers. This is the OpenFeature Remote Evaluation Protocol; use it through an OFREP provider.";
export const exampleContext = { context: { targetingKey: "kim", plan: "pro", groups: { company: "acme" } } };
export const ofrepRefusals: Record<number, Answer> = {
  400: {
    description: "`errorCode`: `PARSE_ERROR`, `TARGETING_KEY_MISSING`, `INVALID_CONTEXT` or `GENERAL`.",
  },
  401: { description: "No project key, or not a valid one." },
};
