/**
 * `/ofrep/v1/evaluate/flags`: flags for OpenFeature clients, single and bulk.
 *
 * The project's key is sent as `Authorization: Bearer` or `X-API-Key`. Members of the context are person properties,
 * except `targetingKey` (the distinct ID), `groups`, `group_properties`, `$device_id` and `$anon_distinct_id`.
 */

import { HttpError } from "../../http/http-error.ts";
import { type Call, clientRoutes, type Route, RouteResponse } from "../../http/route.ts";
import { isNotModified } from "../../http/route-response.ts";
import { list, object, optional, record } from "../../http/schemas.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import type { FlagEvaluation } from "../evaluation-context/flag-evaluation.ts";
import {
  Context,
  Evaluated,
  exampleContext,
  exampleEvaluated,
  ofrepKey,
  ofrepRejections,
  openFeatureTag,
} from "./documentation.ts";
import { assertContentType, parsedBody } from "./flags-request.ts";
import {
  getKey,
  getRuntime,
  isForRuntime,
  OfrepError,
  readContext,
  renderInactive,
  renderResult,
} from "./ofrep.ts";
import type { FlagEvents } from "./ofrep-events.ts";
import type { EvaluatedProject, EvaluationDeps } from "./ports.ts";
import { bodyOfParts } from "./reply-body.ts";
import { ofrepProfile } from "./route-profiles.ts";

type OfrepDeps = EvaluationDeps & { computation: FlagEvaluation; events: FlagEvents };

const ofrepPath = "/ofrep/v1/evaluate/flags";
const ofrepRoute = clientRoutes(ofrepProfile);

/** The two routes. */
export function ofrepRoutes(deps: OfrepDeps): Route[] {
  return [
    ofrepRoute("POST", ofrepPath, {
      summary: "Evaluate all flags for an OpenFeature context",
      description: `${ofrepKey} With the ETag in \`If-None-Match\`, an unmodified response is 304.`,
      tag: openFeatureTag,
      body: Context,
      bodyExample: exampleContext,
      answers: {
        200: {
          description: "The flags, with an ETag.",
          schema: object({
            flags: list(Evaluated),
            eventStreams: optional(list(record(), { description: "Event stream of changes; absent: poll." })),
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
        304: { description: "Not modified since the given `If-None-Match`." },
        ...ofrepRejections,
      },
      async handle(call) {
        const requested = await getEvaluation(deps, call, undefined);
        return bulk(call.request, requested, deps.events.connections(requested.project, call.baseUrl));
      },
    }),
    ofrepRoute("POST", `${ofrepPath}/:key`, {
      summary: "Evaluate one flag for an OpenFeature context",
      description: ofrepKey,
      tag: openFeatureTag,
      body: Context,
      bodyExample: exampleContext,
      answers: {
        200: { description: "The flag.", schema: Evaluated, example: exampleEvaluated },
        404: { description: "The flag does not exist; `errorCode` is `FLAG_NOT_FOUND`." },
        ...ofrepRejections,
      },
      async handle(call) {
        const key = call.params.key!;
        return single(await getEvaluation(deps, call, key), key);
      },
    }),
  ];
}

/** @throws {HttpError} the key is missing or invalid. */
function getProject({ projects }: OfrepDeps, { headers }: Request): EvaluatedProject {
  const token = getKey(headers);
  const project = token === undefined ? undefined : projects.findByToken(token);
  if (project !== undefined) return project;
  const detail = "Send the project's key as a Bearer token or as X-API-Key.";
  throw new HttpError(401, "authentication_error", "authentication_failed", detail);
}

type EvaluationRequest = Awaited<ReturnType<typeof getEvaluation>>;

/** @throws {OfrepError} @throws {HttpError} and errors of body parsing. */
async function getEvaluation(deps: OfrepDeps, call: Call, key: string | undefined) {
  const { computation, flagSets, now = Date.now } = deps;
  const { request } = call;
  const project = getProject(deps, request);
  assertContentType(request.headers);
  const text = await call.text();
  const context = readContext(parsedBody(text));
  const { set } = flagSets.get(project.id);
  if (key !== undefined && !set.byKey.has(key)) throw notFound(key);
  const runtime = getRuntime(request.headers);
  const evaluated = computation.run(set, {
    ...context,
    requestKey: `ofrep ${runtime} ${key ?? ""} ${text}`,
    projectId: project.id,
    timezone: project.timezone,
    selection: { flagKeys: key === undefined ? null : [key], runtime },
    now: now(),
  });
  const evaluation = evaluated instanceof Promise ? await evaluated : evaluated;
  return { project, set, evaluation, runtime } as const;
}

function single({ set, evaluation, runtime }: EvaluationRequest, key: string): RouteResponse {
  const flag = set.byKey.get(key)!;
  const result = evaluation.results.get(key);
  if (result !== undefined) return new RouteResponse(result.failed ? 400 : 200, renderResult(flag, result));
  if (!flag.active && isForRuntime(flag, runtime)) return new RouteResponse(200, renderInactive(flag));
  throw notFound(key);
}

/** A serialized flag result; the same result of a flag is the same object until the flag changes. */
interface Part {
  /** JSON. */
  bytes: Uint8Array;
  digest: Uint8Array;
}

const parts = new WeakMap<object, Part>();
const digestBytes = 16;

/** @param source cache key of the part. */
function getPart(source: object, render: () => JsonObject): Part {
  let part = parts.get(source);
  if (part === undefined) {
    const bytes = Buffer.from(JSON.stringify(render()));
    const digest = new Bun.CryptoHasher("sha256").update(bytes).digest().subarray(0, digestBytes);
    part = { bytes, digest };
    parts.set(source, part);
  }
  return part;
}

function bulk(
  request: Request,
  asked: EvaluationRequest,
  eventStreams: JsonObject[] | undefined,
): RouteResponse {
  const all = renderAll(asked);
  const streams = eventStreams === undefined ? "" : `,"eventStreams":${JSON.stringify(eventStreams)}`;
  const etag = getEtag(all, streams);
  const headers = { ETag: etag };
  if (isNotModified(request.headers.get("if-none-match"), etag))
    return new RouteResponse(304, undefined, headers);
  const body = bodyOfParts('{"flags":[', { parts: all.map(({ bytes }) => bytes), tail: `]${streams}}` });
  return RouteResponse.json(body, headers);
}

/** A hash of hashes: the response itself is several times as long. */
function getEtag(all: readonly Part[], streams: string): string {
  const digests = Buffer.allocUnsafe(all.length * digestBytes);
  for (const [index, { digest }] of all.entries()) digests.set(digest, index * digestBytes);
  const hasher = new Bun.CryptoHasher("sha256").update(digests).update(streams);
  return `W/"${hasher.digest("hex").slice(0, 32)}"`;
}

function renderAll({ set, evaluation, runtime }: EvaluationRequest): Part[] {
  return [
    ...evaluation.list.map((result) =>
      getPart(result, () => renderResult(set.byKey.get(result.key)!, result)),
    ),
    // Listed as off, so that bulk and single requests give the same result.
    ...set.inactive
      .filter((flag) => isForRuntime(flag, runtime))
      .map((flag) => getPart(flag, () => renderInactive(flag))),
  ];
}

function notFound(key: string): OfrepError {
  return new OfrepError(404, "FLAG_NOT_FOUND", `Flag ${JSON.stringify(key)} does not exist.`);
}
