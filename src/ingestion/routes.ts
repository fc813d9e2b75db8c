/**
 * The public capture routes, with and without the trailing slash and without ever redirecting: clients follow a
 * redirect with a GET and lose their events. Source: contract, ingestion 1; sdk-compat 4.2.
 */

import { Elysia } from "elysia";
import { isPublicPreflight, publicCorsHeaders, publicPreflight } from "../http/cors.ts";
import {
  beaconAnswer,
  failureAnswer,
  failureOf,
  internalFailure,
  jsonAnswer,
  methodNotAllowed,
  notFound,
  okAnswer,
} from "../http/decode/answers.ts";
import { queryFields } from "../http/decode/form.ts";
import { drainBody } from "../http/decode/read-body.ts";
import { SlowBodies } from "../http/decode/slow-bodies.ts";
import { analyticsEvents } from "./analytics-events.ts";
import { Intake, type NamelessRule } from "./intake.ts";
import type { CaptureDependencies } from "./ports.ts";

/** Answers one request; `peer` is the address of the other end of the connection. */
export type Answer = (request: Request, peer: string | undefined) => Response | Promise<Response>;

type Cors = Readonly<Record<string, string>>;

const postOnly = "POST, OPTIONS";
/** The paths of image pixels, whose clients send their event in the query of a GET. */
const pixelMethods = "GET, POST, OPTIONS";
/** Replay bodies are large; they are read to their end, because a client that is cut off sends again. */
const discardedBytesMax = 64 * 1024 * 1024;
const slowBodyMs = 10_000;
const robots = "User-agent: *\nDisallow: /\n";

const eventPaths: readonly (readonly [string, NamelessRule, methods: string])[] = [
  ["/capture", "drop each", postOnly],
  ["/e", "drop each", pixelMethods],
  ["/i/v0/e", "drop each", pixelMethods],
  ["/track", "drop each", pixelMethods],
  ["/engage", "name them $identify", pixelMethods],
  ["/batch", "refuse a lone one", postOnly],
  ["/i/v0/ai/batch", "refuse a lone one", postOnly],
];

/**
 * All capture routes as one plugin.
 *
 * @throws {Error} a trusted proxy in the settings is neither an address nor a range.
 */
export function captureRoutes(deps: CaptureDependencies) {
  const slowBodies = new SlowBodies(deps.slowBodyMs ?? slowBodyMs);
  const intake = new Intake(deps, slowBodies);
  const routes = new Map<string, Answer>();
  for (const [path, rule, methods] of eventPaths) routes.set(path, eventRoute(intake, rule, methods));
  routes.set(
    "/s",
    discardRoute(slowBodies, (request, cors) => successAnswer(request, cors)),
  );
  routes.set(
    "/i/v1/logs",
    discardRoute(slowBodies, (_, cors) => jsonAnswer("{}", cors)),
  );
  routes.set(
    "/i/v1/metrics",
    discardRoute(slowBodies, (_, cors) => jsonAnswer("{}", cors)),
  );
  routes.set("/i/v1/analytics/events", analyticsEvents(intake, deps.onUnexpected));
  routes.set("/i/v0/ai", (request) => failureAnswer(notFound, publicCorsHeaders(request)));
  routes.set("/i/v0/ai/otel", (request) => failureAnswer(notFound, publicCorsHeaders(request)));

  const app = new Elysia({ name: "capture" });
  for (const [path, answer] of routes) {
    const guarded = withoutDefects(answer, deps);
    for (const spelling of [path, `${path}/`]) {
      app.all(spelling, ({ request, server }) => guarded(request, server?.requestIP(request)?.address), {
        parse: "none",
        detail: { hide: true },
      });
    }
  }
  return app.get("/robots.txt", () => new Response(robots), { detail: { hide: true } });
}

function eventRoute(intake: Intake, rule: NamelessRule, methods: string): Answer {
  return async (request, peer) => {
    const cors = publicCorsHeaders(request);
    const other = otherMethod(request, cors, methods);
    if (other !== undefined) return other;
    const opened = await intake.open(request, peer, rule);
    await intake.store(opened, rule);
    return opened.query.beacon === "1" ? beaconAnswer(cors) : okAnswer(cors);
  };
}

/** A route for data that the appliance does not keep. */
function discardRoute(slowBodies: SlowBodies, success: (request: Request, cors: Cors) => Response): Answer {
  return async (request) => {
    const cors = publicCorsHeaders(request);
    const other = otherMethod(request, cors, pixelMethods);
    if (other !== undefined) return other;
    await drainBody(request, discardedBytesMax, slowBodies);
    return success(request, cors);
  };
}

function successAnswer(request: Request, cors: Cors): Response {
  return queryFields(request.url).beacon === "1" ? beaconAnswer(cors) : okAnswer(cors);
}

/** The answer to methods that bring no event: OPTIONS, and those that the path does not have. */
function otherMethod(request: Request, cors: Cors, methods: string): Response | undefined {
  const { method } = request;
  if (method === "POST" || (method === "GET" && methods === pixelMethods)) return undefined;
  if (isPublicPreflight(request)) return publicPreflight(request, 200);
  return method === "OPTIONS" ? okAnswer(cors) : methodNotAllowed(method, methods, cors);
}

/** Turns what a route throws into an answer that a page on another origin can read, too. */
function withoutDefects(answer: Answer, { onUnexpected }: CaptureDependencies): Answer {
  return async (request, peer) => {
    try {
      return await answer(request, peer);
    } catch (error) {
      const failure = failureOf(error);
      if (failure === undefined) onUnexpected?.(error, request);
      return failureAnswer(failure ?? internalFailure, publicCorsHeaders(request));
    }
  };
}
