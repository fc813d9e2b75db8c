/**
 * The public capture routes, with and without the trailing slash and without ever redirecting: clients follow a
 * redirect with a GET and lose their events. Source: contract, ingestion 1; sdk-compat 4.2.
 */

import { queryFields } from "../http/decode/form.ts";
import { captureDialect, filesDialect } from "../http/dialect.ts";
import { notFound } from "../http/failure.ts";
import { type Call, clientRoutes, type Method, Reply, type Route } from "../http/route.ts";
import { dictionary } from "../http/shapes.ts";
import { analyticsDialect, analyticsEvents } from "./analytics-events.ts";
import {
  analyticsBody,
  analyticsRefusal,
  analyticsResults,
  captureRefusals,
  eventsTag,
  manyEventsBody,
  okAnswer,
  oneEventBody,
  PixelQuery,
} from "./documentation.ts";
import { Intake } from "./intake.ts";
import type { CaptureDependencies } from "./ports.ts";
import type { MissingNamePolicy } from "./request-entries.ts";

/** Replay bodies are large; they are read to their end, because a client that is cut off sends again. */
const discardedBytesMax = 64 * 1024 * 1024;

const acceptedReply = Reply.json('{"status":"Ok"}');
/** To a browser that is leaving the page and does not read it. */
const toBeacon = new Reply(204);

const captureRoute = clientRoutes(captureDialect);

/** All capture routes. */
export function captureRoutes(deps: CaptureDependencies): Route[] {
  const intake = new Intake(deps);
  const storing = (rule: MissingNamePolicy) => async (call: Call) => {
    await intake.take(call, { kind: "classic", rule });
    return accept(call);
  };
  const pixel = {
    tag: eventsTag,
    query: PixelQuery,
    answers: { 200: okAnswer, ...captureRefusals },
  };
  return [
    captureRoute("POST", "/capture", {
      ...{
        summary: "Send an event",
        tag: eventsTag,
        ...oneEventBody,
        answers: { 200: okAnswer, ...captureRefusals },
      },
      description:
        "Bodies may be compressed and have any content type. The answer comes when the event is on disk.",
      handle: storing("drop"),
    }),
    captureRoute("POST", "/e", {
      ...{ summary: "Send an event, for client libraries", tag: eventsTag, ...oneEventBody },
      description: "As `/capture`; also at `/i/v0/e` and `/track`.",
      aliases: ["/i/v0/e", "/track"],
      answers: { 200: okAnswer, ...captureRefusals },
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
      ...{ summary: "Send person properties, for old clients", tag: eventsTag, ...oneEventBody },
      description: "As `/capture`; an event without a name is `$identify`.",
      answers: { 200: okAnswer, ...captureRefusals },
      handle: storing("treat-as-identify"),
    }),
    captureRoute("GET", "/engage", {
      ...pixel,
      summary: "Send person properties in an image URL",
      handle: storing("treat-as-identify"),
    }),
    captureRoute("POST", "/batch", {
      ...{
        summary: "Send a batch of events",
        tag: eventsTag,
        ...manyEventsBody,
        answers: { 200: okAnswer, ...captureRefusals },
      },
      description:
        "With `historical_migration` each event has exactly its own `timestamp`, events are processed in the order in which they arrive, cause no spike and are not billable.",
      aliases: ["/i/v0/ai/batch"],
      handle: storing("reject-single"),
    }),
    clientRoutes(analyticsDialect)("POST", "/i/v1/analytics/events", {
      ...{ summary: "Send a batch of events, with a result for each", tag: eventsTag, ...analyticsBody },
      description:
        "The newer capture protocol. The project key comes as `Authorization: Bearer`; `PostHog-Request-Id` is echoed.",
      answers: { 200: analyticsResults, 400: analyticsRefusal, 401: analyticsRefusal },
      handle: (call) => analyticsEvents(intake, call),
    }),
    ...discardRoutes(),
    ...absentRoutes(),
    clientRoutes(filesDialect)("GET", "/robots.txt", {
      summary: "Get robots.txt",
      tag: "Documentation",
      answers: { 200: { description: "Plain text." } },
      handle: () => Reply.text("User-agent: *\nDisallow: /\n"),
    }),
  ];
}

function accept({ request }: Call): Reply {
  return queryFields(request.url).beacon === "1" ? toBeacon : acceptedReply;
}

/** Routes for data that the appliance does not keep. */
function discardRoutes(): Route[] {
  const discarding = (method: Method, path: string, data: string, answer: (call: Call) => Reply) =>
    captureRoute(method, path, {
      summary: `Send ${data} (discarded)`,
      tag: eventsTag,
      answers: { 200: { description: "Read and forgotten.", schema: dictionary(), example: {} } },
      async handle(call) {
        await call.discard(discardedBytesMax);
        return answer(call);
      },
    });
  const nothing = () => Reply.json("{}");
  return (["POST", "GET"] as const).flatMap((method) => [
    discarding(method, "/s", "session recordings", accept),
    discarding(method, "/i/v1/logs", "logs", nothing),
    discarding(method, "/i/v1/metrics", "metrics", nothing),
    discarding(method, "/i/v1/traces", "spans of traces", nothing),
  ]);
}

/** Paths that clients know and that the appliance does not serve. */
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
