/** Documentation of capture bodies and responses; the routes are laxer than any schema. */

import type { ResponseSpec } from "../http/route.ts";
import {
  ApiFailure,
  bool,
  list,
  named,
  nullable,
  num,
  object,
  openObject,
  optional,
  record,
  string,
  union,
} from "../http/schemas.ts";

export const eventsTag = "Event capture";

const Status = object({ status: string() });
export const okAnswer: ResponseSpec = {
  description: "Accepted and stored on disk.",
  schema: Status,
  example: { status: "Ok" },
};
const rejection = (description: string, type: string, code: string, detail: string): ResponseSpec => ({
  description,
  schema: ApiFailure,
  example: { type, code, detail, attr: null },
});
export const captureRejections: Record<number, ResponseSpec> = {
  400: rejection(
    "Invalid body; `detail` has the item, counted from 0, and the expected value. Nothing was stored.",
    "validation_error",
    "invalid_payload",
    "`properties` must be an object: in the item at position 2 it is a string",
  ),
  401: rejection(
    "The project key is missing or invalid.",
    "authentication_error",
    "missing_api_key",
    "event submitted without an api_key",
  ),
  413: rejection(
    "The body exceeds `--body-limit`, compressed or decompressed, or an event has more than 1,000,000 JSON objects and arrays. The number of events is unlimited.",
    "validation_error",
    "payload_too_large",
    "maximum event size exceeded: the request is larger than 20971520 bytes",
  ),
  503: rejection(
    "Repeat the same request after the seconds in `Retry-After`. Requests up to 512 KiB were not stored. Of larger ones the first events may be stored; the same `uuid` deduplicates them.",
    "server_error",
    "journal_unavailable",
    "transient error, please retry",
  ),
};
export const analyticsRejection: ResponseSpec = {
  description: "Same as on other capture routes, in the format of this protocol.",
  schema: object({ error: string(), error_description: string(), error_uri: nullable(string()) }),
  example: {
    error: "invalid_payload",
    error_description: "request holds no event: send at least one",
    error_uri: null,
  },
};

const EventFields = {
  event: string({
    description: "Event name, of any length. Events without a name are dropped, with 200.",
  }),
  distinct_id: string({
    description: "Distinct id of the person, of any length. Events without one are dropped, with 200.",
  }),
  properties: optional(record()),
  timestamp: optional(
    union(
      string({
        description:
          "ISO 8601, or Unix seconds or milliseconds as digits; the time of receipt if absent. Four digits are a year, seven an ordinal date. A historical migration uses it unchanged. Otherwise it is corrected by the client's clock (`sent_at`) if that differs by more than one minute.",
      }),
      num({ description: "Unix seconds, or milliseconds from 1e11. Times before 1990 are ignored." }),
    ),
  ),
  uuid: optional(string({ description: "Events with a known uuid are dropped as duplicates." })),
};
const { distinct_id, ...FieldsWithoutId } = EventFields;
/** An event of a batch, with its distinct ID at the top level or in its properties. */
const BatchItem = named(
  "BatchItem",
  union(object(EventFields), object({ ...FieldsWithoutId, properties: openObject({ distinct_id }) })),
);
const apiKey = string({ description: "Public key of the project (`phc_…`)." });

const historicalMigration = optional(
  bool({
    default: false,
    description: "Marks historical events, see `/batch`. Values other than true, false and null return 400.",
  }),
);

const exampleEvent = { event: "order paid", distinct_id: "kim", properties: { amount: 12.5 } };

const exampleKey = "phc_2rTgVq9mX0aYbLw7sK4uJc8hN1dPzE5fQ6oIiRtUyWx";

export const oneEventBody = {
  body: object({ api_key: apiKey, historical_migration: historicalMigration, ...EventFields }),
  bodyExample: { api_key: exampleKey, ...exampleEvent },
};

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
    created_at: optional(string()),
    historical_migration: historicalMigration,
    batch: list(object({ ...EventFields, options: optional(record()) })),
  }),
  bodyExample: { batch: [{ ...exampleEvent, uuid: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d" }] },
};
/** The results of the events. */
export const analyticsResults: ResponseSpec = {
  description:
    "By uuid: `ok` and `warning` are on disk, `drop` is rejected permanently, `retry` can be sent again.",
  schema: object({ results: record({ description: "`{result, details}` by uuid." }) }),
  example: { results: { "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d": { result: "ok" } } },
};

/** The query of an image pixel. */
export const PixelQuery = object({
  data: string({ description: "The event, or a list of events: JSON, base64, or base64 of gzip." }),
});
