/** Error responses of flag requests, in the form that clients know. Source: contract, flag-evaluation 4. */

import { publicCors } from "../../http/cors.ts";
import { EmptyPayloadError, InvalidPayloadError, PayloadTooLargeError } from "../../http/decode/errors.ts";
import { HttpError } from "../../http/http-error.ts";
import { envelope, type RouteProfile } from "../../http/route-profile.ts";
import { RouteResponse } from "../../http/route-response.ts";
import { OfrepError, type OfrepErrorCode } from "./ofrep.ts";

/** The body cannot be read. */
export class UndecodableBodyError extends HttpError {
  constructor(reason: string) {
    super(400, "validation_error", "undecodable", reason);
  }
}

/** The request has no distinct ID. */
export class MissingDistinctIdError extends HttpError {
  constructor() {
    const detail = "The distinct_id field is missing from the request. Please include a valid identifier.";
    super(400, "validation_error", "no_distinct_id", detail);
  }
}

/** No valid project key was sent. */
export class InvalidTokenError extends HttpError {
  constructor(code: "not_authenticated" | "authentication_failed") {
    super(
      401,
      "authentication_error",
      code,
      code === "not_authenticated"
        ? "No API token provided. Please include a valid API token in your request."
        : "The provided API key is invalid or has expired. Please check your API key and try again.",
    );
  }
}

/** `/flags` and `/decide`: errors in the request are explained in plain text. */
export const flagsProfile: RouteProfile = {
  cors: publicCors,
  headIsGet: true,
  reject(failure, error, rejected) {
    if (error instanceof MissingDistinctIdError) return RouteResponse.text(error.message, 400);
    if (error instanceof UndecodableBodyError || error instanceof InvalidPayloadError) {
      const reason = getMessages(failure, error).replace(/^failed to decode request: /, "");
      const sentence = `Failed to decode request: ${reason}. Please check your request format and try again.`;
      return RouteResponse.text(sentence, 400);
    }
    const { status, type, code, attr, headers } = failure;
    return envelope(new HttpError(status, type, code, getMessages(failure, error), attr, headers), rejected);
  },
  options: () => new RouteResponse(204),
};

/** OpenFeature. */
export const ofrepProfile: RouteProfile = {
  cors: publicCors,
  headIsGet: false,
  reject(failure, error, { params }) {
    const named = params.key === undefined ? {} : { key: params.key };
    const { status, errorCode, message, headers } = ofrepRejection(failure, error);
    return new RouteResponse(status, { ...named, errorCode, errorDetails: message }, headers);
  },
  options: () => new RouteResponse(204),
};

function ofrepRejection(failure: HttpError, error: unknown) {
  const { status, headers } = failure;
  return { status, errorCode: getErrorCode(status, error), message: getMessages(failure, error), headers };
}

/** Otherwise the error messages of body parsing mention events. */
function getMessages(failure: HttpError, error: unknown): string {
  if (error instanceof EmptyPayloadError) return "the body is empty: send a JSON object";
  if (error instanceof PayloadTooLargeError) return `the request is larger than ${error.limitBytes} bytes`;
  return failure.message;
}

function getErrorCode(status: number, error: unknown): OfrepErrorCode | undefined {
  if (error instanceof OfrepError) return error.errorCode;
  if (error instanceof UndecodableBodyError || error instanceof InvalidPayloadError) return "PARSE_ERROR";
  return status === 401 ? undefined : "GENERAL";
}
