/**
 * `/ofrep/v1/evaluate/flags`: flags for OpenFeature clients, one by one and all at once.
 *
 * The project's key comes as `Authorization: Bearer` or `X-API-Key`. Members of the context are person properties,
 * except `targetingKey` (the distinct id), `groups`, `group_properties`, `$device_id` and `$anon_distinct_id`.
 */

import { isNotModified } from "../../../http/etag.ts";
import { HttpFailure } from "../../../http/failure.ts";
import { type Call, clientRoutes, Reply, type Route } from "../../../http/route.ts";
import { dictionary, list, object, optional } from "../../../http/shapes.ts";
import type { JsonObject } from "../../../lib/json.ts";
import type { Computation } from "../../subject/computation.ts";
import { ofrepDialect } from "./dialects.ts";
import {
  Context,
  Evaluated,
  exampleContext,
  exampleEvaluated,
  ofrepKey,
  ofrepRefusals,
  openFeatureTag,
} from "./documentation.ts";
import { parsedBody, requireContentType } from "./flags-request.ts";
import {
  isForRuntime,
  keyOf,
  OfrepRefusal,
  readContext,
  renderInactive,
  renderResult,
  runtimeOf,
} from "./ofrep.ts";
import type { FlagEvents } from "./ofrep-events.ts";
import type { EvaluatedProject, EvaluationDependencies } from "./ports.ts";
import { bodyOfParts } from "./reply-body.ts";

type OfrepDependencies = EvaluationDependencies & { computation: Computation; events: FlagEvents };

const ofrepPath = "/ofrep/v1/evaluate/flags";
const ofrepRoute = clientRoutes(ofrepDialect);

/** The two routes. */
export function ofrepRoutes(deps: OfrepDependencies): Route[] {
  return [
    ofrepRoute("POST", ofrepPath, {
      summary: "Evaluate all flags for an OpenFeature context",
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
        return bulk(call.request, asked, deps.events.connections(asked.project, call.baseUrl));
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
  const text = await call.text();
  const context = readContext(parsedBody(text));
  const { set } = flagSets.of(project.id);
  if (key !== undefined && !set.byKey.has(key)) throw notFound(key);
  const runtime = runtimeOf(request.headers);
  const evaluation = computation.run(set, {
    ...context,
    words: `ofrep ${runtime} ${key ?? ""} ${text}`,
    projectId: project.id,
    timezone: project.timezone,
    selection: { flagKeys: key === undefined ? null : [key], runtime },
    now: now(),
  });
  return { project, set, evaluation, runtime } as const;
}

function single({ set, evaluation, runtime }: Asked, key: string): Reply {
  const flag = set.byKey.get(key)!;
  const result = evaluation.results.get(key);
  if (result !== undefined) return new Reply(result.failed ? 400 : 200, renderResult(flag, result));
  if (!flag.active && isForRuntime(flag, runtime)) return new Reply(200, renderInactive(flag));
  throw notFound(key);
}

/** A flag's outcome as it is written; the same outcome of a flag is the same object until the flag changes. */
interface Part {
  /** JSON. */
  bytes: Uint8Array;
  digest: Uint8Array;
}

const parts = new WeakMap<object, Part>();
const digestBytes = 16;

/** @param of what the part is remembered by. */
function partOf(of: object, render: () => JsonObject): Part {
  let part = parts.get(of);
  if (part === undefined) {
    const bytes = Buffer.from(JSON.stringify(render()));
    const digest = new Bun.CryptoHasher("sha256").update(bytes).digest().subarray(0, digestBytes);
    part = { bytes, digest };
    parts.set(of, part);
  }
  return part;
}

function bulk(request: Request, asked: Asked, eventStreams: JsonObject[] | undefined): Reply {
  const all = renderAll(asked);
  const streams = eventStreams === undefined ? "" : `,"eventStreams":${JSON.stringify(eventStreams)}`;
  const etag = etagOf(all, streams);
  const headers = { ETag: etag };
  if (isNotModified(request.headers.get("if-none-match"), etag)) return new Reply(304, undefined, headers);
  const body = bodyOfParts('{"flags":[', { parts: all.map(({ bytes }) => bytes), tail: `]${streams}}` });
  return Reply.json(body, headers);
}

/** A hash of hashes: the answer itself is several times as long. */
function etagOf(all: readonly Part[], streams: string): string {
  const digests = Buffer.allocUnsafe(all.length * digestBytes);
  for (const [place, { digest }] of all.entries()) digests.set(digest, place * digestBytes);
  const hasher = new Bun.CryptoHasher("sha256").update(digests).update(streams);
  return `W/"${hasher.digest("hex").slice(0, 32)}"`;
}

function renderAll({ set, evaluation, runtime }: Asked): Part[] {
  return [
    ...evaluation.list.map((result) =>
      partOf(result, () => renderResult(set.byKey.get(result.key)!, result)),
    ),
    // Said to be off, so that a client that asks for all flags sees what one that asks for each sees.
    ...set.inactive
      .filter((flag) => isForRuntime(flag, runtime))
      .map((flag) => partOf(flag, () => renderInactive(flag))),
  ];
}

function notFound(key: string): OfrepRefusal {
  return new OfrepRefusal(404, "FLAG_NOT_FOUND", `There is no flag ${JSON.stringify(key)}.`);
}
