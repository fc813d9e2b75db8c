/** Ends responses that are still being sent when their caller loses access (contract: management-api 2.7). */

import { AppError } from "../lib/errors.ts";

class AccessEndedError extends AppError {
  readonly code = "access_ended";
}

/**
 * The body of a response that takes long to send. It ends with an error when its caller loses access: the connection is
 * aborted, so that the client sees that the body is incomplete.
 *
 * @param isStillAllowed is called for each part.
 */
export function whileAllowed(
  body: ReadableStream<Uint8Array>,
  isStillAllowed: () => boolean,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (!isStillAllowed()) {
          const error = new AccessEndedError("The key or session of the request has ended.");
          await reader.cancel(error);
          throw error;
        }
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        await reader.cancel(reason);
      },
    },
    // No part is taken before it is sent.
    { highWaterMark: 0 },
  );
}
