/** Answers that several routes document in the same words. */

import { retriedCodes } from "./errors.ts";
import type { Answer } from "./route.ts";
import { ApiFailure } from "./shapes.ts";

/** Of routes that ask the engine: it may be starting again, or the question may take too long. */
export const unavailable: Record<503, Answer> = {
  503: {
    description: `Not at this moment: ${Object.entries(retriedCodes)
      .map(([code, reason]) => `\`${code}\` (${reason})`)
      .join(", ")}. Repeat the request after the seconds in \`Retry-After\`.`,
    schema: ApiFailure,
    example: {
      type: "server_error",
      code: "engine_unavailable",
      detail: "Queries cannot be answered at this moment; the event store is being opened again.",
      attr: null,
    },
  },
};
