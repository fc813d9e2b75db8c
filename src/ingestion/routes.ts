/**
 * The public capture routes, with and without the trailing slash and never with a redirect: clients follow redirects
 * with a GET and lose their events. Source: contract, ingestion 1; sdk-compat 4.2.
 */

import { InvalidApiKeyError } from "../http/decode/errors.ts";
import { queryFields } from "../http/decode/form.ts";
import { notFound } from "../http/http-error.ts";
import {
  type Call,
  clientRoutes,
  type Method,
  type ResponseSpec,
  type Route,
  RouteResponse,
} from "../http/route.ts";
import { captureProfile, publicFilesProfile, type RouteProfile } from "../http/route-profile.ts";
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
import { CaptureHandler } from "./event-intake.ts";
import type { CaptureDeps } from "./ports.ts";
import type { MissingNamePolicy, Protocol } from "./request-entries.ts";
import { checkedToken } from "./token.ts";

/*
 * The newer capture protocol: key and library in headers, and a result per event.
 *
 * Source: contract, ingestion 16; sdk-compat 4.9.
 */

/** The library expects its request ID, or the server's, in every response. */
function withRequestId(reply: RouteResponse, request: Request): RouteResponse {
  const id = request.headers.get("posthog-request-id") ?? Bun.randomUUIDv7();
  return new RouteResponse(reply.status, reply.body, { ...reply.headers, "PostHog-Request-Id": id });
}

/** Error responses of this protocol. */
const batchResultsProfile: RouteProfile = {
  ...captureProfile,
  reject({ status, code, message, headers }, _, { request }) {
    const body = { error: code, error_description: message, error_uri: null };
    return withRequestId(new RouteResponse(status, body, headers), request);
  },
};

/** Stores the events of a request and returns a result for each. */
async function analyticsEvents(intake: CaptureHandler, call: Call): Promise<RouteResponse> {
  const { headers } = call.request;
  const project = intake.findProject(bearerToken(headers.get("authorization")));
  const protocol: Protocol = {
    kind: "analytics",
    sentAt: headers.get("posthog-request-timestamp"),
    sdkInfo: headers.get("posthog-sdk-info"),
  };
  const { results } = await intake.take(call, protocol, project);
  return withRequestId(RouteResponse.json(results!), call.request);
}

function bearerToken(header: string | null): string {
  if (header === null) throw new InvalidApiKeyError("missing_api_key", "the Authorization header is missing");
  const [, token] = /^bearer\s+(.*)$/i.exec(header.trim()) ?? [];
  if (token === undefined)
    throw new InvalidApiKeyError("missing_api_key", "the Authorization header holds no bearer token");
  return checkedToken(token);
}

const eventsTag = "Event capture";

const Status = object({ status: string() });
const okAnswer: ResponseSpec = {
  description: "Accepted and stored on disk.",
  schema: Status,
  example: { status: "Ok" },
};
const rejection = (description: string, type: string, code: string, detail: string): ResponseSpec => ({
  description,
  schema: ApiFailure,
  example: { type, code, detail, attr: null },
});
const captureRejections: Record<number, ResponseSpec> = {
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
const analyticsRejection: ResponseSpec = {
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

const oneEventBody = {
  body: object({ api_key: apiKey, historical_migration: historicalMigration, ...EventFields }),
  bodyExample: { api_key: exampleKey, ...exampleEvent },
};

const manyEventsBody = {
  body: object({
    api_key: apiKey,
    historical_migration: historicalMigration,
    batch: list(BatchItem),
  }),
  bodyExample: { api_key: exampleKey, batch: [exampleEvent] },
};

/** Many events in the newer protocol. */
const analyticsBody = {
  body: object({
    created_at: optional(string()),
    historical_migration: historicalMigration,
    batch: list(object({ ...EventFields, options: optional(record()) })),
  }),
  bodyExample: { batch: [{ ...exampleEvent, uuid: "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d" }] },
};
/** The results of the events. */
const analyticsResults: ResponseSpec = {
  description:
    "By uuid: `ok` and `warning` are on disk, `drop` is rejected permanently, `retry` can be sent again.",
  schema: object({ results: record({ description: "`{result, details}` by uuid." }) }),
  example: { results: { "0193d1a2-7b1c-7c3e-9f60-be2f3a4b5c6d": { result: "ok" } } },
};

/** The query of an image pixel. */
const PixelQuery = object({
  data: string({ description: "The event, or a list of events: JSON, base64, or base64 of gzip." }),
});

/** Replay bodies are large; they are read to their end, because a client that is cut off retries. */
const discardedBytesMax = 64 * 1024 * 1024;

const acceptedReply = RouteResponse.json('{"status":"Ok"}');
/** For a browser that is leaving the page and does not read responses. */
const toBeacon = new RouteResponse(204);

const captureRoute = clientRoutes(captureProfile);

export function captureRoutes(deps: CaptureDeps): Route[] {
  const intake = new CaptureHandler(deps);
  const storing = (rule: MissingNamePolicy) => async (call: Call) => {
    await intake.take(call, { kind: "classic", rule });
    return accept(call);
  };
  const pixel = {
    tag: eventsTag,
    query: PixelQuery,
    answers: { 200: okAnswer, ...captureRejections },
  };
  return [
    captureRoute("POST", "/capture", {
      summary: "Send an event",
      tag: eventsTag,
      ...oneEventBody,
      answers: { 200: okAnswer, ...captureRejections },
      description:
        "Bodies may be compressed and have any content type. The response is sent after the event is on disk.",
      handle: storing("drop"),
    }),
    captureRoute("POST", "/e", {
      summary: "Send an event, for client libraries",
      tag: eventsTag,
      ...oneEventBody,
      description: "Same as `/capture`; also at `/i/v0/e` and `/track`.",
      aliases: ["/i/v0/e", "/track"],
      answers: { 200: okAnswer, ...captureRejections },
      handle: storing("drop"),
    }),
    captureRoute("GET", "/e", {
      ...pixel,
      summary: "Send an event in an image URL",
      description: "Also at `/i/v0/e` and `/track`.",
      aliases: ["/i/v0/e", "/track"],
      handle: storing("drop"),
    }),
    captureRoute("POST", "/engage", {
      summary: "Send person properties, for old clients",
      tag: eventsTag,
      ...oneEventBody,
      description: "Same as `/capture`; an event without a name is `$identify`.",
      answers: { 200: okAnswer, ...captureRejections },
      handle: storing("treat-as-identify"),
    }),
    captureRoute("GET", "/engage", {
      ...pixel,
      summary: "Send person properties in an image URL",
      handle: storing("treat-as-identify"),
    }),
    captureRoute("POST", "/batch", {
      summary: "Send a batch of events",
      tag: eventsTag,
      ...manyEventsBody,
      answers: { 200: okAnswer, ...captureRejections },
      description:
        "With `historical_migration` each event keeps its `timestamp`, events are processed in order of arrival, cause no spike and are not billable.",
      aliases: ["/i/v0/ai/batch"],
      handle: storing("reject-single"),
    }),
    clientRoutes(batchResultsProfile)("POST", "/i/v1/analytics/events", {
      summary: "Send a batch of events, with a result for each",
      tag: eventsTag,
      ...analyticsBody,
      description:
        "The newer capture protocol. Send the project key as `Authorization: Bearer`; `PostHog-Request-Id` is echoed.",
      answers: { 200: analyticsResults, 400: analyticsRejection, 401: analyticsRejection },
      handle: (call) => analyticsEvents(intake, call),
    }),
    ...discardRoutes(),
    ...absentRoutes(),
    clientRoutes(publicFilesProfile)("GET", "/robots.txt", {
      summary: "Get robots.txt",
      tag: "Documentation",
      answers: { 200: { description: "Plain text." } },
      handle: () => RouteResponse.text("User-agent: *\nDisallow: /\n"),
    }),
  ];
}

function accept({ request }: Call): RouteResponse {
  return queryFields(request.url).beacon === "1" ? toBeacon : acceptedReply;
}

/** Routes for data that the server does not store. */
function discardRoutes(): Route[] {
  const discarding = (method: Method, path: string, data: string, answer: (call: Call) => RouteResponse) =>
    captureRoute(method, path, {
      summary: `Send ${data} (discarded)`,
      tag: eventsTag,
      answers: { 200: { description: "Read and discarded.", schema: record(), example: {} } },
      async handle(call) {
        await call.discard(discardedBytesMax);
        return answer(call);
      },
    });
  const nothing = () => RouteResponse.json("{}");
  return (["POST", "GET"] as const).flatMap((method) => [
    discarding(method, "/s", "session recordings", accept),
    discarding(method, "/i/v1/logs", "logs", nothing),
    discarding(method, "/i/v1/metrics", "metrics", nothing),
    discarding(method, "/i/v1/traces", "spans of traces", nothing),
  ]);
}

/** Paths that clients know and that the server does not support. */
function absentRoutes(): Route[] {
  return (["POST", "GET"] as const).map((method) =>
    captureRoute(method, "/i/v0/ai", {
      summary: "Not supported: traces of language models",
      tag: eventsTag,
      aliases: ["/i/v0/ai/otel"],
      answers: { 404: { description: "Always." } },
      handle: () => {
        throw notFound("Endpoint not found.");
      },
    }),
  );
}
