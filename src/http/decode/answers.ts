/** The answers of the capture routes. Source: contract, ingestion 5.2, 6. */

import { BodyInterrupted, RequestRefused } from "./failures.ts";

type Cors = Readonly<Record<string, string>>;

const jsonType = { "Content-Type": "application/json" };
const retryAfterSeconds = "5";
const okBody = '{"status":"Ok"}';

/** A refusal as every kind of route can write it in its own words. */
export interface Failure {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What is answered to an error; undefined for one that is a defect of ours. */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof RequestRefused) {
    const { status, type, code, message } = error;
    // What is left of a body that was not waited for must not be taken for the next request.
    const headers: Record<string, string> = error instanceof BodyInterrupted ? { Connection: "close" } : {};
    return { status, type, code, detail: message, headers };
  }
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== "string" || !code.startsWith("journal_")) return undefined;
  return {
    status: 503,
    type: "server_error",
    code,
    detail: "transient error, please retry",
    headers: { "Retry-After": retryAfterSeconds },
  };
}

/** The answer to a defect of ours: the client learns that it was not its fault. */
export const internalFailure: Failure = {
  status: 500,
  type: "server_error",
  code: "error",
  detail: "A server error occurred.",
  headers: {},
};

/** A path that clients know and that the appliance does not serve. */
export const notFound: Failure = {
  status: 404,
  type: "invalid_request",
  code: "not_found",
  detail: "Endpoint not found.",
  headers: {},
};

/** A refusal in the envelope that all classic routes share. */
export function failureAnswer({ status, type, code, detail, headers }: Failure, cors: Cors): Response {
  const body = JSON.stringify({ type, code, detail, attr: null });
  return new Response(body, { status, headers: { ...jsonType, ...headers, ...cors } });
}

/** A method that a path does not have. */
export function methodNotAllowed(method: string, allowed: string, cors: Cors): Response {
  const failure = {
    status: 405,
    type: "invalid_request",
    code: "method_not_allowed",
    detail: `Method "${method}" not allowed.`,
    headers: { Allow: allowed },
  };
  return failureAnswer(failure, cors);
}

/** Everything that could be stored has been. Libraries take nothing but exactly this status for a success. */
export function okAnswer(cors: Cors): Response {
  return new Response(okBody, { headers: { ...jsonType, ...cors } });
}

/** A JSON answer of another content. */
export function jsonAnswer(body: string, headers: Cors): Response {
  return new Response(body, { headers: { ...jsonType, ...headers } });
}

/** The answer to a browser that is leaving the page and does not read it. */
export function beaconAnswer(cors: Cors): Response {
  return new Response(null, { status: 204, headers: cors });
}
