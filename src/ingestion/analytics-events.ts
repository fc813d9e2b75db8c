/**
 * The newer capture protocol: key in a header, facts about the library in headers, an answer per event.
 *
 * Source: contract, ingestion 16; sdk-compat 4.9.
 */

import { KeyRefused } from "../http/decode/failures.ts";
import { captureDialect, type Dialect } from "../http/dialect.ts";
import { type Call, Reply } from "../http/route.ts";
import type { Intake } from "./intake.ts";
import type { Protocol } from "./request-entries.ts";
import { checkedToken } from "./token.ts";

/** The library looks for its own id of the request, or ours, in every answer. */
function withRequestId(reply: Reply, request: Request): Reply {
  const id = request.headers.get("posthog-request-id") ?? Bun.randomUUIDv7();
  return new Reply(reply.status, reply.body, { ...reply.headers, "PostHog-Request-Id": id });
}

/** The words of this protocol. */
export const analyticsDialect: Dialect = {
  ...captureDialect,
  refuse({ status, code, message, headers }, _, { request }) {
    const body = { error: code, error_description: message, error_uri: null };
    return withRequestId(new Reply(status, body, headers), request);
  },
};

/** Stores the events of a request and tells what became of each. */
export async function analyticsEvents(intake: Intake, call: Call): Promise<Reply> {
  const { headers } = call.request;
  const project = intake.projectOf(bearerToken(headers.get("authorization")));
  const protocol: Protocol = {
    kind: "analytics",
    sentAt: headers.get("posthog-request-timestamp"),
    sdkInfo: headers.get("posthog-sdk-info"),
  };
  const { results } = await intake.take(call, protocol, project);
  return withRequestId(Reply.json(results!), call.request);
}

function bearerToken(header: string | null): string {
  if (header === null) throw new KeyRefused("missing_api_key", "the Authorization header is missing");
  const [, token] = /^bearer\s+(.*)$/i.exec(header.trim()) ?? [];
  if (token === undefined)
    throw new KeyRefused("missing_api_key", "the Authorization header holds no bearer token");
  return checkedToken(token);
}
