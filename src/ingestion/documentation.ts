/** What the documentation tells about the bodies and answers of capture; the routes are laxer than any schema. */

import type { Answer } from "../http/route.ts";
import {
  ApiFailure,
  bool,
  dictionary,
  either,
  list,
  named,
  nullable,
  num,
  object,
  openObject,
  optional,
  text,
} from "../http/shapes.ts";

export const eventsTag = "Event capture";

const Status = object({ status: text() });
export const okAnswer: Answer = {
  description: "Accepted and on disk.",
  schema: Status,
  example: { status: "Ok" },
};
const refusal = (description: string, type: string, code: string, detail: string): Answer => ({
  description,
  schema: ApiFailure,
  example: { type, code, detail, attr: null },
});
export const captureRefusals: Record<number, Answer> = {
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
  413: refusal(
    "The body is larger than `--body-limit`, as sent or decompressed, or one event has more than 1,000,000 JSON objects and arrays. A request may have any number of events.",
    "validation_error",
    "payload_too_large",
    "maximum event size exceeded: the request is larger than 20971520 bytes",
  ),
  503: refusal(
    "Repeat the same request after the seconds in `Retry-After`. Nothing of it was stored if it has up to 512 KiB; of a larger one the first events may be stored, and count once if they have the same `uuid` again.",
    "server_error",
    "journal_unavailable",
    "transient error, please retry",
  ),
};
export const analyticsRefusal: Answer = {
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
    either(
      text({
        description:
          "ISO 8601, or Unix seconds or milliseconds as digits; the time of receipt if absent. Four digits are a year, seven an ordinal date. In a historical migration it is the event's time as it stands. Otherwise it is corrected by the sender's clock (`sent_at`) where that differs by more than one minute.",
      }),
      num({ description: "Unix seconds, from 1e11 on milliseconds. Times before 1990 are ignored." }),
    ),
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

const historicalMigration = optional(
  bool({
    default: false,
    description: "The events are history: see `/batch`. Anything but true, false and null is 400.",
  }),
);

const exampleEvent = { event: "order paid", distinct_id: "kim", properties: { amount: 12.5 } };

const exampleKey = "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx";

/** One event. */
export const oneEventBody = {
  body: object({ api_key: apiKey, historical_migration: historicalMigration, ...EventFields }),
  bodyExample: { api_key: exampleKey, ...exampleEvent },
};

/** Many events. */
export const manyEventsBody = {
  body: object({
    api_key: apiKey,
    historical_migration: historicalMigration,
    batch: list(BatchItem),
  }),
  bodyExample: { api_key: exampleKey, batch: [exampleEvent] },
};

/** Many events in the newer protocol. */
export const analyticsBody = {
  body: object({
    created_at: optional(text()),
    historical_migration: historicalMigration,
    batch: list(object({ ...EventFields, options: optional(dictionary()) })),
  }),
  bodyExample: { batch: [{ ...exampleEvent, uuid: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d" }] },
};
/** What becomes of each of them. */
export const analyticsResults: Answer = {
  description:
    "By uuid: `ok` and `warning` are on disk, `drop` is refused for ever, `retry` may be sent again.",
  schema: object({ results: dictionary({ description: "`{result, details}` by uuid." }) }),
  example: { results: { "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d": { result: "ok" } } },
};

/** The query of an image pixel. */
export const PixelQuery = object({
  data: text({ description: "The event, or a list of events: JSON, base64, or base64 of gzip." }),
});
