/**
 * The newer capture protocol: key and library in headers, and a result per event.
 *
 * Source: contract, ingestion 16; sdk-compat 4.9.
 */

import { InvalidApiKeyError } from "../http/decode/errors.ts";
import { type Call, RouteResponse } from "../http/route.ts";
import { captureProfile, type RouteProfile } from "../http/route-profile.ts";
import type { CaptureHandler } from "./event-intake.ts";
import type { Protocol } from "./request-entries.ts";
import { checkedToken } from "./token.ts";

/** The library expects its request ID, or the server's, in every response. */
function withRequestId(reply: RouteResponse, request: Request): RouteResponse {
  const id = request.headers.get("posthog-request-id") ?? Bun.randomUUIDv7();
  return new RouteResponse(reply.status, reply.body, { ...reply.headers, "PostHog-Request-Id": id });
}

/** Error responses of this protocol. */
export const batchResultsProfile: RouteProfile = {
  ...captureProfile,
  reject({ status, code, message, headers }, _, { request }) {
    const body = { error: code, error_description: message, error_uri: null };
    return withRequestId(new RouteResponse(status, body, headers), request);
  },
};

/** Stores the events of a request and returns a result for each. */
export async function analyticsEvents(intake: CaptureHandler, call: Call): Promise<RouteResponse> {
  const { headers } = call.request;
  const project = intake.findProject(bearerToken(headers.get("authorization")));
  const protocol: Protocol = {
    kind: "analytics",
    sentAt: headers.get("posthog-request-timestamp"),
    sdkInfo: headers.get("posthog-sdk-info"),
  };
  const { results } = await intake.take(call, protocol, project);
  return withRequestId(RouteResponse.json(results!), call.request);
}

function bearerToken(header: string | null): string {
  if (header === null) throw new InvalidApiKeyError("missing_api_key", "the Authorization header is missing");
  const [, token] = /^bearer\s+(.*)$/i.exec(header.trim()) ?? [];
  if (token === undefined)
    throw new InvalidApiKeyError("missing_api_key", "the Authorization header holds no bearer token");
  return checkedToken(token);
}
