/**
 * `/ofrep/v1/evaluate/flags`: flags for OpenFeature clients, one by one and all at once.
 *
 * The project's key comes as `Authorization: Bearer` or `X-API-Key`. Members of the context are person properties,
 * except `targetingKey` (the distinct id), `groups`, `group_properties`, `$device_id` and `$anon_distinct_id`.
 */

import { HttpFailure } from "../../http/failure.ts";
import { type Call, clientRoutes, Reply, type Route } from "../../http/route.ts";
import { dictionary, list, object, optional } from "../../http/shapes.ts";
import type { JsonObject } from "../../lib/json.ts";
import { isNotModified } from "../definitions/local-evaluation.ts";
import type { FlagSet } from "../evaluate/model.ts";
import { detectRuntime } from "../evaluate/selection.ts";
import type { Computation } from "../subject/computation.ts";
import { ofrepDialect, Undecodable } from "./dialects.ts";
import {
  Context,
  Evaluated,
  exampleContext,
  exampleEvaluated,
  ofrepKey,
  ofrepRefusals,
  openFeatureTag,
} from "./documentation.ts";
import { hasBrowserHeaders, requireContentType } from "./flags-request.ts";
import { isForRuntime, keyOf, OfrepRefusal, readContext, renderInactive, renderResult } from "./ofrep.ts";
import type { FlagEvents } from "./ofrep-events.ts";
import type { EvaluatedProject, EvaluationDependencies } from "./ports.ts";
import { parseTolerantJson } from "./tolerant-json.ts";

type OfrepDependencies = EvaluationDependencies & { computation: Computation; events: FlagEvents };

const ofrepPath = "/ofrep/v1/evaluate/flags";
const ofrepRoute = clientRoutes(ofrepDialect);

/** The two routes. */
export function ofrepRoutes(deps: OfrepDependencies): Route[] {
  return [
    ofrepRoute("POST", ofrepPath, {
      summary: "Compute all flags for an OpenFeature context",
      description: `${ofrepKey} With the answer's tag in \`If-None-Match\`, an unchanged answer is a 304.`,
      tag: openFeatureTag,
      body: Context,
      bodyExample: exampleContext,
      answers: {
        200: {
          description: "The flags, with an ETag.",
          schema: object({
            flags: list(Evaluated),
            eventStreams: optional(
              list(dictionary(), { description: "Where changes are told; absent: poll." }),
            ),
          }),
          example: {
            flags: [exampleEvaluated],
            eventStreams: [
              {
                type: "sse",
                endpoint: { requestUri: "/ofrep/v1/events?key=phc_…" },
                inactivityDelaySec: 120,
              },
            ],
          },
        },
        304: { description: "Unchanged since the given `If-None-Match`." },
        ...ofrepRefusals,
      },
      async handle(call) {
        const asked = await evaluationOf(deps, call, undefined);
        return bulk(call.request, asked, deps.events.connections(asked.project));
      },
    }),
    ofrepRoute("POST", `${ofrepPath}/:key`, {
      summary: "Compute one flag for an OpenFeature context",
      description: ofrepKey,
      tag: openFeatureTag,
      body: Context,
      bodyExample: exampleContext,
      answers: {
        200: { description: "The flag.", schema: Evaluated, example: exampleEvaluated },
        404: { description: "No such flag; `errorCode` is `FLAG_NOT_FOUND`." },
        ...ofrepRefusals,
      },
      async handle(call) {
        const key = call.params.key!;
        return single(await evaluationOf(deps, call, key), key);
      },
    }),
  ];
}

/** @throws {HttpFailure} no usable key. */
function projectOf({ projects }: OfrepDependencies, { headers }: Request): EvaluatedProject {
  const token = keyOf(headers);
  const project = token === undefined ? undefined : projects.findByToken(token);
  if (project !== undefined) return project;
  const detail = "Send the project's key as a Bearer token or as X-API-Key.";
  throw new HttpFailure(401, "authentication_error", "authentication_failed", detail);
}

type Asked = Awaited<ReturnType<typeof evaluationOf>>;

/** @throws {OfrepRefusal} @throws {HttpFailure} and whatever reading a body throws. */
async function evaluationOf(deps: OfrepDependencies, call: Call, key: string | undefined) {
  const { computation, flagSets, now = Date.now } = deps;
  const { request } = call;
  const project = projectOf(deps, request);
  requireContentType(request.headers);
  const context = readContext(parsed(await call.text()));
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
  return { project, set, evaluation, runtime } as const;
}

/** @throws {Undecodable} */
function parsed(text: string): unknown {
  try {
    return parseTolerantJson(text);
  } catch (error) {
    throw new Undecodable(error instanceof Error ? error.message : "the body is not JSON");
  }
}

function single({ set, evaluation, runtime }: Asked, key: string): Reply {
  const flag = set.byKey.get(key)!;
  const result = evaluation.results.get(key);
  if (result !== undefined) return new Reply(result.failed ? 400 : 200, renderResult(flag, result));
  if (!flag.active && isForRuntime(flag, runtime)) return new Reply(200, renderInactive(flag));
  throw notFound(key);
}

function bulk(
  request: Request,
  { set, evaluation, runtime }: Asked,
  eventStreams: JsonObject[] | undefined,
): Reply {
  const text = JSON.stringify({ flags: renderAll(set, evaluation.results, runtime), eventStreams });
  const etag = `W/"${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32)}"`;
  const headers = { ETag: etag };
  if (isNotModified(request.headers.get("if-none-match"), etag)) return new Reply(304, undefined, headers);
  return Reply.json(text, headers);
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
