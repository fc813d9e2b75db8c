/**
 * How a kind of route speaks: the envelope of its refusals, its rules for pages on other origins, its answers to
 * methods that bring nothing. Every route record names its dialect; everything else is the same for all.
 */

import { apiCors, type CorsRules, publicCors } from "./cors.ts";
import { InvalidPayload, PayloadTooLarge } from "./decode/failures.ts";
import type { FailureBody, HttpFailure } from "./failure.ts";
import { bodyTooLarge, parseError } from "./failure.ts";
import { Reply } from "./reply.ts";

/** The request that is refused. */
export interface Refused {
  readonly request: Request;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
}

export interface Dialect {
  /** Absent: pages on other origins may read nothing. */
  readonly cors?: CorsRules;
  /** `Cache-Control` of answers that say none themselves. */
  readonly caching?: string;
  /** Whether its requests bring events. */
  readonly isCapture?: boolean;
  /** Whether HEAD is a GET without its body; on capture routes a GET stores an event. */
  readonly headIsGet: boolean;
  /**
   * Writes a refusal.
   *
   * @param failure what the error is to clients in general.
   * @param error   what was thrown, for dialects that have words of their own.
   */
  refuse(failure: HttpFailure, error: unknown, refused: Refused): Reply;
  /** The answer to an OPTIONS that is no browser's question; absent: it needs a key, like reading. */
  options?(): Reply;
}

/** The envelope of every classic failure. Source: contract, management-api 1.3. */
export function envelope(failure: HttpFailure, { requestId }: Refused): Reply {
  const body: FailureBody = {
    type: failure.type,
    code: failure.code,
    detail: failure.message,
    attr: failure.attr,
  };
  if (failure.status === 500) body.extra = { request_id: requestId };
  return new Reply(failure.status, body, failure.headers);
}

/** The management API. */
export const managementDialect: Dialect = {
  cors: apiCors,
  // Who is signed in to the console is known by a cookie, which caches do not look at.
  caching: "no-store",
  headIsGet: true,
  refuse(failure, error, refused) {
    if (error instanceof PayloadTooLarge) return envelope(bodyTooLarge(error.limitBytes), refused);
    if (error instanceof InvalidPayload) return envelope(parseError(error.message), refused);
    return envelope(failure, refused);
  },
};

/** Event capture. */
export const captureDialect: Dialect = {
  cors: { ...publicCors, preflightStatus: 200 },
  isCapture: true,
  headIsGet: false,
  refuse: (failure, _, refused) => envelope(failure, refused),
  options: () => new Reply(200, { status: "Ok" }),
};

/** What browsers and libraries fetch. */
export const filesDialect: Dialect = {
  cors: publicCors,
  headIsGet: true,
  refuse(failure, _, refused) {
    // Plain: a page in place of a script would be run as one.
    if (failure.status === 404) return Reply.text("Not found.\n", 404);
    return envelope(failure, refused);
  },
  options: () => new Reply(204),
};

/** What is for people and their tools on this server only. */
export const ownFilesDialect: Dialect = { ...filesDialect, cors: undefined };
