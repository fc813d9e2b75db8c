/**
 * The public capture routes, with and without the trailing slash and never with a redirect: clients follow redirects
 * with a GET and lose their events. Source: contract, ingestion 1; sdk-compat 4.2.
 */

import { queryFields } from "../http/decode/form.ts";
import { notFound } from "../http/http-error.ts";
import { type Call, clientRoutes, type Method, type Route, RouteResponse } from "../http/route.ts";
import { captureProfile, publicFilesProfile } from "../http/route-profile.ts";
import { record } from "../http/schemas.ts";
import { analyticsEvents, batchResultsProfile } from "./batch-with-results.ts";
import {
  analyticsBody,
  analyticsRejection,
  analyticsResults,
  captureRejections,
  eventsTag,
  manyEventsBody,
  okAnswer,
  oneEventBody,
  PixelQuery,
} from "./documentation.ts";
import { CaptureHandler } from "./event-intake.ts";
import type { CaptureDeps } from "./ports.ts";
import type { MissingNamePolicy } from "./request-entries.ts";

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
