/**
 * What the documentation tells about the public routes: event capture and flag values. They are served by
 * plugins with rules of their own (`src/ingestion/`, `src/flags/api/`) and are laxer than any schema.
 */

import type { DocumentedRoute } from "./openapi.ts";
import {
  ApiFailure,
  anyJson,
  bool,
  dictionary,
  either,
  int,
  list,
  named,
  nullable,
  object,
  openObject,
  optional,
  text,
} from "./shapes.ts";

const eventsTag = "Event capture";
const flagsTag = "Flag values";

const Status = object({ status: text() });
const ok = { description: "Accepted and on disk.", schema: Status, example: { status: "Ok" } };
const refusal = (description: string, type: string, code: string, detail: string) => ({
  description,
  schema: ApiFailure,
  example: { type, code, detail, attr: null },
});
const refusals = {
  400: refusal(
    "The body is not what it should be; which item, counted from 0, and what would be right stands in `detail`. Nothing of the request was stored.",
    "validation_error",
    "invalid_payload",
    "`properties` must be an object: in the item at position 2 it is a string",
  ),
  401: refusal(
    "No project key, or not a valid one.",
    "authentication_error",
    "missing_api_key",
    "event submitted without an api_key",
  ),
  413: refusal("The body is too large.", "validation_error", "payload_too_large", "…"),
  503: refusal(
    "Not at this moment; repeat the request after the seconds in `Retry-After`. Nothing was kept.",
    "server_error",
    "journal_unavailable",
    "transient error, please retry",
  ),
};
const keyRefused = refusal(
  "No project key, or not a valid one.",
  "authentication_error",
  "authentication_failed",
  "The provided API key is invalid or has expired. Please check your API key and try again.",
);
/** Flag routes explain themselves in a sentence of plain text. */
const unreadable = { description: "The body cannot be read, or names nobody; why stands in plain text." };

const v1Refused = {
  description: "As on the other capture routes, in the form of this protocol.",
  schema: object({ error: text(), error_description: text(), error_uri: nullable(text()) }),
  example: {
    error: "invalid_payload",
    error_description: "request holds no event: send at least one",
    error_uri: null,
  },
};

const EventFields = {
  event: text({
    description: "Name of the event, of any length. Without one the event is dropped, still with 200.",
  }),
  distinct_id: text({
    description: "Whose event it is, of any length. Without one the event is dropped, still with 200.",
  }),
  properties: optional(dictionary()),
  timestamp: optional(
    text({
      description:
        "ISO 8601, or Unix seconds or milliseconds; now when absent. In a historical migration it is the event's time as it stands, else it is corrected by the clock of the sender (`sent_at`).",
    }),
  ),
  uuid: optional(text({ description: "A repeated one is dropped as a duplicate." })),
};
const { distinct_id, ...FieldsWithoutId } = EventFields;
/** An event of a batch; its distinct id stands at the top level or among its properties. */
const BatchItem = named(
  "BatchItem",
  either(object(EventFields), object({ ...FieldsWithoutId, properties: openObject({ distinct_id }) })),
);
const apiKey = text({ description: "Public key of the project (`phc_…`)." });

const exampleEvent = { event: "order paid", distinct_id: "kim", properties: { amount: 12.5 } };

const FlagsRequest = object({
  token: text({ description: "Public key of the project; `api_key` means the same." }),
  distinct_id: text(),
  groups: optional(dictionary({ description: "Group key by group type." })),
  person_properties: optional(dictionary({ description: "Win over what is stored, for this request." })),
  group_properties: optional(dictionary()),
  flag_keys_to_evaluate: optional(list(text())),
  evaluation_contexts: optional(list(text())),
  disable_flags: optional(bool()),
});
const FlagsReply = named(
  "FlagsReply",
  object({
    errorsWhileComputingFlags: bool({ description: "Some answer is missing." }),
    requestId: text(),
    evaluatedAt: int({ description: "Milliseconds since 1970." }),
    flags: dictionary({ description: "By key: `enabled`, `variant`, `reason`, `metadata`." }),
  }),
);
const exampleFlags = {
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

/** The public routes, for the `documented` option of `createApp`. */
export const publicApi: readonly DocumentedRoute[] = [
  {
    method: "POST",
    path: "/capture",
    summary: "Send one event",
    description:
      "Also at `/e/`, `/i/v0/e/`, `/track/` and `/engage/`, which take GET with `?data=` too, and without the last slash. Bodies may be compressed and have any content type. The answer comes when the event is on disk.",
    tag: eventsTag,
    body: object({ api_key: apiKey, ...EventFields }),
    bodyExample: { api_key: "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx", ...exampleEvent },
    answers: { 200: ok, ...refusals },
  },
  {
    method: "POST",
    path: "/batch",
    summary: "Send many events",
    description:
      "With `historical_migration` each event has exactly its own `timestamp`, events are processed in the order in which they arrive, cause no spike and are not billable.",
    tag: eventsTag,
    body: object({
      api_key: apiKey,
      historical_migration: optional(bool({ default: false })),
      batch: list(BatchItem),
    }),
    bodyExample: {
      api_key: "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx",
      batch: [exampleEvent],
    },
    answers: { 200: ok, ...refusals },
  },
  {
    method: "POST",
    path: "/i/v1/analytics/events",
    summary: "Send many events, with a result for each",
    description:
      "The newer capture protocol. The project key comes as `Authorization: Bearer`; `PostHog-Request-Id` is echoed.",
    tag: eventsTag,
    body: object({
      created_at: optional(text()),
      historical_migration: optional(bool({ default: false })),
      batch: list(object({ ...EventFields, options: optional(dictionary()) })),
    }),
    bodyExample: { batch: [{ ...exampleEvent, uuid: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d" }] },
    answers: {
      200: {
        description:
          "By uuid: `ok` and `warning` are on disk, `drop` is refused for ever, `retry` may be sent again.",
        schema: object({ results: dictionary({ description: "`{result, details}` by uuid." }) }),
        example: { results: { "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d": { result: "ok" } } },
      },
      400: v1Refused,
      401: v1Refused,
    },
  },
  {
    method: "POST",
    path: "/flags",
    summary: "Compute the flags of one person",
    description: "With `?v=2`. With `?config=true` the settings of the browser library come along.",
    tag: flagsTag,
    query: object({ v: optional(text()), config: optional(text()) }),
    body: FlagsRequest,
    bodyExample: { token: "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx", distinct_id: "kim" },
    answers: {
      200: { description: "The values.", schema: FlagsReply, example: exampleFlags },
      400: unreadable,
      401: keyRefused,
    },
  },
  {
    method: "POST",
    path: "/decide",
    summary: "Compute the flags of one person, for old clients",
    tag: flagsTag,
    query: object({ v: optional(text({ description: "1 to 4; tells the form of the answer." })) }),
    body: FlagsRequest,
    bodyExample: { token: "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx", distinct_id: "kim" },
    answers: {
      200: {
        description: "The values, here for `v=3`, and the settings of the browser library.",
        schema: dictionary(),
        example: { featureFlags: { "one-click-pay": true }, featureFlagPayloads: {} },
      },
      400: unreadable,
      401: keyRefused,
    },
  },
  {
    method: "GET",
    path: "/array/:token/config",
    summary: "Read the settings of the browser and mobile libraries",
    tag: flagsTag,
    answers: {
      200: {
        description: "The settings.",
        schema: object({ token: text(), hasFeatureFlags: bool(), siteApps: nullable(anyJson()) }),
        example: { token: "phc_…", hasFeatureFlags: true, siteApps: [] },
      },
      404: { description: "There is no project with this key." },
    },
  },
];
