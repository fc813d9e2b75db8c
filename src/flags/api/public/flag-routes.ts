/**
 * `/flags` and `/decide`: the values of a project's flags for one person, for client libraries.
 *
 * With and without the slash at the end, never redirecting. Source: contract, flag-evaluation 1 to 5; sdk-compat 4.3.
 */

import { type Call, clientRoutes, Reply, type Route } from "../../../http/route.ts";
import { dictionary, object, optional, text } from "../../../http/shapes.ts";
import { Evaluation } from "../../evaluate/evaluate.ts";
import { compileFlagSet } from "../../evaluate/flag-set.ts";
import type { FlagSet } from "../../evaluate/model.ts";
import { detectRuntime } from "../../evaluate/selection.ts";
import type { Computation } from "../../subject/computation.ts";
import { type ClientConfigTexts, clientConfig } from "./client-config.ts";
import { flagsDialect, NoDistinctId, TokenRefused } from "./dialects.ts";
import {
  exampleFlags,
  exampleRequest,
  FlagsReply,
  FlagsRequest as FlagsRequestShape,
  flagValuesTag,
  keyRefused,
  unreadable,
} from "./documentation.ts";
import { replyFormOf } from "./flags-reply.ts";
import {
  type FlagsRequest,
  hasBrowserHeaders,
  readFlagsRequest,
  requireContentType,
} from "./flags-request.ts";
import type { EvaluatedProject, EvaluationDependencies } from "./ports.ts";
import { replyBody } from "./reply-body.ts";

type Endpoint = "flags" | "decide";

const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const noFlags: FlagSet = compileFlagSet([], [], []);
const noResults = new Evaluation([], false);

const flagsRoute = clientRoutes(flagsDialect);

/** The two endpoints. */
export function flagRoutes(
  deps: EvaluationDependencies & { computation: Computation; configs: ClientConfigTexts },
): Route[] {
  const refusals = { 400: unreadable, 401: keyRefused };
  const request = { tag: flagValuesTag, body: FlagsRequestShape, bodyExample: exampleRequest };
  const nobody = {
    summary: "Get the server's capabilities without evaluating flags",
    tag: flagValuesTag,
    answers: { 200: { description: "No flags.", schema: dictionary(), example: { flags: {} } } },
  };
  return [
    flagsRoute("POST", "/flags", {
      ...request,
      summary: "Evaluate all flags",
      description: "With `?v=2`. With `?config=true` the settings of the browser library come along.",
      query: object({ v: optional(text()), config: optional(text()) }),
      answers: {
        200: { description: "The values.", schema: FlagsReply, example: exampleFlags },
        ...refusals,
      },
      handle: (call) => answer("flags", deps, call),
    }),
    flagsRoute("GET", "/flags", { ...nobody, handle: ({ request }) => greeting("flags", request) }),
    flagsRoute("POST", "/decide", {
      ...request,
      summary: "Evaluate all flags, for old clients",
      query: object({ v: optional(text({ description: "1 to 4; tells the form of the answer." })) }),
      answers: {
        200: {
          description: "The values, here for `v=3`, and the settings of the browser library.",
          schema: dictionary(),
          example: { featureFlags: { "one-click-pay": true }, featureFlagPayloads: {} },
        },
        ...refusals,
      },
      handle: (call) => answer("decide", deps, call),
    }),
    flagsRoute("GET", "/decide", { ...nobody, handle: ({ request }) => greeting("decide", request) }),
  ];
}

async function answer(
  endpoint: Endpoint,
  deps: EvaluationDependencies & { computation: Computation; configs: ClientConfigTexts },
  call: Call,
): Promise<Reply> {
  const { request } = call;
  const parameters = parametersOf(request.url);
  requireContentType(request.headers);
  const text = await call.text();
  const asked = readFlagsRequest(text);
  const project = projectOf(deps, asked.token);
  const form = replyFormOf(endpoint, versionOf(parameters));
  const evaluatedAt = new Date((deps.now ?? Date.now)());
  let set = noFlags;
  let evaluation = noResults;
  if (!asked.areFlagsDisabled) {
    set = deps.flagSets.of(project.id).set;
    evaluation = evaluateFor(deps.computation, set, project, asked, {
      request,
      text,
      surveysOnly: isOn(parameters.get("only_evaluate_survey_feature_flags")),
      now: evaluatedAt.getTime(),
    });
    if (asked.anonDistinctId) await deps.overrides.stored(project.id, asked.distinctId ?? "");
  }
  const stamp = {
    requestId: uuidShape.test(call.requestId) ? call.requestId : Bun.randomUUIDv7(),
    evaluatedAt,
  };
  const config = form.withConfig ? deps.configs.members(project.apiToken) : undefined;
  return Reply.json(replyBody(evaluation, form.shape, stamp, config));
}

/** @throws {TokenRefused} */
function projectOf({ projects }: EvaluationDependencies, token: string | undefined): EvaluatedProject {
  if (token === undefined) throw new TokenRefused("not_authenticated");
  const project = projects.findByToken(token);
  if (project === undefined) throw new TokenRefused("authentication_failed");
  return project;
}

/** @throws {NoDistinctId} */
function evaluateFor(
  computation: Computation,
  set: FlagSet,
  project: EvaluatedProject,
  asked: FlagsRequest,
  { request, text, surveysOnly, now }: { request: Request; text: string; surveysOnly: boolean; now: number },
): Evaluation {
  const { distinctId } = asked;
  if (distinctId === undefined) throw new NoDistinctId();
  const { headers } = request;
  const runtime = detectRuntime({
    stated: asked.statedRuntime,
    userAgent: headers.get("user-agent"),
    // Asked for only when the agent does not tell.
    get hasBrowserHeaders() {
      return hasBrowserHeaders(headers);
    },
  });
  return computation.run(set, {
    words: `${runtime} ${surveysOnly} ${text}`,
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

function parametersOf(url: string): URLSearchParams {
  const mark = url.indexOf("?");
  return new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1));
}

function versionOf(parameters: URLSearchParams) {
  return {
    v: parameters.get("v") ?? parameters.get("version") ?? undefined,
    config: parameters.get("config") ?? undefined,
  };
}

function isOn(parameter: string | null): boolean {
  return parameter === "true" || parameter === "1";
}

/** What a GET gets, which old clients and people with a browser send: no flags, because it names nobody. */
function greeting(endpoint: Endpoint, request: Request): Reply {
  const { supportedCompression, config, toolbarParams, isAuthenticated, sessionRecording } = clientConfig("");
  const { shape } = replyFormOf(endpoint, versionOf(parametersOf(request.url)));
  return new Reply(200, {
    supportedCompression,
    config,
    toolbarParams,
    isAuthenticated,
    sessionRecording,
    ...(shape === "details" ? { flags: {} } : { featureFlags: shape === "keys" ? [] : {} }),
  });
}
