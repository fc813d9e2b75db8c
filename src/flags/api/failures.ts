/** How requests for flags are refused, in the words that clients know. Source: contract, flag-evaluation 4. */

import { failureAnswer, failureOf, internalFailure } from "../../http/decode/answers.ts";
import { InvalidPayload } from "../../http/decode/failures.ts";
import { AppError } from "../../lib/errors.ts";

type Headers = Readonly<Record<string, string>>;

/** The body cannot be read. */
export class Undecodable extends AppError {
  readonly code = "undecodable";
}

/** The request names nobody for whom flags could be computed. */
export class NoDistinctId extends AppError {
  readonly code = "no_distinct_id";
  constructor() {
    super("The distinct_id field is missing from the request. Please include a valid identifier.");
  }
}

/** No usable project key was sent. */
export class TokenRefused extends AppError {
  constructor(readonly code: "not_authenticated" | "authentication_failed") {
    super(
      code === "not_authenticated"
        ? "No API token provided. Please include a valid API token in your request."
        : "The provided API key is invalid or has expired. Please check your API key and try again.",
    );
  }
}

/**
 * The answer to whatever was thrown while flags were asked for.
 *
 * @param onDefect told of errors that are none of the client's.
 */
export function refusal(error: unknown, headers: Headers, onDefect: (error: unknown) => void): Response {
  if (error instanceof TokenRefused) {
    const { code, message } = error;
    return failureAnswer(
      { status: 401, type: "authentication_error", code, detail: message, headers: {} },
      headers,
    );
  }
  if (error instanceof NoDistinctId) return plain(error.message, headers);
  if (error instanceof Undecodable || error instanceof InvalidPayload) {
    const reason = error.message.replace(/^failed to decode request: /, "");
    return plain(
      `Failed to decode request: ${reason}. Please check your request format and try again.`,
      headers,
    );
  }
  const failure = failureOf(error);
  if (failure === undefined) onDefect(error);
  return failureAnswer(failure ?? internalFailure, headers);
}

function plain(text: string, headers: Headers): Response {
  return new Response(text, {
    status: 400,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...headers },
  });
}
