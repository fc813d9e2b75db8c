/** How requests for flags are refused, in the words that clients know. Source: contract, flag-evaluation 4. */

import { publicCors } from "../../../http/cors.ts";
import { InvalidPayload, NothingSent, PayloadTooLarge } from "../../../http/decode/failures.ts";
import { type Dialect, envelope } from "../../../http/dialect.ts";
import { HttpFailure } from "../../../http/failure.ts";
import { Reply } from "../../../http/reply.ts";
import { type OfrepErrorCode, OfrepRefusal } from "./ofrep.ts";

/** The body cannot be read. */
export class Undecodable extends HttpFailure {
  constructor(reason: string) {
    super(400, "validation_error", "undecodable", reason);
  }
}

/** The request names nobody for whom flags could be computed. */
export class NoDistinctId extends HttpFailure {
  constructor() {
    const detail = "The distinct_id field is missing from the request. Please include a valid identifier.";
    super(400, "validation_error", "no_distinct_id", detail);
  }
}

/** No usable project key was sent. */
export class TokenRefused extends HttpFailure {
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

/** `/flags` and `/decide`: what cannot be read is explained in a sentence of plain text. */
export const flagsDialect: Dialect = {
  cors: publicCors,
  headIsGet: true,
  refuse(failure, error, refused) {
    if (error instanceof NoDistinctId) return Reply.text(error.message, 400);
    if (error instanceof Undecodable || error instanceof InvalidPayload) {
      const reason = wordsOf(failure, error).replace(/^failed to decode request: /, "");
      const sentence = `Failed to decode request: ${reason}. Please check your request format and try again.`;
      return Reply.text(sentence, 400);
    }
    const { status, type, code, attr, headers } = failure;
    return envelope(new HttpFailure(status, type, code, wordsOf(failure, error), attr, headers), refused);
  },
  options: () => new Reply(204),
};

/** OpenFeature. */
export const ofrepDialect: Dialect = {
  cors: publicCors,
  headIsGet: false,
  refuse(failure, error, { params }) {
    const named = params.key === undefined ? {} : { key: params.key };
    const { status, errorCode, message, headers } = ofrepRefusal(failure, error);
    return new Reply(status, { ...named, errorCode, errorDetails: message }, headers);
  },
  options: () => new Reply(204),
};

function ofrepRefusal(failure: HttpFailure, error: unknown) {
  const { status, headers } = failure;
  return { status, errorCode: errorCodeOf(status, error), message: wordsOf(failure, error), headers };
}

/** What reading a body throws speaks of events otherwise. */
function wordsOf(failure: HttpFailure, error: unknown): string {
  if (error instanceof NothingSent) return "the body is empty: send a JSON object";
  if (error instanceof PayloadTooLarge) return `the request is larger than ${error.limitBytes} bytes`;
  return failure.message;
}

function errorCodeOf(status: number, error: unknown): OfrepErrorCode | undefined {
  if (error instanceof OfrepRefusal) return error.errorCode;
  if (error instanceof Undecodable || error instanceof InvalidPayload) return "PARSE_ERROR";
  return status === 401 ? undefined : "GENERAL";
}
