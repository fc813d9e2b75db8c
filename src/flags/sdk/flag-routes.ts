/**
 * `/flags` and `/decide`: the values of a project's flags for one person, for client libraries.
 *
 * With and without a trailing slash, never redirecting. Source: contract, flag-evaluation 1 to 5; sdk-compat 4.3.
 */

import { type Call, clientRoutes, type Route, RouteResponse } from "../../http/route.ts";
import { object, optional, record, string } from "../../http/schemas.ts";
import type { MaybePromise } from "../../lib/concurrency.ts";
import { Evaluation } from "../evaluate/evaluate.ts";
import { compileFlagSet } from "../evaluate/flag-set.ts";
import type { FlagSet } from "../evaluate/model.ts";
import { detectRuntime } from "../evaluate/selection.ts";
import type { FlagEvaluation } from "../evaluation-context/flag-evaluation.ts";
import { type ClientConfigStrings, clientConfig } from "./client-config.ts";
import {
  exampleFlags,
  exampleRequest,
  FlagsReply,
  FlagsRequest as FlagsRequestShape,
  flagValuesTag,
  keyRejected,
  unreadable,
} from "./documentation.ts";
import { getReplyForm } from "./flags-reply.ts";
import {
  assertContentType,
  type FlagsRequest,
  hasBrowserHeaders,
  readFlagsRequest,
} from "./flags-request.ts";
import type { EvaluatedProject, EvaluationDeps } from "./ports.ts";
import { replyBody } from "./reply-body.ts";
import { flagsProfile, InvalidTokenError, MissingDistinctIdError } from "./route-profiles.ts";

type Endpoint = "flags" | "decide";

const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const noFlags: FlagSet = compileFlagSet([], [], []);
const noResults = new Evaluation([], false);

const flagsRoute = clientRoutes(flagsProfile);

/** The two endpoints. */
export function flagRoutes(
  deps: EvaluationDeps & { computation: FlagEvaluation; configs: ClientConfigStrings },
): Route[] {
  const rejections = { 400: unreadable, 401: keyRejected };
  const request = { tag: flagValuesTag, body: FlagsRequestShape, bodyExample: exampleRequest };
  const noPerson = {
    summary: "Get the server's capabilities without evaluating flags",
    tag: flagValuesTag,
    answers: { 200: { description: "No flags.", schema: record(), example: { flags: {} } } },
  };
  return [
    flagsRoute("POST", "/flags", {
      ...request,
      summary: "Evaluate all flags",
      description: "With `?v=2`. `?config=true` adds the settings of the browser library.",
      query: object({ v: optional(string()), config: optional(string()) }),
      answers: {
        200: { description: "The values.", schema: FlagsReply, example: exampleFlags },
        ...rejections,
      },
      handle: (call) => answer("flags", deps, call),
    }),
    flagsRoute("GET", "/flags", { ...noPerson, handle: ({ request }) => greeting("flags", request) }),
    flagsRoute("POST", "/decide", {
      ...request,
      summary: "Evaluate all flags (legacy)",
      query: object({ v: optional(string({ description: "1 to 4, selects the response format." })) }),
      answers: {
        200: {
          description: "The values, here for `v=3`, and the settings of the browser library.",
          schema: record(),
          example: { featureFlags: { "one-click-pay": true }, featureFlagPayloads: {} },
        },
        ...rejections,
      },
      handle: (call) => answer("decide", deps, call),
    }),
    flagsRoute("GET", "/decide", { ...noPerson, handle: ({ request }) => greeting("decide", request) }),
  ];
}

async function answer(
  endpoint: Endpoint,
  deps: EvaluationDeps & { computation: FlagEvaluation; configs: ClientConfigStrings },
  call: Call,
): Promise<RouteResponse> {
  const { request } = call;
  const parameters = getParameters(request.url);
  assertContentType(request.headers);
  const text = await call.text();
  const requested = readFlagsRequest(text);
  const project = getProject(deps, requested.token);
  const form = getReplyForm(endpoint, getVersion(parameters));
  const evaluatedAt = new Date((deps.now ?? Date.now)());
  let set = noFlags;
  let evaluation = noResults;
  if (!requested.areFlagsDisabled) {
    set = deps.flagSets.get(project.id).set;
    const evaluated = evaluateFor(deps.computation, set, project, requested, {
      request,
      text,
      surveysOnly: isOn(parameters.get("only_evaluate_survey_feature_flags")),
      now: evaluatedAt.getTime(),
    });
    // Awaiting a value would cost every request a tick.
    evaluation = evaluated instanceof Promise ? await evaluated : evaluated;
    if (requested.anonDistinctId) await deps.overrides.stored(project.id, requested.distinctId ?? "");
  }
  const stamp = {
    requestId: uuidShape.test(call.requestId) ? call.requestId : Bun.randomUUIDv7(),
    evaluatedAt,
  };
  const config = form.withConfig
    ? deps.configs.members(project.apiToken, deps.hasSurveys?.(project.id) ?? false)
    : undefined;
  return RouteResponse.json(replyBody(evaluation, form.shape, stamp, config));
}

/** @throws {InvalidTokenError} */
function getProject({ projects }: EvaluationDeps, token: string | undefined): EvaluatedProject {
  if (token === undefined) throw new InvalidTokenError("not_authenticated");
  const project = projects.findByToken(token);
  if (project === undefined) throw new InvalidTokenError("authentication_failed");
  return project;
}

/** @throws {MissingDistinctIdError} */
function evaluateFor(
  computation: FlagEvaluation,
  set: FlagSet,
  project: EvaluatedProject,
  asked: FlagsRequest,
  { request, text, surveysOnly, now }: { request: Request; text: string; surveysOnly: boolean; now: number },
): MaybePromise<Evaluation> {
  const { distinctId } = asked;
  if (distinctId === undefined) throw new MissingDistinctIdError();
  const { headers } = request;
  const runtime = detectRuntime({
    stated: asked.statedRuntime,
    userAgent: headers.get("user-agent"),
    // Lazy: read only when the user agent is not conclusive.
    get hasBrowserHeaders() {
      return hasBrowserHeaders(headers);
    },
  });
  return computation.run(set, {
    requestKey: `${runtime} ${surveysOnly} ${text}`,
    projectId: project.id,
    timezone: project.timezone,
    distinctId,
    anonDistinctId: asked.anonDistinctId,
    deviceId: asked.deviceId,
    groups: asked.groups,
    personProperties: asked.personProperties,
    groupProperties: asked.groupProperties,
    selection: {
      flagKeys: asked.flagKeys,
      contexts: asked.contexts,
      surveysOnly,
      runtime,
    },
    now,
  });
}

function getParameters(url: string): URLSearchParams {
  const mark = url.indexOf("?");
  return new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1));
}

function getVersion(parameters: URLSearchParams) {
  return {
    v: parameters.get("v") ?? parameters.get("version") ?? undefined,
    config: parameters.get("config") ?? undefined,
  };
}

function isOn(parameter: string | null): boolean {
  return parameter === "true" || parameter === "1";
}

/** The response to a GET from old clients and browsers: no flags, because it has no distinct ID. */
function greeting(endpoint: Endpoint, request: Request): RouteResponse {
  const { supportedCompression, config, toolbarParams, isAuthenticated, sessionRecording } = clientConfig(
    "",
    false,
  );
  const { shape } = getReplyForm(endpoint, getVersion(getParameters(request.url)));
  return new RouteResponse(200, {
    supportedCompression,
    config,
    toolbarParams,
    isAuthenticated,
    sessionRecording,
    ...(shape === "details" ? { flags: {} } : { featureFlags: shape === "keys" ? [] : {} }),
  });
}
