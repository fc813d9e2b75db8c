/**
 * `/ofrep/v1/evaluate/flags`: flags for OpenFeature clients, one by one and all at once.
 *
 * The project's key comes as `Authorization: Bearer` or `X-API-Key`. Members of the context are person properties,
 * except `targetingKey` (the distinct id), `groups`, `group_properties`, `$device_id` and `$anon_distinct_id`.
 */

import { Elysia } from "elysia";
import { publicCorsHeaders, publicPreflight } from "../../http/cors.ts";
import { failureOf, methodNotAllowed } from "../../http/decode/answers.ts";
import { InvalidPayload } from "../../http/decode/failures.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { FlagSet } from "../evaluate/flag-set.ts";
import { detectRuntime } from "../evaluate/selection.ts";
import type { Computation } from "../subject/computation.ts";
import { Undecodable } from "./failures.ts";
import { isNotModified } from "./local-evaluation.ts";
import { isForRuntime, keyOf, OfrepRefusal, readContext, renderInactive, renderResult } from "./ofrep.ts";
import type { FlagEvents } from "./ofrep-events.ts";
import type { EvaluatedProject, EvaluationDependencies } from "./ports.ts";
import { type BodyReading, hasBrowserHeaders, readText } from "./request-text.ts";
import { parseTolerantJson } from "./tolerant-json.ts";

type Cors = Readonly<Record<string, string>>;
type OfrepDependencies = EvaluationDependencies & {
  computation: Computation;
  reading: BodyReading;
  events: FlagEvents;
};

const methods = "POST, OPTIONS";
const evaluatePath = "/ofrep/v1/evaluate/flags";

/** The two routes as one plugin. */
export function ofrepRoutes(deps: OfrepDependencies) {
  const app = new Elysia({ name: "ofrep" });
  for (const path of [evaluatePath, `${evaluatePath}/`, `${evaluatePath}/:key`, `${evaluatePath}/:key/`]) {
    app.all(
      path,
      ({ request, params }) => answer(deps, request, (params as { key?: string } | undefined)?.key),
      {
        parse: "none",
        detail: { hide: true },
      },
    );
  }
  return app;
}

async function answer(deps: OfrepDependencies, request: Request, key: string | undefined): Promise<Response> {
  const cors = publicCorsHeaders(request);
  if (request.method === "OPTIONS") return publicPreflight(request, 204);
  if (request.method !== "POST") return methodNotAllowed(request.method, methods, cors);
  const token = keyOf(request.headers);
  const project = token === undefined ? undefined : deps.projects.findByToken(token);
  if (project === undefined) {
    return json(401, { errorDetails: "Send the project's key as a Bearer token or as X-API-Key." }, cors);
  }
  try {
    const asked = await evaluationOf(deps, request, project, key);
    return key === undefined
      ? bulk(request, asked, deps.events.connections(project), cors)
      : single(asked, key, cors);
  } catch (error) {
    const named = key === undefined ? {} : { key };
    const refusal = refusalOf(error);
    if (refusal !== undefined) {
      const { status, errorCode, message } = refusal;
      return json(status, { ...named, errorCode, errorDetails: message }, cors);
    }
    const failure = failureOf(error);
    if (failure === undefined) deps.onTrouble(error);
    const { status = 500, detail = "A server error occurred." } = failure ?? {};
    return json(status, { ...named, errorCode: "GENERAL", errorDetails: detail }, cors);
  }
}

type Asked = Awaited<ReturnType<typeof evaluationOf>>;

/** @throws {OfrepRefusal} and whatever reading a body throws. */
async function evaluationOf(
  { computation, flagSets, reading, now = Date.now }: OfrepDependencies,
  request: Request,
  project: EvaluatedProject,
  key: string | undefined,
) {
  const context = readContext(parseTolerantJson(await readText(request, reading)));
  const { set } = flagSets.of(project.id);
  if (key !== undefined && !set.byKey.has(key)) throw notFound(key);
  const detected = detectRuntime({
    userAgent: request.headers.get("user-agent"),
    hasBrowserHeaders: hasBrowserHeaders(request.headers),
  });
  // OpenFeature clients name themselves in no way of their own; what is no browser runs on a server.
  const runtime = detected === "client" ? "client" : "server";
  const evaluation = computation.run(set, {
    ...context,
    projectId: project.id,
    timezone: project.timezone,
    selection: { flagKeys: key === undefined ? null : [key], runtime },
    now: now(),
  });
  return { set, evaluation, runtime } as const;
}

function single({ set, evaluation, runtime }: Asked, key: string, cors: Cors): Response {
  const flag = set.byKey.get(key)!;
  const result = evaluation.results.get(key);
  if (result !== undefined) return json(result.failed ? 400 : 200, renderResult(flag, result), cors);
  if (!flag.active && isForRuntime(flag, runtime)) return json(200, renderInactive(flag), cors);
  throw notFound(key);
}

function bulk(
  request: Request,
  { set, evaluation, runtime }: Asked,
  eventStreams: JsonObject[] | undefined,
  cors: Cors,
): Response {
  const text = JSON.stringify({ flags: renderAll(set, evaluation.results, runtime), eventStreams });
  const etag = `W/"${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32)}"`;
  const headers = { ...cors, ETag: etag };
  if (isNotModified(request.headers.get("if-none-match"), etag)) {
    return new Response(null, { status: 304, headers });
  }
  return new Response(text, { headers: { "Content-Type": "application/json", ...headers } });
}

function renderAll(set: FlagSet, results: Asked["evaluation"]["results"], runtime: Asked["runtime"]) {
  return [
    ...[...results.values()].map((result) => renderResult(set.byKey.get(result.key)!, result)),
    // Said to be off, so that a client that asks for all flags sees what one that asks for each sees.
    ...set.inactive.filter((flag) => isForRuntime(flag, runtime)).map(renderInactive),
  ];
}

function notFound(key: string): OfrepRefusal {
  return new OfrepRefusal(404, "FLAG_NOT_FOUND", `There is no flag ${JSON.stringify(key)}.`);
}

function refusalOf(error: unknown): OfrepRefusal | undefined {
  if (error instanceof OfrepRefusal) return error;
  if (error instanceof Undecodable || error instanceof InvalidPayload || error instanceof SyntaxError) {
    return new OfrepRefusal(400, "PARSE_ERROR", error.message);
  }
  return undefined;
}

function json(status: number, body: object, cors: Cors): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json", ...cors },
  });
}
