/**
 * `/flags` and `/decide`: the values of a project's flags for one person, for client libraries.
 *
 * With and without the slash at the end, never redirecting. Source: contract, flag-evaluation 1 to 5; sdk-compat 4.3.
 */

import { publicCorsHeaders } from "../../http/cors.ts";
import { methodNotAllowed } from "../../http/decode/answers.ts";
import { Evaluation } from "../evaluate/evaluate.ts";
import { compileFlagSet, type FlagSet } from "../evaluate/flag-set.ts";
import { detectRuntime } from "../evaluate/selection.ts";
import type { Computation } from "../subject/computation.ts";
import { type ClientConfigTexts, clientConfig } from "./client-config.ts";
import { NoDistinctId, refusal, TokenRefused } from "./failures.ts";
import { replyFormOf } from "./flags-reply.ts";
import { type FlagsRequest, readFlagsRequest } from "./flags-request.ts";
import type { EvaluatedProject, EvaluationDependencies } from "./ports.ts";
import { replyBody } from "./reply-body.ts";
import { type BodyReading, hasBrowserHeaders, readText } from "./request-text.ts";

export type Endpoint = "flags" | "decide";

const methods = "GET, POST, OPTIONS, HEAD";
const jsonType = "application/json";
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const noFlags: FlagSet = compileFlagSet([], [], []);
const noResults = new Evaluation([], false);

type Cors = Readonly<Record<string, string>>;

/** Makes the function that answers any request to one of the two endpoints. */
export function flagAnswers(
  endpoint: Endpoint,
  deps: EvaluationDependencies & {
    computation: Computation;
    configs: ClientConfigTexts;
    reading: BodyReading;
  },
): (request: Request) => Promise<Response> | Response {
  const { onTrouble, now = Date.now } = deps;

  const answerPost = async (request: Request, cors: Cors): Promise<Response> => {
    const parameters = parametersOf(request.url);
    const text = await readText(request, deps.reading);
    const asked = readFlagsRequest(text);
    const project = projectOf(deps, asked.token);
    const form = replyFormOf(endpoint, versionOf(parameters));
    const evaluatedAt = new Date(now());
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
    }
    const stamp = { requestId: requestIdOf(request), evaluatedAt };
    const config = form.withConfig ? deps.configs.members(project.apiToken) : undefined;
    return json(replyBody(evaluation, form.shape, stamp, config), cors);
  };

  return async (request) => {
    const cors = publicCorsHeaders(request);
    try {
      switch (request.method) {
        case "POST":
          return await answerPost(request, cors);
        case "GET":
          return json(greeting(endpoint, request), cors);
        case "HEAD":
          return new Response(null, { headers: { "Content-Type": jsonType, ...cors } });
        case "OPTIONS":
          return new Response(null, { status: 204, headers: { Allow: methods, ...cors } });
        default:
          return methodNotAllowed(request.method, methods, cors);
      }
    } catch (error) {
      return refusal(error, cors, onTrouble);
    }
  };
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

/** The client's own id of the request, when it is a UUID; else a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && uuidForm.test(given) ? given : Bun.randomUUIDv7();
}

/** What a GET gets, which old clients and people with a browser send: no flags, because it names nobody. */
function greeting(endpoint: Endpoint, request: Request): string {
  const { supportedCompression, config, toolbarParams, isAuthenticated, sessionRecording } = clientConfig("");
  const { shape } = replyFormOf(endpoint, versionOf(parametersOf(request.url)));
  return JSON.stringify({
    supportedCompression,
    config,
    toolbarParams,
    isAuthenticated,
    sessionRecording,
    ...(shape === "details" ? { flags: {} } : { featureFlags: shape === "keys" ? [] : {} }),
  });
}

function json(body: string | Uint8Array<ArrayBuffer>, cors: Cors): Response {
  return new Response(body, { headers: { "Content-Type": jsonType, ...cors } });
}
